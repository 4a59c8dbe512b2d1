// SPDX-License-Identifier: GPL-2.0

#include <linux/slab.h>

#include "device.h"
#include "netlink.h"
#include "peer.h"
#include "socket.h"

int adit_get_device(struct sk_buff *skb, struct genl_info *info)
{
	struct adit_request request;
	struct sk_buff *reply;
	void *header;
	int error;

	error = adit_request_begin(&request, info);
	if (error)
		return error;
	error = -ENOMEM;
	reply = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!reply)
		goto end;
	header = genlmsg_put_reply(reply, info, &adit_genl_family, 0, ADIT_CMD_GET_DEVICE);
	error = header ? adit_put_device(reply, request.adit) : -EMSGSIZE;
	if (error) {
		nlmsg_free(reply);
		goto end;
	}
	genlmsg_end(reply, header);
	error = genlmsg_reply(reply, info);
end:
	adit_request_end(&request);
	return error;
}

/* All that a request wants to change, parsed before anything is changed. */
struct change {
	struct nlattr *attributes[ADIT_A_DEVICE_MAX + 1];
	struct adit_binding binding;
	bool rebind;
	struct adit_mac1_key *mac1_key; /* null also when it is to be forgotten */
};

static int parse_binding(struct adit_device *adit, struct change *change,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *address = change->attributes[ADIT_A_DEVICE_BIND_ADDRESS];
	struct nlattr *port = change->attributes[ADIT_A_DEVICE_LISTEN_PORT];

	change->binding.port = adit->port;
	change->binding.family = adit->bind_family;
	change->binding.address = adit->bind_address;
	if (port)
		change->binding.port = nla_get_u16(port);
	if (address) {
		memset(&change->binding.address, 0, sizeof(change->binding.address));
		switch (nla_len(address)) {
		case 0:
			change->binding.family = AF_UNSPEC;
			break;
		case sizeof(struct in_addr):
			change->binding.family = AF_INET;
			break;
		case sizeof(struct in6_addr):
			change->binding.family = AF_INET6;
			break;
		default:
			NL_SET_ERR_MSG_ATTR(extack, address,
					    "ADIT_A_DEVICE_BIND_ADDRESS must have 0, 4 or 16 bytes");
			return -EINVAL;
		}
		memcpy(&change->binding.address, nla_data(address), nla_len(address));
	}
	change->rebind = change->binding.port != adit->port ||
			 (port && change->binding.port == 0) ||
			 change->binding.family != adit->bind_family ||
			 !ipv6_addr_equal(&change->binding.address, &adit->bind_address);
	return 0;
}

static int parse_mac1_key(struct change *change, struct netlink_ext_ack *extack)
{
	struct nlattr *mac1_key = change->attributes[ADIT_A_DEVICE_MAC1_KEY];

	if (!mac1_key || nla_len(mac1_key) == 0)
		return 0;
	if (nla_len(mac1_key) != sizeof(change->mac1_key->key)) {
		NL_SET_ERR_MSG_ATTR(extack, mac1_key,
				    "ADIT_A_DEVICE_MAC1_KEY must have 0 or 32 bytes");
		return -EINVAL;
	}
	change->mac1_key = kmalloc(sizeof(*change->mac1_key), GFP_KERNEL);
	if (!change->mac1_key)
		return -ENOMEM;
	memcpy(change->mac1_key->key, nla_data(mac1_key), nla_len(mac1_key));
	return 0;
}

static int parse_change(struct adit_request *request, struct change *change)
{
	struct netlink_ext_ack *extack = request->info->extack;
	int error;

	if (!request->attributes[ADIT_A_DEVICE]) {
		NL_SET_ERR_MSG(extack, "ADIT_A_DEVICE is missing");
		return -EINVAL;
	}
	error = adit_parse_device(request->attributes[ADIT_A_DEVICE], change->attributes, extack);
	if (!error)
		error = parse_binding(request->adit, change, extack);
	if (!error)
		error = parse_mac1_key(change, extack);
	return error;
}

