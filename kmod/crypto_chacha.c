// SPDX-License-Identifier: GPL-2.0
/*
 * ChaCha20-Poly1305 (RFC 8439) by one call of each primitive.
 *
 * The key of Poly1305 is the first block of the key stream. Running ChaCha20 over 64 zero bytes
 * and the text behind them gives both at once, in whole groups of blocks, which the vectorised
 * code does best. The zero bytes are made in the bytes before the text, and these are put back.
 */
#include "compat.h"
#include "crypto.h"

#include <crypto/poly1305.h>
#include <linux/string.h>

/*
 * From a source that must not be written to, so much is copied to stand behind the zero bytes.
 * Large variables are not cleared first: all that is read of them is written before.
 */
#define STAGED 448

struct words {
	u64 word[ADIT_CRYPTO_HEADROOM / sizeof(u64)];
};

static void start(u32 *state, const u8 *key, u64 counter)
{
	unsigned int i;

	state[0] = CHACHA_CONSTANT_EXPA;
	state[1] = CHACHA_CONSTANT_ND_3;
	state[2] = CHACHA_CONSTANT_2_BY;
	state[3] = CHACHA_CONSTANT_TE_K;
	for (i = 0; i < 8; i++)
		state[4 + i] = get_unaligned_le32(key + 4 * i);
	state[12] = 0;
	state[13] = 0;
	state[14] = lower_32_bits(counter);
	state[15] = upper_32_bits(counter);
}

/* Of a length that the compiler knows, and knows how to copy without a call. */
static inline void save(struct words *saved, const u8 *place)
{
	memcpy(saved->word, place, sizeof(saved->word));
}

static inline void restore(u8 *place, const struct words *saved)
{
	memcpy(place, saved->word, sizeof(saved->word));
}

static inline void zero_words(u8 *place)
{
	memset(place, 0, ADIT_CRYPTO_HEADROOM);
}

/* The lengths of associated data, which there is none of, and of the text. */
static void put_lengths(u8 *place, size_t length)
{
	put_unaligned_le64(0, place);
	put_unaligned_le64(length, place + sizeof(u64));
}

/* Writes the tag behind the ciphertext, where there is room for padding and lengths before. */
static void append_tag(const u8 *poly_key, u8 *text, size_t length)
{
	size_t padded = round_up(length, POLY1305_BLOCK_SIZE);
	struct poly1305_desc_ctx poly __uninitialized;

	BUILD_BUG_ON(ADIT_CRYPTO_TAILROOM + 1 < POLY1305_BLOCK_SIZE);
	memset(text + length, 0, POLY1305_BLOCK_SIZE);
	put_lengths(text + padded, length);
	poly1305_init(&poly, poly_key);
	poly1305_update(&poly, text, padded + POLY1305_BLOCK_SIZE);
	poly1305_final(&poly, text + length);
}

/* A block of the last `rest` bytes of a text that a tag follows, and zeros. */
static inline void put_rest(u8 *block, const u8 *from, size_t rest)
{
	u64 low = get_unaligned_le64(from);
	u64 high = get_unaligned_le64(from + sizeof(u64));
	unsigned int unused = BITS_PER_BYTE * (POLY1305_BLOCK_SIZE - rest);

	BUILD_BUG_ON(ADIT_TAG_LENGTH + 1 < POLY1305_BLOCK_SIZE);
	if (unused >= 64) {
		low &= U64_MAX >> (unused - 64);
		high = 0;
	} else {
		high &= U64_MAX >> unused;
	}
	put_unaligned_le64(low, block);
	put_unaligned_le64(high, block + sizeof(u64));
}

/* The tag of ciphertext that must not be written to. */
static void authenticate(u8 tag[ADIT_TAG_LENGTH], const u8 *poly_key, const u8 *text, size_t length)
{
	size_t rest = length % POLY1305_BLOCK_SIZE;
	u8 tail[2 * POLY1305_BLOCK_SIZE] __aligned(8);
	struct poly1305_desc_ctx poly __uninitialized;
	u8 *lengths = tail;

	poly1305_init(&poly, poly_key);
	poly1305_update(&poly, text, length - rest);
	/* The rest, padding, and the lengths, in whole blocks too. */
	if (rest) {
		put_rest(tail, text + length - rest, rest);
		lengths += POLY1305_BLOCK_SIZE;
	}
	put_lengths(lengths, length);
	poly1305_update(&poly, tail, lengths + POLY1305_BLOCK_SIZE - tail);
	poly1305_final(&poly, tag);
}

