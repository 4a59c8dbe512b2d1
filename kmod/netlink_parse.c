// SPDX-License-Identifier: GPL-2.0

#include <net/netlink.h>

#include "device.h"
#include "netlink.h"
#include "peer.h"

/* As strict as can be, but for attributes that we do not know yet. */
#define VALIDATE \
	(NL_VALIDATE_TRAILING | NL_VALIDATE_UNSPEC | NL_VALIDATE_STRICT_ATTRS | NL_VALIDATE_NESTED)

#define KEY NLA_POLICY_EXACT_LEN(ADIT_UAPI_KEY_LENGTH)
#define READ_ONLY { .type = NLA_REJECT, .reject_message = "attribute is read only" }

static const struct nla_policy message_policy[ADIT_A_MAX + 1] = {
	[ADIT_A_IFINDEX] = NLA_POLICY_MIN(NLA_U32, 1),
	[ADIT_A_IFNAME] = { .type = NLA_NUL_STRING, .len = IFNAMSIZ - 1 },
	[ADIT_A_DEVICE] = { .type = NLA_NESTED },
	[ADIT_A_PEER] = { .type = NLA_NESTED },
	[ADIT_A_KEY] = { .type = NLA_NESTED },
	[ADIT_A_ENDPOINT] = { .type = NLA_NESTED },
	[ADIT_A_LOCAL] = { .type = NLA_NESTED },
	[ADIT_A_PAYLOAD] = { .type = NLA_BINARY, .len = ADIT_UAPI_CONTROL_MAX },
	[ADIT_A_HANDSHAKE_REASON] = READ_ONLY,
	[ADIT_A_BACKLOG] = READ_ONLY,
};

static const struct nla_policy device_policy[ADIT_A_DEVICE_MAX + 1] = {
	[ADIT_A_DEVICE_LISTEN_PORT] = { .type = NLA_U16 },
	[ADIT_A_DEVICE_FWMARK] = { .type = NLA_U32 },
	[ADIT_A_DEVICE_BIND_ADDRESS] = { .type = NLA_BINARY, .len = sizeof(struct in6_addr) },
	[ADIT_A_DEVICE_MAC1_KEY] = { .type = NLA_BINARY, .len = ADIT_UAPI_KEY_LENGTH },
	[ADIT_A_DEVICE_PUBLIC_KEY] = KEY,
	[ADIT_A_DEVICE_CLAIM] = NLA_POLICY_MAX(NLA_U8, 1),
	[ADIT_A_DEVICE_CLAIMANT] = READ_ONLY,
	[ADIT_A_DEVICE_MODULE] = READ_ONLY,
	[ADIT_A_DEVICE_SUITE_SPEEDS] = READ_ONLY,
	[ADIT_A_DEVICE_DROPS] = READ_ONLY,
	[ADIT_A_DEVICE_PEER_COUNT] = READ_ONLY,
	[ADIT_A_DEVICE_LAST_PEER_ID] = READ_ONLY,
	[ADIT_A_DEVICE_COUNTERS] = READ_ONLY,
};

static const struct nla_policy peer_policy[ADIT_A_PEER_MAX + 1] = {
	[ADIT_A_PEER_ID] = NLA_POLICY_MIN(NLA_U64, 1),
	[ADIT_A_PEER_PUBLIC_KEY] = KEY,
	[ADIT_A_PEER_FLAGS] =
		NLA_POLICY_MASK(NLA_U32, ADIT_PEER_F_NO_ROAM | ADIT_PEER_F_APPEND_ALLOWED_IPS |
						 ADIT_PEER_F_UPDATE_ONLY),
	[ADIT_A_PEER_ENDPOINT] = { .type = NLA_NESTED },
	[ADIT_A_PEER_LOCAL] = { .type = NLA_NESTED },
	[ADIT_A_PEER_PERSISTENT_KEEPALIVE] = { .type = NLA_U16 },
	[ADIT_A_PEER_ALLOWED_IPS] = { .type = NLA_NESTED },
	[ADIT_A_PEER_COOKIE] = { .type = NLA_BINARY, .len = ADIT_UAPI_COOKIE_MAX },
	[ADIT_A_PEER_RX_BYTES] = READ_ONLY,
	[ADIT_A_PEER_TX_BYTES] = READ_ONLY,
	[ADIT_A_PEER_RX_PACKETS] = READ_ONLY,
	[ADIT_A_PEER_TX_PACKETS] = READ_ONLY,
	[ADIT_A_PEER_LAST_RECEIVE] = READ_ONLY,
	[ADIT_A_PEER_SUITE] = READ_ONLY,
	[ADIT_A_PEER_SESSION_START] = READ_ONLY,
	[ADIT_A_PEER_SESSION_INITIATOR] = READ_ONLY,
	[ADIT_A_PEER_DROPS] = READ_ONLY,
	[ADIT_A_PEER_NEXT_SUITE] = READ_ONLY,
	[ADIT_A_PEER_NEXT_START] = READ_ONLY,
};

