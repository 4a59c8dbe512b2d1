/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ciphers of the three suites, all of them the kernel's own. Nonces are the paper's: 4 zero
 * bytes, then the counter in little endian; there is no associated data.
 */
#ifndef _ADIT_CRYPTO_H
#define _ADIT_CRYPTO_H

#include <linux/types.h>

#include "wire/messages.h"

struct crypto_aead;

/* Writable bytes that seal and open need in front of the text; they are left as they were. */
#define ADIT_CRYPTO_HEADROOM 64
/* Writable bytes that seal needs behind the tag; it leaves them in any state. */
#define ADIT_CRYPTO_TAILROOM 16

/* One key of one suite, for one direction. */
struct adit_cipher {
	struct crypto_aead *gcm; /* of suites 1 and 2 */
	u8 chacha_key[ADIT_KEY_LENGTH] __aligned(8); /* of suite 0 */
	u8 suite;
};

/* crypto.c */
int adit_crypto_init(void);
void adit_crypto_exit(void);
/* Whether this kernel can do the suite. */
bool adit_suite_available(u8 suite);
const char *adit_suite_name(u8 suite);
/* May sleep. -EOPNOTSUPP for a suite that this kernel does not have. */
int adit_cipher_set(struct adit_cipher *cipher, u8 suite, const u8 key[ADIT_KEY_LENGTH]);
/* May sleep. Wipes the key. */
void adit_cipher_clear(struct adit_cipher *cipher);

/*
 * With bottom halves disabled. Where to put a text that is to be encrypted to `to`: there, or in
 * other memory of this CPU from which that is faster.
 */
u8 *adit_seal_place(const struct adit_cipher *cipher, u8 *to, size_t length);
/*
 * With bottom halves disabled. Encrypts the text at `text`, the place that was given for `to` or
 * `to` itself, and writes the tag behind it. False when the cipher failed, which leaves both in any
 * state.
 */
bool adit_seal(const struct adit_cipher *cipher, u8 *to, u8 *text, size_t length, u64 counter);
/*
 * With bottom halves disabled. Decrypts `length` bytes, which the tag follows, to `to`: the same
 * place or one that does not overlap, nor does what is before both. `before` bytes in front of
 * `from` are memory that may be read; with ADIT_CRYPTO_HEADROOM of them it is faster. False when
 * the tag is wrong, or the cipher failed; then `to` holds nothing of use.
 */
bool adit_open(const struct adit_cipher *cipher, u8 *to, const u8 *from, size_t before,
	       size_t length, u64 counter);

/* crypto_chacha.c */
void adit_chacha_seal(const u8 *key, u8 *text, size_t length, u64 counter);
bool adit_chacha_open(const u8 *key, u8 *to, const u8 *from, size_t before, size_t length,
		      u64 counter);

/* crypto_gcm.c */
int adit_gcm_init(void);
void adit_gcm_exit(void);
bool adit_gcm_available(void);
/* An error pointer on failure. May sleep. */
struct crypto_aead *adit_gcm_create(const u8 *key, unsigned int length);
void adit_gcm_destroy(struct crypto_aead *gcm);
u8 *adit_gcm_seal_place(u8 *to, size_t length);
bool adit_gcm_seal(struct crypto_aead *gcm, u8 *to, u8 *text, size_t length, u64 counter);
bool adit_gcm_open(struct crypto_aead *gcm, u8 *to, const u8 *from, size_t length, u64 counter);

/* crypto_speed.c: megabytes per second on one core, 0 for a suite that is not available. */
void adit_measure_suites(void);
extern u32 adit_suite_speeds[ADIT_SUITE_COUNT];

#endif
