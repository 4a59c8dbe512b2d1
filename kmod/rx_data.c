// SPDX-License-Identifier: GPL-2.0

#include <linux/ip.h>
#include <linux/ipv6.h>

#include "compat.h"
#include "device.h"
#include "ecn.h"
#include "peer.h"
#include "rx.h"
#include "tx.h"

#define HEADER sizeof(struct adit_message_data)

/*
 * A look before the datagram is decrypted, so that a flood of replays costs little; the answer is
 * that of open_datagram(). What comes in order, as nearly all does, needs no lock for it.
 */
static bool seems_fresh(struct adit_session *session, u64 counter)
{
	bool fresh;

	if (likely(counter > READ_ONCE(session->replay.greatest)))
		return true;
	spin_lock(&session->replay_lock);
	fresh = adit_replay_check(&session->replay, counter);
	spin_unlock(&session->replay_lock);
	return fresh;
}

/* The session of the datagram, or null when it is to be dropped, which is counted. */
static struct adit_session *session_of(struct adit_rx *rx, const struct adit_message_data *header,
				       unsigned int length)
{
	u32 index = le32_to_cpu(header->receiver_index);
	struct adit_session *session = rx->session;
	u64 counter = le64_to_cpu(header->counter);

	if (!session || session->local_index != index) {
		adit_rx_settle(rx);
		session = adit_session_find(&rx->adit->sessions, index);
		if (!session) {
			adit_drop(rx->adit, NULL, ADIT_DROP_UNKNOWN_INDEX, 1);
			return NULL;
		}
		rx->session = session;
		rx->allowed4 = 0;
	}
	if (unlikely(header->header.suite != session->suite)) {
		adit_drop(rx->adit, session->peer, ADIT_DROP_MALFORMED, 1);
		return NULL;
	}
	if (unlikely(counter >= session->reject_after_messages ||
		     adit_session_expired(session, rx->now))) {
		adit_drop(rx->adit, session->peer, ADIT_DROP_KEY_EXPIRED, 1);
		return NULL;
	}
	if (unlikely(!seems_fresh(session, counter))) {
		adit_drop(rx->adit, session->peer, ADIT_DROP_REPLAY, 1);
		return NULL;
	}
	return session;
}

/* Decrypts to a place of the super-packet's choice, and checks for replay. */
static u8 *open_datagram(struct adit_rx *rx, struct adit_session *session,
			 const struct adit_message_data *header, unsigned int length)
{
	u64 counter = le64_to_cpu(header->counter);
	enum adit_drop reason;
	bool fresh;
	u8 *text;

	text = adit_rx_super_place(&rx->super, length);
	if (unlikely(!text)) {
		adit_drop(rx->adit, session->peer, ADIT_DROP_RECEIVE_FAILED, 1);
		return NULL;
	}
	reason = ADIT_DROP_AUTHENTICATION;
	if (adit_open(&session->receive, text, (const u8 *)header + HEADER, rx->before + HEADER,
		      length, counter)) {
		spin_lock(&session->replay_lock);
		fresh = adit_replay_accept(&session->replay, counter);
		spin_unlock(&session->replay_lock);
		if (likely(fresh))
			return text;
		reason = ADIT_DROP_REPLAY;
	}
	adit_rx_super_discard(&rx->super);
	adit_drop(rx->adit, session->peer, reason, 1);
	return NULL;
}

/* The first datagram under a next session: the other side has the keys. */
static void confirm(struct adit_rx *rx, struct adit_session *session)
{
	struct adit_peer *peer = session->peer;

	if (likely(!adit_slots_promote(&peer->slots, &rx->adit->sessions, session)))
		return;
	atomic64_set(&peer->activity.key_aged, 0);
	set_bit(ADIT_PEER_CONFIRMED, &peer->events);
	adit_peer_kick(peer);
	if (!adit_staging_empty(&peer->staging))
		adit_tx_flush_staged(peer);
}

/* The length that the IP header tells; 0 when this is not an IP packet, or a truncated one. */
static unsigned int inner_length(const u8 *text, unsigned int length)
{
	const struct ipv6hdr *ip6 = (const struct ipv6hdr *)text;
	const struct iphdr *ip = (const struct iphdr *)text;
	unsigned int told;

	switch (text[0] >> 4) {
	case 4:
		if (length < sizeof(*ip))
			return 0;
		told = ntohs(ip->tot_len);
		if (ip->ihl < 5 || told < ip->ihl * 4U)
			return 0;
		break;
	case 6:
		if (length < sizeof(*ip6))
			return 0;
		told = sizeof(*ip6) + ntohs(ip6->payload_len);
		break;
	default:
		return 0;
	}
	return told <= length ? told : 0;
}

