"""The networks that the tests run on. Addresses are from the documentation ranges."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from .network import Lab, Namespace, link, tool
from .process import LabError, Process


@dataclass
class Pair:
    """Two machines on one cable.

    ::

        left  eth0 192.0.2.1/24   ───────── eth0 192.0.2.2/24   right
                   2001:db8::1/64                2001:db8::2/64
    """

    lab: Lab
    left: Namespace
    right: Namespace
    left_address: str = "192.0.2.1"
    right_address: str = "192.0.2.2"
    left_address6: str = "2001:db8::1"
    right_address6: str = "2001:db8::2"


def pair(lab: Lab) -> Pair:
    left, right = lab.namespace("left"), lab.namespace("right")
    link((left, "eth0"), (right, "eth0"))
    net = Pair(lab, left, right)
    left.address("eth0", f"{net.left_address}/24", f"{net.left_address6}/64")
    right.address("eth0", f"{net.right_address}/24", f"{net.right_address6}/64")
    return net


class Relay:
    """tests/peers/udp_relay between two ends: loses, repeats, reorders and corrupts datagrams."""

    def __init__(self, where: Namespace, listen: str, target: str, *options: str):
        self.process: Process = where.start(
            *(tool("tests/peers/udp_relay"), "--listen", listen, "--target", target, *options),
            log="relay",
        )
        self.process.require(lambda: "ready" in self.process.output(), 5, "the relay is ready")

    def stop(self) -> dict[str, dict[str, int]]:
        """Ends it; counts per direction ("up" is towards the target)."""
        code = self.process.stop()
        last = self.process.output().splitlines()[-1]
        if code != 0 or not last.startswith("{"):
            raise LabError(f"the relay failed:\n{self.process.output()}")
        result: dict[str, dict[str, int]] = json.loads(last)
        return result


@dataclass
class Relayed:
    """Two machines that reach each other's tunnel port only through a relay of ours.

    ::

        left  eth0 192.0.2.1/24 ──── left0 192.0.2.254   middle   198.51.100.254 right0
                                     (udp_relay :51820 → 198.51.100.1:51820)       │
                                     right  eth0 198.51.100.1/24 ──────────────────┘
    """

    lab: Lab
    left: Namespace
    middle: Namespace
    right: Namespace
    left_address: str = "192.0.2.1"
    relay_address: str = "192.0.2.254"
    right_address: str = "198.51.100.1"
    port: int = 51820

    def relay(self, *options: str) -> Relay:
        return Relay(
            self.middle,
            f"{self.relay_address}:{self.port}",
            f"{self.right_address}:{self.port}",
            *options,
        )


def relayed(lab: Lab) -> Relayed:
    left, middle, right = (lab.namespace(name) for name in ("left", "middle", "right"))
    link((left, "eth0"), (middle, "left0"))
    link((right, "eth0"), (middle, "right0"))
    net = Relayed(lab, left, middle, right)
    left.address("eth0", f"{net.left_address}/24")
    middle.address("left0", f"{net.relay_address}/24")
    middle.address("right0", "198.51.100.254/24")
    right.address("eth0", f"{net.right_address}/24")
    return net


@dataclass
class Crossroads(Relayed):
    """`Relayed` with a router in the middle, and a stranger with many addresses.

    ::

        left  eth0 192.0.2.1/24 ──── left0 192.0.2.254   middle   198.51.100.254 right0
                                     (routes; udp_relay when asked)                │
                                     │      right  eth0 198.51.100.1/24 ───────────┘
        attacker ────────────────────┘ attacker0 203.0.113.254
          eth0 203.0.113.64/24 and 31 more
    """

    attacker: Namespace = field(kw_only=True)
    attackers: list[str] = field(kw_only=True)


def crossroads(lab: Lab) -> Crossroads:
    net = relayed(lab)
    attacker = lab.namespace("attacker")
    link((attacker, "eth0"), (net.middle, "attacker0"))
    addresses = [f"203.0.113.{64 + i}" for i in range(32)]
    attacker.address("eth0", *(f"{address}/24" for address in addresses))
    net.middle.address("attacker0", "203.0.113.254/24")
    net.middle.forward()
    net.left.default_via("192.0.2.254")
    net.right.default_via("198.51.100.254")
    attacker.default_via("203.0.113.254")
    return Crossroads(lab, net.left, net.middle, net.right, attacker=attacker, attackers=addresses)


@dataclass
class Home:
    """What adit is for: a NAS behind address translation, a server with a public address.

    ::

        client ── 198.51.100.10 ──┐
                                  ├── internet (routes, nothing else)
        server ── 203.0.113.9 ────┤
                                  │
        nas ── 192.168.50.2 ── home ── 100.64.7.2
            (lan 192.168.50.0/24)  (translates and lets only replies in)

    The home router behaves as carrier-grade NAT does: a port of its own choice for every flow, and
    only the very address and port that were contacted may answer. IPv6 beside it: client
    2001:db8:10::10, server 2001:db8:9::9, and none at home.
    """

    lab: Lab
    client: Namespace
    internet: Namespace
    server: Namespace
    home: Namespace
    nas: Namespace
    client_address: str = "198.51.100.10"
    client_address6: str = "2001:db8:10::10"
    server_address: str = "203.0.113.9"
    server_address6: str = "2001:db8:9::9"
    nas_address: str = "192.168.50.2"


HOME_NAT = """
table ip home {
  chain postrouting {
    type nat hook postrouting priority srcnat
    oifname "wan" masquerade fully-random
  }
  chain forward {
    type filter hook forward priority filter; policy drop
    ct state established,related accept
    iifname "lan" oifname "wan" accept
  }
}
"""


def home(lab: Lab) -> Home:
    net = Home(
        lab,
        client=lab.namespace("client"),
        internet=lab.namespace("internet"),
        server=lab.namespace("server"),
        home=lab.namespace("home"),
        nas=lab.namespace("nas"),
    )
    link((net.client, "eth0"), (net.internet, "to-client"))
    link((net.server, "eth0"), (net.internet, "to-server"))
    link((net.home, "wan"), (net.internet, "to-home"))
    link((net.nas, "eth0"), (net.home, "lan"))

    net.internet.forward()
    net.internet.address("to-client", "198.51.100.1/24", "2001:db8:10::1/64")
    net.internet.address("to-server", "203.0.113.1/24", "2001:db8:9::1/64")
    net.internet.address("to-home", "100.64.7.1/24")

    net.client.address("eth0", f"{net.client_address}/24", f"{net.client_address6}/64")
    net.client.default_via("198.51.100.1", "2001:db8:10::1")
    net.server.address("eth0", f"{net.server_address}/24", f"{net.server_address6}/64")
    net.server.default_via("203.0.113.1", "2001:db8:9::1")

    net.home.forward()
    net.home.address("wan", "100.64.7.2/24")
    net.home.default_via("100.64.7.1")
    net.home.address("lan", "192.168.50.1/24")
    net.home.nft(HOME_NAT)
    net.nas.address("eth0", f"{net.nas_address}/24")
    net.nas.default_via("192.168.50.1")
    return net
