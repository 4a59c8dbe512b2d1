// SPDX-License-Identifier: GPL-2.0
/*
 * Super-packets of datagrams reach a tunnel's socket whole only if they look like those of a
 * tunnel; else the stack takes them apart again. So the last hook before local delivery sets that
 * mark on those to our port. Firewalls have seen the packet by then, and what is forwarded is left
 * alone.
 */
#include "socket.h"

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/sock.h>

#include "device.h"

/* Where the UDP header is; negative when there is none. */
static int udp_offset(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IP)) {
		const struct iphdr *ip = ip_hdr(skb);

		if (ip->protocol != IPPROTO_UDP || ip_is_fragment(ip))
			return -1;
		return skb_network_offset(skb) + ip->ihl * 4;
	}
	if (skb->protocol == htons(ETH_P_IPV6) && ipv6_hdr(skb)->nexthdr == IPPROTO_UDP)
		return skb_network_offset(skb) + sizeof(struct ipv6hdr);
	return -1;
}

static bool is_ours(const struct adit_device *adit, struct sk_buff *skb)
{
	const struct udphdr *udp;
	struct udphdr buffer;
	int offset;

	offset = udp_offset(skb);
	if (offset < 0)
		return false;
	udp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	return udp && udp->dest == htons(READ_ONCE(adit->port));
}

static unsigned int mark_super_packet(void *priv, struct sk_buff *skb,
				      const struct nf_hook_state *state)
{
	const struct adit_device *adit = priv;

	if (!skb_is_gso(skb) || !(skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4) ||
	    skb_shinfo(skb)->gso_type & SKB_GSO_FRAGLIST || !is_ours(adit, skb))
		return NF_ACCEPT;
	if (skb_unclone(skb, GFP_ATOMIC) == 0)
		skb_shinfo(skb)->gso_type |= SKB_GSO_UDP_TUNNEL_CSUM;
	return NF_ACCEPT;
}

int adit_hook_register(struct adit_device *adit, struct net *net)
{
	adit->hook = (struct nf_hook_ops){
		.hook = mark_super_packet,
		.priv = adit,
		.pf = NFPROTO_INET,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	};
	return nf_register_net_hook(net, &adit->hook);
}

void adit_hook_unregister(struct adit_device *adit, struct net *net)
{
	nf_unregister_net_hook(net, &adit->hook);
}
