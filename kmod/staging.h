/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets to a peer that has no usable key yet. Bounded: the oldest gives way, since its sender
 * has likely given it up.
 */
#ifndef _ADIT_STAGING_H
#define _ADIT_STAGING_H

#include <linux/skbuff.h>

/* In packets on the wire: a super-packet counts as all that it stands for. */
#define ADIT_STAGING_CAPACITY 128

struct adit_staging {
	struct sk_buff_head packets;
	unsigned int segments; /* the queue's lock */
};

void adit_staging_init(struct adit_staging *staging);
/*
 * Takes the packet over. Returns how many packets gave way; `first` tells whether the queue was
 * empty before.
 */
unsigned int adit_staging_push(struct adit_staging *staging, struct sk_buff *skb, bool *first);
/* Moves all packets to `packets`, which is initialised here. */
void adit_staging_take(struct adit_staging *staging, struct sk_buff_head *packets);
void adit_staging_purge(struct adit_staging *staging);

static inline bool adit_staging_empty(const struct adit_staging *staging)
{
	return skb_queue_empty_lockless(&staging->packets);
}

#endif
