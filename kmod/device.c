// SPDX-License-Identifier: GPL-2.0

#include "device.h"

#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "compat.h"
#include "peer.h"
#include "rx_queue.h"
#include "socket.h"
#include "tx.h"
#include "tx_batch.h"

/*
 * So many outer super-packets carry one of TCP's, which then pays for its own way through the stack
 * once, and is acknowledged once. What is forwarded is longer than one of ours as well.
 */
#define OUTERS_PER_SUPER 3

DEFINE_SPINLOCK(adit_devices_lock);
LIST_HEAD(adit_devices);

static int prepare_queues(struct adit_device *adit)
{
	struct adit_rx_queue *queue;
	int cpu;

	adit->rx_queues = alloc_percpu(struct adit_rx_queue);
	if (!adit->rx_queues)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		queue = per_cpu_ptr(adit->rx_queues, cpu);
		adit_rx_queue_init(queue, adit, cpu);
		adit_napi_add(adit->dev, &queue->napi, adit_rx_poll);
	}
	return 0;
}

int adit_device_prepare(struct adit_device *adit)
{
	int error;

	mutex_init(&adit->lock);
	INIT_LIST_HEAD(&adit->list);
	INIT_LIST_HEAD(&adit->peers);
	adit_session_table_init(&adit->sessions);
	get_random_bytes(adit->fingerprint_key, sizeof(adit->fingerprint_key));
	skb_queue_head_init(&adit->deferred);
	INIT_WORK(&adit->deferred_work, adit_tx_deferred);
	adit->stats = netdev_alloc_pcpu_stats(struct adit_stats);
	adit->counters = netdev_alloc_pcpu_stats(struct adit_counters);
	error = -ENOMEM;
	if (!adit->stats || !adit->counters)
		goto free_stats;
	error = adit_handshake_queue_init(&adit->handshakes);
	if (error)
		goto free_stats;
	error = prepare_queues(adit);
	if (error)
		goto free_handshakes;
	return 0;

free_handshakes:
	adit_handshake_queue_free(&adit->handshakes);
free_stats:
	free_percpu(adit->counters);
	free_percpu(adit->stats);
	return error;
}

void adit_device_free(struct adit_device *adit)
{
	struct adit_mac1_key *key = rcu_dereference_protected(adit->mac1_key, true);
	int cpu;

	for_each_possible_cpu(cpu)
		__netif_napi_del(&per_cpu_ptr(adit->rx_queues, cpu)->napi);
	synchronize_net();
	free_percpu(adit->rx_queues);
	adit_handshake_queue_free(&adit->handshakes);
	free_percpu(adit->counters);
	free_percpu(adit->stats);
	kfree_sensitive(key);
	memzero_explicit(adit->fingerprint_key, sizeof(adit->fingerprint_key));
}

static void set_polls(struct adit_device *adit, bool on)
{
	struct adit_rx_queue *queue;
	int cpu;

	for_each_possible_cpu(cpu) {
		queue = per_cpu_ptr(adit->rx_queues, cpu);
		if (on)
			napi_enable(&queue->napi);
		else
			napi_disable(&queue->napi);
	}
}

int adit_device_up(struct adit_device *adit)
{
	struct adit_binding binding;
	struct adit_peer *peer;
	int error;

	mutex_lock(&adit->lock);
	binding.port = adit->port;
	binding.family = adit->bind_family;
	binding.address = adit->bind_address;
	set_polls(adit, true);
	error = adit_socket_open(adit, &binding);
	if (error) {
		set_polls(adit, false);
	} else {
		adit->up = true;
		list_for_each_entry(peer, &adit->peers, list)
			adit_peer_kick(peer);
	}
	mutex_unlock(&adit->lock);
	return error;
}

void adit_device_down(struct adit_device *adit)
{
	struct adit_peer *peer;

	mutex_lock(&adit->lock);
	adit->up = false;
	adit_socket_close(adit);
	set_polls(adit, false);
	adit_rx_purge(adit);
	cancel_work_sync(&adit->deferred_work);
	skb_queue_purge(&adit->deferred);
	list_for_each_entry(peer, &adit->peers, list)
		adit_staging_purge(&peer->staging);
	mutex_unlock(&adit->lock);
}

void adit_device_set_mtu(struct adit_device *adit, unsigned int mtu)
{
	struct net_device *dev = adit->dev;
	unsigned int segments;

	WRITE_ONCE(dev->mtu, mtu);
	segments = min(adit_tx_batch_segments_max(mtu) * OUTERS_PER_SUPER, GSO_MAX_SEGS);
	netif_set_tso_max_segs(dev, GSO_MAX_SEGS);
	WRITE_ONCE(dev->gso_max_segs, segments);
	adit_set_gso_ipv4_max_size(dev, ADIT_BIG_SUPER);
}

static bool is_claim_of(const struct adit_claim *claim, const struct net *net, u32 portid)
{
	return claim && claim->net == net && claim->portid == portid;
}

void adit_device_release_claims(struct net *net, u32 portid)
{
	struct adit_device *adit;
	struct adit_claim *claim;

	spin_lock(&adit_devices_lock);
	list_for_each_entry(adit, &adit_devices, list) {
		claim = rcu_dereference_protected(adit->claim,
						  lockdep_is_held(&adit_devices_lock));
		if (is_claim_of(claim, net, portid)) {
			RCU_INIT_POINTER(adit->claim, NULL);
			kfree_rcu(claim, rcu);
		}
	}
	spin_unlock(&adit_devices_lock);
}

int adit_device_claim(struct adit_device *adit, struct net *net, u32 portid)
{
	struct adit_claim *claim;
	int error = 0;

	claim = kmalloc(sizeof(*claim), GFP_KERNEL);
	if (!claim)
		return -ENOMEM;
	claim->net = net;
	claim->portid = portid;
	spin_lock(&adit_devices_lock);
	if (rcu_access_pointer(adit->claim))
		error = -EBUSY;
	else
		rcu_assign_pointer(adit->claim, claim);
	spin_unlock(&adit_devices_lock);
	if (error)
		kfree(claim);
	return error;
}

void adit_device_unclaim(struct adit_device *adit)
{
	struct adit_claim *claim;

	spin_lock(&adit_devices_lock);
	claim = rcu_replace_pointer(adit->claim, NULL, lockdep_is_held(&adit_devices_lock));
	spin_unlock(&adit_devices_lock);
	if (claim)
		kfree_rcu(claim, rcu);
}
