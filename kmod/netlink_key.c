// SPDX-License-Identifier: GPL-2.0

#include "device.h"
#include "netlink.h"
#include "peer.h"
#include "socket.h"
#include "tx.h"

/* AF41, as WireGuard marks handshakes. */
#define HANDSHAKE_TOS 0x88

static void read_keys(struct nlattr **attributes, struct adit_session_keys *keys)
{
	keys->slot = nla_get_u8(attributes[ADIT_A_KEY_SLOT]);
	keys->suite = nla_get_u8(attributes[ADIT_A_KEY_SUITE]);
	keys->local_index = nla_get_u32(attributes[ADIT_A_KEY_LOCAL_INDEX]);
	keys->remote_index = nla_get_u32(attributes[ADIT_A_KEY_REMOTE_INDEX]);
	memcpy(keys->send, nla_data(attributes[ADIT_A_KEY_SEND]), sizeof(keys->send));
	memcpy(keys->receive, nla_data(attributes[ADIT_A_KEY_RECEIVE]), sizeof(keys->receive));
	keys->rekey_after = nla_get_u64(attributes[ADIT_A_KEY_REKEY_AFTER]);
	keys->reject_after = nla_get_u64(attributes[ADIT_A_KEY_REJECT_AFTER]);
	keys->rekey_after_messages = nla_get_u64(attributes[ADIT_A_KEY_REKEY_AFTER_MESSAGES]);
	keys->reject_after_messages = nla_get_u64(attributes[ADIT_A_KEY_REJECT_AFTER_MESSAGES]);
}

static struct adit_peer *peer_of(struct adit_device *adit, struct nlattr **attributes,
				 struct netlink_ext_ack *extack)
{
	struct nlattr *key = attributes[ADIT_A_KEY_PEER_PUBLIC_KEY];
	struct nlattr *id = attributes[ADIT_A_KEY_PEER_ID];
	struct adit_peer *peer = adit_peer_find(adit, nla_get_u64(id));

	if (!peer) {
		NL_SET_ERR_MSG_ATTR(extack, id, "no peer with this ADIT_A_KEY_PEER_ID");
		return ERR_PTR(-ENOENT);
	}
	if (memcmp(peer->public_key, nla_data(key), sizeof(peer->public_key))) {
		NL_SET_ERR_MSG_ATTR(extack, key,
				    "ADIT_A_KEY_PEER_PUBLIC_KEY is not this peer's");
		return ERR_PTR(-EKEYREJECTED);
	}
	return peer;
}

/* The session goes into its slot, and what waited for it is sent. */
static void install(struct adit_peer *peer, struct adit_session *session, u8 slot)
{
	adit_slots_install(&peer->slots, &peer->adit->sessions, session, slot);
	/* A handshake was answered: the other side is there. */
	atomic64_set(&peer->activity.unanswered_since, 0);
	if (slot == ADIT_KEY_SLOT_CURRENT)
		atomic64_set(&peer->activity.key_aged, 0);
	atomic_set(&peer->timers.key_installed, 1);
	if (slot == ADIT_KEY_SLOT_CURRENT) {
		/* What is sent first confirms the key to the other side. */
		if (adit_staging_empty(&peer->staging))
			adit_tx_send_own(peer, NULL, 0);
		else
			adit_tx_flush_staged(peer);
	}
	adit_peer_kick(peer);
}

static int create(struct adit_request *request, struct nlattr **attributes,
		  const struct adit_session_keys *keys)
{
	struct netlink_ext_ack *extack = request->info->extack;
	struct adit_device *adit = request->adit;
	struct adit_session *session;
	struct adit_peer *peer;
	int error;

	peer = peer_of(adit, attributes, extack);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	if (adit_session_index_used(&adit->sessions, keys->local_index)) {
		NL_SET_ERR_MSG_ATTR(extack, attributes[ADIT_A_KEY_LOCAL_INDEX],
				    "ADIT_A_KEY_LOCAL_INDEX is in use");
		return -EEXIST;
	}
	session = adit_session_create(peer, keys);
	if (IS_ERR(session)) {
		if (PTR_ERR(session) == -EOPNOTSUPP)
			NL_SET_ERR_MSG_ATTR(extack, attributes[ADIT_A_KEY_SUITE],
					    "this kernel lacks the cipher of ADIT_A_KEY_SUITE");
		return PTR_ERR(session);
	}
	if (!adit_key_history_add(&peer->history, adit->fingerprint_key, keys)) {
		NL_SET_ERR_MSG_ATTR(extack, attributes[ADIT_A_KEY_SEND],
				    "the peer had these keys (ADIT_A_KEY_SEND, _RECEIVE) before");
		adit_session_destroy(session);
		return -EEXIST;
	}
	error = adit_session_add(&adit->sessions, session);
	if (error) {
		adit_session_destroy(session);
		return error;
	}
	install(peer, session, keys->slot);
	return 0;
}

