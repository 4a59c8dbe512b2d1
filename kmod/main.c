// SPDX-License-Identifier: GPL-2.0

#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include <net/genetlink.h>
#include <net/rtnetlink.h>

#include "crypto.h"
#include "device.h"
#include "netlink.h"
#include "pages.h"
#include "selftest/selftest.h"
#include "suspend.h"

struct workqueue_struct *adit_workqueue;

static int __init adit_init(void)
{
	int error;

	adit_pages_init();
	error = adit_crypto_init();
	if (error)
		return error;
	error = -ENOTRECOVERABLE;
	if (!adit_selftest())
		goto exit_crypto;
	adit_measure_suites();
	error = -ENOMEM;
	adit_workqueue = alloc_workqueue("adit", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!adit_workqueue)
		goto exit_crypto;
	error = adit_suspend_init();
	if (error)
		goto destroy_workqueue;
	error = adit_device_register();
	if (error)
		goto exit_suspend;
	error = adit_netlink_init();
	if (error)
		goto unregister_device;
	pr_info("adit " ADIT_MODULE_VERSION ": %s %u, %s %u, %s %u MB/s\n", adit_suite_name(0),
		adit_suite_speeds[0], adit_suite_name(1), adit_suite_speeds[1],
		adit_suite_name(2), adit_suite_speeds[2]);
	return 0;

unregister_device:
	adit_device_unregister();
exit_suspend:
	adit_suspend_exit();
destroy_workqueue:
	rcu_barrier();
	destroy_workqueue(adit_workqueue);
exit_crypto:
	adit_crypto_exit();
	return error;
}

static void __exit adit_exit(void)
{
	adit_netlink_exit();
	adit_device_unregister();
	adit_suspend_exit();
	/* Sessions and peers free themselves by work that a grace period starts. */
	rcu_barrier();
	destroy_workqueue(adit_workqueue);
	rcu_barrier();
	adit_pages_exit();
	adit_crypto_exit();
}

module_init(adit_init);
module_exit(adit_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("adit: encrypted tunnel, data plane");
MODULE_AUTHOR("The adit authors");
MODULE_VERSION(ADIT_MODULE_VERSION);
MODULE_ALIAS_RTNL_LINK(ADIT_LINK_KIND);
MODULE_ALIAS_GENL_FAMILY(ADIT_GENL_NAME);
/* The vectorised drivers come too late otherwise. */
MODULE_SOFTDEP("pre: aesni-intel ghash-clmulni-intel gcm");
