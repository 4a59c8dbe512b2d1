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

struct adit_device_stats {
	u64_stats_t rx_packets; /* inner ones, as the link's statistics show them */
	u64_stats_t rx_bytes;
	u64_stats_t tx_packets;
	u64_stats_t tx_bytes;
	u64_stats_t drops[__ADIT_DROP_COUNT];
	u64_stats_t counters[__ADIT_COUNTER_COUNT];
	struct u64_stats_sync syncp;
};

struct adit_peer_stats {
	u64_stats_t rx_packets; /* datagrams; bytes of outer payload */
	u64_stats_t rx_bytes;
	u64_stats_t tx_packets;
	u64_stats_t tx_bytes;
	u64_stats_t drops[__ADIT_DROP_COUNT];
	struct u64_stats_sync syncp;
};

/* Sums over all CPUs. */
struct adit_device_totals {
	u64 rx_packets, rx_bytes, tx_packets, tx_bytes;
	u64 drops[__ADIT_DROP_COUNT];
	u64 counters[__ADIT_COUNTER_COUNT];
};

struct adit_peer_totals {
	u64 rx_packets, rx_bytes, tx_packets, tx_bytes;
	u64 drops[__ADIT_DROP_COUNT];
};

/* Counts `count` packets that were not passed on; `peer` may be null. */
void adit_drop(struct adit_device *adit, struct adit_peer *peer, enum adit_drop reason,
	       unsigned int count);
void adit_count(struct adit_device *adit, enum adit_counter counter, unsigned int count);
void adit_count_device_rx(struct adit_device *adit, unsigned int packets, unsigned int bytes);
void adit_count_device_tx(struct adit_device *adit, unsigned int packets, unsigned int bytes);
void adit_count_peer_rx(struct adit_peer *peer, unsigned int packets, unsigned int bytes);
void adit_count_peer_tx(struct adit_peer *peer, unsigned int packets, unsigned int bytes);

/* Any context. */
void adit_device_totals(const struct adit_device *adit, struct adit_device_totals *totals);
void adit_peer_totals(const struct adit_peer *peer, struct adit_peer_totals *totals);

#endif
