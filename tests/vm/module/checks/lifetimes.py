"""Links, peers and namespaces end while packets are on their way."""

from __future__ import annotations

import os
import time

from adit_genl import peer_id
from topology import Host, Topology, ip, run_in

from .support import background, expect, no_answer, ping, test, until


def link(host: Host) -> str:
    return run_in(host.name, "ip", "link", "show", "adit0", capture_output=True).stdout


@test
def removal_under_traffic(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    flood = background("mod-a", "ping", "-f", "-w", "20", net.b.inner())
    assert until(lambda: net.b.peer_number_of("RX_PACKETS") > 50)
    expect(net.b.request("DEL_PEER", peer_id(1)), 0)
    ip("-n mod-b link set adit0 down")
    ip("-n mod-b link set adit0 up")
    ip("-n mod-a link delete adit0")
    flood.kill()
    flood.wait()


@test
def namespace_dies_with_live_peers(net: Topology) -> None:
    """The link goes to a namespace of its own; that of its sockets goes away under traffic."""
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    ip("netns add mod-c")
    flood = None
    try:
        ip("-n mod-a link set adit0 netns mod-c")
        ip("-n mod-c address add 10.9.0.1/24 dev adit0")
        ip("-n mod-c link set adit0 up")
        ip("-n mod-c route replace 10.9.0.0/24 dev adit0")
        mover = Host("mod-c", 1)
        assert until(lambda: ping(mover, net.b.inner(), count=1))
        flood = background("mod-c", "ping", "-f", "-w", "60", net.b.inner())
        before = net.b.peer_number_of("RX_PACKETS")
        assert until(lambda: net.b.peer_number_of("RX_PACKETS") > before + 50)
        net.a.genl.close()
        ip("netns delete mod-a")
        assert until(lambda: no_answer(mover, net.b.inner()))
        # It has lost its sockets, cannot come up again, and can be deleted, with its peers, in the
        # midst of it all.
        assert until(lambda: "NO-CARRIER" in link(mover))
        ip("-n mod-c link set adit0 down")
        assert run_in("mod-c", "ip", "link", "set", "adit0", "up").returncode != 0
        ip("-n mod-c link delete adit0")
    finally:
        if flood:
            flood.kill()
            flood.wait()
        net.a.genl.close()
        ip("netns add mod-a") if not os.path.exists("/run/netns/mod-a") else None
        ip("netns delete mod-c")


@test
def both_namespaces_die_at_once(net: Topology) -> None:
    """With their links, peers, keys, claims and floods both ways."""
    net.add_peers()
    net.add_keys()
    floods = [background(host.name, "ping", "-f", "-s", "1300", "-w", "60",
                         net.other(host).inner()) for host in net.hosts]
    assert until(lambda: net.b.peer_number_of("RX_PACKETS") > 100)
    # A namespace lives as long as a process in it: they end together with its name.
    for host in net.hosts:
        ip(f"netns delete {host.name}")
    for flood in floods:
        flood.kill()
    for host in net.hosts:
        assert host.genl is not None
        host.genl.close()
    for flood in floods:
        flood.wait()
    time.sleep(0.5)
    for host in net.hosts:
        ip(f"netns add {host.name}")
