"""Tunnels and the machine's routing: the mark of outer packets, tunnels in tunnels, loops."""

from __future__ import annotations

import os

import adit_genl
from adit_genl import C, key, nest, peer, random_key, u8, u16, u32
from topology import PORT, Host, Topology, ip

from .support import Wire, expect, no_answer, ping, sha256, test, transfer, until

MARK = 0x4D2


@test
def default_route_by_the_mark(net: Topology) -> None:
    """All goes through the tunnel but what bears its mark, of either family outside and inside."""
    for address in ("203.0.113.7/32", "2001:db8::7/128"):
        ip(f"-n mod-b address add {address} dev lo")
    for family in ("-4", "-6"):
        ip(f"{family} -n mod-a route add default dev adit0 table 77")
        ip(f"{family} -n mod-a rule add not fwmark {MARK} table 77 priority 10")
    for round_, v6 in enumerate((False, True)):
        net.add_peers(v6=v6)
        everything = peer(1, allowed=["0.0.0.0/0", "::/0"], at=(net.b.wire(v6), PORT))
        expect(net.a.request("SET_PEER", everything), 0)
        set_mark(net.a, 0)
        net.add_keys(first_index=100 * (round_ + 1))
        # Without the mark the tunnel would carry itself.
        before = net.a.drops()["SEND_FAILED"]
        assert no_answer(net.a, "203.0.113.7", "-I", net.a.inner())
        assert net.a.drops()["SEND_FAILED"] > before
        set_mark(net.a, MARK)
        net.add_keys(first_index=100 * (round_ + 1) + 50)
        for target, source in (("203.0.113.7", net.a.inner()), ("2001:db8::7", net.a.inner(True))):
            with Wire("mod-b") as wire:
                assert ping(net.a, target, "-I", source), (v6, target)
                assert wire.drain(), "not through the tunnel"


def set_mark(host: Host, mark: int) -> None:
    wish = nest(C["ADIT_A_DEVICE"], u32(C["ADIT_A_DEVICE_FWMARK"], mark))
    expect(host.request("SET_DEVICE", wish), 0)


@test
def a_tunnel_through_itself(net: Topology) -> None:
    """A link whose peer is reached through that link, of either family: dropped, counted."""
    for round_, v6 in enumerate((False, True)):
        net.add_peers(v6=v6)
        net.add_keys(first_index=10 * (round_ + 1))
        assert ping(net.a, net.b.inner(v6))
        expect(net.a.request("SET_PEER", peer(1, at=(net.b.inner(v6), PORT))), 0)
        before, sent = net.a.drops()["SEND_FAILED"], net.a.peer_number_of("TX_PACKETS")
        assert no_answer(net.a, net.b.inner(v6))
        assert net.a.drops()["SEND_FAILED"] > before
        # Not once round, until the tunnels in it are too many.
        assert net.a.peer_number_of("TX_PACKETS") == sent


@test
def tunnels_nested_deeper_than_the_stack_allows(net: Topology) -> None:
    """Four tunnels, each in the one before; then a ring of two that carry each other."""
    net.add_peers()
    net.add_keys()
    levels = [net.a, *(add_level(net, level) for level in range(1, 4))]
    for level in range(4):
        assert ping(net.a, f"10.9.{level}.2" if level else net.b.inner()), level
    data = os.urandom(1 << 18)
    assert transfer(net, net.a, data) == sha256(data)
    assert transfer(net, net.a, data, address="10.9.3.2") == sha256(data)
    # The outermost now goes through the innermost.
    expect(net.a.request("SET_PEER", peer(1, at=("10.9.3.2", PORT))), 0)

    def dropped() -> int:
        return sum(sum(link.drops().values()) for link in levels)

    before = dropped()
    ping(net.a, net.b.inner(), "-w", "3", count=5)
    # Which of the four drops a packet depends on where its depth is reached.
    assert until(lambda: dropped() > before)


def add_level(net: Topology, level: int) -> Host:
    """One more tunnel through the one below; the link on the side of `net.a`."""
    links = []
    for host in net.hosts:
        ip(f"-n {host.name} link add adit{level} mtu {1420 - 60 * level} type adit")
        ip(f"-n {host.name} address add 10.9.{level}.{host.number}/24 dev adit{level}")
        index = adit_genl.interface_index(f"adit{level}", host.name)
        link = Host(host.name, host.number, host.genl, index, host.public)
        wish = nest(
            C["ADIT_A_DEVICE"],
            u8(C["ADIT_A_DEVICE_CLAIM"], 1),
            u16(C["ADIT_A_DEVICE_LISTEN_PORT"], PORT + level),
        )
        expect(link.request("SET_DEVICE", wish), 0)
        ip(f"-n {host.name} link set adit{level} up")
        links.append(link)
    one, two = random_key(), random_key()
    below = f"10.9.{level - 1}"
    for link, other, send, receive in ((*links, one, two), (*reversed(links), two, one)):
        wish = peer(1, other.public, [f"10.9.{level}.0/24"],
                    (f"{below}.{other.number}", PORT + level))
        expect(link.request("SET_PEER", wish), 0)
        keys = key(1, other.public, link.number, other.number, send, receive)
        expect(link.request("NEW_KEY", keys), 0)
    return links[0]
