// SPDX-License-Identifier: GPL-2.0
#include <linux/netdevice.h>

unsigned int probe(struct net_device *dev);

unsigned int probe(struct net_device *dev)
{
	return READ_ONCE(dev->gso_ipv4_max_size);
}
