"""The generic netlink family of adit.ko (kmod/uapi/adit.h), driven directly: no libadit between."""

from __future__ import annotations

import errno
import os
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

NETLINK_GENERIC = 16
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS = 1, 2
SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 270, 1, 10, 11
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME, CTRL_ATTR_MCAST_GROUPS = 1, 2, 7
NESTED = 0x8000

Tree = Union[bytes, int, list]


def _header_names() -> dict[str, int]:
    """The constants of uapi/adit.h, so that this file cannot disagree with it."""
    places = (Path(__file__).with_name("adit.h"), Path(__file__).parents[3] / "kmod/uapi/adit.h")
    text = next(place for place in places if place.exists()).read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    names: dict[str, int] = {}
    for body in re.findall(r"enum \w+ \{(.*?)\}", text, flags=re.DOTALL):
        value = -1
        for item in filter(None, (part.strip() for part in body.split(","))):
            name, _, given = (part.strip() for part in item.partition("="))
            if given:
                value = eval(given.replace("U", ""), {}, dict(names))  # noqa: S307
            else:
                value += 1
            names[name] = value
    return names


C = _header_names()


def attribute(kind: int, value: bytes) -> bytes:
    pad = -len(value) % 4
    return struct.pack("HH", len(value) + 4, kind) + value + bytes(pad)


def nest(kind: int, *parts: bytes) -> bytes:
    return attribute(kind | NESTED, b"".join(parts))


def u8(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("B", value))


def u16(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("H", value))


def u32(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("I", value))


def u64(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("Q", value))


def attributes(data: bytes) -> dict[int, bytes]:
    """By type; of several with the same type, the last one."""
    return dict(attribute_list(data))


def attribute_list(data: bytes) -> list[tuple[int, bytes]]:
    result = []
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        assert length >= 4, data
        result.append((kind & 0x3FFF, data[4:length]))
        data = data[(length + 3) & ~3 :]
    return result


@contextmanager
def namespace(name: str | None) -> Iterator[None]:
    """Sockets that are opened within belong to the namespace."""
    if name is None:
        yield
        return
    with open("/proc/self/ns/net") as before:
        _enter(f"/run/netns/{name}")
        try:
            yield
        finally:
            _setns(before.fileno())


def _enter(path: str) -> None:
    with open(path) as file:
        _setns(file.fileno())


def _setns(fd: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@dataclass
class Answer:
    """What a command gave: an error (positive, 0 is none), its text, and messages."""

    error: int = 0
    text: str = ""
    offset: int | None = None
    messages: list[dict[int, bytes]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{errno.errorcode.get(self.error, self.error)} ({self.text!r} at {self.offset})"


class Genl:
    """A socket of the family, which can claim a device."""

    def __init__(self, netns: str | None = None):
        with namespace(netns):
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.socket.bind((0, 0))
        self.socket.settimeout(30)
        # SO_RCVBUFFORCE: room for the events of many peers. Not for the unprivileged.
        with suppress(PermissionError):
            self.socket.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
        self.port = self.socket.getsockname()[0]
        for option in (NETLINK_EXT_ACK, NETLINK_CAP_ACK):
            self.socket.setsockopt(SOL_NETLINK, option, 1)
        self.sequence = 0
        self.sent = b""
        self.events: list[tuple[int, dict[int, bytes]]] = []
        self.family = GENL_ID_CTRL
        found = self._family()
        self.family = struct.unpack("H", found[CTRL_ATTR_FAMILY_ID])[0]
        group = attributes(attribute_list(found[CTRL_ATTR_MCAST_GROUPS])[0][1])
        self.group = struct.unpack("I", group[2])[0]

    def close(self) -> None:
        self.socket.close()

    def _family(self) -> dict[int, bytes]:
        answer = self.request(
            CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME, b"adit\0"), version=2
        )
        assert answer.error == 0, answer
        return answer.messages[0]

    def join(self) -> None:
        self.socket.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, self.group)

    def send(self, command: int, payload: bytes, flags: int, version: int = 1) -> None:
        self.sequence += 1
        body = struct.pack("BBH", command, version, 0) + payload
        header = struct.pack(
            "IHHII", len(body) + 16, self.family, NLM_F_REQUEST | flags, self.sequence, self.port
        )
        self.sent = header + body
        self.socket.send(self.sent)

    def request(
        self, command: int, *payload: bytes, dump: bool = False, version: int = 1
    ) -> Answer:
        flags = NLM_F_DUMP if dump else NLM_F_ACK
        self.send(command, b"".join(payload), flags, version)
        answer = Answer()
        while True:
            for kind, flags, sequence, body in self._receive():
                if sequence != self.sequence:
                    self._keep(body)
                elif kind in (NLMSG_ERROR, NLMSG_DONE):
                    self._finish(answer, kind, flags, body)
                    return answer
                else:
                    answer.messages.append(attributes(body[4:]))

    def _receive(self) -> list[tuple[int, int, int, bytes]]:
        data = self.socket.recv(1 << 20)
        result = []
        while len(data) >= 16:
            length, kind, flags, sequence, _ = struct.unpack_from("IHHII", data)
            result.append((kind, flags, sequence, data[16:length]))
            data = data[(length + 3) & ~3 :]
        return result

    def _keep(self, body: bytes) -> None:
        self.events.append((body[0], attributes(body[4:])))

    @staticmethod
    def _finish(answer: Answer, kind: int, flags: int, body: bytes) -> None:
        answer.error = -struct.unpack_from("i", body)[0]
        tail = b""
        if flags & NLM_F_ACK_TLVS:
            tail = body[4:] if kind == NLMSG_DONE else body[20:]
        for number, value in attribute_list(tail):
            if number == NLMSGERR_ATTR_MSG:
                answer.text = value.rstrip(b"\0").decode()
            elif number == NLMSGERR_ATTR_OFFS:
                answer.offset = struct.unpack("I", value)[0]

    def event(self, command: int, timeout: float = 10) -> dict[int, bytes] | None:
        """The next event of this kind; others are forgotten. None after the timeout."""
        import time

        end = time.monotonic() + timeout
        while True:
            while self.events:
                got, content = self.events.pop(0)
                if got == command:
                    return content
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.socket.settimeout(left)
            try:
                for _, _, _, body in self._receive():
                    self._keep(body)
            except socket.timeout:
                return None
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
            finally:
                self.socket.settimeout(30)


