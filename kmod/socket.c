// SPDX-License-Identifier: GPL-2.0

#include "socket.h"

#include <linux/inetdevice.h>
#include <linux/net.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/route.h>
#include <net/sock.h>

#include "compat.h"
#include "device.h"
#include "peer.h"
#include "rx.h"

#define PORT_ATTEMPTS 16

struct pair {
	struct socket *v4;
	struct socket *v6;
	u16 port;
};

static void release_pair(struct pair *pair)
{
	if (pair->v4)
		udp_tunnel_sock_release(adit_tunnel_socket(pair->v4));
	if (pair->v6)
		udp_tunnel_sock_release(adit_tunnel_socket(pair->v6));
}

static void set_up(struct adit_device *adit, struct net *net, struct socket *socket)
{
	struct udp_tunnel_sock_cfg config = {
		.sk_user_data = adit,
		.encap_type = 1,
		.encap_rcv = adit_rx_encapsulated,
	};
	int on = 1;

	socket->sk->sk_allocation = GFP_ATOMIC;
	socket->sk->sk_sndbuf = INT_MAX;
	setup_udp_tunnel_sock(net, adit_tunnel_socket(socket), &config);
	/* A gain only: without it datagrams arrive one by one. */
	if (socket->ops->setsockopt(socket, SOL_UDP, UDP_GRO, KERNEL_SOCKPTR(&on), sizeof(on)))
		net_dbg_ratelimited("adit: no receive offload for UDP\n");
}

static int open_one(struct net *net, sa_family_t family, const struct adit_binding *binding,
		    u16 port, struct socket **socket)
{
	struct udp_port_cfg config = {
		.family = family,
		.local_udp_port = htons(port),
		.use_udp_checksums = true,
		.use_udp6_tx_checksums = true,
		.use_udp6_rx_checksums = true,
		.ipv6_v6only = true,
	};

	if (binding->family == AF_INET)
		memcpy(&config.local_ip, &binding->address, sizeof(config.local_ip));
	else if (binding->family == AF_INET6)
		config.local_ip6 = binding->address;
	return udp_sock_create(net, &config, socket);
}

static bool family_is_missing(int error)
{
	return error == -EAFNOSUPPORT || error == -EPFNOSUPPORT || error == -EADDRNOTAVAIL;
}

static u16 port_of(const struct socket *socket)
{
	return ntohs(inet_sk(socket->sk)->inet_sport);
}

static int open_pair(struct net *net, const struct adit_binding *binding, struct pair *pair)
{
	int error;

	memset(pair, 0, sizeof(*pair));
	if (binding->family != AF_INET6) {
		error = open_one(net, AF_INET, binding, binding->port, &pair->v4);
		if (error)
			return error;
		pair->port = port_of(pair->v4);
	}
	if (binding->family == AF_INET)
		return 0;
	error = open_one(net, AF_INET6, binding, pair->v4 ? pair->port : binding->port, &pair->v6);
	if (error && !(pair->v4 && family_is_missing(error))) {
		release_pair(pair);
		return error;
	}
	if (!error)
		pair->port = port_of(pair->v6);
	return 0;
}

/* A port that the kernel chose for IPv4 may be taken for IPv6: let it choose another. */
static int open_any(struct net *net, const struct adit_binding *binding, struct pair *pair)
{
	int error, attempt;

	for (attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
		error = open_pair(net, binding, pair);
		if (error != -EADDRINUSE || binding->port != 0)
			break;
	}
	return error;
}

/* Puts the sockets into their places, and releases those that were there. */
static void exchange(struct adit_device *adit, const struct pair *pair)
{
	struct sock *old4, *old6;
	struct adit_peer *peer;

	old4 = rcu_replace_pointer(adit->sock4, pair->v4 ? pair->v4->sk : NULL,
				   lockdep_is_held(&adit->lock));
	old6 = rcu_replace_pointer(adit->sock6, pair->v6 ? pair->v6->sk : NULL,
				   lockdep_is_held(&adit->lock));
	synchronize_net();
	if (old4)
		udp_tunnel_sock_release(adit_tunnel_socket(old4->sk_socket));
	if (old6)
		udp_tunnel_sock_release(adit_tunnel_socket(old6->sk_socket));
	list_for_each_entry(peer, &adit->peers, list)
		dst_cache_reset(&peer->dst_cache);
}

