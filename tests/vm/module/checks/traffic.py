"""Packets of every kind pass unchanged, in every combination of families, MTUs and suites, and are
counted exactly."""

from __future__ import annotations

import os
import struct

from adit_genl import C, namespace
from topology import Host, Topology, ip, run_in

from .support import (
    Wire, full_run, ping, send_raw, sha256, test, transfer, udp_socket, until,
)

OVERHEAD = 32
SUITES = range(3)


@test
def ping_under_each_suite_and_family(net: Topology) -> None:
    for round_, (suite, v6) in enumerate((s, v) for s in SUITES for v in (False, True)):
        net.add_peers(v6=v6)
        net.add_keys(suite=suite, first_index=100 * (round_ + 1))
        assert ping(net.a, net.b.inner()), (suite, v6)
        assert ping(net.b, net.a.inner(True), "-s", "1300"), (suite, v6)
        assert net.a.peer()[C["ADIT_A_PEER_SUITE"]] == bytes([suite])


@test
def each_family_in_each_at_each_mtu(net: Topology) -> None:
    """IPv4 and IPv6, outside and inside, with usual and jumbo frames: ping, UDP, TCP, parallel
    TCP. --full repeats it with every suite."""
    round_ = 0
    for suite in SUITES if full_run() else (1,):
        for outer6 in (False, True):
            for frame in (1500, 9000):
                round_ += 1
                set_mtus(net, frame, frame - 80)
                net.add_peers(v6=outer6)
                net.add_keys(suite=suite, first_index=100 * round_)
                for inner6 in (False, True):
                    passes_all(net, inner6, frame - 80)
    for host in net.hosts:
        wrong = {k: v for k, v in host.drops().items() if v and k != "NO_PEER"}
        assert not wrong, wrong


def set_mtus(net: Topology, frame: int, mtu: int) -> None:
    for host in net.hosts:
        ip(f"-n {host.name} link set wire mtu {frame}")
        ip(f"-n {host.name} link set adit0 mtu {mtu}")


def passes_all(net: Topology, v6: bool, mtu: int) -> None:
    headers = 48 if v6 else 28
    assert ping(net.a, net.b.inner(v6), "-M", "do", "-s", str(mtu - headers)), (v6, mtu)
    assert ping(net.b, net.a.inner(v6), "-s", "20000", count=1), (v6, mtu)
    udp(net, v6, (0, 100, mtu - headers, mtu - headers + 1, 3 * mtu))
    data = os.urandom(1 << 19)
    assert transfer(net, net.a, data, v6) == sha256(data), (v6, mtu)
    assert transfer(net, net.b, data[: 1 << 17], v6, streams=4) == sha256(data[: 1 << 17])


def udp(net: Topology, v6: bool, sizes: tuple[int, ...]) -> None:
    with udp_socket("mod-b", v6) as receiver, udp_socket("mod-a", v6) as sender:
        receiver.bind((net.b.inner(v6), 7001))
        for size in sizes:
            data = os.urandom(size)
            sender.sendto(data, (net.b.inner(v6), 7001))
            assert receiver.recv(65536) == data, (v6, size)


