/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One pair of session keys, the three slots of a peer that hold them, and the table that finds
 * them by the receiver index of a datagram.
 */
#ifndef _ADIT_SESSION_H
#define _ADIT_SESSION_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <crypto/blake2s.h>

#include "crypto.h"
#include "uapi/adit.h"
#include "wire/replay.h"

#define ADIT_SESSION_BUCKETS_LOG2 10
#define ADIT_REMEMBERED_SESSIONS 16
#define ADIT_FINGERPRINT_LENGTH 16

struct adit_device;
struct adit_peer;

/* As ADIT_CMD_NEW_KEY gives it. Wiped by its owner. */
struct adit_session_keys {
	u8 slot;
	u8 suite;
	u32 local_index;
	u32 remote_index;
	u8 send[ADIT_KEY_LENGTH];
	u8 receive[ADIT_KEY_LENGTH];
	s64 rekey_after; /* nanoseconds */
	s64 reject_after;
	u64 rekey_after_messages;
	u64 reject_after_messages;
};

/* Lives until a grace period after it left its slot; then a worker wipes and frees it. */
struct adit_session {
	struct adit_peer *peer;
	u32 local_index;
	u32 remote_index;
	u8 suite;
	bool initiator;
	s64 start; /* nanoseconds of the boot-time clock, as all times here */
	s64 rekey_after;
	s64 reject_after;
	u64 rekey_after_messages;
	u64 reject_after_messages;
	struct adit_cipher send;
	struct adit_cipher receive;
	struct hlist_node hash;
	struct rcu_work free_work;

	atomic64_t counter ____cacheline_aligned_in_smp; /* next to send */

	spinlock_t replay_lock ____cacheline_aligned_in_smp;
	struct adit_replay replay;
};

struct adit_session_table {
	spinlock_t lock; /* of writers */
	struct hlist_head buckets[1 << ADIT_SESSION_BUCKETS_LOG2];
};

struct adit_key_slots {
	spinlock_t lock; /* of writers */
	struct adit_session __rcu *current_session;
	struct adit_session __rcu *previous;
	struct adit_session __rcu *next;
};

/* The last keys of a peer, as keyed hashes. */
struct adit_key_history {
	u8 known[2 * ADIT_REMEMBERED_SESSIONS][ADIT_FINGERPRINT_LENGTH];
	unsigned int count;
};

/* session.c */
/* An error pointer on failure; may sleep. */
struct adit_session *adit_session_create(struct adit_peer *peer,
					 const struct adit_session_keys *keys);
/* Of a session that nobody has seen. */
void adit_session_destroy(struct adit_session *session);
void adit_session_table_init(struct adit_session_table *table);
/* -EEXIST when the index is in use. */
int adit_session_add(struct adit_session_table *table, struct adit_session *session);
/* With bottom halves disabled. */
struct adit_session *adit_session_find(const struct adit_session_table *table, u32 local_index);
bool adit_session_index_used(struct adit_session_table *table, u32 local_index);
/* Makes it impossible to find, and frees it later. */
void adit_session_retire(struct adit_session_table *table, struct adit_session *session);

/* Reserves `count` counters, each of which is given out once. False at the message limit. */
bool adit_session_reserve(struct adit_session *session, unsigned int count, u64 *first);

static inline s64 adit_now(void)
{
	return ktime_get_coarse_boottime_ns();
}

static inline bool adit_session_expired(const struct adit_session *session, s64 now)
{
	return now - session->start >= session->reject_after;
}

/* Neither age nor message limit is reached. */
static inline bool adit_session_can_send(const struct adit_session *session, s64 now)
{
	return !adit_session_expired(session, now) &&
	       (u64)atomic64_read(&session->counter) < session->reject_after_messages;
}

/* Sending now should ask for a new key (paper, section 6.2). */
bool adit_session_aged_for_sending(const struct adit_session *session, s64 now);
/* Receiving now should: a last chance before a mostly receiving initiator's key expires. */
bool adit_session_aged_for_receiving(const struct adit_session *session, s64 now);

/* key_slots.c */
void adit_slots_init(struct adit_key_slots *slots);
void adit_slots_install(struct adit_key_slots *slots, struct adit_session_table *table,
			struct adit_session *session, u8 slot);
/* A packet was authenticated under `session`. True when that made it the current one. */
bool adit_slots_promote(struct adit_key_slots *slots, struct adit_session_table *table,
			struct adit_session *session);
/* True if there was a session. */
bool adit_slots_clear(struct adit_key_slots *slots, struct adit_session_table *table);

/* key_history.c */
/* False, and nothing changed, when one of the keys is known. */
bool adit_key_history_add(struct adit_key_history *history, const u8 *fingerprint_key,
			  const struct adit_session_keys *keys);

#endif
