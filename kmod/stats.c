// SPDX-License-Identifier: GPL-2.0

#include "stats.h"

#include <linux/percpu.h>
#include <linux/string.h>

#include "device.h"
#include "peer.h"

void adit_drop(struct adit_device *adit, struct adit_peer *peer, enum adit_drop reason,
	       unsigned int count)
{
	struct adit_device_stats *device_stats = this_cpu_ptr(adit->stats);
	struct adit_peer_stats *peer_stats;

	u64_stats_update_begin(&device_stats->syncp);
	u64_stats_add(&device_stats->drops[reason], count);
	u64_stats_update_end(&device_stats->syncp);
	if (!peer)
		return;
	peer_stats = this_cpu_ptr(peer->stats);
	u64_stats_update_begin(&peer_stats->syncp);
	u64_stats_add(&peer_stats->drops[reason], count);
	u64_stats_update_end(&peer_stats->syncp);
}

void adit_count(struct adit_device *adit, enum adit_counter counter, unsigned int count)
{
	struct adit_device_stats *stats = this_cpu_ptr(adit->stats);

	u64_stats_update_begin(&stats->syncp);
	u64_stats_add(&stats->counters[counter], count);
	u64_stats_update_end(&stats->syncp);
}

void adit_count_device_rx(struct adit_device *adit, unsigned int packets, unsigned int bytes)
{
	struct adit_device_stats *stats = this_cpu_ptr(adit->stats);

	u64_stats_update_begin(&stats->syncp);
	u64_stats_add(&stats->rx_packets, packets);
	u64_stats_add(&stats->rx_bytes, bytes);
	u64_stats_update_end(&stats->syncp);
}

void adit_count_device_tx(struct adit_device *adit, unsigned int packets, unsigned int bytes)
{
	struct adit_device_stats *stats = this_cpu_ptr(adit->stats);

	u64_stats_update_begin(&stats->syncp);
	u64_stats_add(&stats->tx_packets, packets);
	u64_stats_add(&stats->tx_bytes, bytes);
	u64_stats_update_end(&stats->syncp);
}

void adit_count_peer_rx(struct adit_peer *peer, unsigned int packets, unsigned int bytes)
{
	struct adit_peer_stats *stats = this_cpu_ptr(peer->stats);

	u64_stats_update_begin(&stats->syncp);
	u64_stats_add(&stats->rx_packets, packets);
	u64_stats_add(&stats->rx_bytes, bytes);
	u64_stats_update_end(&stats->syncp);
}

void adit_count_peer_tx(struct adit_peer *peer, unsigned int packets, unsigned int bytes)
{
	struct adit_peer_stats *stats = this_cpu_ptr(peer->stats);

	u64_stats_update_begin(&stats->syncp);
	u64_stats_add(&stats->tx_packets, packets);
	u64_stats_add(&stats->tx_bytes, bytes);
	u64_stats_update_end(&stats->syncp);
}

static void add_device(const struct adit_device_stats *stats, struct adit_device_totals *totals)
{
	struct adit_device_totals part;
	unsigned int start;
	int i;

	do {
		start = u64_stats_fetch_begin(&stats->syncp);
		part.rx_packets = u64_stats_read(&stats->rx_packets);
		part.rx_bytes = u64_stats_read(&stats->rx_bytes);
		part.tx_packets = u64_stats_read(&stats->tx_packets);
		part.tx_bytes = u64_stats_read(&stats->tx_bytes);
		for (i = 0; i < __ADIT_DROP_COUNT; i++)
			part.drops[i] = u64_stats_read(&stats->drops[i]);
		for (i = 0; i < __ADIT_COUNTER_COUNT; i++)
			part.counters[i] = u64_stats_read(&stats->counters[i]);
	} while (u64_stats_fetch_retry(&stats->syncp, start));
	totals->rx_packets += part.rx_packets;
	totals->rx_bytes += part.rx_bytes;
	totals->tx_packets += part.tx_packets;
	totals->tx_bytes += part.tx_bytes;
	for (i = 0; i < __ADIT_DROP_COUNT; i++)
		totals->drops[i] += part.drops[i];
	for (i = 0; i < __ADIT_COUNTER_COUNT; i++)
		totals->counters[i] += part.counters[i];
}

void adit_device_totals(const struct adit_device *adit, struct adit_device_totals *totals)
{
	int cpu;

	memset(totals, 0, sizeof(*totals));
	for_each_possible_cpu(cpu)
		add_device(per_cpu_ptr(adit->stats, cpu), totals);
}

static void add_peer(const struct adit_peer_stats *stats, struct adit_peer_totals *totals)
{
	struct adit_peer_totals part;
	unsigned int start;
	int i;

	do {
		start = u64_stats_fetch_begin(&stats->syncp);
		part.rx_packets = u64_stats_read(&stats->rx_packets);
		part.rx_bytes = u64_stats_read(&stats->rx_bytes);
		part.tx_packets = u64_stats_read(&stats->tx_packets);
		part.tx_bytes = u64_stats_read(&stats->tx_bytes);
		for (i = 0; i < __ADIT_DROP_COUNT; i++)
			part.drops[i] = u64_stats_read(&stats->drops[i]);
	} while (u64_stats_fetch_retry(&stats->syncp, start));
	totals->rx_packets += part.rx_packets;
	totals->rx_bytes += part.rx_bytes;
	totals->tx_packets += part.tx_packets;
	totals->tx_bytes += part.tx_bytes;
	for (i = 0; i < __ADIT_DROP_COUNT; i++)
		totals->drops[i] += part.drops[i];
}

void adit_peer_totals(const struct adit_peer *peer, struct adit_peer_totals *totals)
{
	int cpu;

	memset(totals, 0, sizeof(*totals));
	for_each_possible_cpu(cpu)
		add_peer(per_cpu_ptr(peer->stats, cpu), totals);
}
