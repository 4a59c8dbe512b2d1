#!/usr/bin/env python3
"""Every kind of mapping, with every kind of client: what arrives, who the service sees, the way
back, and the counters.

Topology: `Home` in lab/topology.py, and behind the NAS::

    nas  lan1 192.168.60.1/24  fd60::1/64 ── eth0 192.168.60.20  fd60::20  lanhost
    nas  br0  172.17.0.1/24    fd17::1/64 ── eth0 172.17.0.2     fd17::2   container
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass

from lab import (
    PORT,
    Adit,
    Home,
    Lab,
    Namespace,
    PeerSpec,
    TunnelSpec,
    expect,
    home,
    key_pair,
    link,
    main,
    ping,
    progress,
    scenario,
    wait_until,
)
from lab.source_echo import ask_from, source_echo

# As Docker does for its bridge.
CONTAINER_NAT = """
table ip docker {
  chain postrouting {
    type nat hook postrouting priority srcnat
    ip saddr 172.17.0.0/24 oifname != "br0" masquerade
  }
}
"""

ADDRESSES = {
    "nas": {4: "10.10.0.2", 6: "fd10::2"},
    "lanhost": {4: "192.168.60.20", 6: "fd60::20"},
    "container": {4: "172.17.0.2", 6: "fd17::2"},
}
BEHIND = "10.10.0.2/32, fd10::2/128, 192.168.60.0/24, fd60::/64, 172.17.0.0/24, fd17::/64"


@dataclass(frozen=True)
class Combination:
    protocol: str
    family: int
    source: str
    where: str
    ports: str
    first: int

    @property
    def last(self) -> int:
        return self.first if self.ports == "single" else self.first + 9

    @property
    def target_port(self) -> int:
        return self.first + {"single": 5000, "equal": 0, "shifted": 20000}[self.ports]

    def lines(self) -> list[str]:
        span = f"{self.first}" if self.ports == "single" else f"{self.first}-{self.last}"
        address = ADDRESSES[self.where][self.family]
        host = f"[{address}]" if self.family == 6 else address
        port = "" if self.ports == "equal" else f":{self.target_port}"
        return [
            f"Listen = {self.protocol}/{span}",
            f"To = {host}{port}",
            f"Source = {self.source}",
        ]

    def name(self) -> str:
        span = f"{self.first}" if self.ports == "single" else f"{self.first}-{self.last}"
        return f"{self.protocol}/{span}"


def combinations() -> list[Combination]:
    every = itertools.product(
        ("tcp", "udp"),
        (4, 6),
        ("preserve", "masquerade"),
        ADDRESSES,
        ("single", "equal", "shifted"),
    )
    return [Combination(*each, first=10000 + 20 * i) for i, each in enumerate(every)]


def behind_the_nas(net: Home) -> dict[str, Namespace]:
    """A host on the NAS's LAN and a container, both with the NAS as their gateway."""
    hosts = {"nas": net.nas}
    # An IPv6 router at home too: the tempting way for answers.
    net.home.address("lan", "2001:db8:50::1/64")
    net.nas.address("eth0", "2001:db8:50::2/64")
    net.nas.default_via("2001:db8:50::1")
    for name, device, v4, v6 in (
        ("lanhost", "lan1", "192.168.60.1", "fd60::1"),
        ("container", "veth1", "172.17.0.1", "fd17::1"),
    ):
        host = net.lab.namespace(name)
        link((net.nas, device), (host, "eth0"))
        if name == "container":
            net.nas.ip("link", "add", "br0", "type", "bridge")
            net.nas.ip("link", "set", device, "master", "br0")
            net.nas.ip("link", "set", "br0", "up")
            device = "br0"
        net.nas.address(device, f"{v4}/24", f"{v6}/64")
        host.address("eth0", f"{ADDRESSES[name][4]}/24", f"{ADDRESSES[name][6]}/64")
        host.default_via(v4, v6)
        hosts[name] = host
    net.nas.nft(CONTAINER_NAT)
    return hosts


def tunnel(net: Home, maps: list[list[str]]) -> tuple[Adit, Adit]:
    server_keys, nas_keys = key_pair(), key_pair()
    server = Adit(
        net.server,
        net.lab.device("srv"),
        TunnelSpec(
            server_keys,
            ["10.10.0.1/24", "fd10::1/64"],
            listen_port=PORT,
            peers=[PeerSpec(nas_keys.public, BEHIND, name="nas")],
            maps=maps,
        ),
    )
    endpoint = f"{net.server_address}:{PORT}"
    nas = Adit(
        net.nas,
        net.lab.device("nas"),
        TunnelSpec(
            nas_keys,
            ["10.10.0.2/24", "fd10::2/64"],
            extra=["Table = reply", "Expose = maps"],
            peers=[
                PeerSpec(server_keys.public, "0.0.0.0/0, ::/0", endpoint=endpoint, keepalive=25)
            ],
            # What is reached there does not depend on how the server hides the client.
            maps=[lines[:2] for lines in maps],
        ),
    )
    server.up()
    nas.up()
    return server, nas


@scenario(seconds=60)
def matrix(lab: Lab) -> None:
    """{tcp, udp} x {v4, v6} x {preserve, masquerade} x {NAS, LAN host, container} x {single,
    equal range, shifted range}: 72 mappings at once (cases 33, 34, 35, 39)."""
    net = home(lab)
    every = combinations()
    hosts = behind_the_nas(net)
    for name, host in hosts.items():
        # The last port of each range, and of the shifted ones also the port that a pool would take.
        source_echo(
            host,
            [
                f"{each.protocol}/{each.target_port + each.last - each.first}"
                for each in every
                if each.where == name
            ],
        )
    server, _nas = tunnel(net, [each.lines() for each in every])
    wait_until(lambda: server.peer().latest_handshake > 0, 20, "a session")
    ping(net.nas, "10.10.0.1")
    public = {4: net.server_address, 6: net.server_address6}
    seen = {
        "preserve": {4: net.client_address, 6: net.client_address6},
        "masquerade": {4: "10.10.0.1", 6: "fd10::1"},
    }
    targets = {f"{each.protocol}/{public[each.family]}/{each.last}": each for each in every}
    answers = ask_from(net.client, targets, seconds=10)
    wrong = [
        f"{target} ({each.where}, {each.source}, {each.ports}): the service saw {answers[target]}"
        for target, each in targets.items()
        if answers[target] != seen[each.source][each.family]
    ]
    expect(not wrong, "each service sees the right client, which hears it:\n" + "\n".join(wrong))
    progress(f"{len(answers)} mappings answer")
    usage = {entry["listen"]: entry["usage"] for entry in server.status()["maps"]}
    for each in every:
        count = usage[each.name()]
        expect(count["connections"] == 1, f"{each.name()}: one connection: {count}")
        for what in ("packets_in", "bytes_in", "packets_out", "bytes_out"):
            expect(count[what] > 0, f"{each.name()}: {what}: {count}")
    closed = ask_from(
        net.client,
        [f"{each.protocol}/{public[each.family]}/{each.last + 1}" for each in every],
        seconds=1,
    )
    opened = [target for target, answer in closed.items() if answer is not None]
    expect(not opened, f"the port after each mapping is closed: {opened}")


if __name__ == "__main__":
    sys.exit(main())
