// SPDX-License-Identifier: GPL-2.0
/*
 * Sending uses the current session; a responder's new one waits as next until the other side has
 * used it; datagrams still under way arrive under the previous one.
 */
#include "session.h"

#include <linux/rcupdate.h>

void adit_slots_init(struct adit_key_slots *slots)
{
	spin_lock_init(&slots->lock);
}

/* Puts `session` into `slot`, and returns the one that was there. */
static struct adit_session *exchange(struct adit_key_slots *slots,
				     struct adit_session __rcu **slot,
				     struct adit_session *session)
{
	return rcu_replace_pointer(*slot, session, lockdep_is_held(&slots->lock));
}

static void replace(struct adit_key_slots *slots, struct adit_session_table *table,
		    struct adit_session __rcu **slot, struct adit_session *session)
{
	struct adit_session *old = exchange(slots, slot, session);

	if (old)
		adit_session_retire(table, old);
}

static void install_current(struct adit_key_slots *slots, struct adit_session_table *table,
			    struct adit_session *session)
{
	struct adit_session *next = exchange(slots, &slots->next, NULL);

	/*
	 * A next session that was never confirmed may still be used by the other side, which
	 * finished its handshake after ours: keep receiving under it rather than under the older
	 * current one.
	 */
	if (next) {
		replace(slots, table, &slots->previous, next);
		replace(slots, table, &slots->current_session, session);
	} else {
		replace(slots, table, &slots->previous,
			exchange(slots, &slots->current_session, session));
	}
}

void adit_slots_install(struct adit_key_slots *slots, struct adit_session_table *table,
			struct adit_session *session, u8 slot)
{
	spin_lock_bh(&slots->lock);
	if (slot == ADIT_KEY_SLOT_CURRENT) {
		install_current(slots, table, session);
	} else {
		replace(slots, table, &slots->next, session);
		replace(slots, table, &slots->previous, NULL);
	}
	spin_unlock_bh(&slots->lock);
}

bool adit_slots_promote(struct adit_key_slots *slots, struct adit_session_table *table,
			struct adit_session *session)
{
	bool promoted = false;

	if (likely(rcu_access_pointer(slots->next) != session))
		return false;
	spin_lock_bh(&slots->lock);
	if (rcu_access_pointer(slots->next) == session) {
		exchange(slots, &slots->next, NULL);
		replace(slots, table, &slots->previous,
			exchange(slots, &slots->current_session, session));
		promoted = true;
	}
	spin_unlock_bh(&slots->lock);
	return promoted;
}

bool adit_slots_clear(struct adit_key_slots *slots, struct adit_session_table *table)
{
	bool any;

	spin_lock_bh(&slots->lock);
	any = rcu_access_pointer(slots->current_session) ||
	      rcu_access_pointer(slots->previous) || rcu_access_pointer(slots->next);
	replace(slots, table, &slots->current_session, NULL);
	replace(slots, table, &slots->previous, NULL);
	replace(slots, table, &slots->next, NULL);
	spin_unlock_bh(&slots->lock);
	return any;
}
