/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ADIT_COPY_H
#define _ADIT_COPY_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/string.h>
#include <linux/tcp.h>

/* Of TCP with time stamps, as nearly all that is sent in bulk. */
#define ADIT_TCP_USUAL (sizeof(struct tcphdr) + 12)

/* The compiler copies the usual lengths without a call when it knows them. */
static inline void adit_copy_header(u8 *to, const u8 *from, unsigned int length)
{
	if (likely(length == sizeof(struct iphdr) + ADIT_TCP_USUAL))
		memcpy(to, from, sizeof(struct iphdr) + ADIT_TCP_USUAL);
	else if (length == sizeof(struct ipv6hdr) + ADIT_TCP_USUAL)
		memcpy(to, from, sizeof(struct ipv6hdr) + ADIT_TCP_USUAL);
	else
		memcpy(to, from, length);
}

#endif
