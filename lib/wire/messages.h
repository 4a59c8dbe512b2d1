/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Layouts of the datagrams that cross the network, in the order of their bytes.
 *
 * Source: Donenfeld, "WireGuard: Next Generation Kernel Network Tunnel" (NDSS 2017), section 5.4.
 * The second byte, reserved and zero in WireGuard, holds adit's cipher suite in messages 1, 2
 * and 4; see docs/protocol.md. Freestanding: shared by the kernel module and by C++.
 */
#ifndef ADIT_WIRE_MESSAGES_H
#define ADIT_WIRE_MESSAGES_H

#include <linux/types.h>

enum adit_message_type {
	ADIT_MESSAGE_INITIATION = 1,
	ADIT_MESSAGE_RESPONSE = 2,
	ADIT_MESSAGE_COOKIE = 3,
	ADIT_MESSAGE_DATA = 4,
};

enum adit_suite {
	ADIT_SUITE_CHACHA20_POLY1305 = 0,
	ADIT_SUITE_AES_256_GCM = 1,
	ADIT_SUITE_AES_128_GCM = 2,
	ADIT_SUITE_COUNT = 3,
};

enum adit_length {
	ADIT_KEY_LENGTH = 32,
	ADIT_HASH_LENGTH = 32,
	ADIT_TAG_LENGTH = 16,
	ADIT_MAC_LENGTH = 16,
	ADIT_COOKIE_LENGTH = 16,
	ADIT_COOKIE_NONCE_LENGTH = 24,
	ADIT_TIMESTAMP_LENGTH = 12,
	ADIT_PADDING_MULTIPLE = 16,
};

/* The first four bytes of every message. */
struct adit_message_header {
	__u8 type;
	__u8 suite; /* zero in WireGuard and in a cookie reply */
	__u8 reserved[2]; /* zero */
} __attribute__((packed));

struct adit_message_macs {
	__u8 mac1[ADIT_MAC_LENGTH];
	__u8 mac2[ADIT_MAC_LENGTH];
} __attribute__((packed));

struct adit_message_initiation {
	struct adit_message_header header;
	__le32 sender_index;
	__u8 unencrypted_ephemeral[ADIT_KEY_LENGTH];
	__u8 encrypted_static[ADIT_KEY_LENGTH + ADIT_TAG_LENGTH];
	__u8 encrypted_timestamp[ADIT_TIMESTAMP_LENGTH + ADIT_TAG_LENGTH];
	struct adit_message_macs macs;
} __attribute__((packed));

struct adit_message_response {
	struct adit_message_header header;
	__le32 sender_index;
	__le32 receiver_index;
	__u8 unencrypted_ephemeral[ADIT_KEY_LENGTH];
	__u8 encrypted_nothing[ADIT_TAG_LENGTH];
	struct adit_message_macs macs;
} __attribute__((packed));

struct adit_message_cookie {
	struct adit_message_header header;
	__le32 receiver_index;
	__u8 nonce[ADIT_COOKIE_NONCE_LENGTH];
	__u8 encrypted_cookie[ADIT_COOKIE_LENGTH + ADIT_TAG_LENGTH];
} __attribute__((packed));

/* Followed by the encrypted packet and its 16-byte tag. */
struct adit_message_data {
	struct adit_message_header header;
	__le32 receiver_index;
	__le64 counter;
} __attribute__((packed));

/* Header and tag: what a datagram adds to its (padded) inner packet. */
#define ADIT_DATA_OVERHEAD (sizeof(struct adit_message_data) + ADIT_TAG_LENGTH)

#endif
