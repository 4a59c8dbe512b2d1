"""A router that translates addresses between the ends, and one in front of the tunnel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from adit_genl import peer
from topology import PORT, Topology, ip, run_in

from .endpoints import source_of
from .support import Wire, expect, no_answer, ping, test, until, write
from .traffic import one_way

FORGETS = 3  # seconds after which the router forgets a flow
MASQUERADE = """
table ip nat {
  chain out {
    type nat hook postrouting priority srcnat
    oifname "outside" masquerade fully-random
  }
}
table ip filter {
  chain forward {
    type filter hook forward priority filter; policy drop
    ct state established,related accept
    iifname "inside" accept
  }
}
"""


@contextmanager
def router(net: Topology) -> Iterator[None]:
    """A's own wire is replaced by one to a router, which hides A behind an address of its own:

    mod-a  home 10.7.0.1 ── inside 10.7.0.254  mod-r  outside 10.8.0.254 ── wire of mod-b
    """
    ip("netns add mod-r")
    try:
        ip("-n mod-a link add home type veth peer name inside netns mod-r")
        ip("-n mod-a link set wire netns mod-r name outside")
        for netns, device, address in (("mod-a", "home", "10.7.0.1/24"),
                                       ("mod-r", "inside", "10.7.0.254/24"),
                                       ("mod-r", "outside", "10.8.0.254/24")):
            ip(f"-n {netns} address add {address} dev {device}")
            ip(f"-n {netns} link set {device} up")
        ip("-n mod-a route add default via 10.7.0.254")
        run_in("mod-r", "nft", "-f", "-", input=MASQUERADE, check=True)
        write("/proc/sys/net/ipv4/ip_forward", "1", "mod-r")
        for name in ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"):
            write(f"/proc/sys/net/netfilter/{name}", str(FORGETS), "mod-r")
        yield
    finally:
        ip("netns delete mod-r")


@test
def persistent_keepalive_keeps_the_router_from_forgetting(net: Topology) -> None:
    net.add_peers(b_knows_a=False)
    with router(net):
        net.add_keys()
        assert ping(net.a, net.b.inner())
        address, port = source_of(net.b)
        assert address == "10.8.0.254" and port != PORT
        assert ping(net.b, net.a.inner())
        # Without keepalives the way back is closed after a while: it is such a router.
        time.sleep(FORGETS + 1)
        assert no_answer(net.b, net.a.inner())
        expect(net.a.request("SET_PEER", peer(1, keepalive=1)), 0)
        with Wire("mod-b") as wire:
            begin = time.time()
            time.sleep(2 * FORGETS + 2)
            times = keepalives(wire, 0)
        # One a second, on a machine that may be slow; without them the way back had been closed.
        assert FORGETS < len(times) <= time.time() - begin + 2, [at - begin for at in times]
        assert ping(net.b, net.a.inner(), count=1)
        # Off again.
        expect(net.a.request("SET_PEER", peer(1, keepalive=0)), 0)
        time.sleep(FORGETS + 1)
        assert no_answer(net.b, net.a.inner())


@test
def keepalives_are_on_time(net: Topology) -> None:
    """Persistent ones in the interval that was asked for, and none while there is traffic; a
    passive one ten seconds after data that was not answered."""
    net.add_peers()
    net.add_keys()
    with Wire("mod-b") as wire:
        expect(net.a.request("SET_PEER", peer(1, keepalive=2)), 0)
        assert until(lambda: keepalives(wire, 4), 20), "no four keepalives"
        times = keepalives(wire, 0)
        gaps = [later - earlier for earlier, later in zip(times, times[1:])]
        # The first one was due at once.
        assert all(1.9 < gap < 3 for gap in gaps[1:]), gaps
        expect(net.a.request("SET_PEER", peer(1, keepalive=0)), 0)
    # B answers nothing by itself: after data from A, a keepalive.
    with Wire("mod-a") as wire:
        begin = time.time()
        one_way(net, False, (100,))
        assert until(lambda: keepalives(wire, 1), 20), "no passive keepalive"
        times = keepalives(wire, 0)
        assert len(times) == 1 and 9.9 < times[0] - begin < 13, (begin, times)


def keepalives(wire: Wire, count: int) -> list[float]:
    """When they came, if there were `count` since the wire was first looked at."""
    wire.seen += [outer for outer in wire.drain() if len(outer.payload) == 32]
    return [outer.at for outer in wire.seen] if len(wire.seen) >= count else []
