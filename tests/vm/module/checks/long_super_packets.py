"""Super-packets of more than 64 KiB: one that TCP makes is carried by several outer ones, and is one
again at its end, unless it may be forwarded to devices that take no more than a header can tell."""

from __future__ import annotations

import os
import platform

from topology import Topology, run_in

from .support import sha256, test, transfer

# Of MTU 1420: as many as fit below 64 KiB.
USUAL = 48
SEGMENT = 1380


def kernel_has_them() -> bool:
    """IPv4 has them since 6.3."""
    major, minor = platform.release().split(".")[:2]
    return (int(major), int(minor)) >= (6, 3)


def forward(net: Topology, on: bool) -> None:
    setting = f"net.ipv4.conf.adit0.forwarding={int(on)}"
    run_in(net.b.name, "sysctl", "-qw", setting, check=True)


def segments_of_longest(net: Topology, data: bytes, v6: bool) -> float:
    """The mean of what B joined."""
    before = net.b.counters()
    assert transfer(net, net.a, data, v6) == sha256(data)
    after = net.b.counters()
    grown = {name: after[name] - before[name] for name in ("RX_SEGMENTS", "RX_INNER_SUPER")}
    return grown["RX_SEGMENTS"] / grown["RX_INNER_SUPER"]


@test
def long_super_packets_arrive_whole_where_they_end(net: Topology) -> None:
    net.add_peers()
    net.add_keys(suite=1)
    data = os.urandom(1 << 20) * 16
    # TCP sends less at once over a path that is not next to it, and an emulated one never is.
    run_in(net.a.name, "sysctl", "-qw", "net.ipv4.tcp_tso_rtt_log=30", check=True)
    # The first one lets the sender's window grow.
    forward(net, False)
    segments_of_longest(net, data, False)
    mean = segments_of_longest(net, data, False)
    assert (mean > USUAL) == kernel_has_them(), mean
    forward(net, True)
    mean = segments_of_longest(net, data, False)
    assert mean <= USUAL, mean
    assert segments_of_longest(net, data, True) <= USUAL


@test
def a_mapped_super_packet_crosses_the_link_in_few_pieces(net: Topology) -> None:
    """What a forwarding host gets from another device has more packets than one outer super-packet
    takes; it is not taken apart into single packets for that."""
    net.add_peers()
    net.add_keys(suite=1)
    data = os.urandom(1 << 20) * 8
    before = net.a.counters()
    # IPv6 has 48 packets in one super-packet, of which 45 fit.
    assert transfer(net, net.a, data, True) == sha256(data)
    after = net.a.counters()
    singles = after["TX_SINGLE"] - before["TX_SINGLE"]
    segments = after["TX_SEGMENTS"] - before["TX_SEGMENTS"]
    assert segments > len(data) / SEGMENT * 0.9 and singles < segments / 10, (singles, segments)
