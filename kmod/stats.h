/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters, per CPU. All that add are called with bottom halves disabled.
 */
#ifndef _ADIT_STATS_H
#define _ADIT_STATS_H

#include <linux/types.h>
#include <linux/u64_stats_sync.h>

#include "uapi/adit.h"

struct adit_device;
struct adit_peer;

/*
 * Of a device: inner packets, as the link's statistics show them. Of a peer: datagrams, and bytes
 * of outer payload.
 */
struct adit_stats {
	u64_stats_t rx_packets;
	u64_stats_t rx_bytes;
	u64_stats_t tx_packets;
	u64_stats_t tx_bytes;
	u64_stats_t drops[__ADIT_DROP_COUNT];
	struct u64_stats_sync syncp;
};

struct adit_counters {
	u64_stats_t values[__ADIT_COUNTER_COUNT];
	struct u64_stats_sync syncp;
};

/* Sums over all CPUs. */
struct adit_totals {
	u64 rx_packets, rx_bytes, tx_packets, tx_bytes;
	u64 drops[__ADIT_DROP_COUNT];
};

/* Counts `count` packets that were not passed on; `peer` may be null. */
void adit_drop(struct adit_device *adit, struct adit_peer *peer, enum adit_drop reason,
	       unsigned int count);
void adit_count(struct adit_device *adit, enum adit_counter counter, unsigned int count);
void adit_count_rx(struct adit_stats __percpu *stats, unsigned int packets, unsigned int bytes);
void adit_count_tx(struct adit_stats __percpu *stats, unsigned int packets, unsigned int bytes);

/* Any context. */
void adit_sum_stats(const struct adit_stats __percpu *stats, struct adit_totals *totals);
void adit_sum_counters(const struct adit_counters __percpu *counters,
		       u64 values[__ADIT_COUNTER_COUNT]);

#endif