@test
def udp_of_all_sizes(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    udp(net, False, (0, 1, 15, 16, 17, 447, 448, 449, 1391, 1392, 1393, 4000, 30000))


def datagram_bytes(inner: int, mtu: int = 1420) -> int:
    """Outer payload of one inner packet: padded to 16, but not beyond the MTU."""
    return min((inner + 15) // 16 * 16, max(mtu, inner)) + OVERHEAD


@test
def byte_counters_are_exact(net: Topology) -> None:
    """Against what follows from the sizes, and against what was on the wire."""
    net.add_peers()
    with Wire("mod-b") as wire:
        net.add_keys()
        assert until(lambda: net.b.peer_number_of("RX_PACKETS") == 1)
        assert net.b.peer_number_of("RX_BYTES") == OVERHEAD  # the keepalive that confirms
        for family, headers in ((False, 28), (True, 48)):
            sizes = (0, 1, 4, 20, 56, 1363, 1371, 1372, 1380, 1392)
            sizes = tuple(s for s in sizes if s + headers <= 1420)
            before = totals(net.a), totals(net.b)
            one_way(net, family, sizes)
            wanted = len(sizes), sum(datagram_bytes(size + headers) for size in sizes)
            assert until(lambda: totals(net.b)["RX"] == sums(before[1]["RX"], wanted)), (
                before, wanted, totals(net.b))
            assert totals(net.a)["TX"] == sums(before[0]["TX"], wanted)
            assert totals(net.a)["RX"] == before[0]["RX"]
        data = os.urandom(1 << 20)
        assert transfer(net, net.a, data) == sha256(data)
        sent = totals(net.a)["TX"]
        assert until(lambda: totals(net.b)["RX"] == sent), (sent, totals(net.b))
        seen = sum(len(outer.payload) for outer in wire.drain() if outer.payload[:1] == b"\4")
    assert seen == sent[1], (seen, sent)
    # Refused datagrams are no traffic.
    send_raw(net, b"\4\0\0\0\3\0\0\0" + struct.pack("<Q", 1 << 20) + bytes(32))
    assert until(lambda: net.b.drops()["AUTHENTICATION"] == 1)
    assert totals(net.b)["RX"] == sent
    assert net.b.peer_number_of("LAST_RECEIVE") > 0


def one_way(net: Topology, v6: bool, sizes: tuple[int, ...]) -> None:
    """UDP that is not answered: somebody listens."""
    with udp_socket("mod-b", v6) as receiver, udp_socket("mod-a", v6) as sender:
        receiver.bind((net.b.inner(v6), 7002))
        for size in sizes:
            sender.sendto(bytes(size), (net.b.inner(v6), 7002))
        for size in sizes:
            assert len(receiver.recv(65536)) == size


def totals(host: Host) -> dict[str, tuple[int, int]]:
    return {way: (host.peer_number_of(f"{way}_PACKETS"), host.peer_number_of(f"{way}_BYTES"))
            for way in ("RX", "TX")}


def sums(one: tuple[int, int], two: tuple[int, int]) -> tuple[int, int]:
    return one[0] + two[0], one[1] + two[1]


@test
def tcp_both_ways_is_intact_and_joined(net: Topology) -> None:
    net.add_peers()
    net.add_keys(suite=1)
    for sender in net.hosts:
        data = os.urandom(1 << 20) * 8
        assert transfer(net, sender, data) == sha256(data)
    for host in net.hosts:
        counters = host.counters()
        assert counters["TX_SUPER"] > 10 and counters["RX_INNER_SUPER"] > 10, counters
        assert counters["PAGES_REUSED"] > counters["PAGES_NEW"] / 4, counters
        drops = {k: v for k, v in host.drops().items() if v and k not in ("NO_PEER",)}
        assert not drops, drops


@test
def tcp_at_odd_mtus_and_in_fragments(net: Topology) -> None:
    net.add_peers(v6=True)
    net.add_keys()
    data = os.urandom(1 << 19)
    for mtu in (1283, 1419):
        set_mtus(net, 1500, mtu)
        assert transfer(net, net.a, data, v6=True) == sha256(data), mtu
    # The wire is too narrow for a datagram: fragments, of either family.
    for v6 in (True, False):
        set_mtus(net, 1280, 1420)
        net.add_peers(v6=v6)
        before = reassembled(net.b)
        assert transfer(net, net.a, data) == sha256(data), v6
        assert reassembled(net.b) > before, v6


def reassembled(host: Host) -> int:
    """Outer packets that arrived in fragments."""
    with namespace(host.name):
        lines = open("/proc/net/snmp").read().splitlines()
        lines6 = open("/proc/net/snmp6").read().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Ip:"))
    count = int(values[names.index("ReasmOKs")])
    return count + sum(int(line.split()[1]) for line in lines6 if line.startswith("Ip6ReasmOKs"))


@test
def tcp_over_a_wire_without_offloads(net: Topology) -> None:
    """No packet on the wire is larger than a frame."""
    for host in net.hosts:
        for option in ("tso off", "gso off", "tx-udp-segmentation off", "gro on"):
            run_in(host.name, "ethtool", "-K", "wire", *option.split(), check=True)
    net.add_peers()
    net.add_keys()
    data = os.urandom(1 << 20)
    before = frames(net.b)
    assert transfer(net, net.a, data) == sha256(data)
    assert frames(net.b) - before > len(data) / 1500
    assert not net.b.drops()["AUTHENTICATION"]


def frames(host: Host) -> int:
    """What has arrived at the wire, before the receiver joins any."""
    with namespace(host.name):
        lines = open("/proc/net/dev").read().splitlines()
    return next(int(line.split()[2]) for line in lines if line.split()[0] == "wire:")
