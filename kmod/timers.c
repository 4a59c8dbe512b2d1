// SPDX-License-Identifier: GPL-2.0

#include "timers.h"

#include <linux/jiffies.h>

#include "device.h"
#include "events.h"
#include "peer.h"
#include "tx.h"
#include "wire/timing.h"

#define SECONDS(count) ((s64)(count) * NSEC_PER_SEC)
#define PASSIVE_KEEPALIVE SECONDS(ADIT_KEEPALIVE_TIMEOUT)
#define NO_REPLY SECONDS(ADIT_KEEPALIVE_TIMEOUT + ADIT_REKEY_TIMEOUT)
#define ASK_AGAIN SECONDS(ADIT_REKEY_TIMEOUT)
/*
 * A wish ends this long after the traffic that raised it: a handshake is not tried for longer
 * (paper, section 6.4), and without traffic there is no reason to start another.
 */
#define WISH_LASTS SECONDS(ADIT_REKEY_ATTEMPT_TIME)
#define WIPE_AFTER_REJECTS 3
/* Events of the same move are told of this far apart. */
#define MOVES_APART SECONDS(1)
/*
 * Packets start timeouts without waking the work. The shortest is the passive keepalive's, so that
 * looking this often is looking in time.
 */
#define LOOK_AFTER PASSIVE_KEEPALIVE

/* What is due, and the earliest time of what is not. */
struct agenda {
	s64 now;
	s64 next; /* S64_MAX is never */
};

struct state {
	struct adit_session *current_session; /* under RCU */
	bool usable; /* the current session may send */
	bool any; /* session in any slot */
	s64 newest_start; /* of all slots */
	s64 reject_after; /* of the newest session */
	bool staged;
	bool has_endpoint;
};

struct actions {
	bool keepalive;
	bool wipe;
	bool handshake;
	enum adit_handshake_reason reason;
};

static s64 get(const atomic64_t *time)
{
	return atomic64_read(time);
}

static void set_if_clear(atomic64_t *time, s64 now)
{
	if (get(time) == 0)
		atomic64_set(time, now);
}

static void clear_if_set(atomic64_t *time)
{
	if (get(time) != 0)
		atomic64_set(time, 0);
}

static void set_if_other(atomic64_t *time, s64 now)
{
	if (get(time) != now)
		atomic64_set(time, now);
}

void adit_note_sent(struct adit_activity *activity, s64 now, bool data)
{
	set_if_other(&activity->last_sent, now);
	clear_if_set(&activity->unacknowledged_since);
	if (data) {
		set_if_other(&activity->last_data_sent, now);
		set_if_clear(&activity->unanswered_since, now);
	}
}

void adit_note_received(struct adit_activity *activity, s64 now, bool data)
{
	set_if_other(&activity->last_received, now);
	clear_if_set(&activity->unanswered_since);
	if (data)
		set_if_clear(&activity->unacknowledged_since, now);
}

bool adit_note_key_aged(struct adit_activity *activity, s64 now)
{
	return atomic64_xchg(&activity->key_aged, now) == 0;
}

static bool due(struct agenda *agenda, s64 time)
{
	if (agenda->now >= time)
		return true;
	agenda->next = min(agenda->next, time);
	return false;
}

static void look_at(struct state *state, struct adit_session *session)
{
	if (!session)
		return;
	if (!state->any || session->start >= state->newest_start) {
		state->newest_start = session->start;
		state->reject_after = session->reject_after;
	}
	state->any = true;
}

static void take_state(struct adit_peer *peer, s64 now, struct state *state)
{
	struct adit_session *session;

	memset(state, 0, sizeof(*state));
	rcu_read_lock_bh();
	session = rcu_dereference_bh(peer->slots.current_session);
	state->usable = session && adit_session_can_send(session, now);
	look_at(state, session);
	look_at(state, rcu_dereference_bh(peer->slots.previous));
	look_at(state, rcu_dereference_bh(peer->slots.next));
	rcu_read_unlock_bh();
	state->staged = !adit_staging_empty(&peer->staging);
	read_lock_bh(&peer->endpoint_lock);
	state->has_endpoint = adit_endpoint_known(&peer->endpoint);
	read_unlock_bh(&peer->endpoint_lock);
}

/* Whether traffic asks for a handshake, and why. */
static bool wanted(const struct adit_activity *activity, const struct state *state,
		   struct agenda *agenda, enum adit_handshake_reason *reason)
{
	s64 unanswered = get(&activity->unanswered_since);
	s64 aged = get(&activity->key_aged);

