"""A UDP service that answers what it gets, in one of the ways in which services are written.

As a program: udp_service.py ADDRESS PORT WAY, where WAY is `plain` (recvfrom and sendto), `connect`
(a socket of its own, connected, for the first client, as netcat does) or `pktinfo` (the answer's
source is the address that was asked). Each client is printed on one line.
"""

from __future__ import annotations

import contextlib
import socket
import sys

if __name__ != "__main__":
    from .network import Namespace
    from .process import Process

SIZE = 2048


def bound(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    service = socket.socket(family, socket.SOCK_DGRAM)
    service.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    service.bind((address, port))
    return service


def serve(address: str, port: int, way: str) -> None:
    service = bound(address, port)
    if way == "pktinfo":
        if service.family == socket.AF_INET6:
            service.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            service.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
    print("ready", flush=True)
    while True:
        data, control, _flags, client = service.recvmsg(SIZE, SIZE)
        print(client[0], client[1], flush=True)
        if way == "connect":
            with bound(address, port) as own:
                own.connect(client)
                own.send(data)
                own.settimeout(1)
                try:
                    while True:
                        own.send(own.recv(SIZE))
                except TimeoutError:
                    continue
        # What recvmsg() delivers as the destination, sendmsg() takes as the source (ip(7)); for
        # IPv4 the field ipi_spec_dst is filled with it already. A route can be missing for a moment.
        with contextlib.suppress(OSError):
            service.sendmsg([data], control if way == "pktinfo" else [], 0, client)


def udp_service(where: Namespace, address: str, port: int, way: str = "plain") -> Process:
    """Starts one; its log has a line `ADDRESS PORT` for each datagram or connection."""
    process = where.start(
        sys.executable, __file__, address, str(port), way, log=f"udp-{way}-{port}"
    )
    process.require(lambda: "ready" in process.output(), 10, f"the UDP service at {port}")
    return process


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
