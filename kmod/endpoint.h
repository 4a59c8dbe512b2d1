/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where datagrams go to and come from.
 */
#ifndef _ADIT_ENDPOINT_H
#define _ADIT_ENDPOINT_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <net/ipv6.h>

struct adit_endpoint {
	union { /* the remote end; family AF_UNSPEC while none is known */
		struct sockaddr address;
		struct sockaddr_in address4;
		struct sockaddr_in6 address6;
	};
	union { /* the local end; zero leaves it to routing */
		struct in_addr source4;
		struct in6_addr source6;
	};
	int source_ifindex; /* where a datagram arrived; routing still chooses the way back */
};

static inline bool adit_endpoint_known(const struct adit_endpoint *endpoint)
{
	return endpoint->address.sa_family != AF_UNSPEC;
}

static inline bool adit_endpoint_has_source(const struct adit_endpoint *endpoint)
{
	return endpoint->address.sa_family == AF_INET ? endpoint->source4.s_addr != 0 :
							!ipv6_addr_any(&endpoint->source6);
}

/* Whether the remote ends are the same. */
static inline bool adit_endpoint_same(const struct adit_endpoint *a, const struct adit_endpoint *b)
{
	if (a->address.sa_family != b->address.sa_family)
		return false;
	if (a->address.sa_family == AF_INET)
		return a->address4.sin_addr.s_addr == b->address4.sin_addr.s_addr &&
		       a->address4.sin_port == b->address4.sin_port;
	return ipv6_addr_equal(&a->address6.sin6_addr, &b->address6.sin6_addr) &&
	       a->address6.sin6_port == b->address6.sin6_port &&
	       a->address6.sin6_scope_id == b->address6.sin6_scope_id;
}

/* Whether the local ends are the same; the remote ones must be. */
static inline bool adit_endpoint_same_source(const struct adit_endpoint *a,
					     const struct adit_endpoint *b)
{
	if (a->source_ifindex != b->source_ifindex)
		return false;
	return a->address.sa_family == AF_INET ? a->source4.s_addr == b->source4.s_addr :
						 ipv6_addr_equal(&a->source6, &b->source6);
}

#endif
