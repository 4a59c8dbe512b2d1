"""Three hosts of the guest, and the cables between them.

    bench-client ── door ── bench-server ── wire ── bench-nas
    10.7.0.2       10.7.0.1            10.8.0.1     10.8.0.2
                                       10.9.0.1 ═ tunnel ═ 10.9.0.2

The door stands for the way to the Internet; what is compared lies between the server and the NAS.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

CLIENT, SERVER, NAS = "bench-client", "bench-server", "bench-nas"
HOSTS = (CLIENT, SERVER, NAS)
WIRE = {SERVER: "10.8.0.1", NAS: "10.8.0.2"}
INNER = {SERVER: "10.9.0.1", NAS: "10.9.0.2"}
DOOR = {CLIENT: "10.7.0.2", SERVER: "10.7.0.1"}
# How a link that is like a network card is made of a veth pair: nothing longer than the MTU
# crosses it, and the receiver joins what arrives. A veth device joins only while its peer does not
# segment at all.
NIC_LIKE = ("tx-udp-segmentation off", "tso off", "gro on")


class GuestError(Exception):
    """A command in the guest failed."""


def run(*argv: str, seconds: float = 600) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode != 0:
        raise GuestError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def within(host: str) -> list[str]:
    return ["ip", "netns", "exec", host]


def ip(host: str, command: str) -> None:
    run("ip", "-n", host, *command.split())


def _cable(name: str, ends: dict[str, str]) -> None:
    one, two = ends
    run("ip", "link", "add", name, "netns", one, "type", "veth", "peer", name, "netns", two)
    for host, address in ends.items():
        ip(host, f"address add {address}/24 dev {name}")
        ip(host, f"link set {name} up")


@contextmanager
def hosts(nic_like: bool) -> Iterator[None]:
    """The hosts exist within; links that are made in them go with them."""
    try:
        for host in HOSTS:
            run("ip", "netns", "add", host)
            ip(host, "link set lo up")
        run(*within(SERVER), "sysctl", "-qw", "net.ipv4.ip_forward=1")
        _cable("door", DOOR)
        _cable("wire", WIRE)
        if nic_like:
            for host in WIRE:
                for setting in NIC_LIKE:
                    run(*within(host), "ethtool", "-K", "wire", *setting.split())
        ip(CLIENT, f"route add default via {DOOR[SERVER]}")
        yield
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "delete", host], capture_output=True, check=False)
