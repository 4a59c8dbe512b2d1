// SPDX-License-Identifier: GPL-2.0

#include "device.h"
#include "events.h"
#include "netlink.h"
#include "peer.h"
#include "tx.h"

/* All that a request wants to change, parsed before anything is changed. */
struct change {
	struct nlattr *attributes[ADIT_A_PEER_MAX + 1];
	struct adit_endpoint endpoint;
	bool has_endpoint;
	unsigned int prefixes;
	struct list_head reserve; /* memory for them */
	u32 flags;
};

static int parse_endpoint(struct change *change, struct netlink_ext_ack *extack)
{
	struct nlattr *endpoint = change->attributes[ADIT_A_PEER_ENDPOINT];
	struct nlattr *local = change->attributes[ADIT_A_PEER_LOCAL];
	int error;

	if (!endpoint) {
		if (!local)
			return 0;
		NL_SET_ERR_MSG_ATTR(extack, local,
				    "ADIT_A_PEER_LOCAL comes with ADIT_A_PEER_ENDPOINT only");
		return -EINVAL;
	}
	error = adit_parse_endpoint(endpoint, &change->endpoint, extack);
	if (!error && local)
		error = adit_parse_local(local, &change->endpoint, extack);
	change->has_endpoint = !error;
	return error;
}

/* Checks all, so that none is refused later, and gets the memory. */
static int parse_allowed_ips(struct change *change, struct netlink_ext_ack *extack)
{
	struct nlattr *list = change->attributes[ADIT_A_PEER_ALLOWED_IPS];
	struct adit_prefix prefix;
	struct nlattr *nest;
	int error, left;

	if (!list)
		return 0;
	nla_for_each_nested(nest, list, left) {
		if (!(nest->nla_type & NLA_F_NESTED)) {
			NL_SET_ERR_MSG_ATTR(extack, nest,
					    "ADIT_A_PEER_ALLOWED_IPS holds nests only");
			return -EINVAL;
		}
		error = adit_parse_prefix(nest, &prefix, extack);
		if (error)
			return error;
		change->prefixes++;
	}
	if (left > 0) {
		NL_SET_ERR_MSG_ATTR(extack, list, "ADIT_A_PEER_ALLOWED_IPS is truncated");
		return -EINVAL;
	}
	return adit_allowedips_reserve(&change->reserve, change->prefixes);
}

static int parse_change(struct adit_request *request, struct change *change)
{
	struct netlink_ext_ack *extack = request->info->extack;
	struct nlattr *nest = request->attributes[ADIT_A_PEER];
	struct nlattr *flags;
	int error;

	INIT_LIST_HEAD(&change->reserve);
	if (!nest) {
		NL_SET_ERR_MSG(extack, "ADIT_A_PEER is missing");
		return -EINVAL;
	}
	error = adit_parse_peer(nest, change->attributes, extack);
	if (error)
		return error;
	if (!change->attributes[ADIT_A_PEER_ID]) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "ADIT_A_PEER_ID is missing");
		return -EINVAL;
	}
	flags = change->attributes[ADIT_A_PEER_FLAGS];
	change->flags = flags ? nla_get_u32(flags) : 0;
	error = parse_endpoint(change, extack);
	if (!error)
		error = parse_allowed_ips(change, extack);
	return error;
}

/* The peer to change, created if that is wanted; an error pointer otherwise. */
static struct adit_peer *target(struct adit_request *request, const struct change *change,
				bool *created)
{
	struct nlattr *id = change->attributes[ADIT_A_PEER_ID];
	struct nlattr *key = change->attributes[ADIT_A_PEER_PUBLIC_KEY];
	struct netlink_ext_ack *extack = request->info->extack;
	struct adit_device *adit = request->adit;
	struct adit_peer *peer;

	*created = false;
	peer = adit_peer_find(adit, nla_get_u64(id));
	if (peer) {
		if (!key || !memcmp(peer->public_key, nla_data(key), sizeof(peer->public_key)))
			return peer;
		NL_SET_ERR_MSG_ATTR(extack, key, "ADIT_A_PEER_PUBLIC_KEY cannot change");
		return ERR_PTR(-EINVAL);
	}
	if (change->flags & ADIT_PEER_F_UPDATE_ONLY) {
		NL_SET_ERR_MSG_ATTR(extack, id, "no peer with this ADIT_A_PEER_ID");
		return ERR_PTR(-ENOENT);
	}
	if (nla_get_u64(id) <= adit->last_peer_id) {
		NL_SET_ERR_MSG_ATTR(extack, id, "ADIT_A_PEER_ID was used before");
		return ERR_PTR(-EINVAL);
	}
	if (!key) {
		NL_SET_ERR_MSG(extack, "ADIT_A_PEER_PUBLIC_KEY is missing");
		return ERR_PTR(-EINVAL);
	}
	if (adit_peer_find_key(adit, nla_data(key))) {
		NL_SET_ERR_MSG_ATTR(extack, key,
				    "another peer has this ADIT_A_PEER_PUBLIC_KEY");
		return ERR_PTR(-EEXIST);
	}
	*created = true;
	return adit_peer_create(adit, nla_get_u64(id), nla_data(key));
}

