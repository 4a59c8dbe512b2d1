"""Devices: each attribute of a wrong type, length and range; taken ports; a second claimant."""

from __future__ import annotations

import errno
import socket
import struct

from adit_genl import C, Genl, attribute, device, namespace, nest, u8, u16, u32
from topology import PORT, Topology

from .refusals import INVALID, refused, state, wrong_forms
from .support import expect, expect_of_dump, ping, test

FORMS = {
    "LISTEN_PORT": "u16", "FWMARK": "u32", "PUBLIC_KEY": "key", "CLAIM": "u8",
}
READ_ONLY = ("CLAIMANT", "MODULE", "SUITE_SPEEDS", "DROPS", "PEER_COUNT", "LAST_PEER_ID",
             "COUNTERS")


@test
def bad_input_of_devices(net: Topology) -> None:
    mark = u32(C["ADIT_A_DEVICE_FWMARK"], 7)

    def refuse(name: str, part: bytes, errors: tuple[int, ...] = INVALID) -> None:
        refused(net.a, "SET_DEVICE", nest(C["ADIT_A_DEVICE"], mark, part), name=name, errors=errors)

    for name, form in FORMS.items():
        for _, wrong in wrong_forms(f"ADIT_A_DEVICE_{name}", form):
            refuse(f"ADIT_A_DEVICE_{name}", wrong)
    for name in READ_ONLY:
        refuse(f"ADIT_A_DEVICE_{name}", attribute(C[f"ADIT_A_DEVICE_{name}"], bytes(4)))
    for length in (1, 31, 33, 300):
        refuse("ADIT_A_DEVICE_MAC1_KEY", attribute(C["ADIT_A_DEVICE_MAC1_KEY"], bytes(length)))
    for length in (1, 3, 5, 15, 17, 300):
        refuse("ADIT_A_DEVICE_BIND_ADDRESS",
               attribute(C["ADIT_A_DEVICE_BIND_ADDRESS"], bytes(length)))
    refuse("ADIT_A_DEVICE_CLAIM", u8(C["ADIT_A_DEVICE_CLAIM"], 2))
    # An address that is not of this machine, beside a port that is free.
    refuse("ADIT_A_DEVICE_BIND_ADDRESS",
           u16(C["ADIT_A_DEVICE_LISTEN_PORT"], 6)
           + attribute(C["ADIT_A_DEVICE_BIND_ADDRESS"], socket.inet_aton("9.9.9.9")),
           (errno.EADDRNOTAVAIL,))
    refused(net.a, "SET_DEVICE", name="ADIT_A_DEVICE")
    for _, wrong in wrong_forms("ADIT_A_DEVICE", "nest"):
        refused(net.a, "SET_DEVICE", wrong, name="ADIT_A_DEVICE")
    assert b"\0\0\0\0" == net.a.device()[C["ADIT_A_DEVICE_FWMARK"]]


@test
def devices_that_are_none(net: Topology) -> None:
    genl = net.a.genl
    assert genl is not None
    before = state(net.a)
    wish = nest(C["ADIT_A_DEVICE"], u32(C["ADIT_A_DEVICE_FWMARK"], 1))
    for command in ("SET_DEVICE", "GET_DEVICE", "SET_PEER", "DEL_PEER", "NEW_KEY", "DEL_KEYS",
                    "DROP_STAGED", "SEND_HANDSHAKE", "SEND_CONTROL"):
        number = C[f"ADIT_CMD_{command}"]
        expect(genl.request(number, wish), errno.EINVAL, "ADIT_A_IFINDEX")
        expect(genl.request(number, device(9999), wish), errno.ENODEV, "ADIT_A_IFINDEX")
        for name, error in ((b"lo\0", errno.ENODEV), (b"wire\0", errno.ENODEV),
                            (b"", errno.EINVAL), (b"x" * 16, errno.EINVAL),
                            (b"x" * 17 + b"\0", errno.ERANGE)):
            answer = genl.request(number, attribute(C["ADIT_A_IFNAME"], name), wish)
            assert answer.error in (error, errno.EINVAL) and answer.text, (command, name, answer)
        for _, wrong in (*wrong_forms("ADIT_A_IFINDEX", "u32"), ("0", device(0))):
            answer = genl.request(number, wrong, wish)
            assert answer.error in INVALID and answer.text, (command, wrong, answer)
    expect_of_dump(genl.request(C["ADIT_CMD_GET_PEER"], device(9999), dump=True), errno.ENODEV)
    answer = genl.request(C["ADIT_CMD_EVENT_HANDSHAKE"], device(net.a.index))
    assert answer.error == errno.EOPNOTSUPP, answer
    assert state(net.a) == before