/* Not const: 6.1 does not take it so. */
static struct netlink_range_validation duration_range = {
	.min = 1,
	.max = S64_MAX / 8, /* times are summed up in 64 bits with a sign */
};

static const struct nla_policy key_policy[ADIT_A_KEY_MAX + 1] = {
	[ADIT_A_KEY_PEER_ID] = NLA_POLICY_MIN(NLA_U64, 1),
	[ADIT_A_KEY_PEER_PUBLIC_KEY] = KEY,
	[ADIT_A_KEY_SLOT] = NLA_POLICY_MAX(NLA_U8, ADIT_KEY_SLOT_NEXT),
	[ADIT_A_KEY_SUITE] = NLA_POLICY_MAX(NLA_U8, ADIT_SUITE_COUNT - 1),
	[ADIT_A_KEY_LOCAL_INDEX] = { .type = NLA_U32 },
	[ADIT_A_KEY_REMOTE_INDEX] = { .type = NLA_U32 },
	[ADIT_A_KEY_SEND] = KEY,
	[ADIT_A_KEY_RECEIVE] = KEY,
	[ADIT_A_KEY_REKEY_AFTER] = NLA_POLICY_FULL_RANGE(NLA_U64, &duration_range),
	[ADIT_A_KEY_REJECT_AFTER] = NLA_POLICY_FULL_RANGE(NLA_U64, &duration_range),
	[ADIT_A_KEY_REKEY_AFTER_MESSAGES] = NLA_POLICY_MIN(NLA_U64, 1),
	[ADIT_A_KEY_REJECT_AFTER_MESSAGES] = NLA_POLICY_MIN(NLA_U64, 1),
};

