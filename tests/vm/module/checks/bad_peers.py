"""Peers that are refused: each attribute of a wrong type, length and range; ids and public keys
that are taken; commands on peers that do not exist."""

from __future__ import annotations

import errno

from adit_genl import (
    C, allowed_ip, attribute, endpoint, nest, peer, peer_id, random_key, u8, u16, u32, u64,
)
from topology import Topology

from .refusals import INVALID, refused, state, wrong_forms
from .support import LOSES_TEXT_OF_DUMPS, expect, expect_of_dump, ping, test

FORMS = {
    "ID": "u64", "PUBLIC_KEY": "key", "FLAGS": "u32", "ENDPOINT": "nest", "LOCAL": "nest",
    "PERSISTENT_KEEPALIVE": "u16", "ALLOWED_IPS": "nest",
}
READ_ONLY = (
    "RX_BYTES", "TX_BYTES", "RX_PACKETS", "TX_PACKETS", "LAST_RECEIVE", "SUITE", "SESSION_START",
    "SESSION_INITIATOR", "DROPS", "NEXT_SUITE", "NEXT_START",
)
PREFIX = {"ADDRESS": "ADIT_A_ALLOWED_IP_ADDRESS", "LENGTH": "ADIT_A_ALLOWED_IP_LENGTH"}


def ends(*parts: bytes, kind: str = "ADIT_A_PEER_ENDPOINT") -> bytes:
    return nest(C[kind], *parts)


def address(content: bytes) -> bytes:
    return attribute(C["ADIT_A_ENDPOINT_ADDRESS"], content)


def port(number: int) -> bytes:
    return u16(C["ADIT_A_ENDPOINT_PORT"], number)


# What is at fault, and a peer's attribute that has the fault.
BAD_ENDPOINTS = (
    ("ADIT_A_PEER_ENDPOINT", ends(address(bytes(4)))),
    ("ADIT_A_PEER_ENDPOINT", ends(port(5))),
    ("ADIT_A_PEER_ENDPOINT", ends()),
    ("ADIT_A_ENDPOINT_PORT", ends(address(bytes(4)), port(0))),
    *(("ADIT_A_ENDPOINT_PORT", ends(address(bytes(4)), wrong))
      for _, wrong in wrong_forms("ADIT_A_ENDPOINT_PORT", "u16")),
    *(("ADIT_A_ENDPOINT_ADDRESS", ends(address(bytes(length)), port(5)))
      for length in (0, 1, 3, 5, 15, 17, 64)),
    *(("ADIT_A_ENDPOINT_IFINDEX", ends(address(bytes(4)), port(5), wrong))
      for _, wrong in wrong_forms("ADIT_A_ENDPOINT_IFINDEX", "u32")),
    ("ADIT_A_PEER_LOCAL", ends(address(bytes(4)), kind="ADIT_A_PEER_LOCAL")),
    *(("ADIT_A_PEER_LOCAL",
       ends(address(bytes(4)), port(5)) + ends(address(bytes(length)), kind="ADIT_A_PEER_LOCAL"))
      for length in (5, 16)),
    ("ADIT_A_PEER_LOCAL", ends(address(bytes(4)), port(5)) + ends(kind="ADIT_A_PEER_LOCAL")),
)


def prefix(*parts: bytes) -> bytes:
    """A good one before the bad one: neither may stay."""
    return nest(C["ADIT_A_PEER_ALLOWED_IPS"], allowed_ip("1.0.0.0/8"), nest(0, *parts))


def part(name: str, content: bytes) -> bytes:
    return attribute(C[PREFIX[name]], content)


BAD_PREFIXES = (
    (PREFIX["LENGTH"], prefix(part("ADDRESS", bytes(4)), part("LENGTH", b"\x21"))),
    (PREFIX["LENGTH"], prefix(part("ADDRESS", bytes(16)), part("LENGTH", b"\x81"))),
    (PREFIX["ADDRESS"], prefix(part("LENGTH", b"\1"))),
    (PREFIX["ADDRESS"], prefix(part("ADDRESS", bytes(4)))),
    (PREFIX["ADDRESS"], prefix()),
    *((PREFIX["ADDRESS"], prefix(part("ADDRESS", bytes(length)), part("LENGTH", b"\1")))
      for length in (0, 3, 5, 15, 17)),
    *((PREFIX["LENGTH"], prefix(part("ADDRESS", bytes(4)), wrong))
      for _, wrong in wrong_forms(PREFIX["LENGTH"], "u8")),
    ("ADIT_A_PEER_ALLOWED_IPS", nest(C["ADIT_A_PEER_ALLOWED_IPS"], attribute(0, bytes(4)))),
)


