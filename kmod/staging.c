// SPDX-License-Identifier: GPL-2.0

#include "staging.h"

static unsigned int segments_of(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? max_t(unsigned int, skb_shinfo(skb)->gso_segs, 1) : 1;
}

void adit_staging_init(struct adit_staging *staging)
{
	skb_queue_head_init(&staging->packets);
}

unsigned int adit_staging_push(struct adit_staging *staging, struct sk_buff *skb, bool *first)
{
	unsigned int segments = segments_of(skb);
	struct sk_buff_head gone;
	unsigned int dropped = 0;
	struct sk_buff *oldest;

	__skb_queue_head_init(&gone);
	spin_lock_bh(&staging->packets.lock);
	*first = skb_queue_empty(&staging->packets);
	while (staging->segments + segments > ADIT_STAGING_CAPACITY) {
		oldest = __skb_dequeue(&staging->packets);
		if (!oldest)
			break;
		staging->segments -= segments_of(oldest);
		dropped += segments_of(oldest);
		__skb_queue_tail(&gone, oldest);
	}
	staging->segments += segments;
	__skb_queue_tail(&staging->packets, skb);
	spin_unlock_bh(&staging->packets.lock);
	__skb_queue_purge(&gone);
	return dropped;
}

void adit_staging_take(struct adit_staging *staging, struct sk_buff_head *packets)
{
	__skb_queue_head_init(packets);
	spin_lock_bh(&staging->packets.lock);
	skb_queue_splice_tail_init(&staging->packets, packets);
	staging->segments = 0;
	spin_unlock_bh(&staging->packets.lock);
}

void adit_staging_purge(struct adit_staging *staging)
{
	struct sk_buff_head packets;

	adit_staging_take(staging, &packets);
	__skb_queue_purge(&packets);
}
