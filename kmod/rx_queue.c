// SPDX-License-Identifier: GPL-2.0

#include "rx_queue.h"

#include <linux/cpumask.h>
#include <linux/smp.h>

/* Of memory that waits on one CPU. */
#define QUEUE_BYTES (16U << 20)
/*
 * With more packets than this before it, a poll is helped. Most are whole super-packets, of which one
 * of TCP is three.
 */
#define HELP_BEYOND 4

/* On the CPU of the queue. */
static void begin_to_help(struct work_struct *work)
{
	struct adit_rx_queue *queue = container_of(work, struct adit_rx_queue, help_work);

	local_bh_disable();
	napi_schedule(&queue->napi);
	local_bh_enable();
}

void adit_rx_queue_init(struct adit_rx_queue *queue, struct adit_device *adit)
{
	skb_queue_head_init(&queue->packets);
	queue->rx.adit = adit;
	queue->help_rx.adit = adit;
	INIT_WORK(&queue->help_work, begin_to_help);
}

bool adit_rx_queue_push(struct adit_rx_queue *queue, struct sk_buff *skb)
{
	bool pushed = false;

	adit_rx_cb(skb)->done = false;
	adit_rx_cb(skb)->inner = NULL;
	spin_lock(&queue->packets.lock);
	if (queue->bytes + skb->truesize <= QUEUE_BYTES) {
		queue->bytes += skb->truesize;
		__skb_queue_tail(&queue->packets, skb);
		if (!queue->unclaimed)
			queue->unclaimed = skb;
		pushed = true;
	}
	spin_unlock(&queue->packets.lock);
	return pushed;
}

static struct sk_buff *claim(struct adit_rx_queue *queue)
{
	struct sk_buff *skb = queue->unclaimed;

	if (skb)
		queue->unclaimed = skb_queue_is_last(&queue->packets, skb) ?
					   NULL :
					   skb_queue_next(&queue->packets, skb);
	return skb;
}

struct sk_buff *adit_rx_queue_take(struct adit_rx_queue *queue)
{
	struct sk_buff *skb;

	spin_lock(&queue->packets.lock);
	skb = skb_peek(&queue->packets);
	if (skb && skb == queue->unclaimed)
		claim(queue);
	else if (skb && !adit_rx_cb(skb)->done)
		skb = NULL;
	if (skb) {
		queue->bytes -= skb->truesize;
		__skb_unlink(skb, &queue->packets);
	}
	spin_unlock(&queue->packets.lock);
	return skb;
}

void adit_rx_queue_ask(struct adit_rx_queue *queue, struct adit_rx_queue __percpu *all)
{
	struct adit_rx_queue *other;
	unsigned int cpu;

	if (likely(skb_queue_len_lockless(&queue->packets) <= HELP_BEYOND) ||
	    num_online_cpus() == 1)
		return;
	cpu = cpumask_next(READ_ONCE(queue->asked), cpu_online_mask);
	if (cpu >= nr_cpu_ids)
		cpu = cpumask_first(cpu_online_mask);
	WRITE_ONCE(queue->asked, cpu);
	other = per_cpu_ptr(all, cpu);
	if (cpu != smp_processor_id() && !cmpxchg(&other->helps, NULL, queue))
		queue_work_on(cpu, system_highpri_wq, &other->help_work);
}

struct sk_buff *adit_rx_queue_claim(struct adit_rx_queue *queue)
{
	struct sk_buff *skb;

	spin_lock(&queue->packets.lock);
	skb = claim(queue);
	spin_unlock(&queue->packets.lock);
	return skb;
}

void adit_rx_queue_done(struct adit_rx_queue *queue, struct sk_buff *skb, struct sk_buff *inner)
{
	spin_lock(&queue->packets.lock);
	adit_rx_cb(skb)->inner = inner;
	adit_rx_cb(skb)->done = true;
	spin_unlock(&queue->packets.lock);
	/* Here or where it runs already. */
	napi_schedule(&queue->napi);
}

void adit_rx_queue_purge(struct adit_rx_queue *queue)
{
	struct sk_buff *skb;

	cancel_work_sync(&queue->help_work);
	queue->helps = NULL;
	queue->unclaimed = NULL;
	queue->bytes = 0;
	while ((skb = skb_dequeue(&queue->packets)) != NULL) {
		kfree_skb_list(adit_rx_cb(skb)->inner);
		kfree_skb(skb);
	}
}
