#!/usr/bin/env python3
"""Drives adit.ko directly: traffic with keys set by hand, every kind of bad input, and a fuzzer.

check_module.py [NAME...]: all tests, or those whose name contains one of the words. Needs root, and
the module loaded. Ends with 1 when a test failed."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable

import adit_genl
from adit_genl import (
    C,
    Genl,
    attribute,
    attributes,
    device,
    endpoint,
    key,
    key_parts,
    namespace,
    nest,
    peer,
    peer_id,
    random_key,
    u8,
    u16,
    u32,
    u64,
)
from topology import PORT, Host, Topology, ip, run_in

TESTS: list[Callable[[Topology], None]] = []


def test(function: Callable[[Topology], None]) -> Callable[[Topology], None]:
    TESTS.append(function)
    return function


def ping(host: Host, address: str, *options: str, count: int = 2) -> bool:
    command = ("ping", "-c", str(count), "-i", "0.2", "-W", "5", *options, address)
    return run_in(host.name, *command, stdout=subprocess.DEVNULL).returncode == 0


def until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def expect(answer: adit_genl.Answer, error: int, text: str = "") -> None:
    assert answer.error == error, f"expected {errno.errorcode.get(error, error)}: {answer}"
    assert text in answer.text, answer
    assert error == 0 or answer.text, f"no text: {answer}"


# Traffic


@test
def ping_under_each_suite_and_family(net: Topology) -> None:
    for round_, (suite, v6) in enumerate((s, v) for s in range(3) for v in (False, True)):
        net.add_peers(v6=v6)
        net.add_keys(suite=suite, first_index=100 * (round_ + 1))
        assert ping(net.a, net.b.inner()), (suite, v6)
        assert ping(net.b, net.a.inner(True), "-s", "1300"), (suite, v6)
        assert net.a.peer()[C["ADIT_A_PEER_SUITE"]] == bytes([suite])


@test
def byte_counters_are_exact(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    assert until(lambda: net.b.peer_number_of("RX_PACKETS") == 1)
    assert net.b.peer_number_of("RX_BYTES") == 32  # the keepalive that confirms
    # 28 bytes of headers and 56 of data, padded to 96, and 32.
    assert ping(net.a, net.b.inner(), "-s", "56", count=3)
    for host in net.hosts:
        assert host.peer_number_of("RX_BYTES") - 3 * 128 in (0, 32)
        assert host.peer_number_of("TX_BYTES") - 3 * 128 in (0, 32)
    assert net.b.peer_number_of("LAST_RECEIVE") > 0


@test
def tcp_both_ways_is_intact_and_joined(net: Topology) -> None:
    net.add_peers()
    net.add_keys(suite=1)
    for sender in net.hosts:
        data = os.urandom(1 << 20) * 8
        assert transfer(net, sender, data) == hashlib.sha256(data).hexdigest()
    for host in net.hosts:
        counters = host.counters()
        assert counters["TX_SUPER"] > 10 and counters["RX_INNER_SUPER"] > 10, counters
        assert counters["PAGES_REUSED"] > counters["PAGES_NEW"] / 4, counters
        drops = {k: v for k, v in host.drops().items() if v and k not in ("NO_PEER",)}
        assert not drops, drops


def transfer(net: Topology, sender: Host, data: bytes, v6: bool = False) -> str:
    """Sends over TCP to the other host; what arrived, as a hash."""
    receiver = net.other(sender)
    family = socket.AF_INET6 if v6 else socket.AF_INET
    with namespace(receiver.name):
        listener = socket.create_server((receiver.inner(v6), 7000), family=family)
    listener.settimeout(60)
    with namespace(sender.name):
        connection = socket.create_connection((receiver.inner(v6), 7000), timeout=60)
    child = os.fork()
    if child == 0:
        listener.close()
        connection.sendall(data)
        os._exit(0)
    connection.close()
    accepted, _ = listener.accept()
    accepted.settimeout(60)
    digest = hashlib.sha256()
    while part := accepted.recv(1 << 18):
        digest.update(part)
    os.waitpid(child, 0)
    listener.close()
    accepted.close()
    return digest.hexdigest()


@test
def tcp_over_v6_at_odd_and_large_mtus(net: Topology) -> None:
    net.add_peers(v6=True)
    net.add_keys()
    data = os.urandom(1 << 20)
    for mtu in (1283, 1419, 9000):
        for host in net.hosts:
            ip(f"-n {host.name} link set wire mtu {max(mtu + 100, 1500)}")
            ip(f"-n {host.name} link set adit0 mtu {mtu}")
        assert transfer(net, net.a, data, v6=True) == hashlib.sha256(data).hexdigest(), mtu
    # The wire is too narrow for a datagram: fragments.
    for host in net.hosts:
        ip(f"-n {host.name} link set wire mtu 1280")
        ip(f"-n {host.name} link set adit0 mtu 1420")
    assert transfer(net, net.a, data) == hashlib.sha256(data).hexdigest()


@test
def tcp_over_a_wire_without_offloads(net: Topology) -> None:
    for host in net.hosts:
        for option in ("tso off", "gso off", "tx-udp-segmentation off", "gro on"):
            run_in(host.name, "ethtool", "-K", "wire", *option.split(), check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    net.add_peers()
    net.add_keys()
    data = os.urandom(1 << 20)
    assert transfer(net, net.a, data) == hashlib.sha256(data).hexdigest()
    assert not net.b.drops()["AUTHENTICATION"]


@test
def udp_of_all_sizes(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    with namespace("mod-b"):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind((net.b.inner(), 7001))
    receiver.settimeout(10)
    with namespace("mod-a"):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for size in (0, 1, 15, 16, 17, 447, 448, 449, 1391, 1392, 1393, 4000, 30000):
        data = os.urandom(size)
        sender.sendto(data, (net.b.inner(), 7001))
        assert receiver.recv(65536) == data, size


@test
def next_key_waits_for_the_first_packet(net: Topology) -> None:
    net.add_peers()
    one, two = random_key(), random_key()
    answer = net.b.request(
        "NEW_KEY", key(1, net.a.public, 7, 8, two, one, slot=C["ADIT_KEY_SLOT_NEXT"])
    )
    expect(answer, 0)
    assert not ping(net.b, net.a.inner(), "-w", "1", count=1)
    assert C["ADIT_A_PEER_SUITE"] not in net.b.peer()
    assert net.b.peer_number_of("TX_PACKETS") == 0
    expect(net.a.request("NEW_KEY", key(1, net.b.public, 8, 7, one, two)), 0)
    assert net.b.genl.event(C["ADIT_CMD_EVENT_KEY_CONFIRMED"])
    assert net.b.peer()[C["ADIT_A_PEER_SESSION_INITIATOR"]] == b"\0"
    assert net.a.peer()[C["ADIT_A_PEER_SESSION_INITIATOR"]] == b"\1"
    # What B had staged went out by itself.
    assert until(lambda: net.b.peer_number_of("TX_PACKETS") >= 1)


@test
def a_handshake_is_asked_for_and_asked_for_again(net: Topology) -> None:
    net.add_peers()
    child = subprocess.Popen(
        ["/sbin/ip", "netns", "exec", "mod-a", "ping", "-c", "1", "-W", "20", net.b.inner()],
        stdout=subprocess.DEVNULL,
    )
    begin = time.monotonic()
    for _ in range(2):
        event = net.a.genl.event(C["ADIT_CMD_EVENT_NEED_HANDSHAKE"])
        assert event, "no event"
        assert event[C["ADIT_A_HANDSHAKE_REASON"]] == bytes([C["ADIT_HANDSHAKE_STAGED"]])
    assert 4 < time.monotonic() - begin < 9
    net.add_keys()
    # The packet that waited arrives now.
    assert child.wait(30) == 0


@test
def staging_is_bounded_and_can_be_forgotten(net: Topology) -> None:
    net.add_peers()
    with namespace("mod-a"):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(140):
        sender.sendto(b"x", (net.b.inner(), 9))
    assert net.a.drops()["QUEUE_FULL"] == 12, net.a.drops()
    expect(net.a.request("DROP_STAGED", peer_id(1)), 0)
    net.add_keys()
    assert until(lambda: net.a.peer_number_of("TX_PACKETS") == 1)
    assert net.a.peer_number_of("TX_BYTES") == 32


@test
def keys_end_by_age_and_by_count(net: Topology) -> None:
    net.add_peers()
    net.add_keys(REKEY_AFTER=10**8, REJECT_AFTER=10**9)
    assert net.a.genl.event(C["ADIT_CMD_EVENT_KEYS_EXPIRED"], 15)
    assert C["ADIT_A_PEER_SUITE"] not in net.a.peer()
    net.add_keys(first_index=50, REKEY_AFTER_MESSAGES=5, REJECT_AFTER_MESSAGES=10)
    assert not ping(net.a, net.b.inner(), "-w", "4", count=15)
    assert net.a.peer_number_of("TX_PACKETS") == 1 + 10
    event = net.a.genl.event(C["ADIT_CMD_EVENT_NEED_HANDSHAKE"])
    assert event


@test
def endpoint_follows_authenticated_packets_only(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    ip("-n mod-a address add 10.8.0.77/24 dev wire")
    assert send_raw(net, b"\4\0\0\0" + struct.pack("<I", 3) + bytes(40), "10.8.0.77")
    assert until(lambda: net.b.drops()["AUTHENTICATION"] == 1)
    assert source_of(net.b) == (net.a.wire(), PORT)
    expect(
        net.a.request(
            "SET_DEVICE", nest(C["ADIT_A_DEVICE"], u16(C["ADIT_A_DEVICE_LISTEN_PORT"], 4444))
        ),
        0,
    )
    assert ping(net.a, net.b.inner())
    assert source_of(net.b) == (net.a.wire(), 4444)
    assert net.b.genl.event(C["ADIT_CMD_EVENT_ENDPOINT_MOVED"])
    # And not when it is told to stay.
    expect(net.b.request("SET_PEER", peer(1, flags=C["ADIT_PEER_F_NO_ROAM"])), 0)
    expect(
        net.a.request(
            "SET_DEVICE", nest(C["ADIT_A_DEVICE"], u16(C["ADIT_A_DEVICE_LISTEN_PORT"], 4445))
        ),
        0,
    )
    assert not ping(net.a, net.b.inner(), "-w", "1", count=1)
    assert source_of(net.b) == (net.a.wire(), 4444)


def source_of(host: Host) -> tuple[str, int]:
    found = attributes(host.peer()[C["ADIT_A_PEER_ENDPOINT"]])
    address = socket.inet_ntop(socket.AF_INET, found[C["ADIT_A_ENDPOINT_ADDRESS"]])
    return address, struct.unpack("H", found[C["ADIT_A_ENDPOINT_PORT"]])[0]


def send_raw(net: Topology, datagram: bytes, source: str | None = None, segment: int = 0) -> int:
    """From A's wire to B's socket; with `segment`, as one super-packet."""
    with namespace("mod-a"):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind((source or net.a.wire(), 0))
    if segment:
        sender.setsockopt(socket.IPPROTO_UDP, 103, segment)
    return sender.sendto(datagram, (net.b.wire(), PORT))


@test
def sticky_source_address(net: Topology) -> None:
    ip("-n mod-b address add 10.8.0.99/24 dev wire")
    net.add_peers()
    expect(net.a.request("SET_PEER", peer(1, at=("10.8.0.99", PORT))), 0)
    net.add_keys()
    assert ping(net.a, net.b.inner())
    assert source_of(net.a) == ("10.8.0.99", PORT)
    # The address goes: replies come from another one, and A follows.
    ip("-n mod-b address delete 10.8.0.99/24 dev wire")
    assert not ping(net.b, net.a.inner(), "-w", "1", count=1) or True
    assert until(lambda: ping(net.b, net.a.inner(), count=1))
    assert source_of(net.a) == (net.b.wire(), PORT)


@test
def bad_datagrams_are_dropped_and_counted(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    index = struct.pack("<I", 3)
    wrong = (
        ("MALFORMED", b""),
        ("MALFORMED", b"\4"),
        ("MALFORMED", b"\4\0\0\0" + index + bytes(23)),
        ("MALFORMED", b"\4\3\0\0" + index + bytes(40)),
        ("MALFORMED", b"\4\1\0\0" + index + bytes(40)),
        ("MALFORMED", b"\4\0\0\1" + index + bytes(40)),
        ("MALFORMED", b"\5\0\0\0" + index + bytes(40)),
        ("MALFORMED", b"\1\0\0\0" + bytes(143)),
        ("MALFORMED", b"\1\3\0\0" + bytes(144)),
        ("MALFORMED", b"\3\1\0\0" + bytes(60)),
        ("UNKNOWN_INDEX", b"\4\0\0\0" + bytes(4) + bytes(40)),
        ("AUTHENTICATION", b"\4\0\0\0" + index + bytes(24)),
        ("AUTHENTICATION", b"\4\0\0\0" + index + bytes(1400)),
        ("KEY_EXPIRED", b"\4\0\0\0" + index + b"\xff" * 8 + bytes(32)),
        ("BAD_MAC", b"\1\0\0\0" + bytes(144)),
        ("BAD_MAC", b"\2\0\0\0" + bytes(88)),
    )
    for name, datagram in wrong:
        before = net.b.drops()
        send_raw(net, datagram)
        assert until(lambda: net.b.drops()[name] == before[name] + 1), (name, datagram[:8])
        after = net.b.drops()
        assert {k for k in after if after[k] != before[k]} == {name}
    # Of different kinds in one super-packet; the last one is shorter.
    mixed = b"".join(
        start.ljust(200, b"\0")
        for start in (b"\4\0\0\0" + index, b"\5\0\0\0", b"\4\0\0\0" + bytes(4), b"\4\0\0\0" + index)
    ) + cookie_message()
    before, supers = net.b.drops(), net.b.counters()["RX_SUPER"]
    send_raw(net, mixed, segment=200)
    assert net.b.genl.event(C["ADIT_CMD_EVENT_HANDSHAKE"]), "the handshake behind data is lost"
    after = net.b.drops()
    changed = {k: after[k] - before[k] for k in after if after[k] != before[k]}
    assert changed == {"AUTHENTICATION": 2, "MALFORMED": 1, "UNKNOWN_INDEX": 1}, changed
    assert net.b.counters()["RX_SUPER"] == supers + 1
    assert ping(net.a, net.b.inner())


def cookie_message() -> bytes:
    return b"\3\0\0\0" + bytes(60)


@test
def handshakes_go_to_the_claimant_and_back(net: Topology) -> None:
    body = b"\1\0\0\0" + os.urandom(112)
    mac = hashlib.blake2s(body, key=net.b.mac1_key, digest_size=16).digest()
    message = body + mac + bytes(16)
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
def control_messages_pass(net: Topology) -> None:
    net.add_peers()
    payload = attribute(C["ADIT_A_PAYLOAD"], b"\1\2\0")
    expect(net.a.request("SEND_CONTROL", peer_id(1), payload), errno.ENOKEY)
    net.add_keys()
    expect(net.a.request("SEND_CONTROL", peer_id(1), payload), 0)
    event = net.b.genl.event(C["ADIT_CMD_EVENT_CONTROL"])
    assert event and event[C["ADIT_A_PAYLOAD"]] == b"\1\2".ljust(16, b"\0")


@test
def allowed_ips_both_ways(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    ip("-n mod-a address add 10.9.0.50/24 dev adit0")
    before = net.b.drops()["SOURCE_NOT_ALLOWED"]
    assert not ping(net.a, net.b.inner(), "-I", "10.9.0.50", "-w", "1", count=1)
    assert net.b.drops()["SOURCE_NOT_ALLOWED"] > before
    # Nobody there, and the sender is told.
    result = run_in("mod-a", "ping", "-c", "1", "-W", "5", "10.9.0.123", capture_output=True)
    assert "Unreachable" in result.stdout, result.stdout
    # A prefix moves to another peer.
    expect(net.a.request("SET_PEER", peer(2, random_key(), [f"{net.b.inner()}/32"])), 0)
    assert not ping(net.a, net.b.inner(), "-w", "1", count=1)
    expect(net.a.request("SET_PEER", peer(2, allowed=[])), 0)
    expect(
        net.a.request(
            "SET_PEER",
            peer(1, allowed=[f"{net.b.inner()}/32"], flags=C["ADIT_PEER_F_APPEND_ALLOWED_IPS"]),
        ),
        0,
    )
    assert ping(net.a, net.b.inner())


@test
def many_allowed_ips_come_back(net: Topology) -> None:
    net.add_peers()
    wanted = set()
    for block in range(10):
        prefixes = [f"10.{100 + block}.{i}.0/24" for i in range(250)]
        wanted.update(prefixes)
        flags = C["ADIT_PEER_F_APPEND_ALLOWED_IPS"] if block else 0
        expect(net.a.request("SET_PEER", peer(1, allowed=prefixes, flags=flags)), 0)
    answer = net.a.request("GET_PEER", dump=True)
    found = set()
    for message in answer.messages:
        inner = attributes(message[C["ADIT_A_PEER"]])
        for _, value in adit_genl.attribute_list(inner[C["ADIT_A_PEER_ALLOWED_IPS"]]):
            parts = attributes(value)
            address = socket.inet_ntop(socket.AF_INET, parts[C["ADIT_A_ALLOWED_IP_ADDRESS"]])
            found.add(f"{address}/{parts[C['ADIT_A_ALLOWED_IP_LENGTH']][0]}")
    assert len(answer.messages) > 1
    assert found == wanted, len(found)


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


@test
def removal_under_traffic(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    flood = subprocess.Popen(
        ["/sbin/ip", "netns", "exec", "mod-a", "ping", "-f", "-w", "20", net.b.inner()],
        stdout=subprocess.DEVNULL,
    )
    time.sleep(0.5)
    expect(net.b.request("DEL_PEER", peer_id(1)), 0)
    ip("-n mod-b link set adit0 down")
    ip("-n mod-b link set adit0 up")
    ip("-n mod-a link delete adit0")
    flood.kill()
    flood.wait()


@test
def namespace_dies_with_live_peers(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    # The link goes to a namespace of its own, its sockets' namespace goes away.
    ip("netns add mod-c")
    try:
        ip("-n mod-a link set adit0 netns mod-c")
        ip("-n mod-c address add 10.9.0.1/24 dev adit0")
        ip("-n mod-c link set adit0 up")
        ip("-n mod-c route replace 10.9.0.0/24 dev adit0")
        mover = Host("mod-c", 1)
        assert until(lambda: ping(mover, net.b.inner(), count=1))
        net.a.genl.close()
        ip("netns delete mod-a")
        assert not ping(mover, net.b.inner(), "-w", "1", count=1)
    finally:
        net.a.genl.close()
        ip("netns add mod-a") if not os.path.exists("/run/netns/mod-a") else None
        ip("netns delete mod-c")


@test
def tunnel_in_tunnel_and_loop(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    # A link whose peer is reached through itself.
    expect(net.a.request("SET_PEER", peer(1, at=(net.b.inner(), PORT))), 0)
    before = net.a.drops()["SEND_FAILED"]
    assert not ping(net.a, net.b.inner(), "-w", "1", count=1)
    assert net.a.drops()["SEND_FAILED"] > before


@test
def tunnels_nested_deeper_than_the_stack_allows(net: Topology) -> None:
    """Four tunnels, each in the one before; then a ring of two that carry each other."""
    net.add_peers()
    net.add_keys()
    levels = [net.a, *(add_level(net, level) for level in range(1, 4))]
    for level in range(4):
        assert ping(net.a, f"10.9.{level}.2" if level else net.b.inner()), level
    data = os.urandom(1 << 18)
    assert transfer(net, net.a, data) == hashlib.sha256(data).hexdigest()
    # The outermost now goes through the innermost.
    expect(net.a.request("SET_PEER", peer(1, at=("10.9.3.2", PORT))), 0)
    def dropped() -> int:
        return sum(sum(link.drops().values()) for link in levels)

    before = dropped()
    ping(net.a, net.b.inner(), "-w", "3", count=5)
    # Which of the four drops a packet depends on where its depth is reached.
    assert until(lambda: dropped() > before)


def add_level(net: Topology, level: int) -> Host:
    """One more tunnel through the one below; the link on the side of `net.a`."""
    links = []
    for host in net.hosts:
        ip(f"-n {host.name} link add adit{level} mtu {1420 - 60 * level} type adit")
        ip(f"-n {host.name} address add 10.9.{level}.{host.number}/24 dev adit{level}")
        link = Host(host.name, host.number, host.genl, interface_index(level, host), host.public)
        expect(
            link.request(
                "SET_DEVICE",
                nest(
                    C["ADIT_A_DEVICE"],
                    u8(C["ADIT_A_DEVICE_CLAIM"], 1),
                    u16(C["ADIT_A_DEVICE_LISTEN_PORT"], PORT + level),
                ),
            ),
            0,
        )
        ip(f"-n {host.name} link set adit{level} up")
        links.append(link)
    one, two = random_key(), random_key()
    below = f"10.9.{level - 1}"
    for link, other, send, receive in ((*links, one, two), (*reversed(links), two, one)):
        wish = peer(1, other.public, [f"10.9.{level}.0/24"],
                    (f"{below}.{other.number}", PORT + level))
        expect(link.request("SET_PEER", wish), 0)
        expect(
            link.request("NEW_KEY", key(1, other.public, link.number, other.number, send, receive)),
            0,
        )
    return links[0]


def interface_index(level: int, host: Host) -> int:
    return adit_genl.interface_index(f"adit{level}", host.name)


@test
def life_cycles(net: Topology) -> None:
    for _ in range(int(os.environ.get("ADIT_TEST_CYCLES", "10"))):
        net.add_peers()
        net.add_keys()
        flood = subprocess.Popen(
            ["/sbin/ip", "netns", "exec", "mod-a", "ping", "-f", "-w", "9", net.b.inner()],
            stdout=subprocess.DEVNULL,
        )
        time.sleep(0.2)
        net.remove()
        flood.kill()
        flood.wait()
        net.__init__()  # type: ignore[misc]


# Bad input


@test
def bad_input_of_keys(net: Topology) -> None:
    net.add_peers()
    good = key_parts(1, net.b.public, 5, 6, random_key(), random_key())
    request = "NEW_KEY"

    def changed(name: str, part: bytes) -> bytes:
        return nest(C["ADIT_A_KEY"], *(good | {name: part}).values())

    for name in good:
        rest = nest(C["ADIT_A_KEY"], *(v for k, v in good.items() if k != name))
        expect(net.a.request(request, rest), errno.EINVAL, f"ADIT_A_KEY_{name}")
        for length in (0, 1, 3, 5, 31, 33, 300):
            if len(good[name]) - 4 == length or (length == 1 and name in ("SLOT", "SUITE")):
                continue
            kind = C[f"ADIT_A_KEY_{name}"]
            answer = net.a.request(request, changed(name, attribute(kind, bytes(length))))
            assert answer.error in (errno.EINVAL, errno.ERANGE), (name, length, answer)
            assert answer.text and answer.offset, (name, length, answer)
        nested = attribute(C[f"ADIT_A_KEY_{name}"] | 0x8000, good[name][4:])
        assert net.a.request(request, changed(name, nested)).error in (errno.EINVAL, 0)
        expect(net.a.request("DEL_KEYS", peer_id(1)), 0)
    for name, part, error in (
        ("SLOT", u8(C["ADIT_A_KEY_SLOT"], 2), errno.ERANGE),
        ("SUITE", u8(C["ADIT_A_KEY_SUITE"], 3), errno.ERANGE),
        ("REKEY_AFTER", u64(C["ADIT_A_KEY_REKEY_AFTER"], 0), errno.ERANGE),
        ("REJECT_AFTER", u64(C["ADIT_A_KEY_REJECT_AFTER"], (1 << 64) - 1), errno.ERANGE),
        ("PEER_ID", u64(C["ADIT_A_KEY_PEER_ID"], 99), errno.ENOENT),
        ("PEER_PUBLIC_KEY", attribute(C["ADIT_A_KEY_PEER_PUBLIC_KEY"], random_key()),
         errno.EKEYREJECTED),
    ):
        expect(net.a.request(request, changed(name, part)), error)
    expect(net.a.request(request), errno.EINVAL, "ADIT_A_KEY")


@test
def a_key_is_installed_once(net: Topology) -> None:
    net.add_peers()
    send, receive = random_key(), random_key()
    expect(net.a.request("NEW_KEY", key(1, net.b.public, 5, 6, send, receive)), 0)
    expect(net.a.request("NEW_KEY", key(1, net.b.public, 5, 6, random_key(), random_key())),
           errno.EEXIST, "LOCAL_INDEX")
    for one, two in ((send, receive), (receive, send), (send, random_key()),
                     (random_key(), receive)):
        expect(net.a.request("NEW_KEY", key(1, net.b.public, 7, 8, one, two)),
               errno.EEXIST, "ADIT_A_KEY_SEND")
    # Not after it was deleted, nor after 15 others.
    expect(net.a.request("DEL_KEYS", peer_id(1)), 0)
    for index in range(15):
        fresh = key(1, net.b.public, 100 + index, 6, random_key(), random_key())
        expect(net.a.request("NEW_KEY", fresh), 0)
    expect(net.a.request("NEW_KEY", key(1, net.b.public, 7, 8, send, receive)), errno.EEXIST)


@test
def bad_input_of_peers(net: Topology) -> None:
    request, public = "SET_PEER", random_key()
    nested = C["ADIT_A_PEER"]
    number = u64(C["ADIT_A_PEER_ID"], 1)
    named = attribute(C["ADIT_A_PEER_PUBLIC_KEY"], public)
    bad_endpoints = (
        endpoint(C["ADIT_A_PEER_ENDPOINT"], "1.2.3.4", None),
        endpoint(C["ADIT_A_PEER_ENDPOINT"], "1.2.3.4", 0),
        nest(C["ADIT_A_PEER_ENDPOINT"], u16(C["ADIT_A_ENDPOINT_PORT"], 5)),
        nest(C["ADIT_A_PEER_ENDPOINT"], attribute(C["ADIT_A_ENDPOINT_ADDRESS"], bytes(5)),
             u16(C["ADIT_A_ENDPOINT_PORT"], 5)),
        attribute(C["ADIT_A_PEER_ENDPOINT"], bytes(8)),
        endpoint(C["ADIT_A_PEER_LOCAL"], "1.2.3.4", None),
        endpoint(C["ADIT_A_PEER_ENDPOINT"], "1.2.3.4", 5)
        + endpoint(C["ADIT_A_PEER_LOCAL"], "::1", None),
    )
    bad_prefixes = (
        adit_genl.nest(0, attribute(1, bytes(4)), u8(2, 33)),
        adit_genl.nest(0, attribute(1, bytes(16)), u8(2, 129)),
        adit_genl.nest(0, attribute(1, bytes(5)), u8(2, 8)),
        adit_genl.nest(0, attribute(1, bytes(4))),
        adit_genl.nest(0, u8(2, 8)),
        attribute(0, bytes(4)),
    )
    cases = [
        (named, errno.EINVAL),
        (number, errno.EINVAL),
        (u64(C["ADIT_A_PEER_ID"], 0) + named, errno.ERANGE),
        (u32(C["ADIT_A_PEER_ID"], 1) + named, errno.EINVAL),
        (number + attribute(C["ADIT_A_PEER_PUBLIC_KEY"], bytes(31)), None),
        (number + named + u32(C["ADIT_A_PEER_FLAGS"], 8), errno.EINVAL),
        (number + named + u32(C["ADIT_A_PEER_FLAGS"], 4), errno.ENOENT),
        (number + named + u32(C["ADIT_A_PEER_PERSISTENT_KEEPALIVE"], 5), None),
        (number + named + attribute(C["ADIT_A_PEER_COOKIE"], bytes(65)), errno.ERANGE),
        (number + named + u64(C["ADIT_A_PEER_RX_BYTES"], 5), errno.EINVAL),
        (number + named + attribute(C["ADIT_A_PEER_ALLOWED_IPS"], bytes(8)), errno.EINVAL),
        *((number + named + bad, None) for bad in bad_endpoints),
        *((number + named + nest(C["ADIT_A_PEER_ALLOWED_IPS"], adit_genl.allowed_ip("1.0.0.0/8"),
                                 bad), None) for bad in bad_prefixes),
    ]
    for content, error in cases:
        answer = net.a.request(request, nest(nested, content))
        assert answer.error and answer.text, (content, answer)
        assert error is None or answer.error == error, (content, answer)
        assert struct.unpack("I", net.a.device()[C["ADIT_A_DEVICE_PEER_COUNT"]]) == (0,), content
    expect(net.a.request(request), errno.EINVAL, "ADIT_A_PEER")
    expect(net.a.request(request, nest(nested, number, named, attribute(999, b"new"))), 0)
    expect(net.a.request(request, peer(1, random_key())), errno.EINVAL, "PUBLIC_KEY")
    for command in ("DEL_PEER", "DEL_KEYS", "DROP_STAGED", "SEND_CONTROL"):
        expect(net.a.request(command, peer_id(77)), errno.ENOENT, "ADIT_A_PEER_ID")
        expect(net.a.request(command), errno.EINVAL, "ADIT_A_PEER")
        expect(net.a.request(command, nest(nested, named)), errno.EINVAL, "ADIT_A_PEER_ID")
    expect(net.a.request("DEL_PEER", peer_id(1)), 0)
    expect(net.a.request(request, peer(1, public)), errno.EINVAL, "used before")
    control = attribute(C["ADIT_A_PAYLOAD"], b"\x45")
    expect(net.a.request(request, peer(2, public)), 0)
    expect(net.a.request("SEND_CONTROL", peer_id(2), control), errno.EINVAL, "ADIT_A_PAYLOAD")
    expect(net.a.request("SEND_CONTROL", peer_id(2)), errno.EINVAL, "ADIT_A_PAYLOAD")


@test
def bad_input_of_devices(net: Topology) -> None:
    genl = net.a.genl
    set_device = C["ADIT_CMD_SET_DEVICE"]
    wish = nest(C["ADIT_A_DEVICE"], u32(C["ADIT_A_DEVICE_FWMARK"], 1))
    expect(genl.request(set_device, wish), errno.EINVAL, "ADIT_A_IFINDEX")
    expect(genl.request(set_device, device(9999), wish), errno.ENODEV)
    expect(genl.request(set_device, device(0), wish), errno.ERANGE)
    expect(genl.request(set_device, u16(C["ADIT_A_IFINDEX"], 1), wish), errno.EINVAL)
    expect(genl.request(set_device, attribute(C["ADIT_A_IFNAME"], b"lo\0"), wish), errno.ENODEV)
    expect(genl.request(set_device, attribute(C["ADIT_A_IFNAME"], b"x" * 16), wish), None or 22)
    expect(net.a.request("SET_DEVICE"), errno.EINVAL, "ADIT_A_DEVICE")
    before = net.a.device()
    for part in (
        u32(C["ADIT_A_DEVICE_LISTEN_PORT"], 5),
        attribute(C["ADIT_A_DEVICE_BIND_ADDRESS"], bytes(5)),
        attribute(C["ADIT_A_DEVICE_BIND_ADDRESS"], bytes(17)),
        attribute(C["ADIT_A_DEVICE_MAC1_KEY"], bytes(31)),
        attribute(C["ADIT_A_DEVICE_PUBLIC_KEY"], bytes(33)),
        u8(C["ADIT_A_DEVICE_CLAIM"], 2),
        u32(C["ADIT_A_DEVICE_CLAIMANT"], 1),
        u16(C["ADIT_A_DEVICE_LISTEN_PORT"], 6)
        + attribute(C["ADIT_A_DEVICE_BIND_ADDRESS"], socket.inet_aton("9.9.9.9")),
    ):
        mark = u32(C["ADIT_A_DEVICE_FWMARK"], 7)
        answer = net.a.request("SET_DEVICE", nest(C["ADIT_A_DEVICE"], mark, part))
        assert answer.error and answer.text, (part, answer)
        now = net.a.device()
        for name in ("LISTEN_PORT", "FWMARK", "BIND_ADDRESS", "MAC1_KEY", "PUBLIC_KEY"):
            kind = C[f"ADIT_A_DEVICE_{name}"]
            assert before.get(kind) == now.get(kind), (part, name)


@test
def a_taken_port_is_refused(net: Topology) -> None:
    with namespace("mod-a"):
        holder = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    holder.bind(("::", 5555))
    port = nest(C["ADIT_A_DEVICE"], u16(C["ADIT_A_DEVICE_LISTEN_PORT"], 5555))
    expect(net.a.request("SET_DEVICE", port), errno.EADDRINUSE, "LISTEN_PORT")
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    holder.close()
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


@test
def the_unprivileged_are_refused(net: Topology) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            genl = Genl("mod-a")
            os.setgid(65534)
            os.setuid(65534)
            for name, number in C.items():
                if not name.startswith("ADIT_CMD_") or "EVENT" in name or number == 0:
                    continue
                if name in ("ADIT_CMD_MAX",):
                    continue
                dump = name == "ADIT_CMD_GET_PEER"
                answer = genl.request(number, device(net.a.index), dump=dump)
                assert answer.error == errno.EPERM, (name, answer)
            try:
                genl.join()
                raise AssertionError("joined the group")
            except PermissionError:
                pass
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


# Fuzzing


def random_attributes(numbers: random.Random, depth: int = 0) -> bytes:
    parts = []
    for _ in range(numbers.randrange(6)):
        kind = numbers.randrange(20) | numbers.choice((0, 0, 0x8000, 0x4000))
        if depth < 3 and numbers.random() < 0.5:
            content = random_attributes(numbers, depth + 1)
        else:
            length = numbers.choice((0, 1, 2, 4, 4, 8, 8, 16, 32, 32, 64, 148, 256, 300))
            content = numbers.randbytes(length)
        part = attribute(kind, content)
        if numbers.random() < 0.02:
            part = part[: numbers.randrange(len(part) + 1)]
        if numbers.random() < 0.02:
            part = struct.pack("H", numbers.randrange(65536)) + part[2:]
        parts.append(part)
    return b"".join(parts)


@test
def fuzz(net: Topology) -> None:
    seed = int(os.environ.get("ADIT_TEST_SEED", time.time_ns() % 10**9))
    rounds = int(os.environ.get("ADIT_TEST_FUZZ", "3000"))
    print(f"  seed {seed}, {rounds} messages", flush=True)
    numbers = random.Random(seed)
    net.add_peers()
    net.add_keys()
    commands = [n for k, n in C.items() if k.startswith("ADIT_CMD_") and k != "ADIT_CMD_MAX"]
    wraps = [C["ADIT_A_DEVICE"], C["ADIT_A_PEER"], C["ADIT_A_KEY"], C["ADIT_A_ENDPOINT"]]
    for _ in range(rounds):
        content = random_attributes(numbers)
        if numbers.random() < 0.6:
            content = nest(numbers.choice(wraps), content)
        if numbers.random() < 0.9:
            content = device(net.a.index) + content
        command = numbers.choice(commands)
        dump = command == C["ADIT_CMD_GET_PEER"] and numbers.random() < 0.9
        net.a.genl.request(command, content, dump=dump)
        net.a.genl.events.clear()
    # It is still the device that it was, if it was not given away.
    other = Genl("mod-a")
    assert other.request(C["ADIT_CMD_GET_DEVICE"], device(net.a.index)).error == 0
    other.close()


def main() -> int:
    failed = []
    for function in TESTS:
        if sys.argv[1:] and not any(word in function.__name__ for word in sys.argv[1:]):
            continue
        begin = time.monotonic()
        net = Topology()
        try:
            function(net)
            verdict = "ok"
        except Exception:
            traceback.print_exc()
            failed.append(function.__name__)
            verdict = "FAILED"
        net.remove()
        print(f"{verdict}  {function.__name__}  {time.monotonic() - begin:.1f} s", flush=True)
    print(f"{len(failed)} failed: {' '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
