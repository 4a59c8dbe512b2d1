// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel's own AEADs cost alone, for packets of one length: the library's
 * ChaCha20-Poly1305, as WireGuard calls it, and AES-GCM of the crypto API in its synchronous
 * vectorised form. Measured when the module is loaded; the results are its parameters, in
 * nanoseconds for PACKETS encryptions and as many decryptions.
 */
#include <crypto/aead.h>
#include <crypto/chacha20poly1305.h>
#include <linux/bottom_half.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#define PACKETS 1000
#define TAG 16

static unsigned int length = 1424;
module_param(length, uint, 0444);
MODULE_PARM_DESC(length, "bytes of each packet's text");

static ulong packets = PACKETS;
module_param(packets, ulong, 0444);
static ulong chacha20_poly1305;
module_param(chacha20_poly1305, ulong, 0444);
static ulong aes_256_gcm;
module_param(aes_256_gcm, ulong, 0444);
static ulong aes_128_gcm;
module_param(aes_128_gcm, ulong, 0444);

static int measure_chacha(u8 *text, ulong *nanoseconds)
{
	u8 key[CHACHA20POLY1305_KEY_SIZE] = {};
	bool intact = true;
	u64 begin;
	int i;

	local_bh_disable();
	begin = ktime_get_ns();
	for (i = 0; i < PACKETS; i++) {
		chacha20poly1305_encrypt(text, text, length, NULL, 0, i, key);
		intact &= chacha20poly1305_decrypt(text, text, length + TAG, NULL, 0, i, key);
	}
	*nanoseconds = ktime_get_ns() - begin;
	local_bh_enable();
	return intact ? 0 : -EBADMSG;
}

static int run_gcm(struct crypto_aead *gcm, struct aead_request *request, u8 *text,
		   ulong *nanoseconds)
{
	struct scatterlist list;
	u8 iv[16] = {};
	int error = 0;
	u64 begin;
	int i;

	sg_init_one(&list, text, length + TAG);
	aead_request_set_callback(request, 0, NULL, NULL);
	aead_request_set_ad(request, 0);
	local_bh_disable();
	begin = ktime_get_ns();
	for (i = 0; i < PACKETS && !error; i++) {
		aead_request_set_crypt(request, &list, &list, length, iv);
		error = crypto_aead_encrypt(request);
		aead_request_set_crypt(request, &list, &list, length + TAG, iv);
		error = error ?: crypto_aead_decrypt(request);
	}
	*nanoseconds = ktime_get_ns() - begin;
	local_bh_enable();
	return error;
}

static int measure_gcm(u8 *text, unsigned int key_length, ulong *nanoseconds)
{
	struct aead_request *request;
	struct crypto_aead *gcm;
	u8 key[32] = {};
	int error;

	/* The driver itself, without the wrapper that makes it asynchronous. */
	gcm = crypto_alloc_aead("__gcm(aes)", CRYPTO_ALG_INTERNAL,
				CRYPTO_ALG_INTERNAL | CRYPTO_ALG_ASYNC);
	if (IS_ERR(gcm))
		return PTR_ERR(gcm);
	error = crypto_aead_setkey(gcm, key, key_length) ?: crypto_aead_setauthsize(gcm, TAG);
	request = error ? NULL : aead_request_alloc(gcm, GFP_KERNEL);
	if (!error)
		error = request ? run_gcm(gcm, request, text, nanoseconds) : -ENOMEM;
	if (request)
		aead_request_free(request);
	crypto_free_aead(gcm);
	return error;
}

static int __init start(void)
{
	int error;
	u8 *text;

	if (length == 0 || length > PAGE_SIZE - TAG)
		return -EINVAL;
	text = kzalloc(PAGE_SIZE, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	error = measure_chacha(text, &chacha20_poly1305);
	error = error ?: measure_gcm(text, 32, &aes_256_gcm);
	error = error ?: measure_gcm(text, 16, &aes_128_gcm);
	kfree(text);
	return error;
}

static void __exit finish(void)
{
}

module_init(start);
module_exit(finish);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("What the kernel's AEADs cost");
