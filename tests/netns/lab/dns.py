"""A name server for one namespace: answers A and AAAA from a file that a test may rewrite.

The zone file has lines `NAME ADDRESS...`; a name that is not in it does not exist. As a program:
dns.py ADDRESS ZONE_FILE. Every question is printed on one line.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from pathlib import Path

if __name__ != "__main__":
    from .network import Namespace
    from .process import listening

TYPE_A, TYPE_AAAA = 1, 28
NO_SUCH_NAME = 3


def parse_question(packet: bytes) -> tuple[str, int, bytes]:
    """Name, type and the raw question of a query (RFC 1035 section 4.1.2)."""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode("ascii"))
        at += 1 + packet[at]
    (kind,) = struct.unpack("!H", packet[at + 1 : at + 3])
    return ".".join(labels).lower(), kind, packet[12 : at + 5]


def addresses_of(zone: Path, name: str) -> list[str] | None:
    for line in zone.read_text().splitlines():
        words = line.split()
        if words and words[0] == name:
            return words[1:]
    return None


def answer(packet: bytes, zone: Path) -> bytes:
    name, kind, question = parse_question(packet)
    addresses = addresses_of(zone, name)
    print(name, kind, addresses, flush=True)
    version = {TYPE_A: 4, TYPE_AAAA: 6}.get(kind, 0)
    records = b""
    parsed = [ipaddress.ip_address(text) for text in addresses or []]
    chosen = [address for address in parsed if address.version == version]
    for address in chosen:
        header = struct.pack("!HHHIH", 0xC00C, kind, 1, 1, len(address.packed))
        records += header + address.packed
    code = NO_SUCH_NAME if addresses is None else 0
    header = packet[:2] + struct.pack("!HHHHH", 0x8580 | code, 1, len(chosen), 0, 0)
    return header + question + records


def serve(address: str, zone: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        while True:
            packet, client = server.recvfrom(4096)
            if len(packet) > 16:
                server.sendto(answer(packet, zone), client)


class NameServer:
    """Serves `where` on its loopback address and makes the resolver of that namespace use it."""

    def __init__(self, where: Namespace):
        self.where = where
        self.zone = where.dir / "zone"
        self.zone.write_text("")
        folder = Path("/etc/netns") / where.full_name
        folder.mkdir(parents=True)
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:2\n")
        self.start()

    def start(self) -> None:
        self.process = self.where.start(
            sys.executable, __file__, "127.0.0.1", str(self.zone), log="dns"
        )
        pid = self.process.pid
        self.process.require(lambda: listening(pid, "udp", 53), 20, "the name server is ready")

    def set(self, name: str, *addresses: str) -> None:
        lines = [line for line in self.zone.read_text().splitlines() if line.split()[0] != name]
        new = self.zone.with_suffix(".new")
        new.write_text("\n".join([*lines, " ".join((name, *addresses)), ""]))
        new.replace(self.zone)

    def questions(self, name: str) -> int:
        return sum(line.startswith(f"{name} ") for line in self.process.output().splitlines())


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
