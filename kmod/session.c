// SPDX-License-Identifier: GPL-2.0

#include "session.h"

#include <linux/err.h>
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "device.h"
#include "wire/timing.h"

static void free_session(struct work_struct *work)
{
	struct adit_session *session;

	session = container_of(to_rcu_work(work), struct adit_session, free_work);
	adit_session_destroy(session);
}

struct adit_session *adit_session_create(struct adit_peer *peer,
					 const struct adit_session_keys *keys)
{
	struct adit_session *session;
	int error;

	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return ERR_PTR(-ENOMEM);
	session->peer = peer;
	session->local_index = keys->local_index;
	session->remote_index = keys->remote_index;
	session->suite = keys->suite;
	session->initiator = keys->slot == ADIT_KEY_SLOT_CURRENT;
	session->start = adit_now();
	session->rekey_after = keys->rekey_after;
	session->reject_after = keys->reject_after;
	session->rekey_after_messages = keys->rekey_after_messages;
	session->reject_after_messages = keys->reject_after_messages;
	spin_lock_init(&session->replay_lock);
	INIT_RCU_WORK(&session->free_work, free_session);
	error = adit_cipher_set(&session->send, keys->suite, keys->send);
	if (!error)
		error = adit_cipher_set(&session->receive, keys->suite, keys->receive);
	if (error) {
		adit_session_destroy(session);
		return ERR_PTR(error);
	}
	return session;
}

void adit_session_destroy(struct adit_session *session)
{
	adit_cipher_clear(&session->send);
	adit_cipher_clear(&session->receive);
	kfree_sensitive(session);
}

void adit_session_table_init(struct adit_session_table *table)
{
	spin_lock_init(&table->lock);
	__hash_init(table->buckets, ARRAY_SIZE(table->buckets));
}

/* Indices are drawn at random by the daemon. */
static unsigned int bucket_of(u32 local_index)
{
	return hash_32(local_index, ADIT_SESSION_BUCKETS_LOG2);
}

struct adit_session *adit_session_find(const struct adit_session_table *table, u32 local_index)
{
	struct adit_session *session;

	hlist_for_each_entry_rcu_bh(session, &table->buckets[bucket_of(local_index)], hash)
		if (session->local_index == local_index)
			return session;
	return NULL;
}

bool adit_session_index_used(struct adit_session_table *table, u32 local_index)
{
	bool used;

	rcu_read_lock_bh();
	used = adit_session_find(table, local_index);
	rcu_read_unlock_bh();
	return used;
}

int adit_session_add(struct adit_session_table *table, struct adit_session *session)
{
	int error = 0;

	spin_lock_bh(&table->lock);
	if (adit_session_find(table, session->local_index))
		error = -EEXIST;
	else
		hlist_add_head_rcu(&session->hash,
				   &table->buckets[bucket_of(session->local_index)]);
	spin_unlock_bh(&table->lock);
	return error;
}

void adit_session_retire(struct adit_session_table *table, struct adit_session *session)
{
	spin_lock_bh(&table->lock);
	hlist_del_init_rcu(&session->hash);
	spin_unlock_bh(&table->lock);
	queue_rcu_work(adit_workqueue, &session->free_work);
}

static bool fits(const struct adit_session *session, u64 from, unsigned int count)
{
	u64 limit = session->reject_after_messages;

	return from < limit && limit - from >= count;
}

bool adit_session_reserve(struct adit_session *session, unsigned int count, u64 *first)
{
	/* Looked at before adding, so that failed attempts never carry it far past the limit. */
	if (!fits(session, atomic64_read(&session->counter), count)) {
		/*
		 * The key is used up for all: if it were not, the packet would wait for another one
		 * that nobody asks for.
		 */
		atomic64_set(&session->counter, session->reject_after_messages);
		return false;
	}
	*first = atomic64_fetch_add(count, &session->counter);
	return fits(session, *first, count);
}

bool adit_session_aged_for_sending(const struct adit_session *session, s64 now)
{
	if ((u64)atomic64_read(&session->counter) >= session->rekey_after_messages)
		return true;
	return session->initiator && now - session->start >= session->rekey_after;
}

bool adit_session_aged_for_receiving(const struct adit_session *session, s64 now)
{
	const s64 margin = (s64)(ADIT_KEEPALIVE_TIMEOUT + ADIT_REKEY_TIMEOUT) * NSEC_PER_SEC;

	return session->initiator && now - session->start >= max(session->rekey_after,
								 session->reject_after - margin);
}