int adit_new_key(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *attributes[ADIT_A_KEY_MAX + 1];
	struct adit_session_keys keys;
	struct adit_request request;
	int error;

	error = adit_request_begin_claimed(&request, info);
	if (error)
		return error;
	if (!request.attributes[ADIT_A_KEY]) {
		NL_SET_ERR_MSG(info->extack, "ADIT_A_KEY is missing");
		error = -EINVAL;
		goto end;
	}
	error = adit_parse_key(request.attributes[ADIT_A_KEY], attributes, info->extack);
	if (error)
		goto wipe;
	read_keys(attributes, &keys);
	error = create(&request, attributes, &keys);
	memzero_explicit(&keys, sizeof(keys));
wipe:
	/* The message is ours alone, and would stay in freed memory. */
	memzero_explicit(nla_data(request.attributes[ADIT_A_KEY]),
			 nla_len(request.attributes[ADIT_A_KEY]));
end:
	adit_request_end(&request);
	return error;
}

int adit_del_keys(struct sk_buff *skb, struct genl_info *info)
{
	struct adit_request request;
	struct adit_peer *peer;
	int error;

	error = adit_request_begin_claimed(&request, info);
	if (error)
		return error;
	error = adit_request_peer(&request, &peer);
	if (!error)
		adit_peer_drop_keys(peer);
	adit_request_end(&request);
	return error;
}

static bool is_handshake(const struct nlattr *payload)
{
	const u8 *bytes = nla_data(payload);

	switch (nla_len(payload)) {
	case sizeof(struct adit_message_initiation):
		return bytes[0] == ADIT_MESSAGE_INITIATION;
	case sizeof(struct adit_message_response):
		return bytes[0] == ADIT_MESSAGE_RESPONSE;
	case sizeof(struct adit_message_cookie):
		return bytes[0] == ADIT_MESSAGE_COOKIE;
	default:
		return false;
	}
}

static int parse_handshake(struct adit_request *request, struct adit_endpoint *endpoint)
{
	struct netlink_ext_ack *extack = request->info->extack;
	struct nlattr **attributes = request->attributes;
	int error;

	if (!attributes[ADIT_A_PAYLOAD] || !attributes[ADIT_A_ENDPOINT]) {
		NL_SET_ERR_MSG(extack, "ADIT_A_PAYLOAD and ADIT_A_ENDPOINT are needed");
		return -EINVAL;
	}
	if (!is_handshake(attributes[ADIT_A_PAYLOAD])) {
		NL_SET_ERR_MSG_ATTR(extack, attributes[ADIT_A_PAYLOAD],
				    "ADIT_A_PAYLOAD is no handshake message");
		return -EINVAL;
	}
	error = adit_parse_endpoint(attributes[ADIT_A_ENDPOINT], endpoint, extack);
	if (!error && attributes[ADIT_A_LOCAL])
		error = adit_parse_local(attributes[ADIT_A_LOCAL], endpoint, extack);
	return error;
}

int adit_send_handshake(struct sk_buff *skb, struct genl_info *info)
{
	struct adit_endpoint endpoint;
	struct adit_request request;
	struct nlattr *payload;
	struct sk_buff *outer;
	int error;

	error = adit_request_begin_claimed(&request, info);
	if (error)
		return error;
	error = parse_handshake(&request, &endpoint);
	if (error)
		goto end;
	payload = request.attributes[ADIT_A_PAYLOAD];
	outer = alloc_skb(ADIT_OUTER_HEADROOM + nla_len(payload), GFP_KERNEL);
	if (!outer) {
		error = -ENOMEM;
		goto end;
	}
	skb_reserve(outer, ADIT_OUTER_HEADROOM);
	skb_put_data(outer, nla_data(payload), nla_len(payload));
	local_bh_disable();
	rcu_read_lock();
	error = adit_socket_send_to(request.adit, &endpoint, outer, HANDSHAKE_TOS);
	if (error)
		adit_drop(request.adit, NULL, ADIT_DROP_SEND_FAILED, 1);
	rcu_read_unlock();
	local_bh_enable();
	if (error)
		NL_SET_ERR_MSG_ATTR(info->extack, request.attributes[ADIT_A_ENDPOINT],
				    "cannot send to ADIT_A_ENDPOINT");
end:
	adit_request_end(&request);
	return error;
}
