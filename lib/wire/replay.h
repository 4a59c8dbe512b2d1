/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which counters of a session have been received: a sliding window as a ring of words, moved by
 * clearing words and never by shifting (RFC 6479). Freestanding: shared by the kernel module and
 * by C++.
 *
 * A window filled with zeros is one that has seen nothing. Callers serialise access to it, and
 * refuse counters at or above the key's reject limit themselves.
 */
#ifndef ADIT_WIRE_REPLAY_H
#define ADIT_WIRE_REPLAY_H

#include <linux/types.h>
#ifndef __KERNEL__
#include <stdbool.h>
#endif

#define ADIT_REPLAY_WORD_BITS 64
#define ADIT_REPLAY_WORDS 128 /* a power of two; 1 KiB */
/*
 * How many counters the window tells apart, the greatest one included: 8128. The word of the
 * greatest counter is in part still ahead of it, so one word of the ring does not count.
 */
#define ADIT_REPLAY_WINDOW ((ADIT_REPLAY_WORDS - 1) * ADIT_REPLAY_WORD_BITS)

struct adit_replay {
	__u64 greatest; /* counter accepted */
	__u64 seen[ADIT_REPLAY_WORDS];
};

/*
 * Whether adit_replay_accept() would take `counter`, changing nothing: to spare the decryption of
 * a replayed packet. It decides nothing, since another packet may be accepted in between.
 */
static inline bool adit_replay_check(const struct adit_replay *window, __u64 counter)
{
	__u64 word = counter / ADIT_REPLAY_WORD_BITS % ADIT_REPLAY_WORDS;

	if (counter > window->greatest)
		return true;
	if (window->greatest - counter >= ADIT_REPLAY_WINDOW)
		return false;
	return (window->seen[word] >> counter % ADIT_REPLAY_WORD_BITS & 1) == 0;
}

/*
 * Marks `counter` as received. False when it was before, or is older than the window: drop the
 * packet. Only for packets whose tag was right.
 */
static inline bool adit_replay_accept(struct adit_replay *window, __u64 counter)
{
	__u64 first = window->greatest / ADIT_REPLAY_WORD_BITS;
	__u64 last = counter / ADIT_REPLAY_WORD_BITS;

	if (!adit_replay_check(window, counter))
		return false;
	if (counter > window->greatest) {
		/* A jump beyond the ring clears each word once. */
		if (last - first > ADIT_REPLAY_WORDS)
			first = last - ADIT_REPLAY_WORDS;
		while (first < last)
			window->seen[++first % ADIT_REPLAY_WORDS] = 0;
		window->greatest = counter;
	}
	window->seen[last % ADIT_REPLAY_WORDS] |= 1ULL << counter % ADIT_REPLAY_WORD_BITS;
	return true;
}

#endif
