/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From the sockets to the link: outer packets are queued on the CPU where they arrive, and handled
 * there in batches by a NAPI poll.
 */
#ifndef _ADIT_RX_H
#define _ADIT_RX_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include "endpoint.h"
#include "rx_super.h"

struct adit_device;
struct adit_session;
struct sock;

/* The poll of one CPU, which does not nest. */
struct adit_rx {
	struct adit_device *adit;
	s64 now; /* when the poll began */
	bool waits; /* it keeps a super-packet for the next poll, which comes at once */

	/* The outer packet whose datagrams are handled. */
	struct sk_buff *outer;
	struct adit_endpoint source; /* filled in when it is needed */
	bool source_known;
	bool may_change; /* others can write to it: it is to be read once */
	u8 tos;
	unsigned int before; /* bytes in front of the datagram that belong to the same packet */

	/* What arrived under one session, not yet accounted for. */
	struct adit_session *session;
	unsigned int packets;
	unsigned int bytes;
	bool data;
	__be32 allowed4; /* an IPv4 source that its peer may use; 0 is none yet */

	struct adit_rx_super super;
};

/* rx.c */
/* encap_rcv of the sockets. */
int adit_rx_encapsulated(struct sock *sk, struct sk_buff *skb);
int adit_rx_poll(struct napi_struct *napi, int budget);
/* While no poll runs. */
void adit_rx_purge(struct adit_device *adit);
/* Where the outer packet came from, and where to. */
const struct adit_endpoint *adit_rx_source(struct adit_rx *rx);

/* rx_data.c */
/* A datagram of type 4, of any length. */
void adit_rx_data(struct adit_rx *rx, const u8 *datagram, unsigned int length);
/* Accounts for what arrived under the session. */
void adit_rx_settle(struct adit_rx *rx);

#endif
