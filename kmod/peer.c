// SPDX-License-Identifier: GPL-2.0

#include "peer.h"

#include <linux/err.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "device.h"
#include "events.h"

static void free_peer(struct work_struct *work)
{
	struct adit_peer *peer = container_of(to_rcu_work(work), struct adit_peer, free_work);

	dst_cache_destroy(&peer->dst_cache);
	free_percpu(peer->stats);
	kfree_sensitive(peer);
}

struct adit_peer *adit_peer_create(struct adit_device *adit, u64 id, const u8 *public_key)
{
	struct adit_peer *peer;

	peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		return ERR_PTR(-ENOMEM);
	peer->stats = netdev_alloc_pcpu_stats(struct adit_stats);
	if (!peer->stats)
		goto free;
	if (dst_cache_init(&peer->dst_cache, GFP_KERNEL))
		goto free_stats;
	peer->adit = adit;
	peer->id = id;
	memcpy(peer->public_key, public_key, sizeof(peer->public_key));
	INIT_LIST_HEAD(&peer->allowedips.nodes);
	adit_slots_init(&peer->slots);
	adit_staging_init(&peer->staging);
	rwlock_init(&peer->endpoint_lock);
	INIT_DELAYED_WORK(&peer->work, adit_timers_work);
	INIT_RCU_WORK(&peer->free_work, free_peer);
	list_add_tail(&peer->list, &adit->peers);
	adit->peer_count++;
	adit->last_peer_id = id;
	return peer;

free_stats:
	free_percpu(peer->stats);
free:
	kfree(peer);
	return ERR_PTR(-ENOMEM);
}

struct adit_peer *adit_peer_find(struct adit_device *adit, u64 id)
{
	struct adit_peer *peer;

	list_for_each_entry(peer, &adit->peers, list)
		if (peer->id == id)
			return peer;
	return NULL;
}

struct adit_peer *adit_peer_find_key(struct adit_device *adit, const u8 *public_key)
{
	struct adit_peer *peer;

	list_for_each_entry(peer, &adit->peers, list)
		if (!memcmp(peer->public_key, public_key, sizeof(peer->public_key)))
			return peer;
	return NULL;
}

struct adit_peer *adit_peer_after(struct adit_device *adit, u64 id)
{
	struct adit_peer *peer;

	list_for_each_entry(peer, &adit->peers, list)
		if (peer->id > id)
			return peer;
	return NULL;
}

/* From now on no packet finds it, after a grace period none uses it. */
static void unlink_peer(struct adit_peer *peer)
{
	WRITE_ONCE(peer->dead, true);
	peer->adit->peer_count--;
	adit_allowedips_clear(&peer->allowedips);
	adit_slots_clear(&peer->slots, &peer->adit->sessions);
}

static void finish_peer(struct adit_peer *peer)
{
	cancel_delayed_work_sync(&peer->work);
	adit_staging_purge(&peer->staging);
	adit_event_peer_removed(peer);
	queue_rcu_work(adit_workqueue, &peer->free_work);
}

/* A list of peers of one device. */
static void remove_peers(struct list_head *peers)
{
	struct adit_peer *peer, *next;

	if (list_empty(peers))
		return;
	list_for_each_entry(peer, peers, list)
		unlink_peer(peer);
	synchronize_net();
	list_for_each_entry_safe(peer, next, peers, list) {
		list_del_init(&peer->list);
		finish_peer(peer);
	}
}

void adit_peer_remove(struct adit_peer *peer)
{
	LIST_HEAD(gone);

	list_move(&peer->list, &gone);
	remove_peers(&gone);
}

void adit_peer_remove_all(struct adit_device *adit)
{
	LIST_HEAD(gone);

	list_splice_init(&adit->peers, &gone);
	remove_peers(&gone);
}

void adit_peer_kick(struct adit_peer *peer)
{
	if (!READ_ONCE(peer->dead))
		mod_delayed_work(adit_workqueue, &peer->work, 0);
}

void adit_peer_set_endpoint(struct adit_peer *peer, const struct adit_endpoint *endpoint)
{
	write_lock_bh(&peer->endpoint_lock);
	peer->endpoint = *endpoint;
	clear_bit(ADIT_PEER_MOVED, &peer->events);
	write_unlock_bh(&peer->endpoint_lock);
	dst_cache_reset(&peer->dst_cache);
}

void adit_peer_learn_endpoint(struct adit_peer *peer, const struct adit_endpoint *endpoint)
{
	bool moved, same;

	read_lock(&peer->endpoint_lock);
	moved = !adit_endpoint_same(&peer->endpoint, endpoint);
	same = !moved && adit_endpoint_same_source(&peer->endpoint, endpoint);
	read_unlock(&peer->endpoint_lock);
	if (likely(same))
		return;
	write_lock(&peer->endpoint_lock);
	peer->endpoint = *endpoint;
	write_unlock(&peer->endpoint_lock);
	dst_cache_reset(&peer->dst_cache);
	if (moved && !test_and_set_bit(ADIT_PEER_MOVED, &peer->events))
		adit_peer_kick(peer);
}

void adit_peer_get_endpoint(struct adit_peer *peer, struct adit_endpoint *endpoint)
{
	read_lock_bh(&peer->endpoint_lock);
	*endpoint = peer->endpoint;
	read_unlock_bh(&peer->endpoint_lock);
}

void adit_peer_forget_source(struct adit_peer *peer, const struct adit_endpoint *endpoint)
{
	write_lock_bh(&peer->endpoint_lock);
	if (adit_endpoint_same(&peer->endpoint, endpoint) &&
	    adit_endpoint_same_source(&peer->endpoint, endpoint)) {
		memset(&peer->endpoint.source6, 0, sizeof(peer->endpoint.source6));
		peer->endpoint.source_ifindex = 0;
	}
	write_unlock_bh(&peer->endpoint_lock);
	dst_cache_reset(&peer->dst_cache);
}

bool adit_peer_drop_keys(struct adit_peer *peer)
{
	bool any = adit_slots_clear(&peer->slots, &peer->adit->sessions);

	atomic64_set(&peer->activity.key_aged, 0);
	return any;
}
