// SPDX-License-Identifier: GPL-2.0

#include "tx_batch.h"

#include <linux/ip.h>
#include <linux/udp.h>

#include "compat.h"
#include "device.h"
#include "peer.h"
#include "segment.h"
#include "socket.h"

/* What the kernel takes from a program that sends segments; receivers join as many. */
#define MAX_SEGMENTS 64
#define MAX_UDP_PAYLOAD (65535 - 20 - 8)
#define HEADER sizeof(struct adit_message_data)

unsigned int adit_tx_batch_segments_max(unsigned int mtu)
{
	unsigned int fit = MAX_UDP_PAYLOAD / (mtu + (unsigned int)ADIT_DATA_OVERHEAD);

	return clamp(fit, 1U, (unsigned int)MAX_SEGMENTS);
}

void adit_tx_batch_init(struct adit_tx_batch *batch, struct adit_device *adit, s64 now)
{
	memset(batch, 0, sizeof(*batch));
	batch->adit = adit;
	batch->now = now;
}

/* Padding to a multiple of 16, but not beyond the MTU. */
static unsigned int padded_length(unsigned int length, unsigned int mtu)
{
	unsigned int whole = mtu == 0 || length <= mtu ? 0 : length - length % mtu;
	unsigned int last = length - whole;
	unsigned int rounded = round_up(last, ADIT_PADDING_MULTIPLE);

	return whole + (mtu == 0 ? rounded : min(rounded, max(mtu, last)));
}

/* How many more datagrams of full length the batch takes. */
static unsigned int room(const struct adit_tx_batch *batch)
{
	return min(MAX_SEGMENTS - batch->count, (MAX_UDP_PAYLOAD - batch->bytes) / batch->segment);
}

static bool begin(struct adit_tx_batch *batch, struct adit_session *session, u8 tos,
		  unsigned int length)
{
	batch->outer = alloc_skb(ADIT_OUTER_HEADROOM, GFP_ATOMIC | __GFP_NOWARN);
	if (!batch->outer)
		return false;
	skb_reserve(batch->outer, ADIT_OUTER_HEADROOM);
	batch->session = session;
	batch->peer = session->peer;
	batch->tos = tos;
	batch->segment = length;
	batch->count = 0;
	batch->bytes = 0;
	batch->closed = false;
	batch->data = false;
	/* The cipher writes in front of the first datagram: not into one that is on its way. */
	adit_pages_skip(adit_pages(ADIT_RING_TX), ADIT_CRYPTO_HEADROOM);
	return true;
}

/* Makes a datagram of `length` fit: sends what it cannot stand behind. */
static bool make_room(struct adit_tx_batch *batch, struct adit_session *session, u8 tos,
		      unsigned int length)
{
	if (batch->session) {
		if (batch->session == session && batch->tos == tos && !batch->closed &&
		    length <= batch->segment && room(batch) > 0)
			return true;
		adit_tx_batch_flush(batch, NULL);
	}
	return begin(batch, session, tos, length);
}

static bool append(struct adit_tx_batch *batch, const struct adit_place *place,
		   unsigned int length)
{
	struct skb_shared_info *shared = skb_shinfo(batch->outer);
	struct sk_buff *outer = batch->outer;
	unsigned int last = shared->nr_frags;

	if (last > 0) {
		skb_frag_t *frag = &shared->frags[last - 1];

		if (skb_frag_page(frag) == place->page &&
		    skb_frag_off(frag) + skb_frag_size(frag) == place->offset) {
			skb_frag_size_add(frag, length);
			goto added;
		}
	}
	if (last == MAX_SKB_FRAGS)
		return false;
	get_page(place->page);
	skb_fill_page_desc(outer, last, place->page, place->offset, length);
added:
	outer->len += length;
	outer->data_len += length;
	outer->truesize += length;
	batch->count++;
	batch->bytes += length;
	if (length < batch->segment)
		batch->closed = true;
	return true;
}