def device(index: int) -> bytes:
    return u32(C["ADIT_A_IFINDEX"], index)


def endpoint(kind: int, address: str, port: int | None, ifindex: int = 0) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    parts = [attribute(C["ADIT_A_ENDPOINT_ADDRESS"], socket.inet_pton(family, address))]
    if port is not None:
        parts.append(u16(C["ADIT_A_ENDPOINT_PORT"], port))
    if ifindex:
        parts.append(u32(C["ADIT_A_ENDPOINT_IFINDEX"], ifindex))
    return nest(kind, *parts)


def allowed_ip(prefix: str) -> bytes:
    address, _, length = prefix.partition("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return nest(
        0,
        attribute(C["ADIT_A_ALLOWED_IP_ADDRESS"], socket.inet_pton(family, address)),
        u8(C["ADIT_A_ALLOWED_IP_LENGTH"], int(length)),
    )


def peer_id(number: int) -> bytes:
    return nest(C["ADIT_A_PEER"], u64(C["ADIT_A_PEER_ID"], number))


def peer(
    number: int,
    key: bytes | None = None,
    allowed: list[str] | None = None,
    at: tuple[str, int] | None = None,
    keepalive: int | None = None,
    flags: int | None = None,
) -> bytes:
    parts = [u64(C["ADIT_A_PEER_ID"], number)]
    if key is not None:
        parts.append(attribute(C["ADIT_A_PEER_PUBLIC_KEY"], key))
    if flags is not None:
        parts.append(u32(C["ADIT_A_PEER_FLAGS"], flags))
    if at is not None:
        parts.append(endpoint(C["ADIT_A_PEER_ENDPOINT"], *at))
    if keepalive is not None:
        parts.append(u16(C["ADIT_A_PEER_PERSISTENT_KEEPALIVE"], keepalive))
    if allowed is not None:
        parts.append(nest(C["ADIT_A_PEER_ALLOWED_IPS"], *map(allowed_ip, allowed)))
    return nest(C["ADIT_A_PEER"], *parts)


KEY_DEFAULTS = {
    "REKEY_AFTER": 120 * 10**9,
    "REJECT_AFTER": 180 * 10**9,
    "REKEY_AFTER_MESSAGES": 1 << 28,
    "REJECT_AFTER_MESSAGES": 1 << 29,
}


def key_parts(
    number: int,
    public: bytes,
    local: int,
    remote: int,
    send: bytes,
    receive: bytes,
    slot: int = 0,
    suite: int = 0,
    **limits: int,
) -> dict[str, bytes]:
    values = KEY_DEFAULTS | limits
    parts = {
        "PEER_ID": u64(C["ADIT_A_KEY_PEER_ID"], number),
        "PEER_PUBLIC_KEY": attribute(C["ADIT_A_KEY_PEER_PUBLIC_KEY"], public),
        "SLOT": u8(C["ADIT_A_KEY_SLOT"], slot),
        "SUITE": u8(C["ADIT_A_KEY_SUITE"], suite),
        "LOCAL_INDEX": u32(C["ADIT_A_KEY_LOCAL_INDEX"], local),
        "REMOTE_INDEX": u32(C["ADIT_A_KEY_REMOTE_INDEX"], remote),
        "SEND": attribute(C["ADIT_A_KEY_SEND"], send),
        "RECEIVE": attribute(C["ADIT_A_KEY_RECEIVE"], receive),
    }
    for name, value in values.items():
        parts[name] = u64(C[f"ADIT_A_KEY_{name}"], value)
    return parts


def key(*arguments: object, **named: object) -> bytes:
    return nest(C["ADIT_A_KEY"], *key_parts(*arguments, **named).values())  # type: ignore[arg-type]


def interface_index(name: str, netns: str | None = None) -> int:
    with namespace(netns):
        return socket.if_nametoindex(name)


def random_key() -> bytes:
    return os.urandom(32)
