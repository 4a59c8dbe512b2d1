"""Allowed IPs: a filter for what arrives, routing for what is sent; the longest prefix wins."""

from __future__ import annotations

from adit_genl import C, peer, random_key
from topology import Topology, ip, run_in

from .support import expect, no_answer, ping, test


@test
def allowed_ips_both_ways(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    ip("-n mod-a address add 10.9.0.50/24 dev adit0")
    ip("-n mod-a address add fd09::50/64 dev adit0 nodad")
    for address, source in ((net.b.inner(), "10.9.0.50"), (net.b.inner(True), "fd09::50")):
        before = net.b.drops()["SOURCE_NOT_ALLOWED"]
        assert no_answer(net.a, address, "-I", source)
        assert net.b.drops()["SOURCE_NOT_ALLOWED"] > before
    # Nobody there, and the sender is told.
    for address in ("10.9.0.123", "fd09::123"):
        before = net.a.drops()["NO_PEER"]
        result = run_in("mod-a", "ping", "-c", "1", "-W", "5", address, capture_output=True)
        assert "nreachable" in result.stdout, result.stdout
        assert net.a.drops()["NO_PEER"] > before


@test
def the_longest_prefix_wins_and_a_prefix_has_one_owner(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    other = random_key()
    for v6, wide, narrow in ((False, "10.9.0.0/24", f"{net.b.inner()}/32"),
                             (True, "fd09::/64", f"{net.b.inner(True)}/128")):
        # A wider prefix of another peer changes nothing; the same one takes it away.
        for prefix, works in ((wide, True), (narrow, False)):
            expect(net.a.request("SET_PEER", peer(2, other, [prefix], ("10.8.0.66", 9))), 0)
            assert ping(net.a, net.b.inner(v6), "-w", "1", count=1) == works, prefix
        expect(net.a.request("SET_PEER", peer(2, allowed=[])), 0)
        append = C["ADIT_PEER_F_APPEND_ALLOWED_IPS"]
        expect(net.a.request("SET_PEER", peer(1, allowed=[narrow], flags=append)), 0)
        assert ping(net.a, net.b.inner(v6))
    # The same for what arrives: the peer that sends must own the source's longest prefix.
    for prefix, works in (("10.9.0.0/28", True), (f"{net.a.inner()}/32", False)):
        expect(net.b.request("SET_PEER", peer(2, other, [prefix])), 0)
        before = net.b.drops()["SOURCE_NOT_ALLOWED"]
        assert ping(net.a, net.b.inner(), "-w", "1", count=1) == works, prefix
        assert (net.b.drops()["SOURCE_NOT_ALLOWED"] == before) == works, prefix
    assert no_answer(net.a, net.b.inner())
