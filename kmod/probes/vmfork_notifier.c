// SPDX-License-Identifier: GPL-2.0
#include <linux/notifier.h>
#include <linux/random.h>

#if !IS_ENABLED(CONFIG_VMGENID)
#error the kernel does not report a virtual machine that was cloned
#endif

int probe(struct notifier_block *block);

int probe(struct notifier_block *block)
{
	return register_random_vmfork_notifier(block);
}
