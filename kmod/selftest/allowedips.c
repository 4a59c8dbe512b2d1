// SPDX-License-Identifier: GPL-2.0
/*
 * The tries of allowed IPs, against a plain list that is searched from end to end.
 */
#include "selftest.h"

#include <linux/bottom_half.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "allowedips.h"

#define PEERS 8
#define PREFIXES 300
#define LOOKUPS 3000

struct entry {
	struct adit_prefix prefix;
	unsigned int peer;
	bool used;
};

struct bench {
	struct adit_allowedips table;
	struct adit_allowedips_list lists[PEERS];
	struct entry entries[PREFIXES];
};

/* Peers are only compared, never looked into. */
static struct adit_peer *peer_of(struct bench *bench, unsigned int peer)
{
	return (struct adit_peer *)&bench->lists[peer];
}

/* Few values for each byte, so that prefixes lie within each other. */
static void random_address(struct in6_addr *address)
{
	int i;

	for (i = 0; i < 16; i++)
		address->s6_addr[i] = get_random_u32() % 4 * 0x55;
}

static bool covers(const struct adit_prefix *prefix, const struct in6_addr *address)
{
	unsigned int bit;

	for (bit = 0; bit < prefix->bits; bit++)
		if ((prefix->address.s6_addr[bit / 8] ^ address->s6_addr[bit / 8]) &
		    (0x80 >> bit % 8))
			return false;
	return true;
}

static bool same(const struct adit_prefix *a, const struct adit_prefix *b)
{
	return a->v6 == b->v6 && a->bits == b->bits && covers(a, &b->address);
}

static struct adit_peer *search(struct bench *bench, const struct in6_addr *address, bool v6)
{
	struct adit_peer *best = NULL;
	int longest = -1;
	int i;

	for (i = 0; i < PREFIXES; i++) {
		const struct entry *entry = &bench->entries[i];

		if (entry->used && entry->prefix.v6 == v6 && entry->prefix.bits > longest &&
		    covers(&entry->prefix, address)) {
			longest = entry->prefix.bits;
			best = peer_of(bench, entry->peer);
		}
	}
	return best;
}

static bool insert(struct bench *bench, struct entry *entry)
{
	LIST_HEAD(reserve);
	int i;

	random_address(&entry->prefix.address);
	entry->prefix.v6 = get_random_u32() % 2;
	entry->prefix.bits = get_random_u32() % (entry->prefix.v6 ? 129 : 33);
	entry->peer = get_random_u32() % PEERS;
	for (i = 0; i < PREFIXES; i++)
		if (bench->entries[i].used && same(&bench->entries[i].prefix, &entry->prefix))
			bench->entries[i].used = false;
	entry->used = true;
	if (adit_allowedips_reserve(&reserve, 1))
		return false;
	adit_allowedips_insert(&bench->table, &reserve, &entry->prefix,
			       peer_of(bench, entry->peer), &bench->lists[entry->peer]);
	adit_allowedips_unreserve(&reserve);
	return true;
}

static bool compare(struct bench *bench)
{
	struct adit_peer *found, *expected;
	struct in6_addr address;
	bool v6;
	int i;

	for (i = 0; i < LOOKUPS; i++) {
		random_address(&address);
		v6 = i % 2;
		local_bh_disable();
		found = v6 ? adit_allowedips_find6(&bench->table, address.s6_addr) :
			     adit_allowedips_find4(&bench->table, address.s6_addr);
		local_bh_enable();
		expected = search(bench, &address, v6);
		if (found != expected) {
			pr_err("adit: allowed IPs: wrong peer for %pI6c\n", &address);
			return false;
		}
	}
	cond_resched();
	return true;
}

static void clear(struct bench *bench, unsigned int peer)
{
	int i;

	adit_allowedips_clear(&bench->lists[peer]);
	for (i = 0; i < PREFIXES; i++)
		if (bench->entries[i].peer == peer)
			bench->entries[i].used = false;
}

static bool run(struct bench *bench)
{
	unsigned int peer;
	int i;

	for (peer = 0; peer < PEERS; peer++)
		INIT_LIST_HEAD(&bench->lists[peer].nodes);
	for (i = 0; i < PREFIXES; i++)
		if (!insert(bench, &bench->entries[i]))
			return false;
	if (!compare(bench))
		return false;
	for (peer = 0; peer < PEERS; peer += 2)
		clear(bench, peer);
	if (!compare(bench))
		return false;
	for (peer = 0; peer < PEERS; peer++)
		clear(bench, peer);
	return !rcu_access_pointer(bench->table.root4) && !rcu_access_pointer(bench->table.root6);
}

bool adit_selftest_allowedips(void)
{
	struct bench *bench;
	unsigned int peer;
	bool passed;

	bench = kzalloc(sizeof(*bench), GFP_KERNEL);
	if (!bench)
		return false;
	passed = run(bench);
	for (peer = 0; peer < PEERS; peer++)
		if (bench->lists[peer].nodes.next)
			adit_allowedips_clear(&bench->lists[peer]);
	kfree(bench);
	return passed;
}