static const struct nla_policy endpoint_policy[ADIT_A_ENDPOINT_MAX + 1] = {
	[ADIT_A_ENDPOINT_ADDRESS] = NLA_POLICY_MIN_LEN(sizeof(struct in_addr)),
	[ADIT_A_ENDPOINT_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[ADIT_A_ENDPOINT_IFINDEX] = { .type = NLA_U32 },
};

static const struct nla_policy allowed_ip_policy[ADIT_A_ALLOWED_IP_MAX + 1] = {
	[ADIT_A_ALLOWED_IP_ADDRESS] = NLA_POLICY_MIN_LEN(sizeof(struct in_addr)),
	[ADIT_A_ALLOWED_IP_LENGTH] = NLA_POLICY_MAX(NLA_U8, 128),
};

static int parse_nest(struct nlattr *nest, struct nlattr **attributes, int max,
		      const struct nla_policy *policy, struct netlink_ext_ack *extack)
{
	int error;

	error = __nla_parse(attributes, max, nla_data(nest), nla_len(nest), policy, VALIDATE,
			    extack);
	/* What is left over at the end of a nest is no attribute that could be named. */
	if (error && extack && !extack->bad_attr)
		NL_SET_BAD_ATTR(extack, nest);
	return error;
}

int adit_parse_message(const struct nlmsghdr *message, struct nlattr **attributes,
		       struct netlink_ext_ack *extack)
{
	return __nla_parse(attributes, ADIT_A_MAX, nlmsg_attrdata(message, GENL_HDRLEN),
			   nlmsg_attrlen(message, GENL_HDRLEN), message_policy, VALIDATE, extack);
}

int adit_parse_device(struct nlattr *nest, struct nlattr **attributes,
		      struct netlink_ext_ack *extack)
{
	return parse_nest(nest, attributes, ADIT_A_DEVICE_MAX, device_policy, extack);
}

int adit_parse_peer(struct nlattr *nest, struct nlattr **attributes,
		    struct netlink_ext_ack *extack)
{
	return parse_nest(nest, attributes, ADIT_A_PEER_MAX, peer_policy, extack);
}

int adit_parse_key(struct nlattr *nest, struct nlattr **attributes,
		   struct netlink_ext_ack *extack)
{
	static const char *const names[ADIT_A_KEY_MAX + 1] = {
		[ADIT_A_KEY_PEER_ID] = "ADIT_A_KEY_PEER_ID is missing",
		[ADIT_A_KEY_PEER_PUBLIC_KEY] = "ADIT_A_KEY_PEER_PUBLIC_KEY is missing",
		[ADIT_A_KEY_SLOT] = "ADIT_A_KEY_SLOT is missing",
		[ADIT_A_KEY_SUITE] = "ADIT_A_KEY_SUITE is missing",
		[ADIT_A_KEY_LOCAL_INDEX] = "ADIT_A_KEY_LOCAL_INDEX is missing",
		[ADIT_A_KEY_REMOTE_INDEX] = "ADIT_A_KEY_REMOTE_INDEX is missing",
		[ADIT_A_KEY_SEND] = "ADIT_A_KEY_SEND is missing",
		[ADIT_A_KEY_RECEIVE] = "ADIT_A_KEY_RECEIVE is missing",
		[ADIT_A_KEY_REKEY_AFTER] = "ADIT_A_KEY_REKEY_AFTER is missing",
		[ADIT_A_KEY_REJECT_AFTER] = "ADIT_A_KEY_REJECT_AFTER is missing",
		[ADIT_A_KEY_REKEY_AFTER_MESSAGES] = "ADIT_A_KEY_REKEY_AFTER_MESSAGES is missing",
		[ADIT_A_KEY_REJECT_AFTER_MESSAGES] = "ADIT_A_KEY_REJECT_AFTER_MESSAGES is missing",
	};
	int error, i;

	error = parse_nest(nest, attributes, ADIT_A_KEY_MAX, key_policy, extack);
	for (i = 0; !error && i <= ADIT_A_KEY_MAX; i++) {
		if (names[i] && !attributes[i]) {
			if (extack)
				extack->_msg = names[i];
			error = -EINVAL;
		}
	}
	return error;
}

static int parse_scope(struct nlattr *attribute)
{
	return attribute ? nla_get_u32(attribute) : 0;
}

int adit_parse_endpoint(struct nlattr *nest, struct adit_endpoint *endpoint,
			struct netlink_ext_ack *extack)
{
	struct nlattr *attributes[ADIT_A_ENDPOINT_MAX + 1];
	struct nlattr *address, *port;
	int error;

	error = parse_nest(nest, attributes, ADIT_A_ENDPOINT_MAX, endpoint_policy, extack);
	if (error)
		return error;
	address = attributes[ADIT_A_ENDPOINT_ADDRESS];
	port = attributes[ADIT_A_ENDPOINT_PORT];
	if (!address || !port) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "an endpoint needs ADIT_A_ENDPOINT_ADDRESS and _PORT");
		return -EINVAL;
	}
	memset(endpoint, 0, sizeof(*endpoint));
	if (nla_len(address) == sizeof(struct in_addr)) {
		endpoint->address4.sin_family = AF_INET;
		endpoint->address4.sin_port = htons(nla_get_u16(port));
		endpoint->address4.sin_addr.s_addr = nla_get_in_addr(address);
	} else if (nla_len(address) == sizeof(struct in6_addr)) {
		endpoint->address6.sin6_family = AF_INET6;
		endpoint->address6.sin6_port = htons(nla_get_u16(port));
		endpoint->address6.sin6_addr = nla_get_in6_addr(address);
		endpoint->address6.sin6_scope_id =
			ipv6_iface_scope_id(&endpoint->address6.sin6_addr,
					    parse_scope(attributes[ADIT_A_ENDPOINT_IFINDEX]));
	} else {
		NL_SET_ERR_MSG_ATTR(extack, address,
				    "ADIT_A_ENDPOINT_ADDRESS must have 4 or 16 bytes");
		return -EINVAL;
	}
	return 0;
}

int adit_parse_local(struct nlattr *nest, struct adit_endpoint *endpoint,
		     struct netlink_ext_ack *extack)
{
	struct nlattr *attributes[ADIT_A_ENDPOINT_MAX + 1];
	struct nlattr *address;
	unsigned int length;
	int error;

	error = parse_nest(nest, attributes, ADIT_A_ENDPOINT_MAX, endpoint_policy, extack);
	if (error)
		return error;
	address = attributes[ADIT_A_ENDPOINT_ADDRESS];
	length = endpoint->address.sa_family == AF_INET ? sizeof(struct in_addr) :
							  sizeof(struct in6_addr);
	if (!address || nla_len(address) != length) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "the local end needs an address of the endpoint's family");
		return -EINVAL;
	}
	if (length == sizeof(struct in_addr))
		endpoint->source4.s_addr = nla_get_in_addr(address);
	else
		endpoint->source6 = nla_get_in6_addr(address);
	endpoint->source_ifindex = parse_scope(attributes[ADIT_A_ENDPOINT_IFINDEX]);
	return 0;
}

int adit_parse_prefix(struct nlattr *nest, struct adit_prefix *prefix,
		      struct netlink_ext_ack *extack)
{
	struct nlattr *attributes[ADIT_A_ALLOWED_IP_MAX + 1];
	struct nlattr *address, *length;
	int error;

