// SPDX-License-Identifier: GPL-2.0

#include "rx.h"

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/sock.h>

#include "compat.h"
#include "device.h"
#include "peer.h"
#include "rx_queue.h"

/* So many datagrams are one unit of the poll's budget. */
#define DATAGRAMS_PER_UNIT 8

void adit_rx_purge(struct adit_device *adit)
{
	struct adit_rx_queue *queue;
	int cpu;

	for_each_possible_cpu(cpu) {
		queue = per_cpu_ptr(adit->rx_queues, cpu);
		adit_rx_queue_purge(queue);
		if (queue->rx.waits)
			adit_rx_super_drop(&queue->rx.super);
		queue->rx.waits = false;
	}
}

static unsigned int datagrams_of(const struct sk_buff *skb)
{
	unsigned int size = skb_shinfo(skb)->gso_size;

	return size ? DIV_ROUND_UP(skb->len - sizeof(struct udphdr), size) : 1;
}

int adit_rx_encapsulated(struct sock *sk, struct sk_buff *skb)
{
	struct adit_device *adit = rcu_dereference_sk_user_data(sk);
	struct adit_rx_queue *queue;

	if (unlikely(!adit || skb->len < sizeof(struct udphdr) ||
		     !pskb_may_pull(skb, sizeof(struct udphdr)))) {
		kfree_skb(skb);
		return 0;
	}
	adit_rx_cb(skb)->datagrams = datagrams_of(skb);
	adit_rx_cb(skb)->ifindex = skb->dev ? skb->dev->ifindex : skb->skb_iif;
	skb_dst_drop(skb);
	skb->dev = adit->dev;
	local_bh_disable();
	queue = this_cpu_ptr(adit->rx_queues);
	if (likely(adit_rx_queue_push(queue, skb))) {
		napi_schedule(&queue->napi);
		adit_rx_queue_ask(queue, adit->rx_queues);
	} else {
		adit_drop(adit, NULL, ADIT_DROP_QUEUE_FULL, adit_rx_cb(skb)->datagrams);
		kfree_skb(skb);
	}
	local_bh_enable();
	return 0;
}

static void read_source(struct sk_buff *skb, struct adit_endpoint *source)
{
	const struct udphdr *udp = (const struct udphdr *)skb->data;

	memset(source, 0, sizeof(*source));
	source->source_ifindex = adit_rx_cb(skb)->ifindex;
	if (skb->protocol == htons(ETH_P_IP)) {
		source->address4.sin_family = AF_INET;
		source->address4.sin_port = udp->source;
		source->address4.sin_addr.s_addr = ip_hdr(skb)->saddr;
		source->source4.s_addr = ip_hdr(skb)->daddr;
	} else {
		source->address6.sin6_family = AF_INET6;
		source->address6.sin6_port = udp->source;
		source->address6.sin6_addr = ipv6_hdr(skb)->saddr;
		source->address6.sin6_scope_id =
			ipv6_iface_scope_id(&ipv6_hdr(skb)->saddr, adit_rx_cb(skb)->ifindex);
		source->source6 = ipv6_hdr(skb)->daddr;
	}
}

const struct adit_endpoint *adit_rx_source(struct adit_rx *rx)
{
	if (!rx->source_known) {
		read_source(rx->outer, &rx->source);
		rx->source_known = true;
	}
	return &rx->source;
}

static bool has_handshake_length(u8 type, unsigned int length)
{
	switch (type) {
	case ADIT_MESSAGE_INITIATION:
		return length == sizeof(struct adit_message_initiation);
	case ADIT_MESSAGE_RESPONSE:
		return length == sizeof(struct adit_message_response);
	case ADIT_MESSAGE_COOKIE:
		return length == sizeof(struct adit_message_cookie);
	default:
		return false;
	}
}

static void handle(struct adit_rx *rx, const u8 *datagram, unsigned int length)
{
	if (length >= sizeof(struct adit_message_header) && !datagram[2] && !datagram[3]) {
		if (likely(datagram[0] == ADIT_MESSAGE_DATA)) {
			adit_rx_data(rx, datagram, length);
			return;
		}
		if (has_handshake_length(datagram[0], length)) {
			adit_handshake_receive(rx->adit, datagram, length, adit_rx_source(rx));
			return;
		}
	}
	adit_drop(rx->adit, NULL, ADIT_DROP_MALFORMED, 1);
}

/*
 * A datagram that is scattered over the outer packet, or in memory that may change or has no
 * lasting address.
 */
static void handle_scattered(struct adit_rx *rx, unsigned int offset, unsigned int length)
{
	struct adit_pages *pages = adit_pages(ADIT_RING_RX);
	struct adit_place place;

	if (!adit_pages_take(rx->adit, pages, ADIT_CRYPTO_HEADROOM, length, &place) ||
	    skb_copy_bits(rx->outer, offset, place.data, length)) {
		adit_drop(rx->adit, NULL, ADIT_DROP_RECEIVE_FAILED, 1);
		return;
	}
	handle(rx, place.data, length);
}

/*
 * Whether memory of the packet may be written to meanwhile: pages of a file that a program of this
 * machine sends without copying. A tag that is right then says nothing of what was decrypted.
 */
static bool may_change(const struct sk_buff *skb)
{
	const struct sk_buff *part;

	if (skb_has_shared_frag(skb))
		return true;
	skb_walk_frags(skb, part)
		if (skb_has_shared_frag(part))
			return true;
	return false;
}

