/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Outer packets that arrived on one CPU, in order.
 *
 * They belong to the poll of the queue. While more wait than it copes with, polls of other CPUs help:
 * a helper claims the first packet that nobody has, and leaves in it what came out. The queue's own
 * poll hands that on when the packet is the first one, and works behind a packet that it waits for.
 * It stays on its CPU, since others below it tell flows' order by CPU as well.
 */
#ifndef _ADIT_RX_QUEUE_H
#define _ADIT_RX_QUEUE_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>

#include "rx.h"

struct adit_rx_queue {
	struct napi_struct napi;
	struct sk_buff_head packets;
	struct sk_buff *unclaimed; /* the first one that nobody has; the queue's lock */
	unsigned int bytes; /* of memory; the queue's lock */
	unsigned int ahead; /* datagrams of packets that are claimed and not taken; the queue's lock */
	unsigned int asked; /* the CPU that was asked last; only a hint */
	int cpu;
	struct adit_rx rx;

	/* As a helper. */
	struct adit_rx_queue *helps; /* which one; null is none */
	struct work_struct wake_work; /* schedules the poll on the CPU of the queue */
	struct adit_rx help_rx;
};

/* In the outer packet while it is queued. */
struct adit_rx_cb {
	int ifindex; /* where it arrived: its device may go meanwhile */
	unsigned int datagrams;
	bool done; /* a helper has handled it */
	struct sk_buff *inner; /* what came out then: a list */
};

static inline struct adit_rx_cb *adit_rx_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct adit_rx_cb) > sizeof_field(struct sk_buff, cb));
	return (struct adit_rx_cb *)skb->cb;
}

void adit_rx_queue_init(struct adit_rx_queue *queue, struct adit_device *adit, int cpu);
/* False when it is full. `cb.ifindex` and `cb.datagrams` are set. Bottom halves disabled. */
bool adit_rx_queue_push(struct adit_rx_queue *queue, struct sk_buff *skb);
/*
 * The first packet, for the poll of the queue; null when there is none, or a helper is at it and will
 * wake the poll. Its `cb.done` tells whether it has been handled.
 */
struct sk_buff *adit_rx_queue_take(struct adit_rx_queue *queue);
/* Asks another CPU to help where more wait than a poll should have before it. */
void adit_rx_queue_ask(struct adit_rx_queue *queue, struct adit_rx_queue __percpu *all);
/* For a helper: a packet that it is to handle, which stays in the queue; null when there is none. */
struct sk_buff *adit_rx_queue_claim(struct adit_rx_queue *queue);
/* The helper is done with it. */
void adit_rx_queue_done(struct adit_rx_queue *queue, struct sk_buff *skb, struct sk_buff *inner);
/* While no poll runs. */
void adit_rx_queue_purge(struct adit_rx_queue *queue);

#endif
