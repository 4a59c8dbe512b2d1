"""Two tunnel ends configured for each other: what most scenarios start from."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from .network import Lab, Namespace
from .tunnel import Adit, PeerSpec, Tunnel, TunnelSpec, WireGuard, key_pair

PORT = 51820
LEFT, RIGHT = "10.10.0.1", "10.10.0.2"
LEFT6, RIGHT6 = "fd10::1", "fd10::2"

# `ADIT_LAB_REFERENCE=1` puts WireGuard on both ends: it proves the laboratory, not the product.
Product: type[Tunnel] = WireGuard if os.environ.get("ADIT_LAB_REFERENCE") else Adit


@dataclass
class Side:
    """How one end differs from the plain. `extra`: lines of [Interface]; `env`: the daemon's."""

    kind: type[Tunnel] = Product
    extra: list[str] = field(default_factory=list)
    peer_extra: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    keepalive: int = 0


def specs(endpoint: str, psk: str = "") -> tuple[TunnelSpec, TunnelSpec]:
    """Left and right, each knowing the other; only the left has an endpoint, so it initiates."""
    left_keys, right_keys = key_pair(), key_pair()
    left = TunnelSpec(left_keys, [f"{LEFT}/24", f"{LEFT6}/64"], listen_port=PORT)
    right = TunnelSpec(right_keys, [f"{RIGHT}/24", f"{RIGHT6}/64"], listen_port=PORT)
    left.peers.append(
        PeerSpec(
            right_keys.public,
            f"{RIGHT}/32, {RIGHT6}/128",
            name="right",
            endpoint=endpoint,
            preshared_key=psk,
        )
    )
    right.peers.append(
        PeerSpec(left_keys.public, f"{LEFT}/32, {LEFT6}/128", name="left", preshared_key=psk)
    )
    return left, right


def make(where: Namespace, name: str, spec: TunnelSpec, side: Side) -> Tunnel:
    spec.peers[0].keepalive = side.keepalive
    if not issubclass(side.kind, Adit):
        return side.kind(where, name, spec)
    spec.extra += side.extra
    spec.peers[0].extra += side.peer_extra
    return side.kind(where, name, spec, env=side.env)


def both_up(
    lab: Lab,
    left: tuple[Namespace, Side],
    right: tuple[Namespace, Side],
    endpoint: str,
    psk: str = "",
) -> tuple[Tunnel, Tunnel]:
    """Makes both ends and brings them up, the right one first, so that nobody calls in vain."""
    left_spec, right_spec = specs(endpoint, psk)
    ends = (
        make(left[0], lab.device("l"), left_spec, left[1]),
        make(right[0], lab.device("r"), right_spec, right[1]),
    )
    ends[1].up()
    ends[0].up()
    return ends
