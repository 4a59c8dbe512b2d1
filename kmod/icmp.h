/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Errors to the sender of a packet that cannot go anywhere. With bottom halves disabled; the stack
 * limits how many are sent.
 */
#ifndef _ADIT_ICMP_H
#define _ADIT_ICMP_H

#include <linux/skbuff.h>

/* "Host unreachable" or "address unreachable". */
void adit_icmp_unreachable(struct sk_buff *skb);
/* "Fragmentation needed" or "packet too big". */
void adit_icmp_too_big(struct sk_buff *skb, unsigned int mtu);

#endif
