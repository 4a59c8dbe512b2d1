// SPDX-License-Identifier: GPL-2.0

#include "crypto.h"

#include <linux/err.h>
#include <linux/string.h>

static const char *const suite_names[ADIT_SUITE_COUNT] = {
	[ADIT_SUITE_CHACHA20_POLY1305] = "chacha20-poly1305",
	[ADIT_SUITE_AES_256_GCM] = "aes-256-gcm",
	[ADIT_SUITE_AES_128_GCM] = "aes-128-gcm",
};

int __init adit_crypto_init(void)
{
	return adit_gcm_init();
}

void adit_crypto_exit(void)
{
	adit_gcm_exit();
}

bool adit_suite_available(u8 suite)
{
	if (suite == ADIT_SUITE_CHACHA20_POLY1305)
		return true;
	return suite < ADIT_SUITE_COUNT && adit_gcm_available();
}

const char *adit_suite_name(u8 suite)
{
	return suite < ADIT_SUITE_COUNT ? suite_names[suite] : "unknown";
}

int adit_cipher_set(struct adit_cipher *cipher, u8 suite, const u8 key[ADIT_KEY_LENGTH])
{
	struct crypto_aead *gcm;

	if (!adit_suite_available(suite))
		return -EOPNOTSUPP;
	if (suite == ADIT_SUITE_CHACHA20_POLY1305) {
		memcpy(cipher->chacha_key, key, sizeof(cipher->chacha_key));
	} else {
		gcm = adit_gcm_create(key, suite == ADIT_SUITE_AES_256_GCM ? 32 : 16);
		if (IS_ERR(gcm))
			return PTR_ERR(gcm);
		cipher->gcm = gcm;
	}
	cipher->suite = suite;
	return 0;
}

void adit_cipher_clear(struct adit_cipher *cipher)
{
	if (cipher->gcm)
		adit_gcm_destroy(cipher->gcm);
	memzero_explicit(cipher, sizeof(*cipher));
}

u8 *adit_seal_place(const struct adit_cipher *cipher, u8 *to, size_t length)
{
	return cipher->gcm ? adit_gcm_seal_place(to, length) : to;
}

bool adit_seal(const struct adit_cipher *cipher, u8 *to, u8 *text, size_t length, u64 counter)
{
	if (cipher->gcm)
		return adit_gcm_seal(cipher->gcm, to, text, length, counter);
	adit_chacha_seal(cipher->chacha_key, text, length, counter);
	return true;
}

bool adit_open(const struct adit_cipher *cipher, u8 *to, const u8 *from, size_t before,
	       size_t length, u64 counter)
{
	if (cipher->gcm)
		return adit_gcm_open(cipher->gcm, to, from, length, counter);
	return adit_chacha_open(cipher->chacha_key, to, from, before, length, counter);
}