static void set_allowed_ips(struct adit_peer *peer, struct change *change)
{
	struct nlattr *list = change->attributes[ADIT_A_PEER_ALLOWED_IPS];
	struct adit_prefix prefix;
	struct nlattr *nest;
	bool append;
	int left;

	if (!list)
		return;
	append = change->flags & ADIT_PEER_F_APPEND_ALLOWED_IPS;
	if (!append)
		adit_allowedips_renew(&peer->allowedips);
	nla_for_each_nested(nest, list, left)
		if (!adit_parse_prefix(nest, &prefix, NULL))
			adit_allowedips_insert(&peer->adit->allowedips, &change->reserve, &prefix,
					       peer, &peer->allowedips);
	if (!append)
		adit_allowedips_trim(&peer->allowedips);
}

static void apply(struct adit_peer *peer, struct change *change, bool created)
{
	struct nlattr *keepalive = change->attributes[ADIT_A_PEER_PERSISTENT_KEEPALIVE];
	struct nlattr *cookie = change->attributes[ADIT_A_PEER_COOKIE];

	if (change->attributes[ADIT_A_PEER_FLAGS])
		WRITE_ONCE(peer->no_roam, change->flags & ADIT_PEER_F_NO_ROAM);
	if (keepalive)
		WRITE_ONCE(peer->persistent_keepalive, nla_get_u16(keepalive));
	if (cookie) {
		peer->cookie_length = nla_len(cookie);
		memcpy(peer->cookie, nla_data(cookie), peer->cookie_length);
	}
	if (change->has_endpoint)
		adit_peer_set_endpoint(peer, &change->endpoint);
	set_allowed_ips(peer, change);
	if (created)
		adit_event_peer_added(peer);
	/* A keepalive or a handshake may have become possible. */
	adit_peer_kick(peer);
}

int adit_set_peer(struct sk_buff *skb, struct genl_info *info)
{
	struct adit_request request;
	struct change change = {};
	struct adit_peer *peer;
	bool created;
	int error;

	error = adit_request_begin_claimed(&request, info);
	if (error)
		return error;
	error = parse_change(&request, &change);
	if (!error) {
		peer = target(&request, &change, &created);
		error = PTR_ERR_OR_ZERO(peer);
		if (!error)
			apply(peer, &change, created);
	}
	adit_allowedips_unreserve(&change.reserve);
	adit_request_end(&request);
	return error;
}

int adit_del_peer(struct sk_buff *skb, struct genl_info *info)
{
	struct adit_request request;
	struct adit_peer *peer;
	int error;

	error = adit_request_begin_claimed(&request, info);
	if (error)
		return error;
	error = adit_request_peer(&request, &peer);
	if (!error)
		adit_peer_remove(peer);
	adit_request_end(&request);
	return error;
}

int adit_drop_staged(struct sk_buff *skb, struct genl_info *info)
{
	struct adit_request request;
	struct adit_peer *peer;
	int error;

	error = adit_request_begin_claimed(&request, info);
	if (error)
		return error;
	error = adit_request_peer(&request, &peer);
	if (!error)
		adit_staging_purge(&peer->staging);
	adit_request_end(&request);
	return error;
}

static int check_control(struct adit_request *request)
{
	struct nlattr *payload = request->attributes[ADIT_A_PAYLOAD];
	struct netlink_ext_ack *extack = request->info->extack;

	if (!payload) {
		NL_SET_ERR_MSG(extack, "ADIT_A_PAYLOAD is missing");
		return -EINVAL;
	}
	if (nla_len(payload) == 0 || *(const u8 *)nla_data(payload) >> 4 != 0) {
		NL_SET_ERR_MSG_ATTR(extack, payload, "ADIT_A_PAYLOAD is no control message");
		return -EINVAL;
	}
	return 0;
}

int adit_send_control(struct sk_buff *skb, struct genl_info *info)
{
	struct adit_request request;
	struct nlattr *payload;
	struct adit_peer *peer;
	int error;

	error = adit_request_begin_claimed(&request, info);
	if (error)
		return error;
	error = adit_request_peer(&request, &peer);
	if (!error)
		error = check_control(&request);
	if (!error) {
		payload = request.attributes[ADIT_A_PAYLOAD];
		if (!adit_tx_send_own(peer, nla_data(payload), nla_len(payload))) {
			NL_SET_ERR_MSG(info->extack, "the peer has no usable key");
			error = -ENOKEY;
		}
	}
	adit_request_end(&request);
	return error;
}
