// SPDX-License-Identifier: GPL-2.0
/*
 * How fast this machine is with each suite: both ends choose the suite by it (docs/protocol.md).
 */
#include "crypto.h"

#include <linux/bottom_half.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>

#define PACKET 1408
#define PACKETS 32
#define ROUNDS 8

u32 adit_suite_speeds[ADIT_SUITE_COUNT];

/* Nanoseconds of the fastest round: what else the machine did is not of interest. */
static u64 fastest_round(const struct adit_cipher *cipher, u8 *text)
{
	u64 best = U64_MAX;
	u64 begin, took;
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		local_bh_disable();
		begin = ktime_get_ns();
		for (i = 0; i < PACKETS; i++)
			adit_seal(cipher, text, text, PACKET, i);
		took = ktime_get_ns() - begin;
		local_bh_enable();
		best = min(best, took);
		cond_resched();
	}
	return max_t(u64, best, 1);
}

static void measure(u8 suite, u8 *text)
{
	struct adit_cipher cipher = {};
	u8 key[ADIT_KEY_LENGTH];
	u64 nanoseconds;

	get_random_bytes(key, sizeof(key));
	if (adit_cipher_set(&cipher, suite, key))
		return;
	nanoseconds = fastest_round(&cipher, text);
	adit_suite_speeds[suite] = max_t(u64, 1, div64_u64((u64)PACKET * PACKETS * 1000,
							   nanoseconds));
	adit_cipher_clear(&cipher);
}

void adit_measure_suites(void)
{
	u8 *buffer;
	u8 suite;

	buffer = kzalloc(ADIT_CRYPTO_HEADROOM + PACKET + ADIT_TAG_LENGTH + ADIT_CRYPTO_TAILROOM,
			 GFP_KERNEL);
	if (!buffer)
		return;
	for (suite = 0; suite < ADIT_SUITE_COUNT; suite++)
		measure(suite, buffer + ADIT_CRYPTO_HEADROOM);
	kfree(buffer);
}
