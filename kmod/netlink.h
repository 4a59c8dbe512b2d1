/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic netlink family of uapi/adit.h.
 */
#ifndef _ADIT_NETLINK_H
#define _ADIT_NETLINK_H

#include <net/genetlink.h>

#include "endpoint.h"
#include "uapi/adit.h"

struct adit_device;
struct adit_peer;
struct adit_prefix;

extern struct genl_family adit_genl_family;

int adit_netlink_init(void);
void adit_netlink_exit(void);

/* A command on one device. */
struct adit_request {
	struct adit_device *adit; /* held, and its lock taken */
	struct nlattr *attributes[ADIT_A_MAX + 1];
	struct genl_info *info;
};

/* netlink_parse.c. All give 0, or a negative error of which the extended ack tells more. */
/* The message's attributes, unknown ones ignored, known ones checked strictly. */
int adit_parse_message(const struct nlmsghdr *message, struct nlattr **attributes,
		       struct netlink_ext_ack *extack);
/* Finds and locks the device. Then adit_request_end() has to follow. */
int adit_request_begin(struct adit_request *request, struct genl_info *info);
/* As before, and the sender must have claimed the device. */
int adit_request_begin_claimed(struct adit_request *request, struct genl_info *info);
void adit_request_end(struct adit_request *request);
struct adit_device *adit_device_of(struct net *net, struct nlattr **attributes,
				   struct netlink_ext_ack *extack);
int adit_parse_device(struct nlattr *nest, struct nlattr **attributes,
		      struct netlink_ext_ack *extack);
int adit_parse_peer(struct nlattr *nest, struct nlattr **attributes,
		    struct netlink_ext_ack *extack);
int adit_parse_key(struct nlattr *nest, struct nlattr **attributes,
		   struct netlink_ext_ack *extack);
int adit_parse_endpoint(struct nlattr *nest, struct adit_endpoint *endpoint,
			struct netlink_ext_ack *extack);
/* The local end; the family must be that of the remote one, which is set. */
int adit_parse_local(struct nlattr *nest, struct adit_endpoint *endpoint,
		     struct netlink_ext_ack *extack);
int adit_parse_prefix(struct nlattr *nest, struct adit_prefix *prefix,
		      struct netlink_ext_ack *extack);
/* The peer that ADIT_A_PEER names by its id. */
int adit_request_peer(struct adit_request *request, struct adit_peer **peer);

/* netlink_dump.c. 0, or -EMSGSIZE. */
int adit_put_endpoint(struct sk_buff *skb, int type, const struct adit_endpoint *endpoint);
/* Puts nothing if there is no local end. */
int adit_put_local(struct sk_buff *skb, int type, const struct adit_endpoint *endpoint);
int adit_dump_devices(struct sk_buff *skb, struct netlink_callback *callback);
int adit_dump_peers_start(struct netlink_callback *callback);
int adit_dump_peers(struct sk_buff *skb, struct netlink_callback *callback);
int adit_dump_peers_done(struct netlink_callback *callback);
/* With the device's lock held. */
int adit_put_device(struct sk_buff *skb, struct adit_device *adit);

/* netlink_device.c */
int adit_get_device(struct sk_buff *skb, struct genl_info *info);
int adit_set_device(struct sk_buff *skb, struct genl_info *info);

/* netlink_peer.c */
int adit_set_peer(struct sk_buff *skb, struct genl_info *info);
int adit_del_peer(struct sk_buff *skb, struct genl_info *info);
int adit_drop_staged(struct sk_buff *skb, struct genl_info *info);
int adit_send_control(struct sk_buff *skb, struct genl_info *info);

/* netlink_key.c */
int adit_new_key(struct sk_buff *skb, struct genl_info *info);
int adit_del_keys(struct sk_buff *skb, struct genl_info *info);
int adit_send_handshake(struct sk_buff *skb, struct genl_info *info);

#endif
