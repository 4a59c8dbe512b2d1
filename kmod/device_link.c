// SPDX-License-Identifier: GPL-2.0
/*
 * The link, as rtnetlink and the stack see it.
 */
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/ip_tunnels.h>
#include <net/netns/generic.h>
#include <net/rtnetlink.h>

#include "compat.h"
#include "device.h"
#include "peer.h"
#include "socket.h"
#include "tx.h"

static int link_open(struct net_device *dev)
{
	return adit_device_up(netdev_priv(dev));
}

static int link_stop(struct net_device *dev)
{
	adit_device_down(netdev_priv(dev));
	return 0;
}

static int link_change_mtu(struct net_device *dev, int mtu)
{
	adit_device_set_mtu(netdev_priv(dev), mtu);
	return 0;
}

static void link_stats(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct adit_device *adit = netdev_priv(dev);
	struct adit_totals totals;
	int i;

	adit_sum_stats(adit->stats, &totals);
	stats->rx_packets = totals.rx_packets;
	stats->rx_bytes = totals.rx_bytes;
	stats->tx_packets = totals.tx_packets;
	stats->tx_bytes = totals.tx_bytes;
	for (i = ADIT_DROP_MALFORMED; i <= ADIT_DROP_SOURCE_NOT_ALLOWED; i++)
		stats->rx_errors += totals.drops[i];
	stats->rx_dropped = totals.drops[ADIT_DROP_RECEIVE_FAILED] +
			    totals.drops[ADIT_DROP_CONGESTION];
	stats->tx_errors = totals.drops[ADIT_DROP_NO_PEER] + totals.drops[ADIT_DROP_NO_ENDPOINT] +
			   totals.drops[ADIT_DROP_SEND_FAILED];
	stats->tx_dropped = totals.drops[ADIT_DROP_QUEUE_FULL];
}

/* Before the link goes: nobody finds it any more. */
static void link_uninit(struct net_device *dev)
{
	struct adit_device *adit = netdev_priv(dev);

	mutex_lock(&adit->lock);
	adit->dead = true;
	adit_peer_remove_all(adit);
	mutex_unlock(&adit->lock);
	adit_handshake_queue_stop(&adit->handshakes);
	cancel_work_sync(&adit->deferred_work);
	skb_queue_purge(&adit->deferred);
	adit_device_unclaim(adit);
	spin_lock(&adit_devices_lock);
	list_del_init(&adit->list);
	spin_unlock(&adit_devices_lock);
}

static const struct net_device_ops link_ops = {
	.ndo_uninit = link_uninit,
	.ndo_open = link_open,
	.ndo_stop = link_stop,
	.ndo_start_xmit = adit_tx_start,
	.ndo_change_mtu = link_change_mtu,
	.ndo_get_stats64 = link_stats,
};

static const struct device_type link_type = { .name = ADIT_LINK_KIND };

static void link_free(struct net_device *dev)
{
	adit_device_free(netdev_priv(dev));
}

static void link_setup(struct net_device *dev)
{
	const netdev_features_t features = NETIF_F_HW_CSUM | NETIF_F_RXCSUM | NETIF_F_SG |
					   NETIF_F_FRAGLIST | NETIF_F_GSO_SOFTWARE |
					   NETIF_F_HIGHDMA;

	dev->netdev_ops = &link_ops;
	dev->header_ops = &ip_tunnel_header_ops;
	dev->hard_header_len = 0;
	dev->addr_len = 0;
	dev->needed_headroom = 0;
	dev->type = ARPHRD_NONE;
	dev->flags = IFF_POINTOPOINT | IFF_NOARP;
	dev->priv_flags |= IFF_NO_QUEUE | IFF_DISABLE_NETPOLL;
	adit_set_lltx(dev);
	/* Errors to the sender need the route that the packet came by. */
	netif_keep_dst(dev);
	dev->features |= features;
	dev->hw_features |= features;
	dev->hw_enc_features |= features;
	dev->min_mtu = 0;
	dev->max_mtu = ADIT_MTU_MAX;
	dev->mtu = ADIT_MTU_DEFAULT;
	dev->needs_free_netdev = true;
	SET_NETDEV_DEVTYPE(dev, &link_type);
}

static int link_new(ADIT_NEWLINK_ARGUMENTS)
{
	struct adit_device *adit = netdev_priv(dev);
	int error;

	adit->dev = dev;
	rcu_assign_pointer(adit->creating_net, ADIT_NEWLINK_NET);
	error = adit_device_prepare(adit);
	if (error)
		return error;
	adit_device_set_mtu(adit, dev->mtu);
	spin_lock(&adit_devices_lock);
	list_add_tail(&adit->list, &adit_devices);
	spin_unlock(&adit_devices_lock);
	error = register_netdevice(dev);
	if (error) {
		/* What was prepared goes; the caller frees the device itself. */
		spin_lock(&adit_devices_lock);
		list_del_init(&adit->list);
		spin_unlock(&adit_devices_lock);
		adit_device_free(adit);
		return error;
	}
	dev->priv_destructor = link_free;
	return 0;
}

static struct rtnl_link_ops rtnl_ops __read_mostly = {
	.kind = ADIT_LINK_KIND,
	.priv_size = sizeof(struct adit_device),
	.setup = link_setup,
	.newlink = link_new,
};

bool adit_device_is(const struct net_device *dev)
{
	return dev->rtnl_link_ops == &rtnl_ops;
}

struct adit_device *adit_device_find(struct net *net, u32 ifindex, const char *name)
{
	struct net_device *dev;

	dev = name ? dev_get_by_name(net, name) : dev_get_by_index(net, ifindex);
	if (!dev)
		return NULL;
	if (!adit_device_is(dev)) {
		dev_put(dev);
		return NULL;
	}
	return netdev_priv(dev);
}

void adit_device_put(struct adit_device *adit)
{
	dev_put(adit->dev);
}

/*
 * The namespace of the sockets goes; the link may be in another one. No packet holds a route there
 * afterwards.
 */
static void leave_net(struct adit_device *adit)
{
	struct adit_peer *peer;

	mutex_lock(&adit->lock);
	adit_socket_close(adit);
	rcu_assign_pointer(adit->creating_net, NULL);
	synchronize_net();
	list_for_each_entry(peer, &adit->peers, list)
		dst_cache_reset_now(&peer->dst_cache);
	mutex_unlock(&adit->lock);
	netif_carrier_off(adit->dev);
}

static void net_pre_exit(struct net *net)
{
	struct adit_device *adit;

	rtnl_lock();
	list_for_each_entry(adit, &adit_devices, list)
		if (rcu_access_pointer(adit->creating_net) == net)
			leave_net(adit);
	rtnl_unlock();
}

static struct pernet_operations net_ops = { .pre_exit = net_pre_exit };

int adit_device_register(void)
{
	int error;

	error = register_pernet_device(&net_ops);
	if (error)
		return error;
	error = rtnl_link_register(&rtnl_ops);
	if (error)
		unregister_pernet_device(&net_ops);
	return error;
}

void adit_device_unregister(void)
{
	rtnl_link_unregister(&rtnl_ops);
	unregister_pernet_device(&net_ops);
}
