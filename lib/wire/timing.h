/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The constants of the WireGuard paper, section 6.1, and of docs/protocol.md.
 * Times are in seconds unless the name says otherwise.
 */
#ifndef ADIT_WIRE_TIMING_H
#define ADIT_WIRE_TIMING_H

#define ADIT_REKEY_AFTER_TIME 120
#define ADIT_REJECT_AFTER_TIME 180
#define ADIT_REKEY_ATTEMPT_TIME 90
#define ADIT_REKEY_TIMEOUT 5
#define ADIT_REKEY_TIMEOUT_JITTER_MS 333
#define ADIT_KEEPALIVE_TIMEOUT 10
#define ADIT_COOKIE_SECRET_AGE 120
#define ADIT_COOKIE_SECRET_LATENCY 5
#define ADIT_INITIATIONS_PER_SECOND 50

/* ChaCha20-Poly1305: WireGuard's; AES-GCM: docs/protocol.md, "Limits". */
#define ADIT_REKEY_AFTER_MESSAGES_CHACHA (1ULL << 60)
#define ADIT_REJECT_AFTER_MESSAGES_CHACHA (~0ULL - (1ULL << 13))
#define ADIT_REKEY_AFTER_MESSAGES_GCM (1ULL << 28)
#define ADIT_REJECT_AFTER_MESSAGES_GCM (1ULL << 29)

#endif
