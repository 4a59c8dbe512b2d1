/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decrypted packets on their way to the stack. Segments of one TCP stream that follow each other
 * become one super-packet, without being copied: each is decrypted to where its headers lie over
 * the end of the payload before it, and that end is put back when they have been looked at. Other
 * packets go on alone, through GRO.
 */
#ifndef _ADIT_RX_SUPER_H
#define _ADIT_RX_SUPER_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include "pages.h"

/* IPv4 without options or IPv6, and TCP. */
#define ADIT_SUPER_MAX_HEADER (40 + 60)

struct adit_device;

struct adit_rx_fragment {
	struct page *page;
	unsigned int offset;
	unsigned int length;
};

struct adit_rx_super {
	struct adit_device *adit;
	struct napi_struct *napi;
	struct sk_buff **kept; /* the end of a list that takes the packets instead of the stack */
	unsigned int limit4; /* bytes of an IPv4 super-packet */

	/* The text that is being handled. */
	struct adit_place place;
	unsigned int length;
	bool overlaps; /* its start lies over the end of the last fragment */
	u8 saved[ADIT_SUPER_MAX_HEADER]; /* what was there */

	/* The super-packet so far. */
	unsigned int count; /* of packets in it; 0 is none */
	unsigned int header_length;
	u8 header[ADIT_SUPER_MAX_HEADER];
	bool v6;
	bool fixed_id; /* all have the same IPv4 identification */
	bool closed; /* the last packet is in */
	unsigned int mss;
	unsigned int payload;
	unsigned int fragment_count;
	struct adit_rx_fragment fragments[MAX_SKB_FRAGS];
};

void adit_rx_super_init(struct adit_rx_super *super, struct adit_device *adit,
			struct napi_struct *napi);
/* For one that was kept since the last poll: what may have changed since. */
void adit_rx_super_update(struct adit_rx_super *super);
/* Where to decrypt `length` bytes to; null without memory. Followed by accept or discard. */
u8 *adit_rx_super_place(struct adit_rx_super *super, unsigned int length);
/* The text is not for the stack. */
void adit_rx_super_discard(struct adit_rx_super *super);
/* The text is an IP packet of this length and version that the stack shall have. */
void adit_rx_super_accept(struct adit_rx_super *super, unsigned int length, bool v6);
/* Whether something is held back that more packets could continue. */
static inline bool adit_rx_super_is_open(const struct adit_rx_super *super)
{
	return super->count > 0 && !super->closed;
}

/* Hands over what is held back. */
void adit_rx_super_flush(struct adit_rx_super *super);
/* Forgets it. */
void adit_rx_super_drop(struct adit_rx_super *super);

#endif
