// SPDX-License-Identifier: GPL-2.0
/*
 * The replay window, against a list of all counters that it took.
 */
#include "selftest.h"

#include <linux/bitmap.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "wire/replay.h"

#define COUNTERS (4 * ADIT_REPLAY_WINDOW)
#define ROUNDS 60000

struct oracle {
	unsigned long seen[BITS_TO_LONGS(COUNTERS)];
	u64 greatest;
};

static bool oracle_accept(struct oracle *oracle, u64 counter)
{
	if (counter < oracle->greatest && oracle->greatest - counter >= ADIT_REPLAY_WINDOW)
		return false;
	if (test_and_set_bit(counter, oracle->seen))
		return false;
	oracle->greatest = max(oracle->greatest, counter);
	return true;
}

static bool random_walk(struct adit_replay *window, struct oracle *oracle)
{
	u64 base = 0;
	u64 counter;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		/* Near the front as a rule, now and then anywhere. */
		if (get_random_u32() % 64 == 0)
			counter = get_random_u32() % COUNTERS;
		else
			counter = base + get_random_u32() % 64;
		if (i % 2)
			base = min_t(u64, base + 1, COUNTERS - 64);
		if (counter >= COUNTERS)
			continue;
		if (adit_replay_accept(window, counter) != oracle_accept(oracle, counter)) {
			pr_err("adit: replay window is wrong about counter %llu\n", counter);
			return false;
		}
	}
	return true;
}

static bool edges(struct adit_replay *window)
{
	const u64 last = U64_MAX - (1ULL << 13);

	memset(window, 0, sizeof(*window));
	return adit_replay_accept(window, 0) && !adit_replay_accept(window, 0) &&
	       adit_replay_accept(window, ADIT_REPLAY_WINDOW) &&
	       !adit_replay_accept(window, 0) && adit_replay_accept(window, 1) &&
	       !adit_replay_accept(window, 1) && adit_replay_accept(window, last) &&
	       !adit_replay_accept(window, last) &&
	       !adit_replay_accept(window, last - ADIT_REPLAY_WINDOW) &&
	       adit_replay_accept(window, last - ADIT_REPLAY_WINDOW + 1);
}

bool adit_selftest_replay(void)
{
	struct adit_replay *window;
	struct oracle *oracle;
	bool passed = false;

	window = kzalloc(sizeof(*window), GFP_KERNEL);
	oracle = kzalloc(sizeof(*oracle), GFP_KERNEL);
	if (window && oracle)
		passed = random_walk(window, oracle) && edges(window);
	kfree(window);
	kfree(oracle);
	return passed;
}
