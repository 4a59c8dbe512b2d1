#!/usr/bin/env python3
"""Every allocation of a request to adit.ko fails once: the first, then the second, to the last.

fail_allocations.py [NAME...]. Needs root, the module, and a kernel with FAULT_INJECTION and
FAILSLAB (tools/debug-kernel run uml). A request may fail or succeed then, but what follows must be
as before or as after it, and the kernel must have nothing to complain of: that, and leaks, are for
the caller of this program to see in the kernel's log.

Source: the kernel's Documentation/fault-injection/fault-injection.rst, "/proc/<pid>/fail-nth".
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "module"))

from adit_genl import C, Genl, attribute, device, key, nest, peer, peer_id, random_key  # noqa: E402
from adit_genl import interface_index, u8, u16  # noqa: E402

FAILSLAB = Path("/sys/kernel/debug/failslab")
# More than any request allocates: an endless loop is a failure of this program.
MOST = 2000
RTM_NEWLINK, RTM_DELLINK = 16, 17
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 1, 4, 0x200, 0x400
IFLA_IFNAME, IFLA_LINKINFO, IFLA_INFO_KIND = 3, 18, 1
LINK = "fail0"
PUBLIC = random_key()

Request = Callable[[], bool]


class Failing:
    """The Nth allocation of this thread fails, from `armed` to its end."""

    def __init__(self) -> None:
        self.descriptor = os.open("/proc/thread-self/fail-nth", os.O_RDWR)

    def arm(self, number: int) -> None:
        os.pwrite(self.descriptor, b"%d" % number, 0)

    def disarm(self) -> bool:
        """Whether an allocation has failed."""
        left = int(os.pread(self.descriptor, 16, 0).split(b"\0")[0] or b"0")
        os.pwrite(self.descriptor, b"0", 0)
        return left == 0


class Rtnetlink:
    """Makes and removes the link with one message each."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.socket.bind((0, 0))
        self.socket.settimeout(30)

    def request(self, kind: int, flags: int, *parts: bytes) -> bool:
        body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + b"".join(parts)
        flags |= NLM_F_REQUEST | NLM_F_ACK
        try:
            self.socket.send(struct.pack("IHHII", len(body) + 16, kind, flags, 1, 0) + body)
            answer = self.socket.recv(1 << 16)
        except OSError:
            return False
        return struct.unpack_from("i", answer, 16)[0] == 0

    def add(self) -> bool:
        info = nest(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, b"adit"))
        name = attribute(IFLA_IFNAME, LINK.encode() + b"\0")
        return self.request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, name, info)

    def delete(self) -> bool:
        return self.request(RTM_DELLINK, 0, attribute(IFLA_IFNAME, LINK.encode() + b"\0"))


def exists() -> bool:
    return Path(f"/sys/class/net/{LINK}").exists()


@contextmanager
def failslab() -> Iterator[None]:
    """Allocations that may wait fail as well; the places that fail are not all told to the log."""
    if not FAILSLAB.is_dir():
        raise SystemExit("this kernel has no FAILSLAB: tools/debug-kernel run uml")
    (FAILSLAB / "ignore-gfp-wait").write_text("N")
    (FAILSLAB / "verbose").write_text("0")
    yield


def step(failing: Failing, number: int, request: Request) -> tuple[bool, bool]:
    """Whether the request succeeded, and whether an allocation failed in it."""
    failing.arm(number)
    succeeded = request()
    return succeeded, failing.disarm()


def rounds(name: str, failing: Failing, request: Request, undo: Callable[[bool], None]) -> None:
    """Repeats a request until nothing is left in it that could fail."""
    refused = 0
    for number in range(1, MOST):
        succeeded, failed = step(failing, number, request)
        undo(succeeded)
        if not failed:
            assert succeeded, f"{name}: refused without a reason, round {number}"
            assert number > 1, f"{name}: nothing was allocated, so nothing was tested"
            print(f"PASS {name}: {number - 1} allocations failed, {refused} refusals", flush=True)
            return
        refused += not succeeded
    raise AssertionError(f"{name}: no end after {MOST} allocations")


