/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, and nothing else: the other files are written for the newest one
 * and contain no #ifdef. What the kernel has was found by compiling the snippets of probes/.
 */
#ifndef _ADIT_COMPAT_H
#define _ADIT_COMPAT_H

#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <net/rtnetlink.h>
#include <net/udp_tunnel.h>
#include <crypto/blake2s.h>
#include <crypto/chacha.h>

#include "adit_probes.h"

#ifdef ADIT_HAVE_LINUX_UNALIGNED_H
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#ifdef ADIT_HAVE_IPV6_STUB
#include <net/ipv6_stubs.h>
#else
#include <net/ipv6.h>
#endif

#ifdef ADIT_HAVE_NET_GSO_H
#include <net/gso.h>
#endif

#ifdef ADIT_HAVE_CRYPTO_UTILS_H
#include <crypto/utils.h>
#else
#include <crypto/algapi.h>
#endif

static inline void adit_napi_add(struct net_device *dev, struct napi_struct *napi,
				 int (*poll)(struct napi_struct *, int))
{
#ifdef ADIT_HAVE_NAPI_ADD_NO_WEIGHT
	netif_napi_add(dev, napi, poll);
#else
	netif_napi_add(dev, napi, poll, NAPI_POLL_WEIGHT);
#endif
}

/* Transmission takes no queue lock of the stack. */
static inline void adit_set_lltx(struct net_device *dev)
{
#ifdef ADIT_HAVE_LLTX_FIELD
	dev->lltx = true;
#else
	dev->features |= NETIF_F_LLTX;
#endif
}

/* Arguments of rtnl_link_ops::newlink, and the namespace that the link is created in. */
#ifdef ADIT_HAVE_RTNL_NEWLINK_PARAMS
#define ADIT_NEWLINK_ARGUMENTS \
	struct net_device *dev, struct rtnl_newlink_params *params, struct netlink_ext_ack *extack
#define ADIT_NEWLINK_NET rtnl_newlink_link_net(params)
#else
#define ADIT_NEWLINK_ARGUMENTS \
	struct net *src_net, struct net_device *dev, struct nlattr *tb[], struct nlattr *data[], \
	struct netlink_ext_ack *extack
#define ADIT_NEWLINK_NET src_net
#endif

/*
 * Whether the stack knows IPv4 super-packets whose length does not fit into the header, which is 0
 * there; and a device's limit for them.
 */
#ifdef ADIT_HAVE_GSO_IPV4_MAX_SIZE
#define ADIT_BIG_IPV4 true
static inline void adit_set_gso_ipv4_max_size(struct net_device *dev, unsigned int size)
{
	netif_set_tso_max_size(dev, max(size, GSO_LEGACY_MAX_SIZE));
	WRITE_ONCE(dev->gso_ipv4_max_size, size);
}
#else
#define ADIT_BIG_IPV4 false
static inline void adit_set_gso_ipv4_max_size(struct net_device *dev, unsigned int size)
{
}
#endif

static inline void adit_udp_xmit4(struct rtable *route, struct sock *sk, struct sk_buff *skb,
				  __be32 source, __be32 destination, u8 tos, u8 ttl,
				  __be16 source_port, __be16 destination_port)
{
#ifdef ADIT_HAVE_UDP_TUNNEL_XMIT_FLAGS
	udp_tunnel_xmit_skb(route, sk, skb, source, destination, tos, ttl, 0, source_port,
			    destination_port, false, false, 0);
#else
	udp_tunnel_xmit_skb(route, sk, skb, source, destination, tos, ttl, 0, source_port,
			    destination_port, false, false);
#endif
}

static inline void adit_udp_xmit6(struct dst_entry *dst, struct sock *sk, struct sk_buff *skb,
				  struct in6_addr *source, struct in6_addr *destination, u8 tos,
				  u8 ttl, __be16 source_port, __be16 destination_port)
{
#ifdef ADIT_HAVE_UDP_TUNNEL6_XMIT_FLAGS
	udp_tunnel6_xmit_skb(dst, sk, skb, NULL, source, destination, tos, ttl, 0, source_port,
			     destination_port, false, 0);
#else
	udp_tunnel6_xmit_skb(dst, sk, skb, NULL, source, destination, tos, ttl, 0, source_port,
			     destination_port, false);
#endif
}

/* A tunnel's UDP socket is given as a struct sock by the newest kernels. */
#ifdef ADIT_HAVE_UDP_TUNNEL_SOCK
#define adit_tunnel_socket(socket) ((socket)->sk)
#else
#define adit_tunnel_socket(socket) (socket)
#endif

/* Where IPv6 can be a module that is missing, it is reached through a stub. */
static inline struct dst_entry *adit_route6(struct net *net, struct sock *sk, struct flowi6 *flow)
{
#ifdef ADIT_HAVE_IPV6_STUB
	return ipv6_stub->ipv6_dst_lookup_flow(net, sk, flow, NULL);
#else
	return ip6_dst_lookup_flow(net, sk, flow, NULL);
#endif
}

/* State of ChaCha20: words, and a structure of them since 6.16. */
struct adit_chacha {
#ifdef ADIT_HAVE_CHACHA_STATE_STRUCT
	struct chacha_state state;
#else
	u32 state[CHACHA_STATE_WORDS];
#endif
} __aligned(64);

static inline u32 *adit_chacha_words(struct adit_chacha *chacha)
{
#ifdef ADIT_HAVE_CHACHA_STATE_STRUCT
	return chacha->state.x;
#else
	return chacha->state;
#endif
}

static inline void adit_chacha_crypt(struct adit_chacha *chacha, u8 *to, const u8 *from,
				     unsigned int length)
{
#ifdef ADIT_HAVE_CHACHA_STATE_STRUCT
	chacha20_crypt(&chacha->state, to, from, length);
#else
	chacha20_crypt(chacha->state, to, from, length);
#endif
}

/* Keyed BLAKE2s; `length` is of the hash. */
static inline void adit_blake2s_keyed(u8 *hash, size_t length, const u8 *key, size_t key_length,
				      const u8 *data, size_t data_length)
{
#ifdef ADIT_HAVE_BLAKE2S_KEY_FIRST
	blake2s(key, key_length, data, data_length, hash, length);
#else
	blake2s(hash, data, key, length, data_length, key_length);
#endif
}

/* Tells when this virtual machine was cloned or restored, where the kernel learns of it. */
static inline int adit_register_vmfork_notifier(struct notifier_block *block)
{
#ifdef ADIT_HAVE_VMFORK_NOTIFIER
	return register_random_vmfork_notifier(block);
#else
	return 0;
#endif
}

static inline void adit_unregister_vmfork_notifier(struct notifier_block *block)
{
#ifdef ADIT_HAVE_VMFORK_NOTIFIER
	unregister_random_vmfork_notifier(block);
#endif
}

#endif
