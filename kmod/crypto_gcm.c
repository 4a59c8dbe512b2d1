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
/* A driver of this kernel that is loaded later may need more than the one that is there now. */
#define MIN_REQUEST_SIZE 1024

struct gcm_scratch {
	struct aead_request *request;
	struct scatterlist from[2];
	struct scatterlist to[2];
	u8 iv[16];
};

static DEFINE_PER_CPU(struct gcm_scratch, gcm_scratch);
static unsigned int request_size;

static struct crypto_aead *allocate(void)
{
	struct crypto_aead *gcm;

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
	}
	request_size = 0;
}

int adit_gcm_init(void)
{
	struct gcm_scratch *scratch;
	struct crypto_aead *gcm;
	unsigned int size;
	int cpu;

	gcm = allocate();
	/* A kernel without it can still do suite 0. */
	if (IS_ERR(gcm))
		return 0;
	size = max_t(unsigned int, sizeof(struct aead_request) + crypto_aead_reqsize(gcm),
		     MIN_REQUEST_SIZE);
	crypto_free_aead(gcm);
	for_each_possible_cpu(cpu) {
		scratch = per_cpu_ptr(&gcm_scratch, cpu);
		scratch->request = kzalloc_node(size, GFP_KERNEL, cpu_to_node(cpu));
		if (!scratch->request) {
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

bool adit_gcm_seal(struct crypto_aead *gcm, u8 *text, size_t length, u64 counter)
{
	struct gcm_scratch *scratch = this_cpu_ptr(&gcm_scratch);
	struct aead_request *request = prepare(scratch, gcm, counter);

	sg_set_buf(&scratch->from[0], text, length + ADIT_TAG_LENGTH);
	aead_request_set_crypt(request, scratch->from, scratch->from, length, scratch->iv);
	return crypto_aead_encrypt(request) == 0;
}

bool adit_gcm_open(struct crypto_aead *gcm, u8 *to, const u8 *from, size_t length, u64 counter)
{
	struct gcm_scratch *scratch = this_cpu_ptr(&gcm_scratch);
	struct aead_request *request = prepare(scratch, gcm, counter);
	struct scatterlist *target = scratch->from;

	sg_set_buf(&scratch->from[0], from, length + ADIT_TAG_LENGTH);
	if (to != from) {
		target = scratch->to;
		/* Room for nothing is not a valid buffer; a keepalive has no text. */
		sg_set_buf(&scratch->to[0], to, max_t(size_t, length, 1));
	}
	aead_request_set_crypt(request, scratch->from, target, length + ADIT_TAG_LENGTH,
			       scratch->iv);
	return crypto_aead_decrypt(request) == 0;
}