static bool is_open(const struct adit_device *adit)
{
	return rcu_access_pointer(adit->sock4) || rcu_access_pointer(adit->sock6);
}

int adit_socket_open(struct adit_device *adit, const struct adit_binding *binding)
{
	struct net *net = rcu_dereference_protected(adit->creating_net,
						    lockdep_is_held(&adit->lock));
	struct pair pair;
	int error;

	if (!net)
		return -ENONET;
	error = open_any(net, binding, &pair);
	if (error == -EADDRINUSE && is_open(adit) && binding->port == adit->port) {
		/* Our own sockets hold the port: let go of them, and take it back on failure. */
		const struct adit_binding old = { .port = adit->port,
						  .family = adit->bind_family,
						  .address = adit->bind_address };
		struct pair none = {};

		exchange(adit, &none);
		error = open_any(net, binding, &pair);
		if (error && !open_any(net, &old, &pair))
			goto take;
	}
	if (error)
		return error;
	WRITE_ONCE(adit->port, pair.port); /* for the hook, which takes no lock */
	adit->bind_family = binding->family;
	adit->bind_address = binding->address;
take:
	if (pair.v4)
		set_up(adit, net, pair.v4);
	if (pair.v6)
		set_up(adit, net, pair.v6);
	exchange(adit, &pair);
	if (!adit->hooked && !adit_hook_register(adit, net))
		adit->hooked = true;
	return error;
}

void adit_socket_close(struct adit_device *adit)
{
	struct net *net = rcu_dereference_protected(adit->creating_net,
						    lockdep_is_held(&adit->lock));
	struct pair none = {};

	if (adit->hooked && net)
		adit_hook_unregister(adit, net);
	adit->hooked = false;
	exchange(adit, &none);
}

static struct rtable *route4(struct sock *sk, struct adit_endpoint *endpoint, u32 mark,
			     bool *source_refused)
{
	struct flowi4 flow = {
		.saddr = endpoint->source4.s_addr,
		.daddr = endpoint->address4.sin_addr.s_addr,
		.fl4_sport = inet_sk(sk)->inet_sport,
		.fl4_dport = endpoint->address4.sin_port,
		.flowi4_mark = mark,
		.flowi4_proto = IPPROTO_UDP,
	};
	struct rtable *route;

	security_sk_classify_flow(sk, flowi4_to_flowi_common(&flow));
	if (flow.saddr && !inet_confirm_addr(sock_net(sk), NULL, 0, flow.saddr, RT_SCOPE_HOST)) {
		*source_refused = true;
		flow.saddr = 0;
	}
	route = ip_route_output_flow(sock_net(sk), &flow, sk);
	if (IS_ERR(route) && flow.saddr && PTR_ERR(route) == -EINVAL) {
		*source_refused = true;
		flow.saddr = 0;
		route = ip_route_output_flow(sock_net(sk), &flow, sk);
	}
	if (!IS_ERR(route))
		endpoint->source4.s_addr = flow.saddr;
	return route;
}

static int send4(struct adit_device *adit, struct sock *sk, struct adit_endpoint *endpoint,
		 struct sk_buff *skb, u8 tos, struct dst_cache *cache, bool *source_refused)
{
	u32 mark = READ_ONCE(adit->fwmark);
	struct rtable *route = NULL;

	if (cache)
		route = dst_cache_get_ip4(cache, &endpoint->source4.s_addr);
	if (!route) {
		route = route4(sk, endpoint, mark, source_refused);
		if (IS_ERR(route)) {
			kfree_skb(skb);
			return PTR_ERR(route);
		}
		if (route->dst.dev == adit->dev) {
			ip_rt_put(route);
			kfree_skb(skb);
			return -ELOOP;
		}
		if (cache)
			dst_cache_set_ip4(cache, &route->dst, endpoint->source4.s_addr);
	}
	skb->mark = mark;
	adit_udp_xmit4(route, sk, skb, endpoint->source4.s_addr,
		       endpoint->address4.sin_addr.s_addr, tos, ip4_dst_hoplimit(&route->dst),
		       inet_sk(sk)->inet_sport, endpoint->address4.sin_port);
	return 0;
}

