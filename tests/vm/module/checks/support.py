"""What the checks share: the register of them, waiting, pinging, moving bytes, watching the wire."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from adit_genl import Answer, namespace
from topology import PORT, Host, Topology, run_in

Check = Callable[[Topology], None]
SO_TIMESTAMPNS = 35


@dataclass(frozen=True)
class Entry:
    """A check. `last`: it runs after all others, since it concerns the whole machine."""

    name: str
    body: Check
    last: bool = False


CHECKS: list[Entry] = []


def test(function: Check) -> Check:
    """Registers a check, which gets a topology of its own."""
    CHECKS.append(Entry(function.__name__, function))
    return function


def test_last(function: Check) -> Check:
    CHECKS.append(Entry(function.__name__, function, last=True))
    return function


def full_run() -> bool:
    return os.environ.get("ADIT_TEST_FULL") == "1"


def ping(host: Host, address: str, *options: str, count: int = 2) -> bool:
    command = ("ping", "-c", str(count), "-i", "0.2", "-W", "5", *options, address)
    return run_in(host.name, *command, stdout=subprocess.DEVNULL).returncode == 0


def no_answer(host: Host, address: str, *options: str) -> bool:
    """Whether one ping stays without an answer for a second."""
    return not ping(host, address, "-w", "1", *options, count=1)


def until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def expect(answer: Answer, error: int, text: str = "") -> None:
    assert answer.error == error, f"expected {errno.errorcode.get(error, error)}: {answer}"
    assert text in answer.text, answer
    assert error == 0 or answer.text, f"no text: {answer}"


# 6.1 does not pass on the text of a dump that cannot start.
LOSES_TEXT_OF_DUMPS = os.uname().release.startswith("6.1.")


def expect_of_dump(answer: Answer, error: int) -> None:
    assert answer.error == error, answer
    assert answer.text or LOSES_TEXT_OF_DUMPS, f"no text: {answer}"


def write(path: str, text: str, netns: str | None = None) -> None:
    """Into a file of /proc or /sys, as a process of the namespace."""
    with namespace(netns), open(path, "w") as file:
        file.write(text)


def background(host: str, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/sbin/ip", "netns", "exec", host, *command],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def udp_socket(netns: str, v6: bool = False) -> socket.socket:
    with namespace(netns):
        result = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
    result.settimeout(10)
    return result


def transfer(
    net: Topology, sender: Host, data: bytes, v6: bool = False, address: str = "", streams: int = 1
) -> str:
    """Sends the data over each of some TCP connections at once to the other host; the hash of what
    arrived, which is the same for all, or an error."""
    receiver = net.other(sender)
    target = address or receiver.inner(v6)
    with namespace(receiver.name):
        listener = socket.create_server(
            (target, 7000), family=socket.AF_INET6 if v6 else socket.AF_INET, backlog=streams
        )
    listener.settimeout(60)
    children = []
    for _ in range(streams):
        with namespace(sender.name):
            connection = socket.create_connection((target, 7000), timeout=60)
        child = os.fork()
        if child == 0:
            listener.close()
            connection.sendall(data)
            os._exit(0)
        connection.close()
        children.append(child)
    digests = {receive_all(listener) for _ in range(streams)}
    for child in children:
        os.waitpid(child, 0)
    listener.close()
    assert len(digests) == 1, digests
    return digests.pop()


def receive_all(listener: socket.socket) -> str:
    accepted, _ = listener.accept()
    accepted.settimeout(60)
    digest = hashlib.sha256()
    while part := accepted.recv(1 << 18):
        digest.update(part)
    accepted.close()
    return digest.hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def send_raw(
    net: Topology,
    datagram: bytes,
    source: str | None = None,
    segment: int = 0,
    target: tuple[str, int] | None = None,
) -> int:
    """From A's wire to B's socket; with `segment`, as one super-packet of segments of that size."""
    address, port = target or (net.b.wire(), PORT)
    v6 = ":" in address
    with udp_socket("mod-a", v6) as sender:
        sender.bind((source or net.a.wire(v6), 0))
        if segment:
            sender.setsockopt(socket.IPPROTO_UDP, 103, segment)
        return sender.sendto(datagram, (address, port))


@dataclass(frozen=True)
class Outer:
    """An outer packet as seen on the wire: a super-packet counts as one."""

    source: str
    v6: bool
    tos: int
    payload: bytes
    at: float  # of time.time(), when the kernel got it


class Wire:
    """Sees what arrives on an interface of a namespace: UDP to the tunnel's port, unfragmented."""

    def __init__(self, netns: str, interface: str = "wire", port: int = PORT):
        with namespace(netns):
            # ETH_P_ALL would show what leaves as well; what leaves is left out below.
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.bind((interface, 3))
        self.socket.setblocking(False)
        self.port = port
        self.seen: list[Outer] = []

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def drain(self) -> list[Outer]:
        """What has arrived since the last look."""
        found = []
        while True:
            try:
                packet, ancillary, _, (_, protocol, kind, *_rest) = self.socket.recvmsg(
                    1 << 17, 256)
            except BlockingIOError:
                return found
            if kind == socket.PACKET_OUTGOING:
                continue
            stamp = next(data for _, number, data in ancillary if number == SO_TIMESTAMPNS)
            seconds, nanoseconds = struct.unpack("qq", stamp)
            outer = parse_outer(packet, protocol, self.port, seconds + nanoseconds / 1e9)
            if outer:
                found.append(outer)


def parse_outer(packet: bytes, protocol: int, port: int, at: float) -> Outer | None:
    if protocol == 0x0800:
        start, v6, tos = 4 * (packet[0] & 15), False, packet[1]
        source, kind = socket.inet_ntoa(packet[12:16]), packet[9]
    elif protocol == 0x86DD:
        start, v6, tos = 40, True, (packet[0] & 15) << 4 | packet[1] >> 4
        source, kind = socket.inet_ntop(socket.AF_INET6, packet[8:24]), packet[6]
    else:
        return None
    if kind != socket.IPPROTO_UDP or len(packet) < start + 8:
        return None
    if struct.unpack_from("!H", packet, start + 2)[0] != port:
        return None
    return Outer(source, v6, tos, packet[start + 8 :], at)
