"""Two hosts of one machine, joined by a wire, with an adit link each and keys that are set by hand.

    mod-a                                             mod-b
    adit0 10.9.0.1/24, fd09::1/64                     adit0 10.9.0.2/24, fd09::2/64
    wire  10.8.0.1/24, fd08::1/64   ── veth ──        wire  10.8.0.2/24, fd08::2/64
"""

from __future__ import annotations

import os
import struct
import subprocess
from dataclasses import dataclass

from adit_genl import (
    C,
    Genl,
    attribute,
    attributes,
    device,
    interface_index,
    key,
    nest,
    peer,
    peer_id,
    random_key,
    u8,
    u16,
)

PORT = 51820


def ip(command: str) -> None:
    subprocess.run(["/sbin/ip", *command.split()], check=True)


def ip_batch(*commands: str, netns: str | None = None) -> None:
    """All by one program: starting one takes long under emulation."""
    where = ["-n", netns] if netns else []
    subprocess.run(
        ["/sbin/ip", *where, "-batch", "-"], input="\n".join(commands), text=True, check=True
    )


def run_in(netns: str, *command: str, **named: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/sbin/ip", "netns", "exec", netns, *command], text=True, **named  # type: ignore[call-overload]
    )


@dataclass
class Host:
    name: str
    number: int
    genl: Genl | None = None
    index: int = 0
    public: bytes = b""
    peer_number: int = 1

    def wire(self, v6: bool = False) -> str:
        return f"fd08::{self.number}" if v6 else f"10.8.0.{self.number}"

    def inner(self, v6: bool = False) -> str:
        return f"fd09::{self.number}" if v6 else f"10.9.0.{self.number}"

    def request(self, command: str, *payload: bytes, **named: object):
        assert self.genl is not None
        return self.genl.request(C[f"ADIT_CMD_{command}"], device(self.index), *payload, **named)

    def counters(self) -> dict[str, int]:
        return self._numbers("ADIT_A_DEVICE_COUNTERS", "ADIT_COUNTER_")

    def drops(self) -> dict[str, int]:
        return self._numbers("ADIT_A_DEVICE_DROPS", "ADIT_DROP_")

    def device(self) -> dict[int, bytes]:
        answer = self.request("GET_DEVICE")
        assert answer.error == 0, answer
        return attributes(answer.messages[0][C["ADIT_A_DEVICE"]])

    def _numbers(self, kind: str, prefix: str) -> dict[str, int]:
        values = self.device()[C[kind]]
        return {
            name.removeprefix(prefix): struct.unpack_from("Q", values, 8 * number)[0]
            for name, number in C.items()
            if name.startswith(prefix)
        }

    def peer(self) -> dict[int, bytes]:
        answer = self.request("GET_PEER", peer_id(self.peer_number), dump=True)
        assert answer.error == 0 and answer.messages, answer
        return attributes(answer.messages[0][C["ADIT_A_PEER"]])

    def peer_number_of(self, kind: str) -> int:
        value = self.peer()[C[f"ADIT_A_PEER_{kind}"]]
        return int.from_bytes(value, "little")


class Topology:
    def __init__(self, mtu: int = 1420, kind: str = "adit"):
        self.a, self.b = Host("mod-a", 1), Host("mod-b", 2)
        self.close()  # a topology that could not be made leaves a part of itself
        ip_batch(
            *(f"netns add {host.name}" for host in self.hosts),
            "link add wire netns mod-a type veth peer name wire netns mod-b",
        )
        for host in self.hosts:
            ip_batch(
                "link set lo up",
                f"address add {host.wire()}/24 dev wire",
                f"address add {host.wire(True)}/64 nodad dev wire",
                "link set wire up",
                f"link add adit0 mtu {mtu} type {kind}",
                f"address add {host.inner()}/24 dev adit0",
                f"address add {host.inner(True)}/64 nodad dev adit0",
                netns=host.name,
            )
            if kind == "adit":
                self._claim(host)

    @property
    def hosts(self) -> tuple[Host, Host]:
        return self.a, self.b

    def other(self, host: Host) -> Host:
        return self.b if host is self.a else self.a

    def _claim(self, host: Host) -> None:
        host.genl = Genl(host.name)
        host.index = interface_index("adit0", host.name)
        host.public = random_key()
        host.mac1_key = random_key()  # type: ignore[attr-defined]
        answer = host.request(
            "SET_DEVICE",
            nest(
                C["ADIT_A_DEVICE"],
                u8(C["ADIT_A_DEVICE_CLAIM"], 1),
                u16(C["ADIT_A_DEVICE_LISTEN_PORT"], PORT),
                attribute(C["ADIT_A_DEVICE_PUBLIC_KEY"], host.public),
                attribute(C["ADIT_A_DEVICE_MAC1_KEY"], host.mac1_key),  # type: ignore[attr-defined]
            ),
        )
        assert answer.error == 0, answer
        ip(f"-n {host.name} link set adit0 up")

    def add_peers(self, v6: bool = False, b_knows_a: bool = True) -> None:
        for host in self.hosts:
            other = self.other(host)
            at = (other.wire(v6), PORT) if host is self.a or b_knows_a else None
            answer = host.request(
                "SET_PEER",
                peer(
                    host.peer_number,
                    other.public,
                    [f"{other.inner()}/32", f"{other.inner(True)}/128"],
                    at,
                ),
            )
            assert answer.error == 0, answer

    def add_keys(self, suite: int = 0, first_index: int = 1, **limits: int) -> None:
        """B is the responder: its keys wait for a packet from A, which is sent at once."""
        one, two = random_key(), random_key()
        for host, slot, send, receive in (
            (self.b, C["ADIT_KEY_SLOT_NEXT"], two, one),
            (self.a, C["ADIT_KEY_SLOT_CURRENT"], one, two),
        ):
            other = self.other(host)
            answer = host.request(
                "NEW_KEY",
                key(
                    host.peer_number,
                    other.public,
                    first_index + host.number,
                    first_index + other.number,
                    send,
                    receive,
                    slot=slot,
                    suite=suite,
                    **limits,
                ),
            )
            assert answer.error == 0, answer

    def close(self) -> None:
        """Removes what is left of it; what a check has already removed is no error."""
        for host in self.hosts:
            if host.genl is not None:
                host.genl.close()
        left = [host.name for host in self.hosts if os.path.exists(f"/run/netns/{host.name}")]
        if left:
            ip_batch(*(f"netns delete {name}" for name in left))
