// SPDX-License-Identifier: GPL-2.0

#include "allowedips.h"

#include <linux/bitops.h>
#include <linux/slab.h>

#include "compat.h"

struct adit_address_key adit_address_key4(const u8 *address)
{
	return (struct adit_address_key){ .high = (u64)get_unaligned_be32(address) << 32 };
}

struct adit_address_key adit_address_key6(const u8 *address)
{
	return (struct adit_address_key){ .high = get_unaligned_be64(address),
					  .low = get_unaligned_be64(address + 8) };
}

static unsigned int bit_at(const struct adit_address_key *key, unsigned int bit)
{
	return (bit < 64 ? key->high >> (63 - bit) : key->low >> (127 - bit)) & 1;
}

static u64 top_bits(unsigned int bits)
{
	return bits == 0 ? 0 : ~0ULL << (64 - bits);
}

static struct adit_address_key mask_of(unsigned int bits)
{
	return (struct adit_address_key){ .high = top_bits(min(bits, 64U)),
					  .low = bits > 64 ? top_bits(bits - 64) : 0 };
}

static bool covers(const struct adit_allowedips_node *node, const struct adit_address_key *key)
{
	return (((node->key.high ^ key->high) & node->mask.high) |
		((node->key.low ^ key->low) & node->mask.low)) == 0;
}

static unsigned int common_bits(const struct adit_address_key *a, const struct adit_address_key *b,
				unsigned int limit)
{
	unsigned int common;

	if (a->high != b->high)
		common = 64 - fls64(a->high ^ b->high);
	else
		common = 128 - fls64(a->low ^ b->low);
	return min(common, limit);
}

static struct adit_peer *find(const struct adit_allowedips_node *node,
			      const struct adit_address_key *key)
{
	struct adit_peer *best = NULL;
	struct adit_peer *peer;

	while (node && covers(node, key)) {
		peer = rcu_dereference_bh(node->peer);
		if (peer)
			best = peer;
		if (node->bits == 128)
			break;
		node = rcu_dereference_bh(node->children[bit_at(key, node->bits)]);
	}
	return best;
}

struct adit_peer *adit_allowedips_find4(const struct adit_allowedips *table, const u8 *address)
{
	struct adit_address_key key = adit_address_key4(address);

	return find(rcu_dereference_bh(table->root4), &key);
}

struct adit_peer *adit_allowedips_find6(const struct adit_allowedips *table, const u8 *address)
{
	struct adit_address_key key = adit_address_key6(address);

	return find(rcu_dereference_bh(table->root6), &key);
}

int adit_allowedips_reserve(struct list_head *reserve, unsigned int prefixes)
{
	struct adit_allowedips_node *node;
	unsigned int i;

	/* A prefix needs its own node and at most one fork. */
	for (i = 0; i < 2 * prefixes; i++) {
		node = kzalloc(sizeof(*node), GFP_KERNEL);
		if (!node) {
			adit_allowedips_unreserve(reserve);
			return -ENOMEM;
		}
		list_add(&node->list, reserve);
	}
	return 0;
}

void adit_allowedips_unreserve(struct list_head *reserve)
{
	struct adit_allowedips_node *node, *next;

	list_for_each_entry_safe(node, next, reserve, list)
		kfree(node);
	INIT_LIST_HEAD(reserve);
}

static struct adit_allowedips_node *take(struct list_head *reserve,
					 const struct adit_address_key *key, unsigned int bits,
					 bool v6)
{
	struct adit_allowedips_node *node;

	node = list_first_entry(reserve, struct adit_allowedips_node, list);
	list_del_init(&node->list);
	node->mask = mask_of(bits);
	node->key.high = key->high & node->mask.high;
	node->key.low = key->low & node->mask.low;
	node->bits = bits;
	node->v6 = v6;
	return node;
}

/* Makes `slot` point to the complete `node`. */
static void link_node(struct adit_allowedips_node *node, struct adit_allowedips_node __rcu **slot,
		      struct adit_allowedips_node *parent)
{
	node->slot = slot;
	node->parent = parent;
	rcu_assign_pointer(*slot, node);
}

