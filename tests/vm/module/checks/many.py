"""Many peers and many allowed IPs: over several messages, read back, removed under traffic."""

from __future__ import annotations

import ipaddress
import socket
import struct

import adit_genl
from adit_genl import C, attributes, peer, peer_id, random_key
from topology import PORT, Topology

from .support import background, expect, ping, test

PEERS = 500
PREFIXES = 2000


def prefixes_of(content: dict[int, bytes]) -> list[str]:
    found = []
    for _, value in adit_genl.attribute_list(content[C["ADIT_A_PEER_ALLOWED_IPS"]]):
        parts = attributes(value)
        raw = parts[C["ADIT_A_ALLOWED_IP_ADDRESS"]]
        family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
        address = socket.inet_ntop(family, raw)
        found.append(f"{address}/{parts[C['ADIT_A_ALLOWED_IP_LENGTH']][0]}")
    return found


@test
def many_allowed_ips_come_back(net: Topology) -> None:
    net.add_peers()
    wanted = [f"10.{100 + i // 250}.{i % 250}.0/24" for i in range(PREFIXES // 2)]
    wanted += [f"fd00:{i:x}:{i:x}::/{33 + i % 90}" for i in range(PREFIXES // 2)]
    wanted = list(dict.fromkeys(masked(prefix) for prefix in wanted))
    wanted.append(f"{net.b.inner()}/32")
    for start in range(0, len(wanted), 250):
        flags = C["ADIT_PEER_F_APPEND_ALLOWED_IPS"] if start else 0
        expect(net.a.request("SET_PEER", peer(1, allowed=wanted[start : start + 250],
                                              flags=flags)), 0)
    answer = net.a.request("GET_PEER", dump=True)
    contents = [attributes(message[C["ADIT_A_PEER"]]) for message in answer.messages]
    assert len(contents) > 1
    # Only the first one has more than the id and prefixes.
    assert [C["ADIT_A_PEER_PUBLIC_KEY"] in content for content in contents] == (
        [True] + [False] * (len(contents) - 1))
    found = [prefix for content in contents for prefix in prefixes_of(content)]
    assert len(found) == len(set(found)) and set(found) == set(wanted), len(found)
    net.add_keys()
    assert ping(net.a, net.b.inner())
    expect(net.a.request("SET_PEER", peer(1, allowed=[f"{net.b.inner()}/32"])), 0)
    assert prefixes_of(net.a.peer()) == [f"{net.b.inner()}/32"]


def masked(prefix: str) -> str:
    return str(ipaddress.ip_network(prefix, strict=False))


def merged(messages: list[dict[int, bytes]]) -> dict[int, tuple[dict[int, bytes], list[str]]]:
    """By id, what a dump tells of each peer: where a datagram is full, a peer's prefixes go on in
    another message."""
    told: dict[int, tuple[dict[int, bytes], list[str]]] = {}
    for message in messages:
        content = attributes(message[C["ADIT_A_PEER"]])
        number = int.from_bytes(content[C["ADIT_A_PEER_ID"]], "little")
        told.setdefault(number, (content, []))[1].extend(prefixes_of(content))
    return told


@test
def many_peers_come_and_go_under_traffic(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    flood = background("mod-a", "ping", "-f", "-w", "60", net.b.inner())
    try:
        keys = {2 + i: random_key() for i in range(PEERS)}
        for number, public in keys.items():
            host = number - 2
            wish = peer(number, public, [f"10.50.{host >> 8}.{host & 255}/32"],
                        ("10.8.0.200", 1000 + host), keepalive=host % 7)
            expect(net.a.request("SET_PEER", wish), 0)
        assert struct.unpack("I", net.a.device()[C["ADIT_A_DEVICE_PEER_COUNT"]])[0] == PEERS + 1
        answer = net.a.request("GET_PEER", dump=True)
        told = merged(answer.messages)
        assert len(told) == PEERS + 1, len(told)
        for number, public in keys.items():
            content, prefixes = told[number]
            host = number - 2
            assert content[C["ADIT_A_PEER_PUBLIC_KEY"]] == public
            assert prefixes == [f"10.50.{host >> 8}.{host & 255}/32"], (number, prefixes)
            at = attributes(content[C["ADIT_A_PEER_ENDPOINT"]])
            assert at[C["ADIT_A_ENDPOINT_PORT"]] == struct.pack("H", 1000 + host)
        # The last one is as good as any, with the other end's key.
        expect(net.a.request("DEL_PEER", peer_id(1)), 0)
        expect(net.a.request("DEL_PEER", peer_id(PEERS + 1)), 0)
        net.a.peer_number = PEERS + 2
        expect(net.a.request("SET_PEER", peer(PEERS + 2, net.b.public,
                                              [f"{net.b.inner()}/32"], (net.b.wire(), PORT))), 0)
        net.add_keys(first_index=1000)
        assert ping(net.a, net.b.inner())
        for number in list(keys)[:-1:4]:
            expect(net.a.request("DEL_PEER", peer_id(number)), 0)
        assert ping(net.a, net.b.inner())
        # The rest goes with the link, at once.
    finally:
        flood.kill()
        flood.wait()
