/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From the link to the sockets.
 */
#ifndef _ADIT_TX_H
#define _ADIT_TX_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>

struct adit_device;
struct adit_peer;

/* ndo_start_xmit. */
netdev_tx_t adit_tx_start(struct sk_buff *skb, struct net_device *dev);
/* Work of a device: packets of tunnels that are nested too deeply for the stack. */
void adit_tx_deferred(struct work_struct *work);

/* Any context but hard interrupts: sends what waits for a key, if there is one now. */
void adit_tx_flush_staged(struct adit_peer *peer);
/*
 * Any context but hard interrupts: a control message, or a keepalive of length 0. False, and
 * counted, without a usable key.
 */
bool adit_tx_send_own(struct adit_peer *peer, const u8 *bytes, unsigned int length);

#endif
