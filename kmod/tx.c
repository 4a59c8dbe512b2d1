// SPDX-License-Identifier: GPL-2.0

#include "tx.h"

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/percpu.h>

#include "compat.h"
#include "device.h"
#include "ecn.h"
#include "icmp.h"
#include "peer.h"
#include "segment.h"
#include "tx_batch.h"

/* A tunnel in a tunnel is sent at once; what is deeper goes through a worker: its own stack. */
#define DEPTH_INLINE 2
/* Deeper is a routing loop. */
#define DEPTH_MAX 6
#define DEFERRED_MAX 256

/* How many tunnels this packet is in already, on this CPU. */
static DEFINE_PER_CPU(unsigned int, depth);

struct deferred_cb {
	unsigned int depth;
};

static struct deferred_cb *deferred_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct deferred_cb) > sizeof_field(struct sk_buff, cb));
	return (struct deferred_cb *)skb->cb;
}

static unsigned int packets_of(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? max_t(unsigned int, skb_shinfo(skb)->gso_segs, 1) : 1;
}

/* The packet has an IP header of its protocol; `tos` is what the outer one gets of it. */
static bool is_ip(struct sk_buff *skb, u8 *tos)
{
	skb_reset_network_header(skb);
	if (skb->protocol == htons(ETH_P_IP)) {
		if (!pskb_network_may_pull(skb, sizeof(struct iphdr)) || ip_hdr(skb)->version != 4)
			return false;
		*tos = adit_outer_tos(ip_hdr(skb)->tos);
		return true;
	}
	if (skb->protocol == htons(ETH_P_IPV6)) {
		if (!pskb_network_may_pull(skb, sizeof(struct ipv6hdr)) ||
		    ipv6_hdr(skb)->version != 6)
			return false;
		*tos = adit_outer_tos(ipv6_get_dsfield(ipv6_hdr(skb)));
		return true;
	}
	return false;
}

static struct adit_peer *find_peer(struct adit_device *adit, const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IP))
		return adit_allowedips_find4(&adit->allowedips, (const u8 *)&ip_hdr(skb)->daddr);
	return adit_allowedips_find6(&adit->allowedips, ipv6_hdr(skb)->daddr.s6_addr);
}

/* Takes the packet. */
static void stage(struct adit_peer *peer, struct sk_buff *skb)
{
	struct adit_device *adit = peer->adit;
	unsigned int dropped;
	bool first;

	/* It may wait long, and a route holds its device. */
	skb_dst_drop(skb);
	dropped = adit_staging_push(&peer->staging, skb, &first);
	if (dropped)
		adit_drop(adit, peer, ADIT_DROP_QUEUE_FULL, dropped);
	if (first)
		adit_peer_kick(peer);
}

/* Sends the super-packet as its packets. False, and nothing sent, when the key is used up. */
static bool send_super(struct adit_tx_batch *batch, struct adit_session *session,
		       struct sk_buff *skb, u8 tos)
{
	struct adit_segmenter segmenter;
	struct sk_buff *list, *next;
	unsigned int count = 0;
	u64 counter;

	if (adit_segmenter_init(&segmenter, skb)) {
		if (!adit_session_reserve(session, segmenter.count, &counter))
			return false;
		adit_tx_batch_segments(batch, session, &segmenter, tos, counter);
		adit_tx_batch_flush(batch, skb);
		return true;
	}
	list = skb_gso_segment(skb, NETIF_F_SG | NETIF_F_HIGHDMA | NETIF_F_HW_CSUM);
	if (IS_ERR_OR_NULL(list)) {
		adit_drop(batch->adit, session->peer, ADIT_DROP_NOT_IP, packets_of(skb));
		kfree_skb(skb);
		return true;
	}
	for (next = list; next; next = next->next)
		count++;
	if (!adit_session_reserve(session, count, &counter)) {
		kfree_skb_list(list);
		return false;
	}
	skb_list_walk_safe(list, list, next) {
		skb_mark_not_on_list(list);
		adit_tx_batch_packet(batch, session, list, tos, counter++);
		consume_skb(list);
	}
	adit_tx_batch_flush(batch, NULL);
	consume_skb(skb);
	return true;
}

static bool send_single(struct adit_tx_batch *batch, struct adit_session *session,
			struct sk_buff *skb, u8 tos)
{
	u64 counter;

	if (skb->len + ADIT_DATA_OVERHEAD + ADIT_CRYPTO_HEADROOM > ADIT_RUN_ROOM) {
		adit_drop(batch->adit, session->peer, ADIT_DROP_SEND_FAILED, 1);
		adit_icmp_too_big(skb, READ_ONCE(batch->adit->dev->mtu));
		kfree_skb(skb);
		return true;
	}
	if (!adit_session_reserve(session, 1, &counter))
		return false;
	adit_tx_batch_packet(batch, session, skb, tos, counter);
	adit_tx_batch_flush(batch, skb);
	return true;
}

static void send_or_stage(struct adit_tx_batch *batch, struct adit_session *session,
			  struct sk_buff *skb, u8 tos)
{
	bool sent;

	if (skb_is_gso(skb))
		sent = send_super(batch, session, skb, tos);
	else
		sent = send_single(batch, session, skb, tos);
	if (!sent)
		stage(session->peer, skb);
}

