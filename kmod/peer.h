/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A peer. Packets find it by RCU; the device's lock serialises what configures it. Its work does
 * all that may sleep: timers and events.
 */
#ifndef _ADIT_PEER_H
#define _ADIT_PEER_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/dst_cache.h>

#include "allowedips.h"
#include "endpoint.h"
#include "session.h"
#include "staging.h"
#include "stats.h"
#include "timers.h"

struct adit_device;

enum adit_peer_event_bit {
	ADIT_PEER_CONFIRMED, /* a next session was promoted, and nobody was told */
	ADIT_PEER_MOVED, /* the endpoint was learned anew, and nobody was told */
};

struct adit_peer {
	struct adit_device *adit;
	u64 id;
	u8 public_key[ADIT_UAPI_KEY_LENGTH];
	bool no_roam;
	bool dead; /* the device's lock: taken out of it */
	u16 persistent_keepalive; /* seconds */
	u8 cookie[ADIT_UAPI_COOKIE_MAX]; /* the device's lock, as all up to the next blank line */
	unsigned int cookie_length;
	struct adit_allowedips_list allowedips;
	struct adit_key_history history;
	struct list_head list; /* of the device */

	struct adit_key_slots slots;
	struct adit_staging staging;
	struct adit_activity activity;
	struct adit_stats __percpu *stats;

	rwlock_t endpoint_lock;
	struct adit_endpoint endpoint;
	struct dst_cache dst_cache;

	unsigned long events; /* bits of enum adit_peer_event_bit */
	struct delayed_work work;
	struct adit_timers timers; /* of the work */
	s64 move_told; /* of the work: when a move was last told of */
	struct rcu_work free_work;
};

/* With the device's lock held. An error pointer on failure; the id must be a new one. */
struct adit_peer *adit_peer_create(struct adit_device *adit, u64 id, const u8 *public_key);
struct adit_peer *adit_peer_find(struct adit_device *adit, u64 id);
struct adit_peer *adit_peer_find_key(struct adit_device *adit, const u8 *public_key);
/* The first peer with a greater id; null at the end. */
struct adit_peer *adit_peer_after(struct adit_device *adit, u64 id);
void adit_peer_remove(struct adit_peer *peer);
void adit_peer_remove_all(struct adit_device *adit);

/* Any context: something happened that the peer's work has to look at now. */
void adit_peer_kick(struct adit_peer *peer);
void adit_peer_set_endpoint(struct adit_peer *peer, const struct adit_endpoint *endpoint);
/* With bottom halves disabled: as seen on an authenticated packet. */
void adit_peer_learn_endpoint(struct adit_peer *peer, const struct adit_endpoint *endpoint);
void adit_peer_get_endpoint(struct adit_peer *peer, struct adit_endpoint *endpoint);
/* The local end is not an address of this machine any more: leave it to routing. */
void adit_peer_forget_source(struct adit_peer *peer, const struct adit_endpoint *endpoint);
/* May sleep. Wipes all keys; true if there was one. */
bool adit_peer_drop_keys(struct adit_peer *peer);

#endif