/*
 * A place for a datagram with `padded` bytes of text, and where the cipher wants the text; null
 * without memory.
 */
static u8 *take_place(struct adit_tx_batch *batch, unsigned int padded, struct adit_place *place)
{
	if (!adit_pages_take(batch->adit, adit_pages(ADIT_RING_TX), ADIT_CRYPTO_HEADROOM,
			     padded + ADIT_DATA_OVERHEAD, place))
		return NULL;
	return adit_seal_place(&batch->session->send, place->data + HEADER, padded);
}

/* The text of `length` bytes is where the cipher wants it: pads, encrypts and adds it. */
static bool finish(struct adit_tx_batch *batch, const struct adit_place *place, u8 *text,
		   unsigned int length, unsigned int padded, u64 counter)
{
	struct adit_message_data *header = (struct adit_message_data *)place->data;
	struct adit_session *session = batch->session;

	if (padded > length)
		memset(text + length, 0, padded - length);
	header->header.type = ADIT_MESSAGE_DATA;
	header->header.suite = session->suite;
	header->header.reserved[0] = 0;
	header->header.reserved[1] = 0;
	header->receiver_index = cpu_to_le32(session->remote_index);
	header->counter = cpu_to_le64(counter);
	if (!adit_seal(&session->send, place->data + HEADER, text, padded, counter))
		return false;
	return append(batch, place, padded + ADIT_DATA_OVERHEAD);
}

/* A batch without a datagram must not stay. */
static void fail(struct adit_tx_batch *batch, struct adit_session *session, unsigned int count)
{
	adit_drop(batch->adit, session->peer, ADIT_DROP_SEND_FAILED, count);
	if (batch->session && batch->count == 0) {
		kfree_skb(batch->outer);
		batch->session = NULL;
	}
}

/* Copies the packet, and completes its checksum on the way; the skb may be shared. */
static bool copy_packet(const struct sk_buff *skb, u8 *to)
{
	__sum16 *check;
	int start;

	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return skb_copy_bits(skb, 0, to, skb->len) == 0;
	start = skb_checksum_start_offset(skb);
	if (start < 0 || start > skb_headlen(skb) ||
	    start + skb->csum_offset + sizeof(*check) > skb->len)
		return false;
	skb_copy_and_csum_dev(skb, to);
	/* Zero would mean that there is no checksum (RFC 768). */
	check = (__sum16 *)(to + start + skb->csum_offset);
	if (*check == 0)
		*check = CSUM_MANGLED_0;
	return true;
}

void adit_tx_batch_packet(struct adit_tx_batch *batch, struct adit_session *session,
			  const struct sk_buff *skb, u8 tos, u64 counter)
{
	unsigned int padded = padded_length(skb->len, READ_ONCE(batch->adit->dev->mtu));
	struct adit_place place;
	u8 *text;

	if (!make_room(batch, session, tos, padded + ADIT_DATA_OVERHEAD))
		goto failed;
	text = take_place(batch, padded, &place);
	if (!text || !copy_packet(skb, text) ||
	    !finish(batch, &place, text, skb->len, padded, counter))
		goto failed;
	batch->data = true;
	adit_count_tx(batch->adit->stats, 1, skb->len);
	return;
failed:
	fail(batch, session, 1);
}

void adit_tx_batch_own(struct adit_tx_batch *batch, struct adit_session *session,
		       const u8 *bytes, unsigned int length, u64 counter)
{
	unsigned int padded = padded_length(length, READ_ONCE(batch->adit->dev->mtu));
	struct adit_place place;
	u8 *text;

	if (!make_room(batch, session, 0, padded + ADIT_DATA_OVERHEAD))
		goto failed;
	text = take_place(batch, padded, &place);
	if (!text)
		goto failed;
	memcpy(text, bytes, length);
	if (!finish(batch, &place, text, length, padded, counter))
		goto failed;
	if (length > 0)
		batch->data = true;
	return;
failed:
	fail(batch, session, 1);
}