void adit_chacha_seal(const u8 *key, u8 *text, size_t length, u64 counter)
{
	struct adit_chacha chacha __uninitialized;
	u8 *block = text - ADIT_CRYPTO_HEADROOM;
	struct words saved __uninitialized;

	start(adit_chacha_words(&chacha), key, counter);
	save(&saved, block);
	zero_words(block);
	adit_chacha_crypt(&chacha, block, block, ADIT_CRYPTO_HEADROOM + length);
	append_tag(block, text, length);
	restore(block, &saved);
	memzero_explicit(&chacha, sizeof(chacha));
}

/* The ciphertext is needed once more, before it goes. */
static void open_in_place(struct adit_chacha *chacha, u8 *text, size_t length, u8 *expected)
{
	u8 block[ADIT_CRYPTO_HEADROOM] __aligned(8) __uninitialized;

	zero_words(block);
	adit_chacha_crypt(chacha, block, block, sizeof(block));
	authenticate(expected, block, text, length);
	adit_chacha_crypt(chacha, text, text, length);
	memzero_explicit(block, sizeof(block));
}

/*
 * What stands before the ciphertext takes the place of the zero bytes, and is taken out of the key
 * again.
 */
static void open_at_once(struct adit_chacha *chacha, u8 *to, const u8 *from, size_t length,
			 u8 *expected)
{
	const u8 *before = from - ADIT_CRYPTO_HEADROOM;
	u8 *block = to - ADIT_CRYPTO_HEADROOM;
	u8 poly_key[POLY1305_KEY_SIZE];
	struct words saved __uninitialized;

	save(&saved, block);
	adit_chacha_crypt(chacha, block, before, ADIT_CRYPTO_HEADROOM + length);
	crypto_xor_cpy(poly_key, block, before, sizeof(poly_key));
	restore(block, &saved);
	authenticate(expected, poly_key, from, length);
	memzero_explicit(poly_key, sizeof(poly_key));
}

static noinline void open_staged(struct adit_chacha *chacha, u8 *to, const u8 *from, size_t length,
				 u8 *expected)
{
	u8 staged[ADIT_CRYPTO_HEADROOM + STAGED] __aligned(16) __uninitialized;
	size_t first = min_t(size_t, length, STAGED);
	u8 *block = to - ADIT_CRYPTO_HEADROOM;
	u8 poly_key[POLY1305_KEY_SIZE];
	struct words saved __uninitialized;

	save(&saved, block);
	zero_words(staged);
	if (first == STAGED)
		memcpy(staged + ADIT_CRYPTO_HEADROOM, from, STAGED);
	else
		memcpy(staged + ADIT_CRYPTO_HEADROOM, from, first);
	adit_chacha_crypt(chacha, block, staged, ADIT_CRYPTO_HEADROOM + first);
	memcpy(poly_key, block, sizeof(poly_key));
	if (length > first)
		adit_chacha_crypt(chacha, to + first, from + first, length - first);
	authenticate(expected, poly_key, from, length);
	restore(block, &saved);
	memzero_explicit(poly_key, sizeof(poly_key));
}

bool adit_chacha_open(const u8 *key, u8 *to, const u8 *from, size_t before, size_t length,
		      u64 counter)
{
	struct adit_chacha chacha __uninitialized;
	u8 expected[ADIT_TAG_LENGTH];
	u8 tag[ADIT_TAG_LENGTH];

	start(adit_chacha_words(&chacha), key, counter);
	memcpy(tag, from + length, sizeof(tag));
	if (to == from)
		open_in_place(&chacha, to, length, expected);
	else if (before >= ADIT_CRYPTO_HEADROOM)
		open_at_once(&chacha, to, from, length, expected);
	else
		open_staged(&chacha, to, from, length, expected);
	memzero_explicit(&chacha, sizeof(chacha));
	return crypto_memneq(tag, expected, sizeof(tag)) == 0;
}
