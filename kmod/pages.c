// SPDX-License-Identifier: GPL-2.0

#include "pages.h"

#include <linux/gfp.h>
#include <linux/percpu.h>

#include "device.h"
#include "stats.h"

DEFINE_PER_CPU(struct adit_pages, adit_page_rings[2]);

static void free_ring(struct adit_pages *pages)
{
	unsigned int i;

	for (i = 0; i < ADIT_RING_RUNS; i++) {
		if (pages->runs[i])
			put_page(pages->runs[i]);
		pages->runs[i] = NULL;
	}
	pages->at = 0;
	pages->offset = 0;
}

void adit_pages_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		free_ring(per_cpu_ptr(&adit_page_rings[ADIT_RING_TX], cpu));
		free_ring(per_cpu_ptr(&adit_page_rings[ADIT_RING_RX], cpu));
	}
}

static struct page *allocate_run(void)
{
	return alloc_pages(GFP_ATOMIC | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY |
				   __GFP_NOMEMALLOC, ADIT_RUN_ORDER);
}

/* Makes an empty run the one in use. */
static bool next_run(struct adit_device *adit, struct adit_pages *pages)
{
	unsigned int at = (pages->at + 1) % ADIT_RING_RUNS;
	struct page *page = pages->runs[at];

	if (page && page_ref_count(page) == 1) {
		adit_count(adit, ADIT_COUNTER_PAGES_REUSED, 1);
	} else {
		struct page *fresh = allocate_run();

		if (!fresh)
			return false;
		if (page)
			put_page(page);
		pages->runs[at] = fresh;
		adit_count(adit, ADIT_COUNTER_PAGES_NEW, 1);
	}
	pages->at = at;
	pages->offset = 0;
	return true;
}

bool adit_pages_take(struct adit_device *adit, struct adit_pages *pages, unsigned int headroom,
		     unsigned int length, struct adit_place *place)
{
	if (headroom + length > ADIT_RUN_ROOM)
		return false;
	if (!pages->runs[pages->at] || pages->offset + length > ADIT_RUN_ROOM) {
		if (!next_run(adit, pages))
			return false;
	}
	pages->offset = max(pages->offset, headroom);
	if (pages->offset + length > ADIT_RUN_ROOM) {
		if (!next_run(adit, pages))
			return false;
		pages->offset = headroom;
	}
	place->page = pages->runs[pages->at];
	place->offset = pages->offset;
	place->data = (u8 *)page_address(place->page) + place->offset;
	pages->offset += length;
	return true;
}

void adit_pages_skip(struct adit_pages *pages, unsigned int length)
{
	pages->offset = min_t(unsigned int, pages->offset + length, ADIT_RUN_SIZE);
}

void adit_pages_rewind(struct adit_pages *pages, const struct adit_place *place,
		       unsigned int length)
{
	if (pages->runs[pages->at] == place->page)
		pages->offset = place->offset + length;
}
