// SPDX-License-Identifier: GPL-2.0

#include "rx_super.h"

#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/tcp.h>

#include "compat.h"
#include "copy.h"
#include "crypto.h"
#include "device.h"
#include "stats.h"

#define TCP_FLAGS_OFFSET 13
#define TCP_FLAG_BIT_PSH 0x08
#define TCP_FLAG_BIT_ACK 0x10
/* A packet of at most this length is copied. */
#define COPY_LENGTH 256
#define MAX_PACKET 65535U

/* A TCP packet that can be part of a super-packet. */
struct candidate {
	unsigned int ip_header;
	unsigned int header;
	unsigned int payload;
	u8 flags;
};

/*
 * What is forwarded must fit through other devices, which take no more than the header can tell.
 * Local sockets take more where the kernel knows of it. Under RCU.
 */
static unsigned int limit4(const struct net_device *dev)
{
	struct in_device *in_dev = __in_dev_get_rcu(dev);

	return ADIT_BIG_IPV4 && in_dev && !IN_DEV_FORWARD(in_dev) ? ADIT_BIG_SUPER : MAX_PACKET;
}

void adit_rx_super_init(struct adit_rx_super *super, struct adit_device *adit,
			struct napi_struct *napi)
{
	super->adit = adit;
	super->napi = napi;
	super->kept = NULL;
	super->limit4 = limit4(adit->dev);
	super->overlaps = false;
	super->count = 0;
	super->fragment_count = 0;
}

void adit_rx_super_update(struct adit_rx_super *super)
{
	super->limit4 = limit4(super->adit->dev);
}

static struct adit_pages *ring(void)
{
	return adit_pages(ADIT_RING_RX);
}

/* The next text can lie over the end of the last fragment. */
static bool can_overlap(const struct adit_rx_super *super, const struct adit_pages *pages,
			unsigned int length)
{
	const struct adit_rx_fragment *last;

	if (super->count == 0 || super->closed)
		return false;
	last = &super->fragments[super->fragment_count - 1];
	return pages->runs[pages->at] == last->page &&
	       pages->offset == last->offset + last->length &&
	       last->length >= super->header_length && length > super->header_length &&
	       pages->offset - super->header_length + length <= ADIT_RUN_ROOM;
}

u8 *adit_rx_super_place(struct adit_rx_super *super, unsigned int length)
{
	struct adit_pages *pages = ring();

	super->length = length;
	super->overlaps = can_overlap(super, pages, length);
	if (super->overlaps) {
		super->place.page = pages->runs[pages->at];
		super->place.offset = pages->offset - super->header_length;
		super->place.data = (u8 *)page_address(super->place.page) + super->place.offset;
		adit_copy_header(super->saved, super->place.data, super->header_length);
		pages->offset = super->place.offset + length;
		return super->place.data;
	}
	/* The cipher needs room in front, which must not be anybody's. */
	adit_pages_skip(pages, ADIT_CRYPTO_HEADROOM);
	if (!adit_pages_take(super->adit, pages, ADIT_CRYPTO_HEADROOM, max(length, 1U),
			     &super->place))
		return NULL;
	return super->place.data;
}

/* Puts back what the text lies over. */
static void restore(struct adit_rx_super *super)
{
	if (!super->overlaps)
		return;
	adit_copy_header(super->place.data, super->saved, super->header_length);
	super->overlaps = false;
}

void adit_rx_super_discard(struct adit_rx_super *super)
{
	unsigned int keep = super->overlaps ? super->header_length : 0;

	restore(super);
	adit_pages_rewind(ring(), &super->place, keep);
}

static bool parse_ip(const u8 *text, unsigned int length, bool v6, struct candidate *candidate)
{
	const struct ipv6hdr *ip6 = (const struct ipv6hdr *)text;
	const struct iphdr *ip = (const struct iphdr *)text;

	if (v6) {
		candidate->ip_header = sizeof(*ip6);
		return ip6->nexthdr == IPPROTO_TCP;
	}
	candidate->ip_header = sizeof(*ip);
	return ip->ihl == 5 && ip->protocol == IPPROTO_TCP && !ip_is_fragment(ip) &&
	       ip_fast_csum(ip, ip->ihl) == 0;
}