static struct dst_entry *route6(struct sock *sk, struct adit_endpoint *endpoint, u32 mark,
				bool *source_refused)
{
	struct flowi6 flow = {
		.saddr = endpoint->source6,
		.daddr = endpoint->address6.sin6_addr,
		.fl6_sport = inet_sk(sk)->inet_sport,
		.fl6_dport = endpoint->address6.sin6_port,
		.flowi6_mark = mark,
		.flowi6_oif = endpoint->address6.sin6_scope_id,
		.flowi6_proto = IPPROTO_UDP,
	};
	struct dst_entry *dst;

	security_sk_classify_flow(sk, flowi6_to_flowi_common(&flow));
	if (!ipv6_addr_any(&flow.saddr) && !ipv6_chk_addr(sock_net(sk), &flow.saddr, NULL, 0)) {
		*source_refused = true;
		flow.saddr = in6addr_any;
	}
	dst = adit_route6(sock_net(sk), sk, &flow);
	if (!IS_ERR(dst))
		endpoint->source6 = flow.saddr;
	return dst;
}

static int send6(struct adit_device *adit, struct sock *sk, struct adit_endpoint *endpoint,
		 struct sk_buff *skb, u8 tos, struct dst_cache *cache, bool *source_refused)
{
	u32 mark = READ_ONCE(adit->fwmark);
	struct dst_entry *dst = NULL;

	if (cache)
		dst = dst_cache_get_ip6(cache, &endpoint->source6);
	if (!dst) {
		dst = route6(sk, endpoint, mark, source_refused);
		if (IS_ERR(dst)) {
			kfree_skb(skb);
			return PTR_ERR(dst);
		}
		if (dst->dev == adit->dev) {
			dst_release(dst);
			kfree_skb(skb);
			return -ELOOP;
		}
		if (cache)
			dst_cache_set_ip6(cache, dst, &endpoint->source6);
	}
	skb->mark = mark;
	/* A path that is too narrow gets fragments, as with IPv4. */
	skb->ignore_df = 1;
	adit_udp_xmit6(dst, sk, skb, &endpoint->source6, &endpoint->address6.sin6_addr, tos,
		       ip6_dst_hoplimit(dst), inet_sk(sk)->inet_sport,
		       endpoint->address6.sin6_port);
	return 0;
}

static int send(struct adit_device *adit, struct adit_endpoint *endpoint, struct sk_buff *skb,
		u8 tos, struct dst_cache *cache, bool *source_refused)
{
	struct sock *sk;

	if (endpoint->address.sa_family == AF_INET) {
		sk = rcu_dereference_bh(adit->sock4);
		if (sk)
			return send4(adit, sk, endpoint, skb, tos, cache, source_refused);
	} else if (endpoint->address.sa_family == AF_INET6) {
		sk = rcu_dereference_bh(adit->sock6);
		if (sk)
			return send6(adit, sk, endpoint, skb, tos, cache, source_refused);
	}
	kfree_skb(skb);
	return -EAFNOSUPPORT;
}

bool adit_socket_send_peer(struct adit_peer *peer, struct sk_buff *skb, u8 tos,
			   enum adit_drop *reason)
{
	struct adit_endpoint endpoint, asked;
	bool source_refused = false;
	int error;

	adit_peer_get_endpoint(peer, &endpoint);
	if (!adit_endpoint_known(&endpoint)) {
		kfree_skb(skb);
		*reason = ADIT_DROP_NO_ENDPOINT;
		return false;
	}
	asked = endpoint;
	error = send(peer->adit, &endpoint, skb, tos, &peer->dst_cache, &source_refused);
	if (unlikely(source_refused))
		adit_peer_forget_source(peer, &asked);
	*reason = ADIT_DROP_SEND_FAILED;
	return error == 0;
}

int adit_socket_send_to(struct adit_device *adit, const struct adit_endpoint *endpoint,
			struct sk_buff *skb, u8 tos)
{
	struct adit_endpoint copy = *endpoint;
	bool source_refused = false;

	return send(adit, &copy, skb, tos, NULL, &source_refused);
}
