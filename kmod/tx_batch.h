/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Datagrams of one session, encrypted back to back into runs of pages, and sent as one outer
 * super-packet. All are of equal length but the last, which may be shorter. With bottom halves
 * disabled; lives on the stack.
 */
#ifndef _ADIT_TX_BATCH_H
#define _ADIT_TX_BATCH_H

#include <linux/skbuff.h>
#include <linux/types.h>

#include "pages.h"

struct adit_device;
struct adit_peer;
struct adit_session;
struct adit_segmenter;

struct adit_tx_batch {
	struct adit_device *adit;
	struct adit_peer *peer;
	struct adit_session *session; /* null while the batch is empty */
	struct sk_buff *outer;
	s64 now;
	unsigned int segment; /* bytes of every datagram but the last */
	unsigned int count;
	unsigned int bytes;
	u8 tos;
	bool closed; /* the last datagram is in */
	bool data; /* not only keepalives */
};

/* So many packets of this length go into one outer super-packet. */
unsigned int adit_tx_batch_segments_max(unsigned int mtu);
void adit_tx_batch_init(struct adit_tx_batch *batch, struct adit_device *adit, s64 now);
/*
 * Adds the packet of `skb`, whose network header is at its start, under this counter. The skb
 * stays the caller's.
 */
void adit_tx_batch_packet(struct adit_tx_batch *batch, struct adit_session *session,
			  const struct sk_buff *skb, u8 tos, u64 counter);
/* Adds bytes of our own: a control message, or a keepalive of length 0. */
void adit_tx_batch_own(struct adit_tx_batch *batch, struct adit_session *session,
		       const u8 *bytes, unsigned int length, u64 counter);
/* Adds all packets of a super-packet, under this and the following counters. */
void adit_tx_batch_segments(struct adit_tx_batch *batch, struct adit_session *session,
			    struct adit_segmenter *segmenter, u8 tos, u64 counter);
/* Sends what is there. Takes `owner`, if it is not null, in any case. */
void adit_tx_batch_flush(struct adit_tx_batch *batch, struct sk_buff *owner);

#endif
