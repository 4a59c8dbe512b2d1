// SPDX-License-Identifier: GPL-2.0

#include "stats.h"

#include <linux/percpu.h>
#include <linux/string.h>

#include "device.h"
#include "peer.h"

static void count_drop(struct adit_stats __percpu *all, enum adit_drop reason, unsigned int count)
{
	struct adit_stats *stats = this_cpu_ptr(all);

	u64_stats_update_begin(&stats->syncp);
	u64_stats_add(&stats->drops[reason], count);
	u64_stats_update_end(&stats->syncp);
}

void adit_drop(struct adit_device *adit, struct adit_peer *peer, enum adit_drop reason,
	       unsigned int count)
{
	count_drop(adit->stats, reason, count);
	if (peer)
		count_drop(peer->stats, reason, count);
}

void adit_count(struct adit_device *adit, enum adit_counter counter, unsigned int count)
{
	struct adit_counters *counters = this_cpu_ptr(adit->counters);

	u64_stats_update_begin(&counters->syncp);
	u64_stats_add(&counters->values[counter], count);
	u64_stats_update_end(&counters->syncp);
}

void adit_count_rx(struct adit_stats __percpu *all, unsigned int packets, unsigned int bytes)
{
	struct adit_stats *stats = this_cpu_ptr(all);

	u64_stats_update_begin(&stats->syncp);
	u64_stats_add(&stats->rx_packets, packets);
	u64_stats_add(&stats->rx_bytes, bytes);
	u64_stats_update_end(&stats->syncp);
}

void adit_count_tx(struct adit_stats __percpu *all, unsigned int packets, unsigned int bytes)
{
	struct adit_stats *stats = this_cpu_ptr(all);

	u64_stats_update_begin(&stats->syncp);
	u64_stats_add(&stats->tx_packets, packets);
	u64_stats_add(&stats->tx_bytes, bytes);
	u64_stats_update_end(&stats->syncp);
}

static void add_stats(const struct adit_stats *stats, struct adit_totals *totals)
{
	struct adit_totals part;
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

void adit_sum_stats(const struct adit_stats __percpu *stats, struct adit_totals *totals)
{
	int cpu;

	memset(totals, 0, sizeof(*totals));
	for_each_possible_cpu(cpu)
		add_stats(per_cpu_ptr(stats, cpu), totals);
}

static u64 read_counter(const struct adit_counters *counters, int counter)
{
	unsigned int start;
	u64 value;

	do {
		start = u64_stats_fetch_begin(&counters->syncp);
		value = u64_stats_read(&counters->values[counter]);
	} while (u64_stats_fetch_retry(&counters->syncp, start));
	return value;
}

void adit_sum_counters(const struct adit_counters __percpu *counters,
		       u64 values[__ADIT_COUNTER_COUNT])
{
	int cpu, i;

	for (i = 0; i < __ADIT_COUNTER_COUNT; i++) {
		values[i] = 0;
		for_each_possible_cpu(cpu)
			values[i] += read_counter(per_cpu_ptr(counters, cpu), i);
	}
}
