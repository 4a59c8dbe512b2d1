/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which peer a prefix belongs to: two tries with compressed paths, read under RCU.
 */
#ifndef _ADIT_ALLOWEDIPS_H
#define _ADIT_ALLOWEDIPS_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

struct adit_peer;

/* An address as two words in host byte order; IPv4 in the top half of the first. */
struct adit_address_key {
	u64 high;
	u64 low;
};

struct adit_allowedips_node {
	struct adit_allowedips_node __rcu *children[2]; /* by the bit after the prefix */
	struct adit_peer __rcu *peer; /* null: only a fork */
	struct adit_address_key key;
	struct adit_address_key mask;
	u8 bits;
	bool v6;
	u32 generation; /* of the peer's list, when it was last set */
	/* For writers. */
	struct adit_allowedips_node __rcu **slot; /* what points to this node */
	struct adit_allowedips_node *parent; /* null at the root */
	struct list_head list; /* of the peer's nodes, or of a reserve */
	struct rcu_head rcu;
};

/* Writers are serialised by the device's lock. */
struct adit_allowedips {
	struct adit_allowedips_node __rcu *root4;
	struct adit_allowedips_node __rcu *root6;
};

/* The nodes of one peer. */
struct adit_allowedips_list {
	struct list_head nodes;
	u32 generation;
};

struct adit_prefix {
	struct in6_addr address; /* the first 4 bytes for IPv4 */
	bool v6;
	u8 bits;
};

struct adit_address_key adit_address_key4(const u8 *address);
struct adit_address_key adit_address_key6(const u8 *address);

/* Under RCU. The address in network byte order, of any alignment. */
struct adit_peer *adit_allowedips_find4(const struct adit_allowedips *table, const u8 *address);
struct adit_peer *adit_allowedips_find6(const struct adit_allowedips *table, const u8 *address);

/* Memory for the insertion of `prefixes`, so that insertions cannot fail. -ENOMEM. */
int adit_allowedips_reserve(struct list_head *reserve, unsigned int prefixes);
void adit_allowedips_unreserve(struct list_head *reserve);

void adit_allowedips_insert(struct adit_allowedips *table, struct list_head *reserve,
			    const struct adit_prefix *prefix, struct adit_peer *peer,
			    struct adit_allowedips_list *list);
/* Starts a new list: what is not inserted again is removed by adit_allowedips_trim(). */
void adit_allowedips_renew(struct adit_allowedips_list *list);
void adit_allowedips_trim(struct adit_allowedips_list *list);
void adit_allowedips_clear(struct adit_allowedips_list *list);
void adit_allowedips_prefix(const struct adit_allowedips_node *node, struct adit_prefix *prefix);

#endif