	if (state->staged && !state->usable) {
		*reason = ADIT_HANDSHAKE_STAGED;
		return true;
	}
	if (unanswered && due(agenda, unanswered + NO_REPLY) &&
	    agenda->now < get(&activity->last_data_sent) + NO_REPLY + WISH_LASTS) {
		*reason = ADIT_HANDSHAKE_NO_REPLY;
		return true;
	}
	if (aged && agenda->now < aged + WISH_LASTS) {
		*reason = ADIT_HANDSHAKE_KEY_AGING;
		return true;
	}
	return false;
}

static bool persistent_keepalive_due(const struct adit_peer *peer, const struct state *state,
				     struct agenda *agenda)
{
	u16 interval = READ_ONCE(peer->persistent_keepalive);
	s64 last;

	if (!interval || !state->has_endpoint)
		return false;
	last = max(get(&peer->activity.last_sent), get(&peer->activity.last_received));
	if (last && !due(agenda, last + SECONDS(interval)))
		return false;
	/* The one after this. */
	due(agenda, agenda->now + SECONDS(interval));
	return true;
}

static void evaluate(struct adit_peer *peer, const struct state *state, struct agenda *agenda,
		     struct actions *actions)
{
	struct adit_timers *timers = &peer->timers;
	s64 unacknowledged = get(&peer->activity.unacknowledged_since);
	bool want;

	memset(actions, 0, sizeof(*actions));
	if (atomic_xchg(&timers->key_installed, 0))
		timers->last_asked = 0;
	if (state->any)
		actions->wipe = due(agenda, state->newest_start +
					    WIPE_AFTER_REJECTS * state->reject_after);
	want = wanted(&peer->activity, state, agenda, &actions->reason);
	if (state->usable && unacknowledged && due(agenda, unacknowledged + PASSIVE_KEEPALIVE))
		actions->keepalive = true;
	if (persistent_keepalive_due(peer, state, agenda)) {
		if (state->usable) {
			actions->keepalive = true;
		} else if (!want) {
			actions->reason = ADIT_HANDSHAKE_KEEPALIVE;
			want = true;
		}
	}
	if (!want || !state->has_endpoint) {
		timers->last_asked = 0;
	} else if (!timers->last_asked || due(agenda, timers->last_asked + ASK_AGAIN)) {
		timers->last_asked = agenda->now;
		actions->handshake = true;
		due(agenda, agenda->now + ASK_AGAIN);
	}
	if (state->any)
		due(agenda, agenda->now + LOOK_AFTER);
}

static void tell_events(struct adit_peer *peer, struct agenda *agenda)
{
	if (test_bit(ADIT_PEER_MOVED, &peer->events)) {
		if (!peer->move_told || due(agenda, peer->move_told + MOVES_APART)) {
			peer->move_told = agenda->now;
			clear_bit(ADIT_PEER_MOVED, &peer->events);
			adit_event_endpoint_moved(peer);
		}
	}
	if (test_and_clear_bit(ADIT_PEER_CONFIRMED, &peer->events))
		adit_event_key_confirmed(peer);
}

static void act(struct adit_peer *peer, const struct actions *actions)
{
	if (actions->keepalive)
		adit_tx_send_own(peer, NULL, 0);
	if (actions->wipe && adit_peer_drop_keys(peer))
		adit_event_keys_expired(peer);
	if (actions->handshake)
		adit_event_need_handshake(peer, actions->reason);
}

void adit_timers_work(struct work_struct *work)
{
	struct adit_peer *peer = container_of(to_delayed_work(work), struct adit_peer, work);
	struct agenda agenda = { .now = adit_now(), .next = S64_MAX };
	struct actions actions;
	unsigned long delay;
	struct state state;

	if (READ_ONCE(peer->dead))
		return;
	take_state(peer, agenda.now, &state);
	/* Packets that were staged while the key arrived. */
	if (state.staged && state.usable)
		adit_tx_flush_staged(peer);
	evaluate(peer, &state, &agenda, &actions);
	act(peer, &actions);
	tell_events(peer, &agenda);
	if (agenda.next == S64_MAX)
		return;
	delay = nsecs_to_jiffies(agenda.next - agenda.now) + 1;
	/* An earlier look that was asked for meanwhile stays. */
	queue_delayed_work(adit_workqueue, &peer->work, delay);
}
