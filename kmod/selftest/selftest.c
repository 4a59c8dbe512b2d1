// SPDX-License-Identifier: GPL-2.0

#include "selftest.h"

#include <linux/kernel.h>
#include <linux/printk.h>

bool adit_selftest(void)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} tests[] = {
		{ "replay window", adit_selftest_replay },
		{ "allowed IPs", adit_selftest_allowedips },
		{ "ciphers", adit_selftest_aead },
	};
	bool passed = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		if (!tests[i].run()) {
			pr_err("adit: self-test of the %s failed\n", tests[i].name);
			passed = false;
		}
	}
	return passed;
}
