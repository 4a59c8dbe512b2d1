// SPDX-License-Identifier: GPL-2.0
#include <crypto/blake2s.h>

void probe(const u8 *key, const u8 *in, u8 *out, size_t length);

void probe(const u8 *key, const u8 *in, u8 *out, size_t length)
{
	/* The lengths stand behind their buffers, and the output is last. */
	blake2s(key, 32, in, length, out, 16);
}
