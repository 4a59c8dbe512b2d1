// SPDX-License-Identifier: GPL-2.0

#include <linux/rtnetlink.h>

#include "device.h"
#include "netlink.h"
#include "peer.h"

int adit_put_endpoint(struct sk_buff *skb, int type, const struct adit_endpoint *endpoint)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	int error;

	if (!nest)
		return -EMSGSIZE;
	if (endpoint->address.sa_family == AF_INET) {
		error = nla_put_in_addr(skb, ADIT_A_ENDPOINT_ADDRESS,
					endpoint->address4.sin_addr.s_addr) ||
			nla_put_u16(skb, ADIT_A_ENDPOINT_PORT, ntohs(endpoint->address4.sin_port));
	} else {
		error = nla_put_in6_addr(skb, ADIT_A_ENDPOINT_ADDRESS,
					 &endpoint->address6.sin6_addr) ||
			nla_put_u16(skb, ADIT_A_ENDPOINT_PORT,
				    ntohs(endpoint->address6.sin6_port));
		if (!error && endpoint->address6.sin6_scope_id)
			error = nla_put_u32(skb, ADIT_A_ENDPOINT_IFINDEX,
					    endpoint->address6.sin6_scope_id);
	}
	if (error)
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int adit_put_local(struct sk_buff *skb, int type, const struct adit_endpoint *endpoint)
{
	struct nlattr *nest;
	int error;

	if (!adit_endpoint_has_source(endpoint))
		return 0;
	nest = nla_nest_start(skb, type);
	if (!nest)
		return -EMSGSIZE;
	if (endpoint->address.sa_family == AF_INET)
		error = nla_put_in_addr(skb, ADIT_A_ENDPOINT_ADDRESS, endpoint->source4.s_addr);
	else
		error = nla_put_in6_addr(skb, ADIT_A_ENDPOINT_ADDRESS, &endpoint->source6);
	if (!error && endpoint->source_ifindex)
		error = nla_put_u32(skb, ADIT_A_ENDPOINT_IFINDEX, endpoint->source_ifindex);
	if (error)
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_bind_address(struct sk_buff *skb, const struct adit_device *adit)
{
	int length = 0;

	if (adit->bind_family == AF_INET)
		length = sizeof(struct in_addr);
	else if (adit->bind_family == AF_INET6)
		length = sizeof(struct in6_addr);
	return nla_put(skb, ADIT_A_DEVICE_BIND_ADDRESS, length, &adit->bind_address);
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

static bool is_set(const u8 *key)
{
	return memchr_inv(key, 0, ADIT_UAPI_KEY_LENGTH);
}

static int put_device_stats(struct sk_buff *skb, struct adit_device *adit)
{
	u64 counters[__ADIT_COUNTER_COUNT];
	struct adit_totals totals;

	adit_sum_stats(adit->stats, &totals);
	adit_sum_counters(adit->counters, counters);
	return nla_put(skb, ADIT_A_DEVICE_DROPS, sizeof(totals.drops), totals.drops) ||
	       nla_put(skb, ADIT_A_DEVICE_COUNTERS, sizeof(counters), counters);
}

int adit_put_device(struct sk_buff *skb, struct adit_device *adit)
{
	const struct adit_mac1_key *mac1_key;
	struct nlattr *nest;

	mac1_key = rcu_dereference_protected(adit->mac1_key, lockdep_is_held(&adit->lock));
	if (nla_put_u32(skb, ADIT_A_IFINDEX, adit->dev->ifindex) ||
	    nla_put_string(skb, ADIT_A_IFNAME, adit->dev->name))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, ADIT_A_DEVICE);
	if (!nest || nla_put_u16(skb, ADIT_A_DEVICE_LISTEN_PORT, adit->port) ||
	    nla_put_u32(skb, ADIT_A_DEVICE_FWMARK, adit->fwmark) || put_bind_address(skb, adit) ||
	    (is_set(adit->public_key) && nla_put(skb, ADIT_A_DEVICE_PUBLIC_KEY,
						 sizeof(adit->public_key), adit->public_key)) ||
	    (mac1_key && nla_put(skb, ADIT_A_DEVICE_MAC1_KEY, sizeof(mac1_key->key),
				 mac1_key->key)) ||
	    nla_put_u32(skb, ADIT_A_DEVICE_CLAIMANT, claimant_of(adit)) ||
	    nla_put_string(skb, ADIT_A_DEVICE_MODULE, ADIT_MODULE_VERSION) ||
	    nla_put(skb, ADIT_A_DEVICE_SUITE_SPEEDS, sizeof(adit_suite_speeds),
		    adit_suite_speeds) ||
	    put_device_stats(skb, adit) ||
	    nla_put_u32(skb, ADIT_A_DEVICE_PEER_COUNT, adit->peer_count) ||
	    nla_put_u64_64bit(skb, ADIT_A_DEVICE_LAST_PEER_ID, adit->last_peer_id,
			      ADIT_A_DEVICE_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_device_message(struct sk_buff *skb, struct netlink_callback *callback,
			      struct adit_device *adit)
{
	void *header;
	int error;

	header = genlmsg_put(skb, NETLINK_CB(callback->skb).portid, callback->nlh->nlmsg_seq,
			     &adit_genl_family, NLM_F_MULTI, ADIT_CMD_GET_DEVICE);
	if (!header)
		return -EMSGSIZE;
	mutex_lock(&adit->lock);
	error = adit_put_device(skb, adit);
	mutex_unlock(&adit->lock);
	if (error) {
		genlmsg_cancel(skb, header);
		return error;
	}
	genlmsg_end(skb, header);
	return 0;
}

/* callback->args[0]: the index of the last device that was told of. */
int adit_dump_devices(struct sk_buff *skb, struct netlink_callback *callback)
{
	struct net *net = sock_net(skb->sk);
	struct adit_device *adit, *next;
	int error = 0;

	rtnl_lock();
	do {
		next = NULL;
		list_for_each_entry(adit, &adit_devices, list)
			if (net_eq(dev_net(adit->dev), net) &&
			    adit->dev->ifindex > callback->args[0] &&
			    (!next || adit->dev->ifindex < next->dev->ifindex))
				next = adit;
		if (next) {
			error = put_device_message(skb, callback, next);
			if (!error)
				callback->args[0] = next->dev->ifindex;
		}
	} while (next && !error);
	rtnl_unlock();
	return error == -EMSGSIZE || !error ? skb->len : error;
}

/* Where a dump of peers stands. */
struct peer_dump {
	struct adit_device *adit; /* held */
	u64 id; /* of the peer that is told of, or was last */
	bool only; /* no other one is wanted */
	bool within; /* its allowed IPs are not complete */
	unsigned int allowed_ips; /* that were told of */
	u32 generation; /* of its list; another one starts anew */
};

static struct peer_dump *dump_of(struct netlink_callback *callback)
{
	return (struct peer_dump *)callback->args[0];
}

static int parse_dump(struct netlink_callback *callback, struct peer_dump *dump)
{
	struct nlattr *peer_attributes[ADIT_A_PEER_MAX + 1];
	struct nlattr *attributes[ADIT_A_MAX + 1];
	int error;

	error = adit_parse_message(callback->nlh, attributes, callback->extack);
	if (error)
		return error;
	if (attributes[ADIT_A_PEER]) {
		error = adit_parse_peer(attributes[ADIT_A_PEER], peer_attributes,
					callback->extack);
		if (error)
			return error;
		if (!peer_attributes[ADIT_A_PEER_ID]) {
			NL_SET_ERR_MSG_ATTR(callback->extack, attributes[ADIT_A_PEER],
					    "ADIT_A_PEER_ID is missing");
			return -EINVAL;
		}
		dump->only = true;
		dump->id = nla_get_u64(peer_attributes[ADIT_A_PEER_ID]) - 1;
	}
	dump->adit = adit_device_of(sock_net(callback->skb->sk), attributes, callback->extack);
	return PTR_ERR_OR_ZERO(dump->adit);
}

int adit_dump_peers_start(struct netlink_callback *callback)
{
	struct peer_dump *dump;
	int error;

	dump = kzalloc(sizeof(*dump), GFP_KERNEL);
	if (!dump)
		return -ENOMEM;
	error = parse_dump(callback, dump);
	if (error) {
		kfree(dump);
		return error;
	}
	callback->args[0] = (long)dump;
	return 0;
}

int adit_dump_peers_done(struct netlink_callback *callback)
{
	struct peer_dump *dump = dump_of(callback);

	if (dump) {
		adit_device_put(dump->adit);
		kfree(dump);
	}
	return 0;
}

/* What a dump tells of a session. */
struct session_facts {
	s64 start;
	u8 suite;
	bool initiator;
};

/* False without a session in the slot. */
static bool read_session(struct adit_session __rcu **slot, struct session_facts *facts)
{
	const struct adit_session *session;

	rcu_read_lock_bh();
	session = rcu_dereference_bh(*slot);
	if (session) {
		facts->start = session->start;
		facts->suite = session->suite;
		facts->initiator = session->initiator;
	}
	rcu_read_unlock_bh();
	return session;
}

static int put_sessions(struct sk_buff *skb, struct adit_peer *peer)
{
	struct session_facts facts;

	if (read_session(&peer->slots.current_session, &facts) &&
	    (nla_put_u8(skb, ADIT_A_PEER_SUITE, facts.suite) ||
	     nla_put_u64_64bit(skb, ADIT_A_PEER_SESSION_START, facts.start, ADIT_A_PEER_PAD) ||
	     nla_put_u8(skb, ADIT_A_PEER_SESSION_INITIATOR, facts.initiator)))
		return -EMSGSIZE;
	if (read_session(&peer->slots.next, &facts) &&
	    (nla_put_u8(skb, ADIT_A_PEER_NEXT_SUITE, facts.suite) ||
	     nla_put_u64_64bit(skb, ADIT_A_PEER_NEXT_START, facts.start, ADIT_A_PEER_PAD)))
		return -EMSGSIZE;
	return 0;
}

static int put_stats(struct sk_buff *skb, struct adit_peer *peer)
{
	struct adit_totals totals;

	adit_sum_stats(peer->stats, &totals);
	return nla_put_u64_64bit(skb, ADIT_A_PEER_RX_BYTES, totals.rx_bytes, ADIT_A_PEER_PAD) ||
	       nla_put_u64_64bit(skb, ADIT_A_PEER_TX_BYTES, totals.tx_bytes, ADIT_A_PEER_PAD) ||
	       nla_put_u64_64bit(skb, ADIT_A_PEER_RX_PACKETS, totals.rx_packets,
				 ADIT_A_PEER_PAD) ||
	       nla_put_u64_64bit(skb, ADIT_A_PEER_TX_PACKETS, totals.tx_packets,
				 ADIT_A_PEER_PAD) ||
	       nla_put_u64_64bit(skb, ADIT_A_PEER_LAST_RECEIVE,
				 atomic64_read(&peer->activity.last_received), ADIT_A_PEER_PAD) ||
	       nla_put(skb, ADIT_A_PEER_DROPS, sizeof(totals.drops), totals.drops);
}

/* All of a peer but its allowed IPs. */
static int put_peer(struct sk_buff *skb, struct adit_peer *peer)
{
	struct adit_endpoint endpoint;

	if (nla_put(skb, ADIT_A_PEER_PUBLIC_KEY, sizeof(peer->public_key), peer->public_key) ||
	    nla_put_u32(skb, ADIT_A_PEER_FLAGS, peer->no_roam ? ADIT_PEER_F_NO_ROAM : 0) ||
	    nla_put_u16(skb, ADIT_A_PEER_PERSISTENT_KEEPALIVE, peer->persistent_keepalive) ||
	    nla_put(skb, ADIT_A_PEER_COOKIE, peer->cookie_length, peer->cookie) ||
	    put_stats(skb, peer) || put_sessions(skb, peer))
		return -EMSGSIZE;
	adit_peer_get_endpoint(peer, &endpoint);
	if (!adit_endpoint_known(&endpoint))
		return 0;
	return adit_put_endpoint(skb, ADIT_A_PEER_ENDPOINT, &endpoint) ||
	       adit_put_local(skb, ADIT_A_PEER_LOCAL, &endpoint) ? -EMSGSIZE : 0;
}

static int put_prefix(struct sk_buff *skb, const struct adit_allowedips_node *node)
{
	struct adit_prefix prefix;
	struct nlattr *nest;

	adit_allowedips_prefix(node, &prefix);
	nest = nla_nest_start(skb, 0);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put(skb, ADIT_A_ALLOWED_IP_ADDRESS,
		    prefix.v6 ? sizeof(struct in6_addr) : sizeof(struct in_addr),
		    &prefix.address) ||
	    nla_put_u8(skb, ADIT_A_ALLOWED_IP_LENGTH, prefix.bits)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* As many as fit. Complete or not is in the dump. */
static int put_allowed_ips(struct sk_buff *skb, struct adit_peer *peer, struct peer_dump *dump)
{
	const struct adit_allowedips_node *node;
	unsigned int position = 0;
	struct nlattr *nest;

	if (dump->within && dump->generation != peer->allowedips.generation)
		dump->allowed_ips = 0;
	dump->generation = peer->allowedips.generation;
	dump->within = false;
	nest = nla_nest_start(skb, ADIT_A_PEER_ALLOWED_IPS);
	if (!nest)
		return -EMSGSIZE;
	list_for_each_entry(node, &peer->allowedips.nodes, list) {
		if (position++ < dump->allowed_ips)
			continue;
		if (put_prefix(skb, node)) {
			dump->within = true;
			break;
		}
		dump->allowed_ips++;
	}
	nla_nest_end(skb, nest);
	return 0;
}

static int put_peer_message(struct sk_buff *skb, struct netlink_callback *callback,
			    struct adit_peer *peer, struct peer_dump *dump)
{
	unsigned int told = dump->allowed_ips;
	bool continued = dump->within;
	struct nlattr *nest;
	void *header;

	header = genlmsg_put(skb, NETLINK_CB(callback->skb).portid, callback->nlh->nlmsg_seq,
			     &adit_genl_family, NLM_F_MULTI, ADIT_CMD_GET_PEER);
	if (!header)
		return -EMSGSIZE;
	if (nla_put_u32(skb, ADIT_A_IFINDEX, dump->adit->dev->ifindex))
		goto cancel;
	nest = nla_nest_start(skb, ADIT_A_PEER);
	if (!nest || nla_put_u64_64bit(skb, ADIT_A_PEER_ID, peer->id, ADIT_A_PEER_PAD) ||
	    (!continued && put_peer(skb, peer)) || put_allowed_ips(skb, peer, dump))
		goto cancel;
	/* A message that tells nothing new would go on for ever. */
	if (continued && dump->within && dump->allowed_ips == told)
		goto cancel;
	nla_nest_end(skb, nest);
	genlmsg_end(skb, header);
	dump->id = peer->id;
	if (!dump->within)
		dump->allowed_ips = 0;
	return dump->within ? -EMSGSIZE : 0;
cancel:
	genlmsg_cancel(skb, header);
	dump->allowed_ips = told;
	dump->within = continued;
	return -EMSGSIZE;
}

/* The peer that the dump has to go on with. */
static struct adit_peer *next_peer(struct peer_dump *dump)
{
	struct adit_peer *peer;

	if (dump->within) {
		peer = adit_peer_find(dump->adit, dump->id);
		if (peer)
			return peer;
		/* It was removed meanwhile. */
		dump->within = false;
		dump->allowed_ips = 0;
	}
	return adit_peer_after(dump->adit, dump->id);
}

int adit_dump_peers(struct sk_buff *skb, struct netlink_callback *callback)
{
	struct peer_dump *dump = dump_of(callback);
	struct adit_peer *peer;
	u64 wanted = dump->id + 1;
	int error = 0;

	mutex_lock(&dump->adit->lock);
	while (!error && (peer = next_peer(dump)) != NULL) {
		if (dump->only && !dump->within && peer->id != wanted)
			break;
		error = put_peer_message(skb, callback, peer, dump);
	}
	mutex_unlock(&dump->adit->lock);
	return skb->len;
}
