// SPDX-License-Identifier: GPL-2.0
#include <net/udp_tunnel.h>

void probe(struct dst_entry *dst, struct sock *sk, struct sk_buff *skb, struct in6_addr *address);

void probe(struct dst_entry *dst, struct sock *sk, struct sk_buff *skb, struct in6_addr *address)
{
	udp_tunnel6_xmit_skb(dst, sk, skb, NULL, address, address, 0, 0, 0, 0, 0, false, 0);
}
