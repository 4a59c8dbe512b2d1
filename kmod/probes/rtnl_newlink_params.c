// SPDX-License-Identifier: GPL-2.0
#include <net/rtnetlink.h>

int probe(struct net_device *dev, struct rtnl_newlink_params *params,
	  struct netlink_ext_ack *extack);

int probe(struct net_device *dev, struct rtnl_newlink_params *params,
	  struct netlink_ext_ack *extack)
{
	struct rtnl_link_ops ops = { .newlink = probe };

	return ops.newlink(dev, params, extack);
}
