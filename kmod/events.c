// SPDX-License-Identifier: GPL-2.0

#include "events.h"

#include <net/genetlink.h>

#include "device.h"
#include "netlink.h"
#include "peer.h"

struct message {
	struct sk_buff *skb;
	void *header;
};

static bool begin(struct adit_device *adit, u8 command, struct message *message)
{
	message->skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!message->skb)
		return false;
	message->header = genlmsg_put(message->skb, 0, 0, &adit_genl_family, 0, command);
	if (message->header &&
	    !nla_put_u32(message->skb, ADIT_A_IFINDEX, READ_ONCE(adit->dev->ifindex)))
		return true;
	nlmsg_free(message->skb);
	return false;
}

/* Takes the message. -ENOTCONN without a claimant. */
static int send_to_claimant(struct adit_device *adit, struct sk_buff *skb)
{
	const struct adit_claim *claim;
	int error = -ENOTCONN;

	rcu_read_lock();
	claim = rcu_dereference(adit->claim);
	if (claim)
		error = genlmsg_unicast(claim->net, skb, claim->portid);
	rcu_read_unlock();
	if (!claim)
		nlmsg_free(skb);
	return error;
}

/* Takes the message. */
static void send_to_group(struct adit_device *adit, struct sk_buff *skb, u32 except)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(dev_net(adit->dev));
	rcu_read_unlock();
	if (!net) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_multicast_netns(&adit_genl_family, net, skb, except, 0, GFP_KERNEL);
	put_net(net);
}

static u32 claimant_of(struct adit_device *adit)
{
	const struct adit_claim *claim;
	u32 portid = 0;

	rcu_read_lock();
	claim = rcu_dereference(adit->claim);
	if (claim)
		portid = claim->portid;
	rcu_read_unlock();
	return portid;
}

/* To the group, and to the claimant, which need not be in it. */
static void send_to_all(struct adit_device *adit, struct sk_buff *skb)
{
	struct sk_buff *copy = skb_clone(skb, GFP_KERNEL);
	u32 claimant = claimant_of(adit);

	if (claimant && copy)
		send_to_claimant(adit, copy);
	else
		kfree_skb(copy);
	send_to_group(adit, skb, claimant);
}

static bool put_peer(struct message *message, const struct adit_peer *peer, bool public_key,
		     const struct adit_endpoint *endpoint)
{
	struct sk_buff *skb = message->skb;
	struct nlattr *nest;

	nest = nla_nest_start(skb, ADIT_A_PEER);
	if (!nest || nla_put_u64_64bit(skb, ADIT_A_PEER_ID, peer->id, ADIT_A_PEER_PAD))
		return false;
	if (public_key && nla_put(skb, ADIT_A_PEER_PUBLIC_KEY, sizeof(peer->public_key),
				  peer->public_key))
		return false;
	if (endpoint && (adit_put_endpoint(skb, ADIT_A_PEER_ENDPOINT, endpoint) ||
			 adit_put_local(skb, ADIT_A_PEER_LOCAL, endpoint)))
		return false;
	nla_nest_end(skb, nest);
	return true;
}

/* A message with a peer in it, complete; null on failure. */
static struct sk_buff *peer_message(struct adit_peer *peer, u8 command, bool public_key,
				    const struct adit_endpoint *endpoint)
{
	struct message message;

	if (!begin(peer->adit, command, &message))
		return NULL;
	if (!put_peer(&message, peer, public_key, endpoint)) {
		nlmsg_free(message.skb);
		return NULL;
	}
	genlmsg_end(message.skb, message.header);
	return message.skb;
}

void adit_event_need_handshake(struct adit_peer *peer, enum adit_handshake_reason reason)
{
	struct message message;

	if (!begin(peer->adit, ADIT_CMD_EVENT_NEED_HANDSHAKE, &message))
		return;
	if (!put_peer(&message, peer, false, NULL) ||
	    nla_put_u8(message.skb, ADIT_A_HANDSHAKE_REASON, reason)) {
		nlmsg_free(message.skb);
		return;
	}
	genlmsg_end(message.skb, message.header);
	send_to_claimant(peer->adit, message.skb);
}

void adit_event_key_confirmed(struct adit_peer *peer)
{
	struct sk_buff *skb = peer_message(peer, ADIT_CMD_EVENT_KEY_CONFIRMED, false, NULL);

	if (skb)
		send_to_claimant(peer->adit, skb);
}

void adit_event_keys_expired(struct adit_peer *peer)
{
	struct sk_buff *skb = peer_message(peer, ADIT_CMD_EVENT_KEYS_EXPIRED, false, NULL);

	if (skb)
		send_to_all(peer->adit, skb);
}

void adit_event_endpoint_moved(struct adit_peer *peer)
{
	struct adit_endpoint endpoint;
	struct sk_buff *skb;

	adit_peer_get_endpoint(peer, &endpoint);
	skb = peer_message(peer, ADIT_CMD_EVENT_ENDPOINT_MOVED, false, &endpoint);
	if (skb)
		send_to_all(peer->adit, skb);
}

void adit_event_peer_added(struct adit_peer *peer)
{
	struct sk_buff *skb = peer_message(peer, ADIT_CMD_EVENT_PEER_ADDED, true, NULL);

	if (skb)
		send_to_group(peer->adit, skb, 0);
}

void adit_event_peer_removed(struct adit_peer *peer)
{
	struct sk_buff *skb = peer_message(peer, ADIT_CMD_EVENT_PEER_REMOVED, true, NULL);

	if (skb)
		send_to_group(peer->adit, skb, 0);
}

int adit_event_handshake(struct adit_device *adit, const struct adit_handshake_entry *entry,
			 unsigned int backlog)
{
	struct message message;

	if (!begin(adit, ADIT_CMD_EVENT_HANDSHAKE, &message))
		return -ENOMEM;
	if (nla_put(message.skb, ADIT_A_PAYLOAD, entry->length, entry->bytes) ||
	    adit_put_endpoint(message.skb, ADIT_A_ENDPOINT, &entry->source) ||
	    adit_put_local(message.skb, ADIT_A_LOCAL, &entry->source) ||
	    nla_put_u32(message.skb, ADIT_A_BACKLOG, backlog)) {
		nlmsg_free(message.skb);
		return -EMSGSIZE;
	}
	genlmsg_end(message.skb, message.header);
	return send_to_claimant(adit, message.skb);
}

int adit_event_control(struct adit_device *adit, const struct adit_control_entry *entry)
{
	struct message message;
	struct nlattr *nest;

	if (!begin(adit, ADIT_CMD_EVENT_CONTROL, &message))
		return -ENOMEM;
	nest = nla_nest_start(message.skb, ADIT_A_PEER);
	if (!nest || nla_put_u64_64bit(message.skb, ADIT_A_PEER_ID, entry->peer_id,
				       ADIT_A_PEER_PAD)) {
		nlmsg_free(message.skb);
		return -EMSGSIZE;
	}
	nla_nest_end(message.skb, nest);
	if (nla_put(message.skb, ADIT_A_PAYLOAD, entry->length, entry->bytes)) {
		nlmsg_free(message.skb);
		return -EMSGSIZE;
	}
	genlmsg_end(message.skb, message.header);
	return send_to_claimant(adit, message.skb);
}