/* Nobody behind us would notice a wrong sum once the packet is part of a larger one. */
static bool tcp_sum_is_right(const u8 *text, unsigned int length, bool v6,
			     const struct candidate *candidate)
{
	const struct ipv6hdr *ip6 = (const struct ipv6hdr *)text;
	const struct iphdr *ip = (const struct iphdr *)text;
	unsigned int tcp_length = length - candidate->ip_header;
	__wsum sum = csum_partial(text + candidate->ip_header, tcp_length, 0);

	if (v6)
		return csum_ipv6_magic(&ip6->saddr, &ip6->daddr, tcp_length, IPPROTO_TCP, sum) == 0;
	return csum_tcpudp_magic(ip->saddr, ip->daddr, tcp_length, IPPROTO_TCP, sum) == 0;
}

static bool parse(const u8 *text, unsigned int length, bool v6, struct candidate *candidate)
{
	const struct tcphdr *tcp;

	if (!parse_ip(text, length, v6, candidate) ||
	    length < candidate->ip_header + sizeof(struct tcphdr))
		return false;
	tcp = (const struct tcphdr *)(text + candidate->ip_header);
	candidate->header = candidate->ip_header + tcp->doff * 4;
	candidate->flags = ((const u8 *)tcp)[TCP_FLAGS_OFFSET];
	if (tcp->doff < 5 || length <= candidate->header)
		return false;
	candidate->payload = length - candidate->header;
	return (candidate->flags & ~TCP_FLAG_BIT_PSH) == TCP_FLAG_BIT_ACK &&
	       tcp_sum_is_right(text, length, v6, candidate);
}

static bool same_ip(struct adit_rx_super *super, const u8 *text)
{
	const struct iphdr *first = (const struct iphdr *)super->header;
	const struct iphdr *ip = (const struct iphdr *)text;
	u16 step;

	/* All but the length; addresses too. */
	if (super->v6)
		return !memcmp(text, super->header, 4) &&
		       !memcmp(text + 6, super->header + 6, sizeof(struct ipv6hdr) - 6);
	if (memcmp(text, super->header, 2) || memcmp(text + 6, super->header + 6, 4) ||
	    ip->saddr != first->saddr || ip->daddr != first->daddr)
		return false;
	step = ntohs(ip->id) - ntohs(first->id);
	if (super->count == 1)
		super->fixed_id = step == 0 && (ip->frag_off & htons(IP_DF));
	return step == (super->fixed_id ? 0 : super->count);
}

/* A multiple of 4 bytes, and few. */
static inline bool same_options(const u8 *one, const u8 *other, unsigned int length)
{
	unsigned int i;

	for (i = 0; i < length; i += sizeof(u32))
		if (get_unaligned((const u32 *)(one + i)) != get_unaligned((const u32 *)(other + i)))
			return false;
	return true;
}

static bool same_tcp(const struct adit_rx_super *super, const u8 *text,
		     const struct candidate *candidate)
{
	const u8 *first_bytes = super->header + candidate->ip_header;
	const u8 *bytes = text + candidate->ip_header;
	const struct tcphdr *first = (const struct tcphdr *)first_bytes;
	const struct tcphdr *tcp = (const struct tcphdr *)bytes;
	unsigned int options = candidate->header - candidate->ip_header - sizeof(*tcp);

	return tcp->source == first->source && tcp->dest == first->dest &&
	       ntohl(tcp->seq) == ntohl(first->seq) + super->payload &&
	       tcp->ack_seq == first->ack_seq && tcp->window == first->window &&
	       tcp->urg_ptr == first->urg_ptr &&
	       same_options(bytes + sizeof(*tcp), first_bytes + sizeof(*tcp), options);
}

static bool continues(struct adit_rx_super *super, const u8 *text, bool v6,
		      const struct candidate *candidate)
{
	return super->count > 0 && !super->closed && super->v6 == v6 &&
	       super->header_length == candidate->header && candidate->payload <= super->mss &&
	       super->header_length + super->payload + candidate->payload <=
		       (v6 ? MAX_PACKET : super->limit4) &&
	       super->fragment_count < MAX_SKB_FRAGS && same_ip(super, text) &&
	       same_tcp(super, text, candidate);
}

