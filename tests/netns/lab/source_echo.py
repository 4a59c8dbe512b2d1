"""Services that answer each client with the address that they saw of it, and the client for them.

As a program: `source_echo.py serve PROTOCOL/PORT...` listens on every address of both families;
`source_echo.py ask SECONDS PROTOCOL/ADDRESS/PORT...` asks all of them at once and prints one JSON
object, from each target to its answer or null.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import sys
import time
from collections.abc import Iterable

if __name__ != "__main__":
    from .network import Namespace
    from .process import Process

SIZE = 2048
AGAIN_SECONDS = 0.5


def open_socket(protocol: str, family: socket.AddressFamily) -> socket.socket:
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    made = socket.socket(family, kind)
    made.setblocking(False)
    return made


def serve(services: Iterable[str]) -> None:
    selector = selectors.DefaultSelector()
    for service in services:
        protocol, port = service.split("/")
        for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            listener = open_socket(protocol, family)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, int(port)))
            if protocol == "tcp":
                listener.listen(128)
            selector.register(listener, selectors.EVENT_READ, protocol)
    print("ready", flush=True)
    while True:
        for key, _events in selector.select():
            assert isinstance(key.fileobj, socket.socket)
            if key.data == "tcp":
                connection, client = key.fileobj.accept()
                with connection:
                    connection.sendall(client[0].encode())
            else:
                _data, client = key.fileobj.recvfrom(SIZE)
                with contextlib.suppress(OSError):
                    key.fileobj.sendto(client[0].encode(), client)


def ask(targets: list[str], seconds: float) -> dict[str, str | None]:
    """UDP questions are repeated, as any client does."""
    selector = selectors.DefaultSelector()
    answers: dict[str, str | None] = dict.fromkeys(targets)
    datagrams = []
    for target in targets:
        protocol, address, port = target.split("/")
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        asking = open_socket(protocol, family)
        asking.connect_ex((address, int(port)))
        if protocol == "udp":
            datagrams.append((target, asking))
        selector.register(asking, selectors.EVENT_READ, target)
    deadline = time.monotonic() + seconds
    next_time = 0.0
    while None in answers.values() and time.monotonic() < deadline:
        if time.monotonic() >= next_time:
            next_time = time.monotonic() + AGAIN_SECONDS
            for target, asking in datagrams:
                if answers[target] is None:
                    with contextlib.suppress(OSError):
                        asking.send(b"who am I?")
        for key, _events in selector.select(0.1):
            assert isinstance(key.fileobj, socket.socket)
            with contextlib.suppress(OSError):
                answers[key.data] = key.fileobj.recv(SIZE).decode() or answers[key.data]
            if key.data.startswith("tcp"):
                selector.unregister(key.fileobj)
    return answers


def source_echo(where: Namespace, services: Iterable[str]) -> Process:
    """Starts services such as "tcp/80"; "udp/7000"."""
    process = where.start(sys.executable, __file__, "serve", *services, log="source-echo")
    process.require(lambda: "ready" in process.output(), 10, "the services listen")
    return process


def ask_from(where: Namespace, targets: Iterable[str], seconds: float = 5) -> dict[str, str | None]:
    """What targets such as "tcp/203.0.113.9/443" answer to `where`."""
    wanted = list(targets)
    done = where.run(sys.executable, __file__, "ask", str(seconds), *wanted, timeout=seconds + 10)
    answers: dict[str, str | None] = json.loads(done.out)
    return answers


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2:])
    else:
        print(json.dumps(ask(sys.argv[3:], float(sys.argv[2]))))