/* What the sender has to be: the claimant, or to become it by this request. */
static int check_sender(struct adit_request *request, const struct change *change, bool *claimed)
{
	struct nlattr *claim = change->attributes[ADIT_A_DEVICE_CLAIM];
	struct genl_info *info = request->info;
	const struct adit_claim *present;
	int error;

	rcu_read_lock();
	present = rcu_dereference(request->adit->claim);
	*claimed = present && present->portid == info->snd_portid &&
		   present->net == genl_info_net(info);
	error = present ? -EBUSY : -EPERM;
	rcu_read_unlock();
	if (*claimed)
		return 0;
	if (error == -EPERM && claim && nla_get_u8(claim))
		return 0;
	if (error == -EBUSY)
		NL_SET_ERR_MSG(info->extack, "another socket has claimed the device");
	else
		NL_SET_ERR_MSG(info->extack, "the device is not claimed (ADIT_A_DEVICE_CLAIM)");
	return error;
}

static int rebind(struct adit_request *request, struct change *change)
{
	struct adit_device *adit = request->adit;
	int error = 0;

	if (!change->rebind)
		return 0;
	if (adit->up) {
		error = adit_socket_open(adit, &change->binding);
	} else {
		WRITE_ONCE(adit->port, change->binding.port);
		adit->bind_family = change->binding.family;
		adit->bind_address = change->binding.address;
	}
	if (error == -EADDRINUSE)
		NL_SET_ERR_MSG_ATTR(request->info->extack,
				    change->attributes[ADIT_A_DEVICE_LISTEN_PORT],
				    "the port of ADIT_A_DEVICE_LISTEN_PORT is in use");
	else if (error)
		NL_SET_ERR_MSG_ATTR(request->info->extack,
				    change->attributes[ADIT_A_DEVICE_BIND_ADDRESS],
				    "cannot listen there (ADIT_A_DEVICE_BIND_ADDRESS)");
	return error;
}

static int apply(struct adit_request *request, struct change *change, bool claimed)
{
	struct nlattr *public_key = change->attributes[ADIT_A_DEVICE_PUBLIC_KEY];
	struct nlattr *fwmark = change->attributes[ADIT_A_DEVICE_FWMARK];
	struct nlattr *claim = change->attributes[ADIT_A_DEVICE_CLAIM];
	struct adit_device *adit = request->adit;
	struct adit_mac1_key *old;
	struct adit_peer *peer;
	int error;

	if (!claimed) {
		error = adit_device_claim(adit, genl_info_net(request->info),
					  request->info->snd_portid);
		if (error) {
			NL_SET_ERR_MSG(request->info->extack,
				       "another socket has claimed the device");
			return error;
		}
	}
	error = rebind(request, change);
	if (error) {
		if (!claimed)
			adit_device_unclaim(adit);
		return error;
	}
	if (fwmark) {
		WRITE_ONCE(adit->fwmark, nla_get_u32(fwmark));
		list_for_each_entry(peer, &adit->peers, list)
			dst_cache_reset(&peer->dst_cache);
	}
	if (public_key)
		memcpy(adit->public_key, nla_data(public_key), sizeof(adit->public_key));
	if (change->attributes[ADIT_A_DEVICE_MAC1_KEY]) {
		old = rcu_replace_pointer(adit->mac1_key, change->mac1_key,
					  lockdep_is_held(&adit->lock));
		change->mac1_key = NULL;
		if (old)
			kfree_rcu(old, rcu);
	}
	if (claim && !nla_get_u8(claim))
		adit_device_unclaim(adit);
	return 0;
}

int adit_set_device(struct sk_buff *skb, struct genl_info *info)
{
	struct adit_request request;
	struct change change = {};
	bool claimed;
	int error;

	error = adit_request_begin(&request, info);
	if (error)
		return error;
	error = parse_change(&request, &change);
	if (!error)
		error = check_sender(&request, &change, &claimed);
	if (!error)
		error = apply(&request, &change, claimed);
	kfree(change.mac1_key);
	adit_request_end(&request);
	return error;
}
