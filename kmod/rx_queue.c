// SPDX-License-Identifier: GPL-2.0

#include "rx_queue.h"

#include <linux/cpumask.h>
#include <linux/smp.h>

#include "wire/replay.h"

/* Of memory that waits on one CPU. */
#define QUEUE_BYTES (16U << 20)
/* A poll is helped beyond so many packets. Most are whole super-packets; one of TCP's is three. */
#define HELP_BEYOND 4
/* Who is late with an early packet must not find it outside of the window against replay. */
#define AHEAD_DATAGRAMS (ADIT_REPLAY_WINDOW / 2)

static void wake(struct work_struct *work)
{
	struct adit_rx_queue *queue = container_of(work, struct adit_rx_queue, wake_work);

	local_bh_disable();
	napi_schedule(&queue->napi);
	local_bh_enable();
}

void adit_rx_queue_init(struct adit_rx_queue *queue, struct adit_device *adit, int cpu)
{
	skb_queue_head_init(&queue->packets);
	queue->cpu = cpu;
	queue->rx.adit = adit;
	queue->help_rx.adit = adit;
	INIT_WORK(&queue->wake_work, wake);
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
			WRITE_ONCE(queue->unclaimed, skb);
		pushed = true;
	}
	spin_unlock(&queue->packets.lock);
	return pushed;
}

static struct sk_buff *claim(struct adit_rx_queue *queue)
{
	struct sk_buff *skb = queue->unclaimed;

	if (skb)
		WRITE_ONCE(queue->unclaimed, skb_queue_is_last(&queue->packets, skb) ?
						     NULL :
						     skb_queue_next(&queue->packets, skb));
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
		if (adit_rx_cb(skb)->done)
			queue->ahead -= adit_rx_cb(skb)->datagrams;
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
	    !READ_ONCE(queue->unclaimed) || num_online_cpus() == 1)
		return;
	cpu = cpumask_next(READ_ONCE(queue->asked), cpu_online_mask);
	if (cpu >= nr_cpu_ids)
		cpu = cpumask_first(cpu_online_mask);
	WRITE_ONCE(queue->asked, cpu);
	other = per_cpu_ptr(all, cpu);
	if (cpu != smp_processor_id() && !cmpxchg(&other->helps, NULL, queue))
		queue_work_on(cpu, system_highpri_wq, &other->wake_work);
}

struct sk_buff *adit_rx_queue_claim(struct adit_rx_queue *queue)
{
	struct sk_buff *skb;

	spin_lock(&queue->packets.lock);
	skb = queue->ahead < AHEAD_DATAGRAMS ? claim(queue) : NULL;
	if (skb)
		queue->ahead += adit_rx_cb(skb)->datagrams;
	spin_unlock(&queue->packets.lock);
	return skb;
}

void adit_rx_queue_done(struct adit_rx_queue *queue, struct sk_buff *skb, struct sk_buff *inner)
{
	bool first;

	spin_lock(&queue->packets.lock);
	adit_rx_cb(skb)->inner = inner;
	adit_rx_cb(skb)->done = true;
	first = skb_queue_is_first(&queue->packets, skb);
	spin_unlock(&queue->packets.lock);
	/* Else whoever has the first one wakes the poll. */
	if (!first)
		return;
	if (queue->cpu == smp_processor_id())
		napi_schedule(&queue->napi);
	else
		queue_work_on(queue->cpu, system_highpri_wq, &queue->wake_work);
}

void adit_rx_queue_purge(struct adit_rx_queue *queue)
{
	struct sk_buff *skb;

	cancel_work_sync(&queue->wake_work);
	WRITE_ONCE(queue->helps, NULL);
	WRITE_ONCE(queue->unclaimed, NULL);
	queue->bytes = 0;
	queue->ahead = 0;
	while ((skb = skb_dequeue(&queue->packets)) != NULL) {
		kfree_skb_list(adit_rx_cb(skb)->inner);
		kfree_skb(skb);
	}
}