static bool add_segment(struct adit_tx_batch *batch, struct adit_session *session,
			struct adit_segmenter *segmenter, u8 tos, u64 counter)
{
	unsigned int length = adit_segment_length(segmenter);
	unsigned int padded = padded_length(length, READ_ONCE(batch->adit->dev->mtu));
	struct adit_place place;
	u8 *text;

	if (!make_room(batch, session, tos, padded + ADIT_DATA_OVERHEAD))
		return false;
	text = take_place(batch, padded, &place);
	if (!text)
		return false;
	adit_segment_write(segmenter, text);
	if (!finish(batch, &place, text, length, padded, counter))
		return false;
	batch->data = true;
	return true;
}

void adit_tx_batch_segments(struct adit_tx_batch *batch, struct adit_session *session,
			    struct adit_segmenter *segmenter, u8 tos, u64 counter)
{
	unsigned int left = segmenter->count - segmenter->next;
	unsigned int added = 0;
	unsigned int bytes = 0;

	while (added < left) {
		unsigned int length = adit_segment_length(segmenter);

		if (!add_segment(batch, session, segmenter, tos, counter++)) {
			fail(batch, session, left - added);
			break;
		}
		added++;
		bytes += length;
	}
	if (added > 0)
		adit_count_tx(batch->adit->stats, added, bytes);
}

/*
 * The outer packet is the sender's from now on, so that it sees how much is still queued. What it
 * was charged with is given back later: hence the size.
 */
static void move_owner(struct sk_buff *outer, struct sk_buff *owner)
{
	if (!owner)
		return;
	if (owner->sk && owner->destructor) {
		outer->sk = owner->sk;
		outer->destructor = owner->destructor;
		outer->truesize = owner->truesize;
		owner->sk = NULL;
		owner->destructor = NULL;
	}
	consume_skb(owner);
}

static void set_offload(const struct adit_tx_batch *batch)
{
	struct sk_buff *outer = batch->outer;
	struct skb_shared_info *shared = skb_shinfo(outer);

	if (batch->count < 2) {
		adit_count(batch->adit, ADIT_COUNTER_TX_SINGLE, 1);
		return;
	}
	shared->gso_type = SKB_GSO_UDP_L4;
	shared->gso_size = batch->segment;
	shared->gso_segs = batch->count;
	/* The stack would leave it unset for super-packets, and strip the offload later. */
	outer->ip_summed = CHECKSUM_PARTIAL;
	outer->csum_start = skb_headroom(outer) - sizeof(struct udphdr);
	outer->csum_offset = offsetof(struct udphdr, check);
	adit_count(batch->adit, ADIT_COUNTER_TX_SUPER, 1);
	adit_count(batch->adit, ADIT_COUNTER_TX_SEGMENTS, batch->count);
}

/* Also when sending fails: the timers' answer to silence is the same. */
static void note_sent(const struct adit_tx_batch *batch)
{
	struct adit_peer *peer = batch->peer;

	adit_note_sent(&peer->activity, batch->now, batch->data);
	if (adit_session_aged_for_sending(batch->session, batch->now) &&
	    rcu_access_pointer(peer->slots.current_session) == batch->session &&
	    adit_note_key_aged(&peer->activity, batch->now))
		adit_peer_kick(peer);
}

void adit_tx_batch_flush(struct adit_tx_batch *batch, struct sk_buff *owner)
{
	struct adit_peer *peer = batch->peer;
	enum adit_drop reason;

	if (!batch->session || batch->count == 0) {
		consume_skb(owner);
		return;
	}
	move_owner(batch->outer, owner);
	set_offload(batch);
	note_sent(batch);
	batch->session = NULL;
	if (adit_socket_send_peer(peer, batch->outer, batch->tos, &reason))
		adit_count_tx(peer->stats, batch->count, batch->bytes);
	else
		adit_drop(batch->adit, peer, reason, batch->count);
}