static struct adit_session *usable_session(struct adit_peer *peer, s64 now)
{
	struct adit_session *session = rcu_dereference_bh(peer->slots.current_session);

	return session && adit_session_can_send(session, now) ? session : NULL;
}

static void flush_staged(struct adit_tx_batch *batch, struct adit_session *session)
{
	struct sk_buff_head packets;
	struct sk_buff *skb;
	u8 tos;

	adit_staging_take(&session->peer->staging, &packets);
	while ((skb = __skb_dequeue(&packets)) != NULL) {
		if (is_ip(skb, &tos))
			send_or_stage(batch, session, skb, tos);
		else
			kfree_skb(skb);
	}
}

/* Takes the packet. */
static void transmit(struct adit_device *adit, struct sk_buff *skb)
{
	struct adit_tx_batch batch;
	struct adit_session *session;
	struct adit_peer *peer;
	s64 now = adit_now();
	u8 tos;

	if (!is_ip(skb, &tos)) {
		adit_drop(adit, NULL, ADIT_DROP_NOT_IP, packets_of(skb));
		goto drop;
	}
	peer = find_peer(adit, skb);
	if (!peer) {
		adit_drop(adit, NULL, ADIT_DROP_NO_PEER, packets_of(skb));
		goto refuse;
	}
	session = usable_session(peer, now);
	if (unlikely(!session)) {
		/*
		 * A look without the lock is enough, though the endpoint may be written at the
		 * same time: it only decides whether the packet waits.
		 */
		if (!data_race(peer->endpoint.address.sa_family)) {
			adit_drop(adit, peer, ADIT_DROP_NO_ENDPOINT, packets_of(skb));
			goto refuse;
		}
		stage(peer, skb);
		return;
	}
	adit_tx_batch_init(&batch, adit, now);
	/* What waited for the key goes first. */
	if (unlikely(!adit_staging_empty(&peer->staging)))
		flush_staged(&batch, session);
	send_or_stage(&batch, session, skb, tos);
	return;
refuse:
	adit_icmp_unreachable(skb);
drop:
	kfree_skb(skb);
}

/* Leaves the packet to the worker. */
static void defer(struct adit_device *adit, struct sk_buff *skb, unsigned int level)
{
	if (level >= DEPTH_MAX || skb_queue_len_lockless(&adit->deferred) >= DEFERRED_MAX) {
		adit_drop(adit, NULL, level >= DEPTH_MAX ? ADIT_DROP_SEND_FAILED :
							   ADIT_DROP_QUEUE_FULL, packets_of(skb));
		kfree_skb(skb);
		return;
	}
	skb_dst_drop(skb);
	deferred_cb(skb)->depth = level;
	skb_queue_tail(&adit->deferred, skb);
	queue_work(adit_workqueue, &adit->deferred_work);
}

netdev_tx_t adit_tx_start(struct sk_buff *skb, struct net_device *dev)
{
	struct adit_device *adit = netdev_priv(dev);
	unsigned int level = __this_cpu_read(depth);

	/* Neither the ciphers nor the locks are for hard interrupts. */
	if (unlikely(in_hardirq() || irqs_disabled())) {
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	if (unlikely(level % DEPTH_INLINE == 0 && level > 0)) {
		defer(adit, skb, level);
		return NETDEV_TX_OK;
	}
	__this_cpu_write(depth, level + 1);
	transmit(adit, skb);
	__this_cpu_write(depth, level);
	return NETDEV_TX_OK;
}

void adit_tx_deferred(struct work_struct *work)
{
	struct adit_device *adit = container_of(work, struct adit_device, deferred_work);
	struct sk_buff *skb;

	while ((skb = skb_dequeue(&adit->deferred)) != NULL) {
		local_bh_disable();
		rcu_read_lock();
		__this_cpu_write(depth, deferred_cb(skb)->depth + 1);
		transmit(adit, skb);
		__this_cpu_write(depth, 0);
		rcu_read_unlock();
		local_bh_enable();
		cond_resched();
	}
}

void adit_tx_flush_staged(struct adit_peer *peer)
{
	struct adit_tx_batch batch;
	struct adit_session *session;
	s64 now = adit_now();

	local_bh_disable();
	rcu_read_lock();
	session = usable_session(peer, now);
	if (session) {
		adit_tx_batch_init(&batch, peer->adit, now);
		flush_staged(&batch, session);
	}
	rcu_read_unlock();
	local_bh_enable();
}

bool adit_tx_send_own(struct adit_peer *peer, const u8 *bytes, unsigned int length)
{
	struct adit_tx_batch batch;
	struct adit_session *session;
	s64 now = adit_now();
	bool sent = false;
	u64 counter;

	local_bh_disable();
	rcu_read_lock();
	session = rcu_dereference_bh(peer->slots.current_session);
	if (session && adit_session_can_send(session, now) &&
	    adit_session_reserve(session, 1, &counter)) {
		adit_tx_batch_init(&batch, peer->adit, now);
		adit_tx_batch_own(&batch, session, bytes, length, counter);
		adit_tx_batch_flush(&batch, NULL);
		sent = true;
	} else if (session) {
		adit_drop(peer->adit, peer, ADIT_DROP_KEY_EXPIRED, 1);
	}
	rcu_read_unlock();
	local_bh_enable();
	return sent;
}