@test
def a_second_claimant_is_refused(net: Topology) -> None:
    before = state(net.a)
    claim = nest(C["ADIT_A_DEVICE"], u8(C["ADIT_A_DEVICE_CLAIM"], 1),
                 u32(C["ADIT_A_DEVICE_FWMARK"], 9))
    other = Genl("mod-a")
    for command in ("SET_DEVICE", "SET_PEER", "DEL_PEER", "NEW_KEY", "DEL_KEYS", "DROP_STAGED",
                    "SEND_HANDSHAKE", "SEND_CONTROL"):
        answer = other.request(C[f"ADIT_CMD_{command}"], device(net.a.index), claim)
        expect(answer, errno.EBUSY, "another socket")
    # It may look.
    expect(other.request(C["ADIT_CMD_GET_DEVICE"], device(net.a.index)), 0)
    assert state(net.a) == before
    assert net.a.genl is not None
    net.a.genl.close()
    net.a.genl, port = other, other.port
    answer = other.request(C["ADIT_CMD_DEL_PEER"], device(net.a.index))
    expect(answer, errno.EPERM, "ADIT_A_DEVICE_CLAIM")
    expect(other.request(C["ADIT_CMD_SET_DEVICE"], device(net.a.index), claim), 0)
    assert net.a.device()[C["ADIT_A_DEVICE_CLAIMANT"]] == struct.pack("I", port)


@test
def a_taken_port_is_refused(net: Topology) -> None:
    """Of either family: the old port stays, the traffic goes on."""
    net.add_peers()
    net.add_keys()
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        with namespace("mod-a"):
            holder = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        holder.bind((address, 5555))
        port = nest(C["ADIT_A_DEVICE"], u32(C["ADIT_A_DEVICE_FWMARK"], 3),
                    u16(C["ADIT_A_DEVICE_LISTEN_PORT"], 5555))
        refused(net.a, "SET_DEVICE", port, name="ADIT_A_DEVICE_LISTEN_PORT",
                errors=(errno.EADDRINUSE,))
        assert net.a.device()[C["ADIT_A_DEVICE_LISTEN_PORT"]] == struct.pack("H", PORT)
        assert ping(net.a, net.b.inner())
        holder.close()
    port = nest(C["ADIT_A_DEVICE"], u16(C["ADIT_A_DEVICE_LISTEN_PORT"], 5555))
    expect(net.a.request("SET_DEVICE", port), 0)
    any_port = nest(C["ADIT_A_DEVICE"], u16(C["ADIT_A_DEVICE_LISTEN_PORT"], 0))
    expect(net.a.request("SET_DEVICE", any_port), 0)
    number = struct.unpack("H", net.a.device()[C["ADIT_A_DEVICE_LISTEN_PORT"]])[0]
    assert number not in (0, 5555)
    # The same port on one address only: our own sockets are in the way of it.
    bound = nest(
        C["ADIT_A_DEVICE"],
        attribute(C["ADIT_A_DEVICE_BIND_ADDRESS"], socket.inet_aton(net.a.wire())),
    )
    expect(net.a.request("SET_DEVICE", bound), 0)
    assert ping(net.a, net.b.inner())
