// SPDX-License-Identifier: GPL-2.0

#include "pages.h"

#include <linux/gfp.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "device.h"
#include "stats.h"

#define TRIM_AFTER (10 * HZ)

DEFINE_PER_CPU(struct adit_pages, adit_page_rings[2]);

static void free_ring(struct adit_pages *pages)
{
	cancel_delayed_work_sync(&pages->trim);
	while (pages->count > 0)
		put_page(pages->runs[--pages->count]);
	pages->at = 0;
	pages->offset = 0;
}

/* Takes a run that nobody holds out of the ring. */
static void remove_run(struct adit_pages *pages, unsigned int at)
{
	unsigned int last = --pages->count;

	put_page(pages->runs[at]);
	pages->runs[at] = pages->runs[last];
	pages->runs[last] = NULL;
	if (pages->at == last)
		pages->at = at;
}

static void trim_later(struct adit_pages *pages)
{
	schedule_delayed_work_on(smp_processor_id(), &pages->trim, TRIM_AFTER);
}

/* Gives back what was needed for a while. */
static void trim(struct work_struct *work)
{
	struct adit_pages *pages = container_of(to_delayed_work(work), struct adit_pages, trim);
	unsigned int i;

	local_bh_disable();
	/* Elsewhere when the ring's CPU has gone meanwhile: then it can wait. */
	if (pages != adit_pages(ADIT_RING_TX) && pages != adit_pages(ADIT_RING_RX))
		goto out;
	for (i = pages->count; i > 0 && pages->count > ADIT_RING_RUNS_KEPT; i--)
		if (i - 1 != pages->at && page_ref_count(pages->runs[i - 1]) == 1)
			remove_run(pages, i - 1);
	if (pages->count > ADIT_RING_RUNS_KEPT)
		trim_later(pages);
out:
	local_bh_enable();
}

void adit_pages_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		INIT_DELAYED_WORK(&per_cpu(adit_page_rings[ADIT_RING_TX], cpu).trim, trim);
		INIT_DELAYED_WORK(&per_cpu(adit_page_rings[ADIT_RING_RX], cpu).trim, trim);
	}
}

void adit_pages_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		free_ring(&per_cpu(adit_page_rings[ADIT_RING_TX], cpu));
		free_ring(&per_cpu(adit_page_rings[ADIT_RING_RX], cpu));
	}
}

static struct page *allocate_run(void)
{
	return alloc_pages(GFP_ATOMIC | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY |
				   __GFP_NOMEMALLOC, ADIT_RUN_ORDER);
}

/*
 * Puts a new run behind the one in use. The oldest, which is in use still, is looked at again when
 * all others were.
 */
static bool add_run(struct adit_pages *pages)
{
	unsigned int at = pages->count > 0 ? pages->at + 1 : 0;
	struct page *fresh = allocate_run();

	if (!fresh)
		return false;
	if (pages->count < ADIT_RING_RUNS) {
		pages->runs[pages->count++] = pages->runs[at];
		if (pages->count == ADIT_RING_RUNS_KEPT + 1)
			trim_later(pages);
	} else {
		at %= ADIT_RING_RUNS;
		put_page(pages->runs[at]);
	}
	pages->runs[at] = fresh;
	pages->at = at;
	return true;
}

/* Makes an empty run the one in use. */
static bool next_run(struct adit_device *adit, struct adit_pages *pages)
{
	unsigned int at = pages->at + 1 < pages->count ? pages->at + 1 : 0;

	if (pages->count > 0 && page_ref_count(pages->runs[at]) == 1) {
		pages->at = at;
		adit_count(adit, ADIT_COUNTER_PAGES_REUSED, 1);
	} else {
		if (!add_run(pages))
			return false;
		adit_count(adit, ADIT_COUNTER_PAGES_NEW, 1);
	}
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
