"""What is compared: each builds its tunnel between the server and the NAS."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .hosts import DOOR, INNER, NAS, SERVER, WIRE, ip, run, within

# The module's own netlink, without a daemon: the keys are set by hand.
sys.path.insert(0, "/adit/tests/vm/module")

import adit_genl as genl  # noqa: E402

PORT = 51820
MTU = 1420
C = genl.C


def other(host: str) -> str:
    return NAS if host == SERVER else SERVER


@dataclass
class Subject:
    """A tunnel that stands: where the NAS is reached, and through which device of the server."""

    address: str
    device: str
    counters: Callable[[], dict[str, int]] = field(default=dict)


def plain() -> Subject:
    ip(NAS, f"route add {DOOR[SERVER]}/24 via {WIRE[SERVER]}".replace(".1/24", ".0/24"))
    return Subject(WIRE[NAS], "wire")


def _address_tunnel() -> None:
    for host in (SERVER, NAS):
        ip(host, f"address add {INNER[host]}/24 dev tun0")
        ip(host, "link set tun0 up")
    ip(NAS, "route add 10.7.0.0/24 dev tun0")


def wireguard() -> Subject:
    keys = {}
    for host in (SERVER, NAS):
        path = Path(f"/tmp/{host}.key")
        path.write_text(run("wg", "genkey"))
        public = run("sh", "-c", f"wg pubkey <{path}").strip()
        keys[host] = str(path), public
    for host in (SERVER, NAS):
        ip(host, f"link add tun0 mtu {MTU} type wireguard")
        allowed = f"{INNER[NAS]}/32" if host == SERVER else "0.0.0.0/0"
        run(
            *within(host),
            *f"wg set tun0 listen-port {PORT} private-key {keys[host][0]}".split(),
            *f"peer {keys[other(host)][1]} endpoint {WIRE[other(host)]}:{PORT}".split(),
            *("allowed-ips", allowed),
        )
    _address_tunnel()
    return Subject(INNER[NAS], "tun0")


def xfrm() -> Subject:
    """ESP in tunnel mode; there is no device, so the inner addresses are the loopback's."""
    # Segmentation offload of its own, which is not loaded by itself.
    run("modprobe", "esp4_offload")
    key = "0x" + os.urandom(36).hex()
    for host in (SERVER, NAS):
        for number, (one, two) in enumerate(((SERVER, NAS), (NAS, SERVER))):
            ip(
                host,
                f"xfrm state add src {WIRE[one]} dst {WIRE[two]} proto esp spi {0x1000 + number} "
                f"reqid 1 mode tunnel aead rfc4106(gcm(aes)) {key} 128 replay-window 32",
            )
            places = ("dst", "src") if one == SERVER else ("src", "dst")
            directions = ("out",) if one == host else ("in", "fwd")
            near, far = places
            for direction in directions:
                ip(
                    host,
                    f"xfrm policy add {near} {INNER[NAS]}/32 {far} 0.0.0.0/0 dir {direction} "
                    f"tmpl src {WIRE[one]} dst {WIRE[two]} proto esp reqid 1 mode tunnel",
                )
        ip(host, f"address add {INNER[host]}/32 dev lo")
    ip(SERVER, f"route add {INNER[NAS]}/32 via {WIRE[NAS]} src {INNER[SERVER]}")
    for target in (f"{INNER[SERVER]}/32", "10.7.0.0/24"):
        ip(NAS, f"route add {target} via {WIRE[SERVER]} src {INNER[NAS]}")
    return Subject(INNER[NAS], "wire")


class AditEnd:
    def __init__(self, host: str):
        self.host = host
        self.public = os.urandom(32)
        ip(host, f"link add tun0 mtu {MTU} type adit")
        self.netlink = genl.Genl(host)
        self.index = genl.interface_index("tun0", host)
        settings = (
            genl.u8(C["ADIT_A_DEVICE_CLAIM"], 1),
            genl.u16(C["ADIT_A_DEVICE_LISTEN_PORT"], PORT),
            genl.attribute(C["ADIT_A_DEVICE_PUBLIC_KEY"], self.public),
            genl.attribute(C["ADIT_A_DEVICE_MAC1_KEY"], os.urandom(32)),
        )
        self.request("SET_DEVICE", genl.nest(C["ADIT_A_DEVICE"], *settings))

    def request(self, command: str, *payload: bytes) -> genl.Answer:
        answer = self.netlink.request(
            C[f"ADIT_CMD_{command}"], genl.device(self.index), *payload
        )
        assert answer.error == 0, answer
        return answer

    def counters(self) -> dict[str, int]:
        device = genl.attributes(self.request("GET_DEVICE").messages[0][C["ADIT_A_DEVICE"]])
        result = {}
        for kind, prefix in (("COUNTERS", "ADIT_COUNTER_"), ("DROPS", "ADIT_DROP_")):
            values = device[C[f"ADIT_A_DEVICE_{kind}"]]
            for name, number in C.items():
                if name.startswith(prefix):
                    value = struct.unpack_from("Q", values, 8 * number)[0]
                    if value:
                        result[f"{self.host}.{name.removeprefix('ADIT_').lower()}"] = value
        return result


def adit(suite: int) -> Subject:
    ends = {host: AditEnd(host) for host in (SERVER, NAS)}
    keys = {host: os.urandom(32) for host in ends}
    slots = {NAS: C["ADIT_KEY_SLOT_NEXT"], SERVER: C["ADIT_KEY_SLOT_CURRENT"]}
    _address_tunnel()
    for host, end in ends.items():
        far = other(host)
        allowed = [f"{INNER[NAS]}/32"] if host == SERVER else ["0.0.0.0/0"]
        end.request("SET_PEER", genl.peer(1, ends[far].public, allowed, (WIRE[far], PORT)))
    # The server's keys come last: it confirms them to the NAS at once.
    for number, (host, slot) in enumerate(slots.items(), 1):
        far = other(host)
        end = ends[host]
        key = genl.key(
            *(1, ends[far].public, number, 3 - number, keys[host], keys[far]),
            slot=slot,
            suite=suite,
            # Virtual time runs on while the machine idles; no daemon renews these keys.
            REKEY_AFTER=10**15,
            REJECT_AFTER=10**16,
            REKEY_AFTER_MESSAGES=1 << 60,
            REJECT_AFTER_MESSAGES=1 << 61,
        )
        end.request("NEW_KEY", key)

    def counters() -> dict[str, int]:
        return ends[SERVER].counters() | ends[NAS].counters()

    return Subject(INNER[NAS], "tun0", counters)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "plain": plain,
    "wireguard": wireguard,
    "xfrm_aes256gcm": xfrm,
    "chacha20-poly1305": lambda: adit(0),
    "aes-256-gcm": lambda: adit(1),
    "aes-128-gcm": lambda: adit(2),
}
