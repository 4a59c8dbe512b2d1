// SPDX-License-Identifier: GPL-2.0
/*
 * A key that is installed twice would start its counter twice. The keys themselves are not kept.
 */
#include "compat.h"
#include "session.h"

#include <linux/string.h>

static bool known(const struct adit_key_history *history, const u8 *fingerprint)
{
	unsigned int count = min_t(unsigned int, history->count, ARRAY_SIZE(history->known));
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!crypto_memneq(history->known[i], fingerprint, ADIT_FINGERPRINT_LENGTH))
			return true;
	return false;
}

static void remember(struct adit_key_history *history, const u8 *fingerprint)
{
	memcpy(history->known[history->count % ARRAY_SIZE(history->known)], fingerprint,
	       ADIT_FINGERPRINT_LENGTH);
	history->count++;
}

bool adit_key_history_add(struct adit_key_history *history, const u8 *fingerprint_key,
			  const struct adit_session_keys *keys)
{
	u8 receive[ADIT_FINGERPRINT_LENGTH];
	u8 send[ADIT_FINGERPRINT_LENGTH];

	adit_blake2s_keyed(send, sizeof(send), fingerprint_key, BLAKE2S_KEY_SIZE, keys->send,
			   sizeof(keys->send));
	adit_blake2s_keyed(receive, sizeof(receive), fingerprint_key, BLAKE2S_KEY_SIZE,
			   keys->receive, sizeof(keys->receive));
	if (known(history, send) || known(history, receive))
		return false;
	remember(history, send);
	remember(history, receive);
	return true;
}
