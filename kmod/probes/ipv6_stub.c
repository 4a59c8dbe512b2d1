// SPDX-License-Identifier: GPL-2.0
#include <net/ipv6_stubs.h>

struct dst_entry *probe(struct net *net, struct sock *sk, struct flowi6 *flow);

struct dst_entry *probe(struct net *net, struct sock *sk, struct flowi6 *flow)
{
	return ipv6_stub->ipv6_dst_lookup_flow(net, sk, flow, NULL);
}
