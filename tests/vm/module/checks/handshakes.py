"""What is not data: handshakes and control messages between the wire and the claimant."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import struct

from adit_genl import C, Genl, attribute, attributes, device, endpoint, nest, peer, peer_id, u8
from topology import PORT, Host, Topology

from .support import expect, ping, send_raw, test, until


def cookie_message() -> bytes:
    return b"\3\0\0\0" + bytes(60)


def initiation(mac1_key: bytes) -> bytes:
    body = b"\1\0\0\0" + os.urandom(112)
    return body + hashlib.blake2s(body, key=mac1_key, digest_size=16).digest() + bytes(16)


@test
def handshakes_go_to_the_claimant_and_back(net: Topology) -> None:
    message = initiation(net.b.mac1_key)
    send_raw(net, message)
    event = net.b.genl.event(C["ADIT_CMD_EVENT_HANDSHAKE"])
    assert event and event[C["ADIT_A_PAYLOAD"]] == message
    assert event[C["ADIT_A_BACKLOG"]] == bytes(4)
    local = attributes(event[C["ADIT_A_LOCAL"]])
    assert local[C["ADIT_A_ENDPOINT_ADDRESS"]] == socket.inet_aton(net.b.wire())
    answer = net.b.request(
        "SEND_HANDSHAKE",
        attribute(C["ADIT_A_PAYLOAD"], cookie_message()),
        endpoint(C["ADIT_A_ENDPOINT"], net.a.wire(), PORT),
        endpoint(C["ADIT_A_LOCAL"], net.b.wire(), None),
    )
    expect(answer, 0)
    event = net.a.genl.event(C["ADIT_CMD_EVENT_HANDSHAKE"])
    assert event and event[C["ADIT_A_PAYLOAD"]] == cookie_message()
    assert attributes(event[C["ADIT_A_ENDPOINT"]])[C["ADIT_A_ENDPOINT_PORT"]] == struct.pack(
        "H", PORT
    )


@test
def a_flood_of_handshakes_ends_at_the_queue(net: Topology) -> None:
    """While the claimant does not read: what its socket and the queue hold comes, in the end, and
    the rest is counted."""
    message, count, total = initiation(net.b.mac1_key), 50, 2500
    net.b.genl.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    before = net.b.drops()["HANDSHAKE_QUEUE"]
    for _ in range(total // count):
        send_raw(net, message * count, segment=len(message))
    watcher = Host(net.b.name, net.b.number, Genl(net.b.name), net.b.index)

    def dropped() -> int:
        return watcher.drops()["HANDSHAKE_QUEUE"] - before

    assert until(lambda: dropped() > 0), watcher.drops()
    came = 0
    while net.b.genl.event(C["ADIT_CMD_EVENT_HANDSHAKE"], 3):
        came += 1
    assert came + dropped() == total, (came, dropped())
    watcher.genl.close()


@test
def control_messages_pass(net: Topology) -> None:
    net.add_peers()
    payload = attribute(C["ADIT_A_PAYLOAD"], b"\1\2\0")
    expect(net.a.request("SEND_CONTROL", peer_id(1), payload), errno.ENOKEY)
    net.add_keys()
    expect(net.a.request("SEND_CONTROL", peer_id(1), payload), 0)
    event = net.b.genl.event(C["ADIT_CMD_EVENT_CONTROL"])
    assert event and event[C["ADIT_A_PAYLOAD"]] == b"\1\2".ljust(16, b"\0")


@test
def claim_ends_with_the_socket_and_traffic_goes_on(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    net.a.genl.close()
    net.a.genl = Genl("mod-a")
    expect(net.a.request("SET_PEER", peer(1, keepalive=5)), errno.EPERM, "not claimed")
    assert ping(net.a, net.b.inner())
    claim = nest(C["ADIT_A_DEVICE"], u8(C["ADIT_A_DEVICE_CLAIM"], 1))
    expect(net.a.request("SET_DEVICE", claim), 0)
    expect(net.a.request("SET_PEER", peer(1, keepalive=5)), 0)
    other = Genl("mod-a")
    command = C["ADIT_CMD_SET_DEVICE"]
    expect(other.request(command, device(net.a.index), claim), errno.EBUSY, "another socket")
    other.close()
