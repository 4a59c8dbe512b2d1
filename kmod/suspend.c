// SPDX-License-Identifier: GPL-2.0
/*
 * A machine that was copied while it slept, or a virtual one that was cloned, would use the same
 * keys and counters twice. So keys end with suspend and hibernation, and when the hypervisor
 * tells that this is a copy.
 */
#include "suspend.h"

#include <linux/notifier.h>
#include <linux/rtnetlink.h>
#include <linux/suspend.h>

#include "compat.h"
#include "device.h"
#include "events.h"
#include "peer.h"

static void wipe_device(struct adit_device *adit)
{
	struct adit_peer *peer;

	mutex_lock(&adit->lock);
	list_for_each_entry(peer, &adit->peers, list)
		if (adit_peer_drop_keys(peer))
			adit_event_keys_expired(peer);
	mutex_unlock(&adit->lock);
}

/* Devices come and go with rtnl held. */
static void wipe_all(void)
{
	struct adit_device *adit;

	rtnl_lock();
	list_for_each_entry(adit, &adit_devices, list)
		wipe_device(adit);
	rtnl_unlock();
	/* Not before the keys are gone. */
	rcu_barrier();
	flush_workqueue(adit_workqueue);
}

static int on_power(struct notifier_block *block, unsigned long action, void *data)
{
	if (action == PM_HIBERNATION_PREPARE || action == PM_SUSPEND_PREPARE)
		wipe_all();
	return NOTIFY_DONE;
}

static void wipe_work(struct work_struct *work)
{
	wipe_all();
}

static DECLARE_WORK(clone_work, wipe_work);

static int on_clone(struct notifier_block *block, unsigned long action, void *data)
{
	/* Not on the workqueue that it flushes. */
	schedule_work(&clone_work);
	return NOTIFY_DONE;
}

static struct notifier_block power_block = { .notifier_call = on_power };
static struct notifier_block clone_block = { .notifier_call = on_clone };

int adit_suspend_init(void)
{
	int error;

	error = register_pm_notifier(&power_block);
	if (error)
		return error;
	error = adit_register_vmfork_notifier(&clone_block);
	if (error)
		unregister_pm_notifier(&power_block);
	return error;
}

void adit_suspend_exit(void)
{
	adit_unregister_vmfork_notifier(&clone_block);
	unregister_pm_notifier(&power_block);
	cancel_work_sync(&clone_work);
}
