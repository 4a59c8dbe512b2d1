/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When a peer needs a keepalive, a handshake, or to have its keys wiped: the timers of the
 * WireGuard paper, section 6, as a function of what was sent and received when. Packets note
 * times; the peer's work evaluates them.
 */
#ifndef _ADIT_TIMERS_H
#define _ADIT_TIMERS_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct adit_peer;

/*
 * Nanoseconds of the boot-time clock; 0 is never. "Data" is a packet with content, IP or control;
 * "anything" includes keepalives.
 */
struct adit_activity {
	atomic64_t last_sent; /* anything */
	atomic64_t last_received; /* anything authenticated */
	atomic64_t last_data_sent;
	atomic64_t unanswered_since; /* first data sent since anything was received */
	atomic64_t unacknowledged_since; /* first data received since anything was sent */
	atomic64_t key_aged; /* last use of the current key past its rekey limits */
};

/* Of the peer's work. */
struct adit_timers {
	s64 last_asked; /* for a handshake; 0 while none is wanted */
	atomic_t key_installed; /* the next wish for a handshake is a new one */
};

void adit_note_sent(struct adit_activity *activity, s64 now, bool data);
void adit_note_received(struct adit_activity *activity, s64 now, bool data);
/* The current key is past a rekey limit and was used. True the first time. */
bool adit_note_key_aged(struct adit_activity *activity, s64 now);

/* The work of a peer. */
void adit_timers_work(struct work_struct *work);

#endif