static bool set_tos(struct adit_rx *rx, u8 *text, bool v6)
{
	struct ipv6hdr *ip6 = (struct ipv6hdr *)text;
	struct iphdr *ip = (struct iphdr *)text;
	u8 inner = v6 ? ipv6_get_dsfield(ip6) : ip->tos;
	int tos = adit_decapsulated_tos(inner, rx->tos);

	if (tos < 0)
		return false;
	if (tos == inner)
		return true;
	if (v6)
		ipv6_change_dsfield(ip6, 0, tos);
	else
		ipv4_change_dsfield(ip, 0, tos);
	return true;
}

/* Whether the peer may use the source address of the packet. */
static bool source_allowed(struct adit_rx *rx, const struct adit_peer *peer, const u8 *text,
			   bool v6)
{
	const struct adit_allowedips *allowed = &rx->adit->allowedips;
	__be32 source;

	if (v6)
		return adit_allowedips_find6(allowed, text + 8) == peer;
	source = ((const struct iphdr *)text)->saddr;
	/* Packets of one flow come together. */
	if (likely(source && source == rx->allowed4))
		return true;
	if (adit_allowedips_find4(allowed, text + 12) != peer)
		return false;
	rx->allowed4 = source;
	return true;
}

static void accept_text(struct adit_rx *rx, struct adit_peer *peer, u8 *text, unsigned int length)
{
	bool v6 = text[0] >> 4 == 6;
	enum adit_drop reason;
	unsigned int inner;

	if (unlikely(text[0] >> 4 == 0)) {
		adit_control_receive(peer, text, length);
		goto discard;
	}
	reason = ADIT_DROP_NOT_IP;
	inner = inner_length(text, length);
	if (unlikely(!inner))
		goto drop;
	reason = ADIT_DROP_SOURCE_NOT_ALLOWED;
	if (unlikely(!source_allowed(rx, peer, text, v6)))
		goto drop;
	reason = ADIT_DROP_CONGESTION;
	if (unlikely(!set_tos(rx, text, v6)))
		goto drop;
	adit_rx_super_accept(&rx->super, inner, v6);
	return;
drop:
	adit_drop(rx->adit, peer, reason, 1);
discard:
	adit_rx_super_discard(&rx->super);
}

void adit_rx_data(struct adit_rx *rx, const u8 *datagram, unsigned int length)
{
	const struct adit_message_data *header = (const struct adit_message_data *)datagram;
	struct adit_session *session;
	u8 *text;

	if (length < ADIT_DATA_OVERHEAD || header->header.suite >= ADIT_SUITE_COUNT) {
		adit_drop(rx->adit, NULL, ADIT_DROP_MALFORMED, 1);
		return;
	}
	session = session_of(rx, header, length);
	if (!session)
		return;
	length -= ADIT_DATA_OVERHEAD;
	text = open_datagram(rx, session, header, length);
	if (!text)
		return;
	if (rx->packets++ == 0) {
		confirm(rx, session);
		/* One that is late says nothing new of where the peer is. */
		if (!READ_ONCE(session->peer->no_roam) &&
		    le64_to_cpu(header->counter) == READ_ONCE(session->replay.greatest))
			adit_peer_learn_endpoint(session->peer, adit_rx_source(rx));
	}
	rx->bytes += length + ADIT_DATA_OVERHEAD;
	if (length == 0) {
		adit_rx_super_discard(&rx->super);
		return;
	}
	rx->data = true;
	accept_text(rx, session->peer, text, length);
}

void adit_rx_settle(struct adit_rx *rx)
{
	struct adit_session *session = rx->session;
	struct adit_peer *peer;

	rx->session = NULL;
	if (!session || rx->packets == 0)
		return;
	peer = session->peer;
	adit_count_rx(peer->stats, rx->packets, rx->bytes);
	adit_note_received(&peer->activity, rx->now, rx->data);
	if (adit_session_aged_for_receiving(session, rx->now) &&
	    rcu_access_pointer(peer->slots.current_session) == session &&
	    adit_note_key_aged(&peer->activity, rx->now))
		adit_peer_kick(peer);
	rx->packets = 0;
	rx->bytes = 0;
	rx->data = false;
}
