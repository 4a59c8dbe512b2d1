/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The UDP sockets of a device. They belong to the namespace that the link was created in, and are
 * bound while the link is up.
 */
#ifndef _ADIT_SOCKET_H
#define _ADIT_SOCKET_H

#include <linux/skbuff.h>
#include <linux/types.h>

#include "endpoint.h"
#include "uapi/adit.h"

struct adit_device;
struct adit_peer;

/* Room for the headers that the stack puts in front of an outer packet. */
#define ADIT_OUTER_HEADROOM \
	ALIGN(LL_MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr), 16)

/* Where to bind. */
struct adit_binding {
	u16 port; /* host byte order; 0 lets the kernel choose */
	sa_family_t family; /* AF_UNSPEC: all addresses of both */
	struct in6_addr address;
};

/* With the device's lock held; may sleep. On failure the sockets stay as they were. */
int adit_socket_open(struct adit_device *adit, const struct adit_binding *binding);
void adit_socket_close(struct adit_device *adit);

/* With bottom halves disabled. Take the skb in any case. */
bool adit_socket_send_peer(struct adit_peer *peer, struct sk_buff *skb, u8 tos,
			   enum adit_drop *reason);
/* 0 or a negative error. */
int adit_socket_send_to(struct adit_device *adit, const struct adit_endpoint *endpoint,
			struct sk_buff *skb, u8 tos);

/* hook.c: lets super-packets to the device's port through to its sockets whole. */
int adit_hook_register(struct adit_device *adit, struct net *net);
void adit_hook_unregister(struct adit_device *adit, struct net *net);

#endif
