// SPDX-License-Identifier: GPL-2.0

#include "handshake_queue.h"

#include <linux/mm.h>

#include "compat.h"
#include "device.h"
#include "events.h"
#include "peer.h"

/* The claimant's socket is full: its daemon is busy. */
#define TRY_AGAIN msecs_to_jiffies(10)

static void forward_work(struct work_struct *work);

int adit_handshake_queue_init(struct adit_handshake_queue *queue)
{
	spin_lock_init(&queue->lock);
	INIT_DELAYED_WORK(&queue->work, forward_work);
	queue->handshakes = kvcalloc(ADIT_HANDSHAKE_CAPACITY, sizeof(*queue->handshakes),
				     GFP_KERNEL);
	queue->controls = kvcalloc(ADIT_CONTROL_CAPACITY, sizeof(*queue->controls), GFP_KERNEL);
	if (queue->handshakes && queue->controls)
		return 0;
	adit_handshake_queue_free(queue);
	return -ENOMEM;
}

void adit_handshake_queue_free(struct adit_handshake_queue *queue)
{
	kvfree(queue->handshakes);
	kvfree(queue->controls);
}

void adit_handshake_queue_stop(struct adit_handshake_queue *queue)
{
	cancel_delayed_work_sync(&queue->work);
}

static bool mac1_is_right(const struct adit_mac1_key *key, const u8 *datagram, unsigned int length)
{
	unsigned int covered = length - sizeof(struct adit_message_macs);
	u8 mac[ADIT_MAC_LENGTH];

	adit_blake2s_keyed(mac, sizeof(mac), key->key, sizeof(key->key), datagram, covered);
	return crypto_memneq(mac, datagram + covered, sizeof(mac)) == 0;
}

static bool is_wanted(struct adit_device *adit, const u8 *datagram, unsigned int length,
		      enum adit_drop *reason)
{
	const struct adit_mac1_key *key = rcu_dereference_bh(adit->mac1_key);
	bool cookie = datagram[0] == ADIT_MESSAGE_COOKIE;

	*reason = ADIT_DROP_MALFORMED;
	if (cookie ? datagram[1] != 0 : datagram[1] >= ADIT_SUITE_COUNT)
		return false;
	*reason = ADIT_DROP_BAD_MAC;
	if (!key || (!cookie && !mac1_is_right(key, datagram, length)))
		return false;
	*reason = ADIT_DROP_HANDSHAKE_QUEUE;
	return rcu_access_pointer(adit->claim);
}

static bool push_handshake(struct adit_handshake_queue *queue, const u8 *datagram,
			   unsigned int length, const struct adit_endpoint *source)
{
	struct adit_handshake_entry *entry;
	bool fits;

	spin_lock_bh(&queue->lock);
	fits = queue->handshake_count < ADIT_HANDSHAKE_CAPACITY;
	if (fits) {
		entry = &queue->handshakes[(queue->first_handshake + queue->handshake_count++) %
					   ADIT_HANDSHAKE_CAPACITY];
		memcpy(entry->bytes, datagram, length);
		entry->length = length;
		entry->source = *source;
	}
	spin_unlock_bh(&queue->lock);
	return fits;
}

void adit_handshake_receive(struct adit_device *adit, const u8 *datagram, unsigned int length,
			    const struct adit_endpoint *source)
{
	enum adit_drop reason;

	if (!is_wanted(adit, datagram, length, &reason) ||
	    !push_handshake(&adit->handshakes, datagram, length, source)) {
		adit_drop(adit, NULL, reason, 1);
		return;
	}
	queue_delayed_work(adit_workqueue, &adit->handshakes.work, 0);
}

static bool push_control(struct adit_handshake_queue *queue, u64 peer_id, const u8 *text,
			 unsigned int length)
{
	struct adit_control_entry *entry;
	bool fits;

	spin_lock_bh(&queue->lock);
	fits = length <= ADIT_CONTROL_LENGTH && queue->control_count < ADIT_CONTROL_CAPACITY;
	if (fits) {
		entry = &queue->controls[(queue->first_control + queue->control_count++) %
					 ADIT_CONTROL_CAPACITY];
		memcpy(entry->bytes, text, length);
		entry->length = length;
		entry->peer_id = peer_id;
	}
	spin_unlock_bh(&queue->lock);
	return fits;
}

void adit_control_receive(struct adit_peer *peer, const u8 *text, unsigned int length)
{
	struct adit_device *adit = peer->adit;

	if (!rcu_access_pointer(adit->claim) ||
	    !push_control(&adit->handshakes, peer->id, text, length)) {
		adit_drop(adit, peer, ADIT_DROP_HANDSHAKE_QUEUE, 1);
		return;
	}
	queue_delayed_work(adit_workqueue, &adit->handshakes.work, 0);
}

/* The oldest one, which stays in the queue, and how many are behind it. */
static struct adit_handshake_entry *first_handshake(struct adit_handshake_queue *queue,
						    unsigned int *behind)
{
	struct adit_handshake_entry *entry = NULL;

	spin_lock_bh(&queue->lock);
	if (queue->handshake_count > 0) {
		entry = &queue->handshakes[queue->first_handshake];
		*behind = queue->handshake_count - 1;
	}
	spin_unlock_bh(&queue->lock);
	return entry;
}

static void pop_handshake(struct adit_handshake_queue *queue)
{
	spin_lock_bh(&queue->lock);
	queue->first_handshake = (queue->first_handshake + 1) % ADIT_HANDSHAKE_CAPACITY;
	queue->handshake_count--;
	spin_unlock_bh(&queue->lock);
}

static struct adit_control_entry *first_control(struct adit_handshake_queue *queue)
{
	struct adit_control_entry *entry = NULL;

	spin_lock_bh(&queue->lock);
	if (queue->control_count > 0)
		entry = &queue->controls[queue->first_control];
	spin_unlock_bh(&queue->lock);
	return entry;
}

static void pop_control(struct adit_handshake_queue *queue)
{
	spin_lock_bh(&queue->lock);
	queue->first_control = (queue->first_control + 1) % ADIT_CONTROL_CAPACITY;
	queue->control_count--;
	spin_unlock_bh(&queue->lock);
}

static void count_lost(struct adit_device *adit)
{
	local_bh_disable();
	adit_drop(adit, NULL, ADIT_DROP_HANDSHAKE_QUEUE, 1);
	local_bh_enable();
}

/* False when the claimant takes no more now. */
static bool forward_handshakes(struct adit_device *adit)
{
	struct adit_handshake_entry *entry;
	unsigned int behind;
	int error;

	while ((entry = first_handshake(&adit->handshakes, &behind)) != NULL) {
		error = adit_event_handshake(adit, entry, behind);
		if (error == -EAGAIN)
			return false;
		if (error)
			count_lost(adit);
		pop_handshake(&adit->handshakes);
	}
	return true;
}

static bool forward_controls(struct adit_device *adit)
{
	struct adit_control_entry *entry;
	int error;

	while ((entry = first_control(&adit->handshakes)) != NULL) {
		error = adit_event_control(adit, entry);
		if (error == -EAGAIN)
			return false;
		if (error)
			count_lost(adit);
		pop_control(&adit->handshakes);
	}
	return true;
}

static void forward_work(struct work_struct *work)
{
	struct adit_device *adit;

	adit = container_of(to_delayed_work(work), struct adit_device, handshakes.work);
	if (!forward_handshakes(adit) || !forward_controls(adit))
		queue_delayed_work(adit_workqueue, &adit->handshakes.work, TRY_AGAIN);
}