/* The payload of the text becomes the end of the super-packet. */
static void add_payload(struct adit_rx_super *super, const struct candidate *candidate)
{
	struct adit_rx_fragment *last;

	if (super->overlaps) {
		/* The headers had the expected length, so that the payload follows the last one. */
		last = &super->fragments[super->fragment_count - 1];
		last->length += candidate->payload;
		restore(super);
	} else {
		last = &super->fragments[super->fragment_count++];
		last->page = super->place.page;
		last->offset = super->place.offset + candidate->header;
		last->length = candidate->payload;
		get_page(last->page);
	}
	adit_pages_rewind(ring(), &super->place, candidate->header + candidate->payload);
	super->payload += candidate->payload;
	super->count++;
	if (candidate->payload < super->mss || candidate->flags & TCP_FLAG_BIT_PSH)
		super->closed = true;
	super->header[candidate->ip_header + TCP_FLAGS_OFFSET] |= candidate->flags;
}

static void begin(struct adit_rx_super *super, bool v6, const struct candidate *candidate)
{
	super->v6 = v6;
	super->header_length = candidate->header;
	memcpy(super->header, super->place.data, candidate->header);
	super->mss = candidate->payload;
	super->payload = 0;
	super->closed = false;
	super->fixed_id = false;
	add_payload(super, candidate);
}

/*
 * The text was put over the end of the super-packet, but does not belong to it: moves it. False
 * without memory.
 */
static bool move_away(struct adit_rx_super *super)
{
	struct adit_place place;
	bool moved;

	if (!super->overlaps)
		return true;
	moved = adit_pages_take(super->adit, ring(), ADIT_CRYPTO_HEADROOM, super->length, &place);
	if (moved)
		memcpy(place.data, super->place.data, super->length);
	restore(super);
	if (moved)
		super->place = place;
	return moved;
}

static u32 flow_hash(const u8 *header, bool v6, unsigned int length)
{
	const struct iphdr *ip = (const struct iphdr *)header;
	u8 protocol = v6 ? ((const struct ipv6hdr *)header)->nexthdr : ip->protocol;
	unsigned int transport = v6 ? sizeof(struct ipv6hdr) : ip->ihl * 4;
	u32 ports = 0;

	if ((protocol == IPPROTO_TCP || protocol == IPPROTO_UDP) && length >= transport + 4 &&
	    (v6 || !ip_is_fragment(ip)))
		ports = get_unaligned((const u32 *)(header + transport));
	if (v6)
		return jhash2((const u32 *)(header + 8), 8, ports);
	return jhash_3words((__force u32)ip->saddr, (__force u32)ip->daddr, ports, protocol);
}

/* A packet whose header is in the linear part. */
static void hand_over(struct adit_rx_super *super, struct sk_buff *skb, bool v6,
		      unsigned int packets, unsigned int bytes)
{
	skb->dev = super->adit->dev;
	skb->protocol = v6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	skb_set_hash(skb, flow_hash(skb->data, v6, skb_headlen(skb)), PKT_HASH_TYPE_L4);
	adit_count_rx(super->adit->stats, packets, bytes);
	if (unlikely(super->kept)) {
		*super->kept = skb;
		super->kept = &skb->next;
		return;
	}
	napi_gro_receive(super->napi, skb);
}

/* How much of a packet is its headers, as far as GRO wants them in front. */
static unsigned int linear_length(const u8 *text, unsigned int length, bool v6)
{
	const struct iphdr *ip = (const struct iphdr *)text;
	u8 protocol = v6 ? ((const struct ipv6hdr *)text)->nexthdr : ip->protocol;
	unsigned int header = v6 ? sizeof(struct ipv6hdr) : ip->ihl * 4;

	if (protocol == IPPROTO_UDP)
		header += sizeof(struct udphdr);
	else if (protocol == IPPROTO_TCP && length >= header + sizeof(struct tcphdr))
		header += ((const struct tcphdr *)(text + header))->doff * 4;
	else
		header += 32;
	return min(header, length);
}