static void set_peer(struct adit_allowedips_node *node, struct adit_peer *peer,
		     struct adit_allowedips_list *list)
{
	rcu_assign_pointer(node->peer, peer);
	node->generation = list->generation;
	list_move_tail(&node->list, &list->nodes);
}

/* The paths of `node` and of the new prefix part within the bits of `node`: a node between. */
static struct adit_allowedips_node *fork_above(struct adit_allowedips_node *node,
					       struct list_head *reserve,
					       const struct adit_address_key *key,
					       unsigned int common)
{
	struct adit_allowedips_node __rcu **slot = node->slot;
	struct adit_allowedips_node *parent = node->parent;
	struct adit_allowedips_node *fork;

	fork = take(reserve, key, common, node->v6);
	link_node(node, &fork->children[bit_at(&node->key, common)], fork);
	link_node(fork, slot, parent);
	return fork;
}

void adit_allowedips_insert(struct adit_allowedips *table, struct list_head *reserve,
			    const struct adit_prefix *prefix, struct adit_peer *peer,
			    struct adit_allowedips_list *list)
{
	struct adit_allowedips_node __rcu **slot = prefix->v6 ? &table->root6 : &table->root4;
	struct adit_allowedips_node *parent = NULL;
	struct adit_allowedips_node *node, *leaf;
	struct adit_address_key key, mask;
	unsigned int common;

	key = prefix->v6 ? adit_address_key6(prefix->address.s6_addr) :
			   adit_address_key4(prefix->address.s6_addr);
	mask = mask_of(prefix->bits);
	key.high &= mask.high;
	key.low &= mask.low;
	while ((node = rcu_dereference_protected(*slot, true)) != NULL) {
		common = common_bits(&key, &node->key, min(prefix->bits, node->bits));
		if (common < node->bits) {
			node = fork_above(node, reserve, &key, common);
			if (common < prefix->bits) {
				parent = node;
				slot = &node->children[bit_at(&key, common)];
				break;
			}
		}
		if (node->bits == prefix->bits) {
			set_peer(node, peer, list);
			return;
		}
		parent = node;
		slot = &node->children[bit_at(&key, node->bits)];
	}
	leaf = take(reserve, &key, prefix->bits, prefix->v6);
	set_peer(leaf, peer, list);
	link_node(leaf, slot, parent);
}

/* Takes out nodes that neither belong to a peer nor part two paths. */
static void prune(struct adit_allowedips_node *node)
{
	struct adit_allowedips_node *left, *right, *child, *parent;

	while (node && !rcu_access_pointer(node->peer)) {
		left = rcu_dereference_protected(node->children[0], true);
		right = rcu_dereference_protected(node->children[1], true);
		if (left && right)
			return;
		child = left ? left : right;
		parent = node->parent;
		if (child)
			link_node(child, node->slot, parent);
		else
			RCU_INIT_POINTER(*node->slot, NULL);
		kfree_rcu(node, rcu);
		if (child)
			return;
		node = parent;
	}
}

static void drop_node(struct adit_allowedips_node *node)
{
	RCU_INIT_POINTER(node->peer, NULL);
	list_del_init(&node->list);
	prune(node);
}

void adit_allowedips_renew(struct adit_allowedips_list *list)
{
	list->generation++;
}

void adit_allowedips_trim(struct adit_allowedips_list *list)
{
	struct adit_allowedips_node *node, *next;

	/* Pruning frees the node itself and forks, which are on no list. */
	list_for_each_entry_safe(node, next, &list->nodes, list)
		if (node->generation != list->generation)
			drop_node(node);
}

void adit_allowedips_clear(struct adit_allowedips_list *list)
{
	struct adit_allowedips_node *node, *next;

	list_for_each_entry_safe(node, next, &list->nodes, list)
		drop_node(node);
}

void adit_allowedips_prefix(const struct adit_allowedips_node *node, struct adit_prefix *prefix)
{
	memset(prefix, 0, sizeof(*prefix));
	prefix->v6 = node->v6;
	prefix->bits = node->bits;
	if (node->v6) {
		put_unaligned_be64(node->key.high, prefix->address.s6_addr);
		put_unaligned_be64(node->key.low, prefix->address.s6_addr + 8);
	} else {
		put_unaligned_be32(node->key.high >> 32, prefix->address.s6_addr);
	}
}