@test
def bad_input_of_peers(net: Topology) -> None:
    """Each fault in the making of a peer, and in the change of one that carries traffic."""
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    public = random_key()
    named = attribute(C["ADIT_A_PEER_PUBLIC_KEY"], public)
    fresh = u64(C["ADIT_A_PEER_ID"], 2) + named
    present = u64(C["ADIT_A_PEER_ID"], 1) + u16(C["ADIT_A_PEER_PERSISTENT_KEEPALIVE"], 77)

    def refuse(name: str, *content: bytes, errors: tuple[int, ...] = INVALID) -> None:
        refused(net.a, "SET_PEER", nest(C["ADIT_A_PEER"], *content), name=name, errors=errors)

    faults = [*BAD_ENDPOINTS, *BAD_PREFIXES]
    faults += [(f"ADIT_A_PEER_{name}", wrong) for name, form in FORMS.items() if name != "ID"
               for _, wrong in wrong_forms(f"ADIT_A_PEER_{name}", form)]
    faults += [(f"ADIT_A_PEER_{name}", attribute(C[f"ADIT_A_PEER_{name}"], bytes(8)))
               for name in READ_ONLY]
    faults += [("ADIT_A_PEER_COOKIE", attribute(C["ADIT_A_PEER_COOKIE"], bytes(65))),
               ("ADIT_A_PEER_FLAGS", u32(C["ADIT_A_PEER_FLAGS"], 8))]
    for name, fault in faults:
        refuse(name, fresh, fault)
        refuse(name, present, fault)
    for _, wrong in (*wrong_forms("ADIT_A_PEER_ID", "u64"), ("0", u64(C["ADIT_A_PEER_ID"], 0))):
        refuse("ADIT_A_PEER_ID", named, wrong)
    refuse("ADIT_A_PEER_ID", named)
    refuse("ADIT_A_PEER_PUBLIC_KEY", u64(C["ADIT_A_PEER_ID"], 2))
    refuse("ADIT_A_PEER_ID", fresh, u32(C["ADIT_A_PEER_FLAGS"], 4), errors=(errno.ENOENT,))
    refuse("ADIT_A_PEER_PUBLIC_KEY", u64(C["ADIT_A_PEER_ID"], 1), named)
    refused(net.a, "SET_PEER", name="ADIT_A_PEER")
    assert ping(net.a, net.b.inner())
    # An attribute of a later version is ignored.
    expect(net.a.request("SET_PEER", nest(C["ADIT_A_PEER"], fresh, attribute(999, b"new"))), 0)


@test
def peers_that_exist_already_or_not_at_all(net: Topology) -> None:
    net.add_peers()
    # Somebody else's public key, which a second peer may not have.
    refused(net.a, "SET_PEER", peer(2, net.b.public), name="ADIT_A_PEER_PUBLIC_KEY",
            errors=(errno.EEXIST,))
    public = random_key()
    expect(net.a.request("SET_PEER", peer(2, public)), 0)
    for command in ("DEL_PEER", "DEL_KEYS", "DROP_STAGED", "SEND_CONTROL"):
        refused(net.a, command, peer_id(77), name="ADIT_A_PEER_ID", errors=(errno.ENOENT,))
        refused(net.a, command, name="ADIT_A_PEER")
        only_key = nest(C["ADIT_A_PEER"], attribute(C["ADIT_A_PEER_PUBLIC_KEY"], public))
        refused(net.a, command, only_key, name="ADIT_A_PEER_ID")
        for _, wrong in wrong_forms("ADIT_A_PEER", "nest"):
            refused(net.a, command, wrong, name="ADIT_A_PEER")
    short = nest(C["ADIT_A_PEER"], u8(C["ADIT_A_PEER_ID"], 1))
    expect_of_dump(net.a.request("GET_PEER", short, dump=True), errno.EINVAL)
    if not LOSES_TEXT_OF_DUMPS:
        refused(net.a, "GET_PEER", short, name="ADIT_A_PEER_ID", dump=True)
    expect(net.a.request("DEL_PEER", peer_id(2)), 0)
    refused(net.a, "SET_PEER", peer(2, public), name="ADIT_A_PEER_ID", errors=(errno.EINVAL,))
    # The key is free again under a new id.
    expect(net.a.request("SET_PEER", peer(3, public)), 0)
    for content in (b"", b"\x45", b"\x60\0", bytes(257)):
        refused(net.a, "SEND_CONTROL", peer_id(3), attribute(C["ADIT_A_PAYLOAD"], content),
                name="ADIT_A_PAYLOAD", errors=INVALID)
    refused(net.a, "SEND_CONTROL", peer_id(3), name="ADIT_A_PAYLOAD")
    assert len(state(net.a)[1]) == 2


@test
def bad_input_of_handshakes_to_send(net: Topology) -> None:
    good = attribute(C["ADIT_A_PAYLOAD"], b"\3\0\0\0" + bytes(60))
    to = endpoint(C["ADIT_A_ENDPOINT"], net.b.wire(), 5)
    for content in (b"", b"\3", b"\3" + bytes(62), b"\3" + bytes(64), b"\4" + bytes(63),
                    b"\1" + bytes(91), b"\2" + bytes(147), bytes(257)):
        refused(net.a, "SEND_HANDSHAKE", attribute(C["ADIT_A_PAYLOAD"], content), to,
                name="ADIT_A_PAYLOAD", errors=INVALID)
    refused(net.a, "SEND_HANDSHAKE", good, name="ADIT_A_ENDPOINT")
    refused(net.a, "SEND_HANDSHAKE", to, name="ADIT_A_PAYLOAD")
    for _, wrong in wrong_forms("ADIT_A_ENDPOINT", "nest"):
        refused(net.a, "SEND_HANDSHAKE", good, wrong, name="ADIT_A_ENDPOINT")
    for name in ("ADIT_A_HANDSHAKE_REASON", "ADIT_A_BACKLOG"):
        refused(net.a, "SEND_HANDSHAKE", good, to, attribute(C[name], bytes(4)), name=name)
    local = endpoint(C["ADIT_A_LOCAL"], "::1", None)
    refused(net.a, "SEND_HANDSHAKE", good, to, local, name="ADIT_A_LOCAL")
    # No route.
    away = endpoint(C["ADIT_A_ENDPOINT"], "198.51.100.1", 5)
    refused(net.a, "SEND_HANDSHAKE", good, away, name="ADIT_A_ENDPOINT",
            errors=(errno.ENETUNREACH, errno.EHOSTUNREACH))
