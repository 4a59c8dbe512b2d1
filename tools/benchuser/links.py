"""Kinds of link between the two namespaces."""

from __future__ import annotations

from lab import Namespace, Pair

# What `ethtool -K` sets on both ends, by kind.
LINKS: dict[str, tuple[str, ...]] = {
    # Super-packets cross it whole, as between virtual machines and containers of one host.
    "gso": (),
    # Nothing larger than the MTU crosses it, and the receiver merges again, as with a real NIC.
    # veth merges only what comes from a sender without TSO.
    "nic": ("tso off", "tx-udp-segmentation off", "gro on"),
    # Neither side has any offload.
    "none": ("tso off", "tx-udp-segmentation off", "gso off", "gro off"),
}


def apply(net: Pair, kind: str) -> None:
    for end in (net.left, net.right):
        for setting in LINKS[kind]:
            _set(end, setting)


def _set(end: Namespace, setting: str) -> None:
    end.run("ethtool", "-K", "eth0", *setting.split())
