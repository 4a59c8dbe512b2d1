/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A link of kind "adit".
 *
 * Locks, in the order in which they may be taken: rtnl, adit_device.lock, adit_devices_lock; the
 * spinlocks of peers, sessions and queues are leaves. Packets take none of the first three: they
 * see peers, sessions, sockets and allowed IPs under RCU.
 */
#ifndef _ADIT_DEVICE_H
#define _ADIT_DEVICE_H

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>

#include "allowedips.h"
#include "handshake_queue.h"
#include "session.h"
#include "stats.h"

#define ADIT_MODULE_VERSION "0.1.0"
/* A datagram must fit into one run of pages; see pages.h. */
#define ADIT_MTU_MAX 32000
#define ADIT_MTU_DEFAULT 1420
/* Bytes of an IPv4 super-packet on the link, where the kernel has some above 64 KiB. */
#define ADIT_BIG_SUPER (3 * 65536)

struct adit_rx_queue;

/* The socket that receives the events of a device: its netlink port, and its namespace. */
struct adit_claim {
	struct net *net;
	u32 portid;
	struct rcu_head rcu;
};

struct adit_device {
	struct net_device *dev;
	struct list_head list; /* of all devices; adit_devices_lock */
	struct mutex lock; /* serialises all configuration */
	bool dead; /* lock: the link is being unregistered */
	bool up; /* lock: sockets are wanted */
	bool prepared; /* napi and statistics exist */

	/* Sockets. */
	struct net __rcu *creating_net; /* null once it is gone */
	struct sock __rcu *sock4;
	struct sock __rcu *sock6;
	struct nf_hook_ops hook;
	bool hooked; /* lock */
	u16 port; /* lock; host byte order: wished for while down, in use while up */
	u32 fwmark;
	sa_family_t bind_family; /* lock; AF_UNSPEC is all addresses */
	struct in6_addr bind_address; /* lock; the first 4 bytes for IPv4 */

	/* For handshakes. */
	struct adit_claim __rcu *claim; /* adit_devices_lock */
	u8 public_key[ADIT_UAPI_KEY_LENGTH]; /* lock */
	struct adit_mac1_key __rcu *mac1_key; /* lock */
	struct adit_handshake_queue handshakes;

	/* Peers. */
	struct list_head peers; /* lock; by rising id */
	unsigned int peer_count; /* lock */
	u64 last_peer_id; /* lock */
	struct adit_allowedips allowedips;
	struct adit_session_table sessions;
	u8 fingerprint_key[BLAKE2S_KEY_SIZE];

	/* Traffic. */
	struct adit_rx_queue __percpu *rx_queues;
	struct adit_stats __percpu *stats;
	struct adit_counters __percpu *counters;
	struct sk_buff_head deferred; /* packets of tunnels that are nested too deeply */
	struct work_struct deferred_work;
};

extern spinlock_t adit_devices_lock;
extern struct list_head adit_devices;
/* Of everything that needs to sleep, or a stack of its own. */
extern struct workqueue_struct *adit_workqueue;

/* device_link.c */
int adit_device_register(void);
void adit_device_unregister(void);
/* The device with this index or name, held; null if there is none or it is of another kind. */
struct adit_device *adit_device_find(struct net *net, u32 ifindex, const char *name);
bool adit_device_is(const struct net_device *dev);
void adit_device_put(struct adit_device *adit);

/* device.c */
int adit_device_prepare(struct adit_device *adit);
void adit_device_free(struct adit_device *adit);
int adit_device_up(struct adit_device *adit);
void adit_device_down(struct adit_device *adit);
/* Sizes of TCP super-packets such that one is a whole number of outer super-packets. */
void adit_device_set_mtu(struct adit_device *adit, unsigned int mtu);
/* Ends the claim if it is of this socket. */
void adit_device_release_claims(struct net *net, u32 portid);
/* 0, or -EBUSY while another socket has claimed the device. */
int adit_device_claim(struct adit_device *adit, struct net *net, u32 portid);
void adit_device_unclaim(struct adit_device *adit);

#endif
