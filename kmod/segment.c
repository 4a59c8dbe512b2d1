// SPDX-License-Identifier: GPL-2.0

#include "segment.h"

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <net/checksum.h>
#include <net/ip6_checksum.h>

#include "compat.h"
#include "copy.h"

#define TCP_FLAGS_OFFSET 13
#define TCP_FLAG_BIT_FIN 0x01
#define TCP_FLAG_BIT_PSH 0x08
#define TCP_FLAG_BIT_CWR 0x80

static bool plain_tcp(const struct sk_buff *skb)
{
	const unsigned int known = SKB_GSO_TCPV4 | SKB_GSO_TCPV6 | SKB_GSO_DODGY | SKB_GSO_TCP_ECN |
				   SKB_GSO_TCP_FIXEDID;
	unsigned int type = skb_shinfo(skb)->gso_type;

	return (type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) && !(type & ~known) &&
	       !skb->encapsulation && skb->ip_summed == CHECKSUM_PARTIAL &&
	       skb_shinfo(skb)->gso_size > 0;
}

/* The headers, wherever they came from, must be what the type says. */
static bool parse(struct adit_segmenter *segmenter, struct sk_buff *skb)
{
	unsigned int tcp;
	u8 protocol;

	segmenter->v6 = skb->protocol == htons(ETH_P_IPV6);
	if (segmenter->v6) {
		segmenter->ip_header = sizeof(struct ipv6hdr);
		if (!pskb_may_pull(skb, segmenter->ip_header))
			return false;
		protocol = ipv6_hdr(skb)->nexthdr;
	} else {
		segmenter->ip_header = ip_hdrlen(skb);
		if (segmenter->ip_header < sizeof(struct iphdr) ||
		    !pskb_may_pull(skb, segmenter->ip_header) || ip_is_fragment(ip_hdr(skb)))
			return false;
		protocol = ip_hdr(skb)->protocol;
	}
	if (protocol != IPPROTO_TCP ||
	    !pskb_may_pull(skb, segmenter->ip_header + sizeof(struct tcphdr)))
		return false;
	tcp = ((struct tcphdr *)(skb->data + segmenter->ip_header))->doff * 4;
	segmenter->header = segmenter->ip_header + tcp;
	return tcp >= sizeof(struct tcphdr) && pskb_may_pull(skb, segmenter->header) &&
	       skb->len > segmenter->header;
}

/* Sums what is the same in all packets; fields that differ are taken out. */
static void sum_headers(struct adit_segmenter *segmenter)
{
	const struct sk_buff *skb = segmenter->skb;
	const u8 *tcp_bytes = skb->data + segmenter->ip_header;
	unsigned int length = segmenter->header - segmenter->ip_header;
	u8 copy[60];
	struct tcphdr *tcp = (struct tcphdr *)copy;
	__wsum pseudo;

	memcpy(copy, tcp_bytes, length);
	tcp->seq = 0;
	tcp->check = 0;
	copy[TCP_FLAGS_OFFSET] = 0;
	if (segmenter->v6) {
		const struct ipv6hdr *ip = ipv6_hdr(skb);

		pseudo = ~csum_unfold(csum_ipv6_magic(&ip->saddr, &ip->daddr, 0, IPPROTO_TCP, 0));
	} else {
		const struct iphdr *ip = ip_hdr(skb);
		struct iphdr *ip_copy;
		u8 ip_bytes[60];

		pseudo = csum_tcpudp_nofold(ip->saddr, ip->daddr, 0, IPPROTO_TCP, 0);
		memcpy(ip_bytes, ip, segmenter->ip_header);
		ip_copy = (struct iphdr *)ip_bytes;
		ip_copy->tot_len = 0;
		ip_copy->id = 0;
		ip_copy->check = 0;
		segmenter->ip_sum = csum_partial(ip_bytes, segmenter->ip_header, 0);
	}
	segmenter->tcp_sum = csum_partial(copy, length, pseudo);
}

bool adit_segmenter_init(struct adit_segmenter *segmenter, struct sk_buff *skb)
{
	const struct tcphdr *tcp;

	if (!plain_tcp(skb) || !parse(segmenter, skb))
		return false;
	tcp = (const struct tcphdr *)(skb->data + segmenter->ip_header);
	segmenter->skb = skb;
	segmenter->mss = skb_shinfo(skb)->gso_size;
	segmenter->payload = skb->len - segmenter->header;
	segmenter->count = DIV_ROUND_UP(segmenter->payload, segmenter->mss);
	segmenter->next = 0;
	segmenter->fragment = 0;
	segmenter->fragment_at = skb_headlen(skb);
	segmenter->fixed_id = skb_shinfo(skb)->gso_type & SKB_GSO_TCP_FIXEDID;
	segmenter->id = segmenter->v6 ? 0 : ntohs(ip_hdr(skb)->id);
	segmenter->sequence = ntohl(tcp->seq);
	segmenter->flags = ((const u8 *)tcp)[TCP_FLAGS_OFFSET];
	sum_headers(segmenter);
	return true;
}

