// SPDX-License-Identifier: GPL-2.0

#include "netlink.h"

#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/notifier.h>

#include "device.h"

/*
 * The core parses liberally, so that what a newer daemon adds is ignored; each command parses
 * again, and strictly what it knows.
 */
#define VALIDATE (GENL_DONT_VALIDATE_STRICT | GENL_DONT_VALIDATE_DUMP)

#define COMMAND(number, function)			\
	{						\
		.cmd = number,				\
		.validate = VALIDATE,			\
		.flags = GENL_UNS_ADMIN_PERM,		\
		.doit = function,			\
	}

static const struct genl_ops ops[] = {
	{
		.cmd = ADIT_CMD_GET_DEVICE,
		.validate = VALIDATE,
		.flags = GENL_UNS_ADMIN_PERM,
		.doit = adit_get_device,
		.dumpit = adit_dump_devices,
	},
	{
		.cmd = ADIT_CMD_GET_PEER,
		.validate = VALIDATE,
		.flags = GENL_UNS_ADMIN_PERM,
		.start = adit_dump_peers_start,
		.dumpit = adit_dump_peers,
		.done = adit_dump_peers_done,
	},
	COMMAND(ADIT_CMD_SET_DEVICE, adit_set_device),
	COMMAND(ADIT_CMD_SET_PEER, adit_set_peer),
	COMMAND(ADIT_CMD_DEL_PEER, adit_del_peer),
	COMMAND(ADIT_CMD_NEW_KEY, adit_new_key),
	COMMAND(ADIT_CMD_DEL_KEYS, adit_del_keys),
	COMMAND(ADIT_CMD_DROP_STAGED, adit_drop_staged),
	COMMAND(ADIT_CMD_SEND_HANDSHAKE, adit_send_handshake),
	COMMAND(ADIT_CMD_SEND_CONTROL, adit_send_control),
};

static const struct genl_multicast_group groups[] = {
	{ .name = ADIT_GENL_GROUP_EVENTS, .flags = GENL_MCAST_CAP_NET_ADMIN },
};

struct genl_family adit_genl_family __ro_after_init = {
	.name = ADIT_GENL_NAME,
	.version = ADIT_GENL_VERSION,
	.maxattr = ADIT_A_MAX,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.resv_start_op = __ADIT_CMD_MAX,
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
};

/* A socket was closed: its claims end. */
static int on_release(struct notifier_block *block, unsigned long action, void *data)
{
	const struct netlink_notify *notify = data;

	if (action == NETLINK_URELEASE && notify->protocol == NETLINK_GENERIC)
		adit_device_release_claims(notify->net, notify->portid);
	return NOTIFY_DONE;
}

static struct notifier_block release_block = { .notifier_call = on_release };

int adit_netlink_init(void)
{
	int error;

	error = netlink_register_notifier(&release_block);
	if (error)
		return error;
	error = genl_register_family(&adit_genl_family);
	if (error)
		netlink_unregister_notifier(&release_block);
	return error;
}

void adit_netlink_exit(void)
{
	genl_unregister_family(&adit_genl_family);
	netlink_unregister_notifier(&release_block);
}
