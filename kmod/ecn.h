/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Explicit congestion notification across the tunnel (RFC 6040, normal mode).
 */
#ifndef _ADIT_ECN_H
#define _ADIT_ECN_H

#include <linux/types.h>
#include <net/inet_ecn.h>

/*
 * The outer traffic class for an inner one: its ECN field, and no DSCP, which would show the kind
 * of traffic to the network (as in WireGuard).
 */
static inline u8 adit_outer_tos(u8 inner)
{
	return inner & INET_ECN_MASK;
}

/*
 * The inner traffic class after decapsulation (RFC 6040, figure 4), or -1 when the packet must be
 * dropped: congestion was signalled to a transport that would not understand it.
 */
static inline int adit_decapsulated_tos(u8 inner, u8 outer)
{
	u8 inner_ecn = inner & INET_ECN_MASK;

	switch (outer & INET_ECN_MASK) {
	case INET_ECN_CE:
		return inner_ecn == INET_ECN_NOT_ECT ? -1 : inner | INET_ECN_CE;
	case INET_ECN_ECT_1:
		return inner_ecn == INET_ECN_ECT_0 ? (inner & ~INET_ECN_MASK) | INET_ECN_ECT_1 :
						     inner;
	default:
		return inner;
	}
}

#endif