	error = parse_nest(nest, attributes, ADIT_A_ALLOWED_IP_MAX, allowed_ip_policy, extack);
	if (error)
		return error;
	address = attributes[ADIT_A_ALLOWED_IP_ADDRESS];
	length = attributes[ADIT_A_ALLOWED_IP_LENGTH];
	if (!address || !length) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "a prefix needs ADIT_A_ALLOWED_IP_ADDRESS and _LENGTH");
		return -EINVAL;
	}
	memset(prefix, 0, sizeof(*prefix));
	prefix->v6 = nla_len(address) == sizeof(struct in6_addr);
	prefix->bits = nla_get_u8(length);
	if (!prefix->v6 && nla_len(address) != sizeof(struct in_addr)) {
		NL_SET_ERR_MSG_ATTR(extack, address,
				    "ADIT_A_ALLOWED_IP_ADDRESS must have 4 or 16 bytes");
		return -EINVAL;
	}
	if (!prefix->v6 && prefix->bits > 32) {
		NL_SET_ERR_MSG_ATTR(extack, length,
				    "ADIT_A_ALLOWED_IP_LENGTH is beyond 32 bits of IPv4");
		return -ERANGE;
	}
	memcpy(&prefix->address, nla_data(address), nla_len(address));
	return 0;
}

struct adit_device *adit_device_of(struct net *net, struct nlattr **attributes,
				   struct netlink_ext_ack *extack)
{
	struct nlattr *index = attributes[ADIT_A_IFINDEX];
	struct nlattr *name = attributes[ADIT_A_IFNAME];
	struct adit_device *adit;

	if (!index == !name) {
		NL_SET_ERR_MSG(extack, "one of ADIT_A_IFINDEX and ADIT_A_IFNAME is needed");
		return ERR_PTR(-EINVAL);
	}
	adit = adit_device_find(net, index ? nla_get_u32(index) : 0, name ? nla_data(name) : NULL);
	if (!adit) {
		NL_SET_ERR_MSG_ATTR(extack, index ? index : name,
				    "no adit device with this ADIT_A_IFINDEX or ADIT_A_IFNAME");
		return ERR_PTR(-ENODEV);
	}
	return adit;
}

int adit_request_begin(struct adit_request *request, struct genl_info *info)
{
	int error;

	request->info = info;
	error = adit_parse_message(info->nlhdr, request->attributes, info->extack);
	if (error)
		return error;
	request->adit = adit_device_of(genl_info_net(info), request->attributes, info->extack);
	if (IS_ERR(request->adit))
		return PTR_ERR(request->adit);
	mutex_lock(&request->adit->lock);
	if (request->adit->dead) {
		adit_request_end(request);
		return -ENODEV;
	}
	return 0;
}

static int check_claim(struct adit_device *adit, struct genl_info *info)
{
	const struct adit_claim *claim;
	int error = -EPERM;

	rcu_read_lock();
	claim = rcu_dereference(adit->claim);
	if (claim)
		error = claim->portid == info->snd_portid && claim->net == genl_info_net(info) ?
				0 : -EBUSY;
	rcu_read_unlock();
	if (error == -EPERM)
		NL_SET_ERR_MSG(info->extack, "the device is not claimed (ADIT_A_DEVICE_CLAIM)");
	else if (error)
		NL_SET_ERR_MSG(info->extack, "another socket has claimed the device");
	return error;
}

int adit_request_begin_claimed(struct adit_request *request, struct genl_info *info)
{
	int error;

	error = adit_request_begin(request, info);
	if (error)
		return error;
	error = check_claim(request->adit, info);
	if (error)
		adit_request_end(request);
	return error;
}

void adit_request_end(struct adit_request *request)
{
	mutex_unlock(&request->adit->lock);
	adit_device_put(request->adit);
}

int adit_request_peer(struct adit_request *request, struct adit_peer **peer)
{
	struct netlink_ext_ack *extack = request->info->extack;
	struct nlattr *attributes[ADIT_A_PEER_MAX + 1];
	struct nlattr *nest = request->attributes[ADIT_A_PEER];
	int error;

	if (!nest) {
		NL_SET_ERR_MSG(extack, "ADIT_A_PEER is missing");
		return -EINVAL;
	}
	error = adit_parse_peer(nest, attributes, extack);
	if (error)
		return error;
	if (!attributes[ADIT_A_PEER_ID]) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "ADIT_A_PEER_ID is missing");
		return -EINVAL;
	}
	*peer = adit_peer_find(request->adit, nla_get_u64(attributes[ADIT_A_PEER_ID]));
	if (!*peer) {
		NL_SET_ERR_MSG_ATTR(extack, attributes[ADIT_A_PEER_ID],
				    "no peer with this ADIT_A_PEER_ID");
		return -ENOENT;
	}
	return 0;
}