/* A super-packet can end with a shorter datagram of another kind, so each is looked at alone. */
static void handle_outer(struct adit_rx *rx, struct sk_buff *skb)
{
	const unsigned int start = sizeof(struct udphdr);
	unsigned int total = skb->len - start;
	unsigned int segment = skb_shinfo(skb)->gso_size ? skb_shinfo(skb)->gso_size : total;
	unsigned int available = 0;
	unsigned int at, length;
	struct skb_seq_state state;
	const u8 *bytes = NULL;
	const u8 *end = NULL;

	rx->outer = skb;
	rx->before = 0;
	rx->source_known = false;
	rx->may_change = may_change(skb);
	rx->tos = skb->protocol == htons(ETH_P_IP) ? ip_hdr(skb)->tos :
						     ipv6_get_dsfield(ipv6_hdr(skb));
	if (total > segment) {
		adit_count(rx->adit, ADIT_COUNTER_RX_SUPER, 1);
		adit_count(rx->adit, ADIT_COUNTER_RX_SEGMENTS, adit_rx_cb(skb)->datagrams);
	} else {
		adit_count(rx->adit, ADIT_COUNTER_RX_SINGLE, 1);
	}
	if (total == 0)
		handle(rx, skb->data + start, 0);
	skb_prepare_seq_read(skb, start, skb->len, &state);
	for (at = 0; at < total; at += length) {
		length = min(segment, total - at);
		if (available >= length) {
			bytes = end;
			rx->before = segment;
		} else {
			available = skb_seq_read(at, &bytes, &state);
			/* The one before is in the same memory, or not. */
			rx->before = bytes == end ? segment : 0;
		}
		if (likely(available >= length && !rx->may_change &&
			   !IS_ENABLED(CONFIG_HIGHMEM))) {
			handle(rx, bytes, length);
			end = bytes + length;
			available -= length;
		} else {
			rx->before = 0;
			handle_scattered(rx, start + at, length);
			available = 0;
		}
	}
	skb_abort_seq_read(&state);
	adit_rx_settle(rx);
}

static unsigned int work_of(struct sk_buff *skb)
{
	return DIV_ROUND_UP(adit_rx_cb(skb)->datagrams, DATAGRAMS_PER_UNIT);
}

/* Hands on what a helper has made of the packet. */
static void release(struct adit_rx *rx, struct sk_buff *skb)
{
	struct sk_buff *inner, *next;

	/* What came before. */
	adit_rx_super_flush(&rx->super);
	skb_list_walk_safe(adit_rx_cb(skb)->inner, inner, next) {
		skb_mark_not_on_list(inner);
		napi_gro_receive(rx->super.napi, inner);
	}
}

/* Handles a packet of another queue, or of its own behind one that a helper has; 0 if there is none. */
static int handle_early(struct adit_rx_queue *queue, struct adit_rx_queue *other)
{
	struct sk_buff *skb = adit_rx_queue_claim(other);
	struct adit_rx *rx = &queue->help_rx;
	struct sk_buff *inner = NULL;
	int work;

	if (!skb)
		return 0;
	work = work_of(skb);
	rx->now = adit_now();
	adit_rx_super_init(&rx->super, rx->adit, &queue->napi);
	rx->super.kept = &inner;
	handle_outer(rx, skb);
	adit_rx_super_flush(&rx->super);
	rx->super.kept = NULL;
	if (other != queue)
		adit_count(rx->adit, ADIT_COUNTER_RX_HELPED, 1);
	adit_rx_queue_done(other, skb, inner);
	return work;
}

/* For a queue whose own poll is behind. */
static int help(struct adit_rx_queue *queue, int budget)
{
	struct adit_rx_queue *other = READ_ONCE(queue->helps);
	int work = 0;
	int more;

	while (other && work < budget) {
		more = handle_early(queue, other);
		work += more;
		if (!more) {
			WRITE_ONCE(queue->helps, NULL);
			break;
		}
	}
	return work;
}

/* The packets of the poll's own queue. */
static int handle_own(struct adit_rx_queue *queue, int budget)
{
	struct adit_rx *rx = &queue->rx;
	struct sk_buff *skb;
	int work = 0;
	int more;

	while (work < budget) {
		skb = adit_rx_queue_take(queue);
		if (unlikely(!skb)) {
			more = handle_early(queue, queue);
			if (!more)
				break;
			work += more;
			continue;
		}
		work += work_of(skb);
		if (unlikely(adit_rx_cb(skb)->done))
			release(rx, skb);
		else
			handle_outer(rx, skb);
		consume_skb(skb);
	}
	return work;
}

int adit_rx_poll(struct napi_struct *napi, int budget)
{
	struct adit_rx_queue *queue = container_of(napi, struct adit_rx_queue, napi);
	struct adit_rx *rx = &queue->rx;
	bool waits;
	int work;

	rx->now = adit_now();
	rcu_read_lock();
	if (rx->waits)
		adit_rx_super_update(&rx->super);
	else
		adit_rx_super_init(&rx->super, rx->adit, napi);
	work = handle_own(queue, budget);
	/*
	 * A device passes on what it has received in portions, and has its turn again before this
	 * poll. What continues the super-packet may be in the next one.
	 */
	waits = work > 0 && adit_rx_super_is_open(&rx->super);
	rx->waits = waits;
	if (!waits)
		adit_rx_super_flush(&rx->super);
	if (work < budget)
		work += help(queue, budget - work);
	rcu_read_unlock();
	/* Another CPU may poll once it is complete. */
	if (work < budget && napi_complete_done(napi, work) && waits)
		napi_schedule(napi);
	return min(work, budget);
}
