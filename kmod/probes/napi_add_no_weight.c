// SPDX-License-Identifier: GPL-2.0
#include <linux/netdevice.h>

void probe(struct net_device *dev, struct napi_struct *napi,
	   int (*poll)(struct napi_struct *, int));

void probe(struct net_device *dev, struct napi_struct *napi,
	   int (*poll)(struct napi_struct *, int))
{
	netif_napi_add(dev, napi, poll);
}