static void deliver_alone(struct adit_rx_super *super, unsigned int length, bool v6)
{
	const u8 *text = super->place.data;
	unsigned int linear;
	struct sk_buff *skb;

	linear = length <= COPY_LENGTH ? length : linear_length(text, length, v6);
	skb = napi_alloc_skb(super->napi, linear);
	if (!skb) {
		adit_drop(super->adit, NULL, ADIT_DROP_RECEIVE_FAILED, 1);
		adit_pages_rewind(ring(), &super->place, 0);
		return;
	}
	skb_put_data(skb, text, linear);
	if (linear < length) {
		get_page(super->place.page);
		skb_add_rx_frag(skb, 0, super->place.page, super->place.offset + linear,
				length - linear, length - linear);
	}
	adit_pages_rewind(ring(), &super->place, linear < length ? length : 0);
	hand_over(super, skb, v6, 1, length);
}

void adit_rx_super_accept(struct adit_rx_super *super, unsigned int length, bool v6)
{
	const u8 *text = super->place.data;
	struct candidate candidate;
	bool tcp;

	tcp = parse(text, length, v6, &candidate);
	if (tcp && continues(super, text, v6, &candidate)) {
		add_payload(super, &candidate);
		return;
	}
	if (!move_away(super)) {
		adit_drop(super->adit, NULL, ADIT_DROP_RECEIVE_FAILED, 1);
		return;
	}
	adit_rx_super_flush(super);
	if (tcp)
		begin(super, v6, &candidate);
	else
		deliver_alone(super, length, v6);
}

/* The header as one packet of this length has it. */
static void write_lengths(struct sk_buff *skb, bool v6, unsigned int ip_header)
{
	if (v6) {
		ipv6_hdr(skb)->payload_len = htons(skb->len - ip_header);
	} else {
		/* 0 is what the stack writes there itself for what is longer. */
		ip_hdr(skb)->tot_len = skb->len <= MAX_PACKET ? htons(skb->len) : 0;
		ip_send_check(ip_hdr(skb));
	}
}

static void set_offload(struct adit_rx_super *super, struct sk_buff *skb, unsigned int ip_header)
{
	struct skb_shared_info *shared = skb_shinfo(skb);
	unsigned int tcp_length = skb->len - ip_header;
	struct tcphdr *tcp = (struct tcphdr *)(skb->data + ip_header);

	if (super->count == 1) {
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		return;
	}
	shared->gso_size = super->mss;
	shared->gso_segs = super->count;
	shared->gso_type = super->v6 ? SKB_GSO_TCPV6 : SKB_GSO_TCPV4;
	if (super->fixed_id)
		shared->gso_type |= SKB_GSO_TCP_FIXEDID;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_headroom(skb) + ip_header;
	skb->csum_offset = offsetof(struct tcphdr, check);
	if (super->v6)
		tcp->check = ~tcp_v6_check(tcp_length, &ipv6_hdr(skb)->saddr,
					   &ipv6_hdr(skb)->daddr, 0);
	else
		tcp->check = ~tcp_v4_check(tcp_length, ip_hdr(skb)->saddr, ip_hdr(skb)->daddr, 0);
	adit_count(super->adit, ADIT_COUNTER_RX_INNER_SUPER, 1);
}

void adit_rx_super_drop(struct adit_rx_super *super)
{
	while (super->fragment_count > 0)
		put_page(super->fragments[--super->fragment_count].page);
	super->count = 0;
}

void adit_rx_super_flush(struct adit_rx_super *super)
{
	unsigned int ip_header = super->v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	unsigned int count = super->count;
	struct sk_buff *skb;
	unsigned int i;

	if (count == 0)
		return;
	skb = napi_alloc_skb(super->napi, super->header_length);
	if (!skb) {
		adit_drop(super->adit, NULL, ADIT_DROP_RECEIVE_FAILED, count);
		adit_rx_super_drop(super);
		return;
	}
	skb_put_data(skb, super->header, super->header_length);
	for (i = 0; i < super->fragment_count; i++) {
		const struct adit_rx_fragment *fragment = &super->fragments[i];

		skb_add_rx_frag(skb, i, fragment->page, fragment->offset, fragment->length,
				fragment->length);
	}
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, ip_header);
	if (count > 1)
		write_lengths(skb, super->v6, ip_header);
	set_offload(super, skb, ip_header);
	/* Reset first: receiving may send, and come back to the ring of pages. */
	super->count = 0;
	super->fragment_count = 0;
	hand_over(super, skb, super->v6, count, count * super->header_length + super->payload);
}
