"""Session keys: when they come into use, how long they last, and their change under traffic."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import time

from adit_genl import (
    C, attribute, key, nest, peer_id, random_key,
)
from topology import Topology, run_in

from .handshakes import initiation
from .support import (
    Wire, expect, no_answer, ping, send_raw, sha256, test, transfer, udp_socket, until,
)


@test
def next_key_waits_for_the_first_packet(net: Topology) -> None:
    net.add_peers()
    one, two = random_key(), random_key()
    assert C["ADIT_A_PEER_NEXT_SUITE"] not in net.b.peer()
    answer = net.b.request(
        "NEW_KEY", key(1, net.a.public, 7, 8, two, one, slot=C["ADIT_KEY_SLOT_NEXT"], suite=2)
    )
    expect(answer, 0)
    pending = net.b.peer()
    assert pending[C["ADIT_A_PEER_NEXT_SUITE"]] == b"\2"
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - net.b.peer_number_of("NEXT_START") / 1e9
    assert -0.1 < age < 5, age
    assert no_answer(net.b, net.a.inner())
    assert C["ADIT_A_PEER_SUITE"] not in net.b.peer()
    assert net.b.peer_number_of("TX_PACKETS") == 0
    expect(net.a.request("NEW_KEY", key(1, net.b.public, 8, 7, one, two, suite=2)), 0)
    assert net.b.genl.event(C["ADIT_CMD_EVENT_KEY_CONFIRMED"])
    assert C["ADIT_A_PEER_NEXT_SUITE"] not in net.b.peer()
    assert net.b.peer()[C["ADIT_A_PEER_SUITE"]] == b"\2"
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
    with udp_socket("mod-a") as sender:
        sender.settimeout(None)
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
    # Asked for when the key was about to end, and again because packets wait.
    for reason in ("ADIT_HANDSHAKE_KEY_AGING", "ADIT_HANDSHAKE_STAGED"):
        event = net.a.genl.event(C["ADIT_CMD_EVENT_NEED_HANDSHAKE"])
        assert event and event[C["ADIT_A_HANDSHAKE_REASON"]] == bytes([C[reason]]), event


@test
def a_super_packet_does_not_pass_the_limit(net: Topology) -> None:
    """One that has more packets than the key has counters left waits for the next key, whole."""
    net.add_peers()
    net.add_keys(REKEY_AFTER_MESSAGES=5, REJECT_AFTER_MESSAGES=20)
    with udp_socket("mod-a") as sender, udp_socket("mod-b") as receiver:
        receiver.bind((net.b.inner(), 7001))
        sender.setsockopt(socket.IPPROTO_UDP, 103, 100)  # UDP_SEGMENT
        sender.sendto(bytes(30 * 100), (net.b.inner(), 7001))
        assert net.a.genl.event(C["ADIT_CMD_EVENT_NEED_HANDSHAKE"])
        assert net.a.peer_number_of("TX_PACKETS") == 1
        net.add_keys(first_index=50)
        assert [receiver.recv(200) for _ in range(30)] == 30 * [bytes(100)]


@test
def a_key_past_its_age_is_of_no_use(net: Topology) -> None:
    """Also before the timers wipe it, which is later: neither for sending nor for receiving."""
    net.add_peers()
    with Wire("mod-b") as wire:
        net.add_keys(REJECT_AFTER=5 * 10**9)
        assert until(lambda: net.b.peer_number_of("RX_PACKETS") == 1)
        run_in("mod-b", "ip", "link", "set", "adit0", "down", check=True)
        assert no_answer(net.a, net.b.inner())
        run_in("mod-b", "ip", "link", "set", "adit0", "up", check=True)
        late = [outer.payload for outer in wire.drain()][-1]
    assert struct.unpack_from("<Q", late, 8)[0] > 0
    start = net.b.peer_number_of("SESSION_START") / 1e9
    assert until(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) > start + 5.1)
    sent = net.a.peer_number_of("TX_PACKETS")
    assert no_answer(net.a, net.b.inner())
    assert net.a.peer_number_of("TX_PACKETS") == sent
    send_raw(net, late)
    assert until(lambda: net.b.drops()["KEY_EXPIRED"] == 1), net.b.drops()
    assert net.b.peer_number_of("RX_PACKETS") == 1
    assert time.clock_gettime(time.CLOCK_BOOTTIME) < start + 15, "too slow to tell"


@test
def keys_change_under_traffic(net: Topology) -> None:
    """New keys, of each suite in turn, twice a second: nothing is lost, and no counter comes
    twice."""
    net.add_peers()
    net.add_keys()
    pinger = subprocess.Popen(
        ["/sbin/ip", "netns", "exec", "mod-a",
         *("ping", "-q", "-i", "0.02", "-c", "150", "-W", "5"), net.b.inner()],
        stdout=subprocess.PIPE, text=True,
    )
    for round_ in range(1, 7):
        time.sleep(0.5)
        net.add_keys(suite=round_ % 3, first_index=10 * round_)
    output = pinger.communicate(timeout=60)[0]
    assert " 0% packet loss" in output, output
    data = os.urandom(1 << 20)
    assert transfer(net, net.b, data) == sha256(data)
    for host in net.hosts:
        wrong = {k: v for k, v in host.drops().items() if v and k != "NO_PEER"}
        assert not wrong, wrong


@test
def the_identity_changes_live(net: Topology) -> None:
    """What aditd does when the device's private key changes: another public key and mac1 key, and
    for the other side another peer. Handshakes for the old identity are refused."""
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    old = net.b.mac1_key
    net.b.public, net.b.mac1_key = random_key(), random_key()
    answer = net.b.request(
        "SET_DEVICE",
        nest(C["ADIT_A_DEVICE"], attribute(C["ADIT_A_DEVICE_PUBLIC_KEY"], net.b.public),
             attribute(C["ADIT_A_DEVICE_MAC1_KEY"], net.b.mac1_key)),
    )
    expect(answer, 0)
    assert net.b.device()[C["ADIT_A_DEVICE_PUBLIC_KEY"]] == net.b.public
    send_raw(net, initiation(old))
    assert until(lambda: net.b.drops()["BAD_MAC"] == 1)
    send_raw(net, initiation(net.b.mac1_key))
    assert net.b.genl.event(C["ADIT_CMD_EVENT_HANDSHAKE"])
    expect(net.a.request("DEL_PEER", peer_id(1)), 0)
    expect(net.b.request("DEL_KEYS", peer_id(1)), 0)
    assert no_answer(net.a, net.b.inner())
    net.a.peer_number = 2
    net.add_peers()
    net.add_keys(first_index=50)
    assert ping(net.a, net.b.inner())
    # Without a mac1 key no handshake passes.
    empty = nest(C["ADIT_A_DEVICE"], attribute(C["ADIT_A_DEVICE_MAC1_KEY"], b""))
    expect(net.b.request("SET_DEVICE", empty), 0)
    assert C["ADIT_A_DEVICE_MAC1_KEY"] not in net.b.device()
    send_raw(net, initiation(net.b.mac1_key))
    assert until(lambda: net.b.drops()["BAD_MAC"] == 2)


@test
def a_datagram_counts_once(net: Topology) -> None:
    """Datagrams that were recorded on the wire and come again are refused and counted."""
    net.add_peers()
    with Wire("mod-b") as wire:
        net.add_keys()
        assert ping(net.a, net.b.inner(), count=3)
        seen = [outer.payload for outer in wire.drain()]
    assert len(seen) >= 4, len(seen)
    before = net.b.peer_number_of("RX_PACKETS")
    for datagram in seen:
        send_raw(net, datagram)
    assert until(lambda: net.b.drops()["REPLAY"] == len(seen)), net.b.drops()
    assert net.b.peer_number_of("RX_PACKETS") == before
    counters = [struct.unpack_from("<Q", datagram, 8)[0] for datagram in seen]
    assert counters == list(range(len(seen))), counters
