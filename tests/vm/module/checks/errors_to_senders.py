"""ICMP errors reach the sender of the inner packet, also through address translation, and tell
the MTU that is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from topology import Host, Topology, ip, run_in

from .support import ping, test, until, write

HIDE = """
table inet nat {
  chain out {
    type nat hook postrouting priority srcnat
    oifname "adit0" masquerade
  }
}
"""


@contextmanager
def machine_behind(net: Topology) -> Iterator[Host]:
    """mod-c  inside 10.6.0.2, fd06::2 ── lan 10.6.0.1, fd06::1  mod-a, which hides it."""
    ip("netns add mod-c")
    try:
        ip("-n mod-c link add inside type veth peer name lan netns mod-a")
        for netns, device, number in (("mod-c", "inside", 2), ("mod-a", "lan", 1)):
            ip(f"-n {netns} address add 10.6.0.{number}/24 dev {device}")
            ip(f"-n {netns} address add fd06::{number}/64 dev {device} nodad")
            ip(f"-n {netns} link set {device} up")
        ip("-n mod-c route add default via 10.6.0.1")
        ip("-6 -n mod-c route add default via fd06::1")
        write("/proc/sys/net/ipv4/ip_forward", "1", "mod-a")
        write("/proc/sys/net/ipv6/conf/all/forwarding", "1", "mod-a")
        run_in("mod-a", "nft", "-f", "-", input=HIDE, check=True)
        yield Host("mod-c", 2)
    finally:
        ip("netns delete mod-c")


def told(host: Host, address: str, *options: str) -> str:
    """What ping prints of the errors that it gets."""
    done = run_in(host.name, "ping", "-c", "2", "-i", "0.3", "-W", "2", *options, address,
                  capture_output=True)
    return done.stdout + done.stderr


@test
def errors_pass_the_translation_of_addresses(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    with machine_behind(net) as inner:
        assert until(lambda: ping(inner, net.b.inner(), count=1))
        assert until(lambda: ping(inner, net.b.inner(True), count=1))
        for nobody in ("10.9.0.123", "fd09::123"):
            before = net.a.drops()["NO_PEER"]
            text = told(inner, nobody)
            assert "nreachable" in text, text
            assert net.a.drops()["NO_PEER"] > before


@test
def too_big_is_told_with_the_mtu(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    with machine_behind(net) as inner:
        for mtu in (1420, 1300):
            for host in net.hosts:
                ip(f"-n {host.name} link set adit0 mtu {mtu}")
            for netns in ("mod-c", "mod-a"):
                ip(f"-n {netns} route flush cache")
                ip(f"-6 -n {netns} route flush cache")
            for address, headers in ((net.b.inner(), 28), (net.b.inner(True), 48)):
                fits, large = str(mtu - headers), str(mtu - headers + 1)
                assert until(lambda: ping(inner, address, "-M", "do", "-s", fits, count=1)), mtu
                # The sender itself, and the one behind it.
                text = told(net.a, address, "-M", "do", "-s", large)
                assert f"mtu={mtu}" in text or f"mtu: {mtu}" in text, text
                text = told(inner, address, "-M", "do", "-s", large)
                assert f"mtu = {mtu}" in text or f"mtu={mtu}" in text or f"mtu: {mtu}" in text, text
    assert not net.a.drops()["SEND_FAILED"]
