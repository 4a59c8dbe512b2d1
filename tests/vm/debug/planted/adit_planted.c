// SPDX-License-Identifier: GPL-2.0
/*
 * Errors on purpose, so that a debug kernel can be seen to report them: test_planted.py. Each
 * stands in a function of its own, named after it, for the report to name.
 *
 * echo NAME >/sys/module/adit_planted/parameters/error
 */

#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>

#define RACERS 2
#define RACE_SECONDS 10
/* One of them may stay in a register or on a stack, where the search for leaks sees a pointer. */
#define LEAKED 16
#define BYTES 200

/* The compiler loses sight of the memory, and so can neither warn nor remove anything. */
static u8 *allocate(void)
{
	u8 *bytes = kzalloc(BYTES, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(bytes);
	return bytes;
}

static void release(u8 *bytes)
{
	OPTIMIZER_HIDE_VAR(bytes);
	kfree(bytes);
}

static noinline int planted_nothing(void)
{
	u8 *bytes = allocate();

	if (!bytes)
		return -ENOMEM;
	release(bytes);
	return 0;
}

static noinline int planted_use_after_free(void)
{
	u8 *bytes = allocate();

	if (!bytes)
		return -ENOMEM;
	release(bytes);
	READ_ONCE(bytes[BYTES / 2]);
	return 0;
}

static noinline int planted_out_of_bounds(void)
{
	u8 *bytes = allocate();

	if (!bytes)
		return -ENOMEM;
	/* Still inside what the allocator rounds the size up to. */
	READ_ONCE(bytes[BYTES]);
	release(bytes);
	return 0;
}

static noinline int planted_leak(void)
{
	unsigned int left;
	u8 *bytes;

	for (left = LEAKED; left; left--) {
		bytes = allocate();
		if (!bytes)
			return -ENOMEM;
		/* What the report shows, where the kernel has no traces of allocations. */
		strscpy(bytes, "planted_leak", BYTES);
	}
	return 0;
}

static DEFINE_SPINLOCK(first_lock);
static DEFINE_SPINLOCK(second_lock);

static noinline int planted_lock_order(void)
{
	spin_lock(&first_lock);
	spin_lock(&second_lock);
	spin_unlock(&second_lock);
	spin_unlock(&first_lock);

	spin_lock(&second_lock);
	spin_lock(&first_lock);
	spin_unlock(&first_lock);
	spin_unlock(&second_lock);
	return 0;
}

static noinline int planted_sleep_in_atomic(void)
{
	spin_lock(&first_lock);
	might_sleep();
	spin_unlock(&first_lock);
	return 0;
}

struct timed {
	struct timer_list timer;
};

static void expire(struct timer_list *unused)
{
}

/* The kernel takes the timer out when it reports this. Without its check the timer would fire. */
static noinline int planted_free_of_active(void)
{
	struct timed *timed;

	if (!IS_ENABLED(CONFIG_DEBUG_OBJECTS_FREE))
		return -EOPNOTSUPP;
	timed = kzalloc(sizeof(*timed), GFP_KERNEL);
	if (!timed)
		return -ENOMEM;
	timer_setup(&timed->timer, expire, 0);
	mod_timer(&timed->timer, jiffies + 600 * HZ);
	kfree(timed);
	return 0;
}

static noinline int planted_index(void)
{
	/* Memory that may be read, in the wrong array. */
	struct {
		u8 first[8];
		u8 second[8];
	} arrays = {};
	unsigned int index = sizeof(arrays.first) + 1;

	OPTIMIZER_HIDE_VAR(index);
	READ_ONCE(arrays.first[index]);
	return 0;
}

static struct {
	unsigned long count;
	struct completion done[RACERS];
} race;

static int planted_race_thread(void *done)
{
	unsigned long end = jiffies + RACE_SECONDS * HZ;

	while (time_before(jiffies, end)) {
		race.count++;
		cond_resched();
	}
	kthread_complete_and_exit(done, 0);
}

static noinline int planted_race(void)
{
	struct task_struct *task;
	unsigned int number, started;

	for (started = 0; started < RACERS; started++) {
		init_completion(&race.done[started]);
		task = kthread_run(planted_race_thread, &race.done[started], "planted/%u", started);
		if (IS_ERR(task))
			break;
	}
	for (number = 0; number < started; number++)
		wait_for_completion(&race.done[number]);
	return started == RACERS ? 0 : -EAGAIN;
}

static const struct {
	const char *name;
	int (*make)(void);
} errors[] = {
	{ "nothing", planted_nothing },
	{ "use_after_free", planted_use_after_free },
	{ "out_of_bounds", planted_out_of_bounds },
	{ "leak", planted_leak },
	{ "lock_order", planted_lock_order },
	{ "sleep_in_atomic", planted_sleep_in_atomic },
	{ "free_of_active", planted_free_of_active },
	{ "index", planted_index },
	{ "race", planted_race },
};

static int set_error(const char *value, const struct kernel_param *unused)
{
	unsigned int number;

	for (number = 0; number < ARRAY_SIZE(errors); number++) {
		if (sysfs_streq(value, errors[number].name))
			return errors[number].make();
	}
	return -EINVAL;
}

static const struct kernel_param_ops error_ops = { .set = set_error };

module_param_cb(error, &error_ops, NULL, 0200);
MODULE_PARM_DESC(error, "the name of the error to make, once");

static int __init planted_init(void)
{
	return 0;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("Errors on purpose, for the kernels that look for errors");
MODULE_LICENSE("GPL");
