// SPDX-License-Identifier: GPL-2.0
/*
 * AES-GCM by the kernel's crypto API.
 *
 * The vectorised driver is wanted without the wrapper that makes it asynchronous: where the kernel
 * marks it internal, "__gcm(aes)" names it. It runs with bottom halves disabled, so that one
 * request for each CPU is enough.
 */
#include "compat.h"
#include "crypto.h"

#include <crypto/aead.h>
#include <linux/err.h>
#include <linux/percpu.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#define IV_LENGTH 12
#define BLOCK_LENGTH 16
#define COPY_LENGTH 256
/* A driver of this kernel that is loaded later may need more than the one that is there now. */
#define MIN_REQUEST_SIZE 1024

struct gcm_scratch {
	struct aead_request *request;
	u8 *page; /* for one text that would cross the border of a page */
	struct scatterlist from[2];
	struct scatterlist to[2];
	u8 iv[16];
};

static DEFINE_PER_CPU(struct gcm_scratch, gcm_scratch);
static unsigned int request_size;
/* Known once the module is loaded: a search for a driver that is not there calls modprobe. */
static bool has_internal __ro_after_init = true;

static struct crypto_aead *allocate(void)
{
	struct crypto_aead *gcm = ERR_PTR(-ENOENT);

	if (has_internal)
		gcm = crypto_alloc_aead("__gcm(aes)", CRYPTO_ALG_INTERNAL,
					CRYPTO_ALG_INTERNAL | CRYPTO_ALG_ASYNC);
	if (IS_ERR(gcm))
		gcm = crypto_alloc_aead("gcm(aes)", 0, CRYPTO_ALG_ASYNC);
	return gcm;
}

static void free_requests(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		kfree_sensitive(per_cpu(gcm_scratch, cpu).request);
		per_cpu(gcm_scratch, cpu).request = NULL;
		free_page((unsigned long)per_cpu(gcm_scratch, cpu).page);
		per_cpu(gcm_scratch, cpu).page = NULL;
	}
	request_size = 0;
}

int __init adit_gcm_init(void)
{
	struct gcm_scratch *scratch;
	struct crypto_aead *gcm;
	unsigned int size;
	int cpu;

	gcm = allocate();
	/* A kernel without it can still do suite 0. */
	if (IS_ERR(gcm))
		return 0;
	/* The search may have loaded the driver that it did not find. */
	crypto_free_aead(gcm);
	gcm = allocate();
	if (IS_ERR(gcm))
		return 0;
	has_internal = crypto_aead_alg(gcm)->base.cra_flags & CRYPTO_ALG_INTERNAL;
	size = max_t(unsigned int, sizeof(struct aead_request) + crypto_aead_reqsize(gcm),
		     MIN_REQUEST_SIZE);
	crypto_free_aead(gcm);
	for_each_possible_cpu(cpu) {
		scratch = per_cpu_ptr(&gcm_scratch, cpu);
		scratch->request = kzalloc_node(size, GFP_KERNEL, cpu_to_node(cpu));
		scratch->page = (u8 *)get_zeroed_page(GFP_KERNEL);
		if (!scratch->request || !scratch->page) {
			free_requests();
			return -ENOMEM;
		}
		sg_init_table(scratch->from, ARRAY_SIZE(scratch->from));
		sg_init_table(scratch->to, ARRAY_SIZE(scratch->to));
		sg_mark_end(&scratch->from[0]);
		sg_mark_end(&scratch->to[0]);
	}
	request_size = size;
	return 0;
}

void adit_gcm_exit(void)
{
	free_requests();
}

bool adit_gcm_available(void)
{
	return request_size > 0;
}

struct crypto_aead *adit_gcm_create(const u8 *key, unsigned int length)
{
	struct crypto_aead *gcm;
	int error;

	gcm = allocate();
	if (IS_ERR(gcm))
		return gcm;
	error = crypto_aead_setkey(gcm, key, length);
	if (!error)
		error = crypto_aead_setauthsize(gcm, ADIT_TAG_LENGTH);
	if (!error && sizeof(struct aead_request) + crypto_aead_reqsize(gcm) > request_size)
		error = -EOPNOTSUPP;
	if (error) {
		crypto_free_aead(gcm);
		return ERR_PTR(error);
	}
	return gcm;
}

void adit_gcm_destroy(struct crypto_aead *gcm)
{
	crypto_free_aead(gcm);
}

static struct aead_request *prepare(struct gcm_scratch *scratch, struct crypto_aead *gcm,
				    u64 counter)
{
	put_unaligned_le32(0, scratch->iv);
	put_unaligned_le64(counter, scratch->iv + 4);
	aead_request_set_tfm(scratch->request, gcm);
	aead_request_set_callback(scratch->request, 0, NULL, NULL);
	aead_request_set_ad(scratch->request, 0);
	return scratch->request;
}

/* In pieces of a length that the compiler knows: it copies them without a call. */
static void copy_text(u8 *to, const u8 *from, size_t length)
{
	size_t at;

	for (at = 0; at + COPY_LENGTH <= length; at += COPY_LENGTH)
		memcpy(to + at, from + at, COPY_LENGTH);
	memcpy(to + at, from + at, length - at);
}

/*
 * The crypto API goes page by page. A block that lies in two of them goes through memory that is
 * allocated for it, which costs twice as much as to copy a whole packet.
 */
static bool splits_block(const u8 *text, size_t length)
{
	size_t first = PAGE_SIZE - offset_in_page(text);

	return first < length && first % BLOCK_LENGTH != 0 && length + ADIT_TAG_LENGTH <= PAGE_SIZE;
}

u8 *adit_gcm_seal_place(u8 *to, size_t length)
{
	return splits_block(to, length) ? this_cpu_ptr(&gcm_scratch)->page : to;
}

bool adit_gcm_seal(struct crypto_aead *gcm, u8 *to, u8 *text, size_t length, u64 counter)
{
	struct gcm_scratch *scratch = this_cpu_ptr(&gcm_scratch);
	struct aead_request *request = prepare(scratch, gcm, counter);

	sg_set_buf(&scratch->from[0], text, length + ADIT_TAG_LENGTH);
	aead_request_set_crypt(request, scratch->from, scratch->from, length, scratch->iv);
	if (crypto_aead_encrypt(request))
		return false;
	if (to != text)
		copy_text(to, text, length + ADIT_TAG_LENGTH);
	return true;
}

bool adit_gcm_open(struct crypto_aead *gcm, u8 *to, const u8 *from, size_t length, u64 counter)
{
	struct gcm_scratch *scratch = this_cpu_ptr(&gcm_scratch);
	struct aead_request *request = prepare(scratch, gcm, counter);
	u8 *target = splits_block(to, length) ? scratch->page : to;
	struct scatterlist *target_list = scratch->from;

	if (splits_block(from, length)) {
		copy_text(scratch->page, from, length + ADIT_TAG_LENGTH);
		from = scratch->page;
	}
	sg_set_buf(&scratch->from[0], from, length + ADIT_TAG_LENGTH);
	if (target != from) {
		target_list = scratch->to;
		/* Room for nothing is not a valid buffer; a keepalive has no text. */
		sg_set_buf(&scratch->to[0], target, max_t(size_t, length, 1));
	}
	aead_request_set_crypt(request, scratch->from, target_list, length + ADIT_TAG_LENGTH,
			       scratch->iv);
	if (crypto_aead_decrypt(request))
		return false;
	if (target != to)
		copy_text(to, target, length);
	return true;
}