static unsigned int payload_of(const struct adit_segmenter *segmenter)
{
	return min(segmenter->mss, segmenter->payload - segmenter->next * segmenter->mss);
}

unsigned int adit_segment_length(const struct adit_segmenter *segmenter)
{
	return segmenter->header + payload_of(segmenter);
}

static __wsum wsum_of(__be16 field)
{
	return (__force __wsum)(u32)(__force u16)field;
}

static void write_ip(const struct adit_segmenter *segmenter, u8 *to, unsigned int length)
{
	struct ipv6hdr *ip6 = (struct ipv6hdr *)to;
	struct iphdr *ip = (struct iphdr *)to;
	__wsum sum;

	if (segmenter->v6) {
		ip6->payload_len = htons(length - sizeof(*ip6));
		return;
	}
	ip->tot_len = htons(length);
	ip->id = htons(segmenter->id + (segmenter->fixed_id ? 0 : segmenter->next));
	sum = csum_add(segmenter->ip_sum, wsum_of(ip->tot_len));
	ip->check = csum_fold(csum_add(sum, wsum_of(ip->id)));
}

/* FIN and PSH belong to the last packet, CWR to the first. */
static u8 flags_of(const struct adit_segmenter *segmenter)
{
	u8 flags = segmenter->flags;

	if (segmenter->next + 1 < segmenter->count)
		flags &= ~(TCP_FLAG_BIT_FIN | TCP_FLAG_BIT_PSH);
	if (segmenter->next > 0)
		flags &= ~TCP_FLAG_BIT_CWR;
	return flags;
}

/*
 * Where the bytes of the skb are that come next, when they lie in one piece; else null. The stack's
 * own function would begin its search at the first fragment each time.
 */
static const u8 *piece(struct adit_segmenter *segmenter, unsigned int offset, unsigned int length)
{
	const struct skb_shared_info *shared = skb_shinfo(segmenter->skb);
	const skb_frag_t *fragment;
	unsigned int end;

	if (IS_ENABLED(CONFIG_HIGHMEM))
		return NULL;
	if (offset < skb_headlen(segmenter->skb))
		return offset + length <= skb_headlen(segmenter->skb) ?
			       segmenter->skb->data + offset : NULL;
	for (; segmenter->fragment < shared->nr_frags; segmenter->fragment++) {
		fragment = &shared->frags[segmenter->fragment];
		end = segmenter->fragment_at + skb_frag_size(fragment);
		if (offset < end)
			return offset + length <= end ? (const u8 *)skb_frag_address(fragment) +
								offset - segmenter->fragment_at :
							NULL;
		segmenter->fragment_at = end;
	}
	return NULL;
}

void adit_segment_write(struct adit_segmenter *segmenter, u8 *to)
{
	unsigned int offset = segmenter->next * segmenter->mss;
	unsigned int payload = payload_of(segmenter);
	unsigned int tcp_length = segmenter->header - segmenter->ip_header + payload;
	u8 *tcp_bytes = to + segmenter->ip_header;
	struct tcphdr *tcp = (struct tcphdr *)tcp_bytes;
	const u8 *from;
	__wsum sum;

	adit_copy_header(to, segmenter->skb->data, segmenter->header);
	write_ip(segmenter, to, segmenter->header + payload);
	tcp->seq = htonl(segmenter->sequence + offset);
	tcp_bytes[TCP_FLAGS_OFFSET] = flags_of(segmenter);
	from = piece(segmenter, segmenter->header + offset, payload);
	if (likely(from))
		sum = csum_partial_copy_nocheck(from, to + segmenter->header, payload);
	else
		sum = skb_copy_and_csum_bits(segmenter->skb, segmenter->header + offset,
					     to + segmenter->header, payload);
	/* The header has an even length, so that the sum of the payload needs no turning. */
	sum = csum_add(sum, segmenter->tcp_sum);
	sum = csum_add(sum, (__force __wsum)tcp->seq);
	sum = csum_add(sum, (__force __wsum)htonl(tcp_length));
	sum = csum_add(sum, wsum_of(htons(tcp_bytes[TCP_FLAGS_OFFSET])));
	tcp->check = csum_fold(sum);
	segmenter->next++;
}
