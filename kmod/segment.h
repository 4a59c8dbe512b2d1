/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writes the packets that a TCP super-packet stands for, one after the other, into other memory:
 * headers as hardware would make them, payload copied and summed in one pass.
 */
#ifndef _ADIT_SEGMENT_H
#define _ADIT_SEGMENT_H

#include <linux/skbuff.h>
#include <linux/types.h>

/* IPv4 with options is 60 bytes, TCP as well. */
#define ADIT_SEGMENT_MAX_HEADER 120

struct adit_segmenter {
	struct sk_buff *skb;
	unsigned int ip_header; /* lengths in bytes */
	unsigned int header;
	unsigned int mss;
	unsigned int payload; /* of all segments */
	unsigned int count;
	unsigned int next;
	unsigned int fragment; /* of the skb, where the next payload lies or behind which it does */
	unsigned int fragment_at; /* bytes of the skb before it */
	bool v6;
	bool fixed_id;
	u16 id; /* host byte order */
	u32 sequence; /* host byte order */
	u8 flags;
	__wsum tcp_sum; /* of pseudo-header and TCP header, without what differs */
	__wsum ip_sum; /* of the IPv4 header, likewise */
};

/* False when the skb is not a plain TCP super-packet. It may be changed only in its layout. */
bool adit_segmenter_init(struct adit_segmenter *segmenter, struct sk_buff *skb);
/* Bytes of the packet that comes next; count > next. */
unsigned int adit_segment_length(const struct adit_segmenter *segmenter);
/* Writes it to `to`. */
void adit_segment_write(struct adit_segmenter *segmenter, u8 *to);

#endif
