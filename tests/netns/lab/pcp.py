"""A client of PCP and NAT-PMP that says exactly what it is told, also what no client should say.

As a program it sends one datagram and prints the answer: pcp.py SOURCE SERVER HEX [SECONDS]. It
prints the answer in hexadecimal, or nothing.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from dataclasses import dataclass

if __name__ != "__main__":
    from .network import Namespace

SERVER_PORT = 5351
TCP, UDP = 6, 17
SUCCESS, UNSUPP_VERSION, NOT_AUTHORIZED, MALFORMED_REQUEST, UNSUPP_OPCODE = 0, 1, 2, 3, 4
UNSUPP_OPTION, MALFORMED_OPTION = 5, 6
USER_EX_QUOTA, CANNOT_PROVIDE_EXTERNAL, ADDRESS_MISMATCH = 10, 11, 12
NONCE = bytes(range(12))


def field(address: str) -> bytes:
    parsed = ipaddress.ip_address(address)
    return (b"" if parsed.version == 6 else bytes(10) + b"\xff\xff") + parsed.packed


def option(code: int, data: bytes = b"") -> bytes:
    return struct.pack("!BxH", code, len(data)) + data + bytes(-len(data) % 4)


def third_party(address: str) -> bytes:
    return option(1, field(address))


def port_set(size: int, first_internal: int) -> bytes:
    return option(130, struct.pack("!HHB", size, first_internal, 0))


PREFER_FAILURE = option(2)


def header(opcode: int, lifetime: int, client: str) -> bytes:
    return struct.pack("!BBHI", 2, opcode, 0, lifetime) + field(client)


def map_request(
    client: str,
    internal: int,
    external: int,
    *,
    protocol: int = TCP,
    lifetime: int = 600,
    options: bytes = PREFER_FAILURE,
    nonce: bytes = NONCE,
) -> bytes:
    body = nonce + struct.pack("!B3xHH", protocol, internal, external) + field("0.0.0.0")
    return header(1, lifetime, client) + body + options


@dataclass(frozen=True)
class Answer:
    """`external` is of a MAP response alone."""

    version: int
    opcode: int
    result: int
    lifetime: int
    epoch: int
    external: int


def parse(packet: bytes) -> Answer:
    version, opcode, _, result, lifetime, epoch = struct.unpack("!BBBBII", packet[:12])
    external = struct.unpack("!H", packet[42:44])[0] if len(packet) >= 44 else 0
    return Answer(version, opcode & 0x7F, result, lifetime, epoch, external)


def exchange(
    where: Namespace, source: str, server: str, packet: bytes, seconds: float = 5
) -> bytes:
    """The answer to one datagram; empty where none comes."""
    done = where.run(sys.executable, __file__, source, server, packet.hex(), str(seconds))
    return bytes.fromhex(done.out.strip())


def ask(where: Namespace, source: str, server: str, packet: bytes) -> Answer:
    return parse(exchange(where, source, server, packet))


def main(source: str, server: str, packet: str, seconds: str = "5") -> None:
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.bind((source, 0))
        client.settimeout(float(seconds))
        client.sendto(bytes.fromhex(packet), (server, SERVER_PORT))
        try:
            print(client.recv(2048).hex())
        except (TimeoutError, ConnectionRefusedError):
            print()


if __name__ == "__main__":
    main(*sys.argv[1:])
