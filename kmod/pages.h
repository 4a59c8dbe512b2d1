/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory for datagrams: runs of contiguous pages, used again when nobody else holds them. Many
 * kernels clear each page that they hand out, which costs about as much as encrypting it.
 *
 * Each CPU has one ring of runs for sending and one for receiving, both of all devices. With bottom
 * halves disabled.
 */
#ifndef _ADIT_PAGES_H
#define _ADIT_PAGES_H

#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "crypto.h"

#define ADIT_RUN_ORDER 3
#define ADIT_RUN_SIZE (PAGE_SIZE << ADIT_RUN_ORDER)
/* What can be given away of it: some bytes behind the last ones are a cipher's to write to. */
#define ADIT_RUN_ROOM (ADIT_RUN_SIZE - ADIT_CRYPTO_TAILROOM)
/*
 * A ring has as many runs as were in use at once, so that it stays in the cache while its readers
 * keep up. A TCP socket that is read slowly holds 6 MB by default.
 */
#define ADIT_RING_RUNS 256
/* What is beyond this many is given back some time later. */
#define ADIT_RING_RUNS_KEPT 64

struct adit_device;

struct adit_pages {
	struct page *runs[ADIT_RING_RUNS];
	unsigned int count; /* of runs */
	unsigned int at; /* the run in use, if there is one */
	unsigned int offset; /* bytes of it that are given away */
	struct delayed_work trim;
};

/* A part of a run. Its holder takes references to the page for what it puts into an skb. */
struct adit_place {
	struct page *page;
	unsigned int offset;
	u8 *data;
};

enum adit_ring { ADIT_RING_TX, ADIT_RING_RX };

void adit_pages_init(void);
/* At the module's end: frees all runs. */
void adit_pages_exit(void);

DECLARE_PER_CPU(struct adit_pages, adit_page_rings[2]);

static inline struct adit_pages *adit_pages(enum adit_ring ring)
{
	return this_cpu_ptr(&adit_page_rings[ring]);
}

/*
 * Gives away `length` bytes, behind the last ones where the run has room, else at the start of
 * another one behind `headroom` bytes. False without memory.
 */
bool adit_pages_take(struct adit_device *adit, struct adit_pages *pages, unsigned int headroom,
		     unsigned int length, struct adit_place *place);
/* Leaves `length` bytes of the run unused, so that what was given away is not touched. */
void adit_pages_skip(struct adit_pages *pages, unsigned int length);
/* Gives back what was taken behind `offset` of the run in use. */
void adit_pages_rewind(struct adit_pages *pages, const struct adit_place *place,
		       unsigned int length);

#endif