class Requests:
    """The requests, and how each is undone so that it can come again."""

    def __init__(self) -> None:
        self.failing = Failing()
        self.links = Rtnetlink()
        self.genl = Genl()
        self.index = 0
        # The module takes no id, index or key a second time.
        self.numbers = itertools.count(1)
        self.id = 0

    def send(self, command: str, *parts: bytes) -> bool:
        """False as well when the answer was lost with its allocation."""
        try:
            answer = self.genl.request(C[f"ADIT_CMD_{command}"], device(self.index), *parts)
        except OSError:
            # A later answer must not be taken for this one. The claim ends with the socket.
            self.genl.close()
            self.genl = Genl()
            self.sure("SET_DEVICE", self.settings(0))
            return False
        return answer.error == 0

    def sure(self, command: str, *parts: bytes) -> None:
        assert self.send(command, *parts), command

    def make(self) -> None:
        assert exists() or self.links.add()
        self.index = interface_index(LINK)

    def remove(self) -> None:
        if exists():
            assert self.links.delete()
        assert not exists()

    def set_up(self) -> None:
        self.make()
        self.sure("SET_DEVICE", self.settings(0))
        subprocess.run(["/sbin/ip", "link", "set", LINK, "up"], check=True)

    @staticmethod
    def settings(port: int) -> bytes:
        return nest(
            C["ADIT_A_DEVICE"],
            u8(C["ADIT_A_DEVICE_CLAIM"], 1),
            u16(C["ADIT_A_DEVICE_LISTEN_PORT"], port),
            attribute(C["ADIT_A_DEVICE_PUBLIC_KEY"], PUBLIC),
            attribute(C["ADIT_A_DEVICE_MAC1_KEY"], PUBLIC),
        )

    def peer(self) -> bytes:
        """Of a new peer, with an id of its own."""
        self.id = next(self.numbers)
        prefixes = [f"10.77.{number}.0/24" for number in range(8)] + ["fd77::/64", "0.0.0.0/0"]
        return peer(self.id, PUBLIC, prefixes, ("127.0.0.1", 9), keepalive=25)

    def link(self) -> None:
        rounds("link", self.failing, self.links.add, lambda _: self.remove())

    def unlink(self) -> None:
        self.make()
        rounds("unlink", self.failing, self.links.delete, lambda _: self.make())

    def device(self) -> None:
        self.set_up()
        ports = iter(range(20000, 20000 + MOST))

        def request() -> bool:
            return self.send("SET_DEVICE", self.settings(next(ports)))

        rounds("device", self.failing, request, lambda _: None)

    def key(self, suite: int) -> bytes:
        number = next(self.numbers)
        send, receive = random_key(), random_key()
        return key(self.id, PUBLIC, number, number, send, receive, suite=suite)

    def new_peer(self) -> None:
        self.set_up()
        wish = self.peer()

        def undo(_: bool) -> None:
            nonlocal wish
            self.send("DEL_PEER", peer_id(self.id))
            wish = self.peer()

        rounds("peer", self.failing, lambda: self.send("SET_PEER", wish), undo)

    def new_key(self) -> None:
        self.set_up()
        self.sure("SET_PEER", self.peer())
        for suite in range(3):
            wish = self.key(suite)

            def undo(_: bool, suite: int = suite) -> None:
                nonlocal wish
                wish = self.key(suite)

            name = f"key of suite {suite}"
            rounds(name, self.failing, lambda: self.send("NEW_KEY", wish), undo)

    def traffic(self) -> None:
        """A datagram may be lost, and is counted; the next one passes."""
        self.set_up()
        self.sure("SET_PEER", self.peer())
        self.sure("NEW_KEY", self.key(0))
        for command in ("address add 10.76.0.1/24", "route add 10.77.0.0/16"):
            subprocess.run(["/sbin/ip", *command.split(), "dev", LINK], check=True)
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.connect(("10.77.0.1", 9))

        def request() -> bool:
            try:
                sender.send(bytes(1200))
            except OSError:
                return False
            return True

        rounds("traffic", self.failing, request, lambda _: None)


NAMES = ("link", "unlink", "device", "new_peer", "traffic", "new_key")


def main() -> int:
    with failslab():
        requests = Requests()
        for name in sys.argv[1:] or NAMES:
            getattr(requests, name)()
            requests.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
