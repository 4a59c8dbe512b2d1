"""Where datagrams go and come from: roaming, the sticky source address, link-local addresses."""

from __future__ import annotations

import json
import socket
import struct

from adit_genl import C, attributes, endpoint, interface_index, nest, peer, u16, u64
from topology import PORT, Host, Topology, ip, run_in

from .support import Wire, expect, no_answer, ping, send_raw, test, until


def source_of(host: Host) -> tuple[str, int]:
    found = attributes(host.peer()[C["ADIT_A_PEER_ENDPOINT"]])
    raw = found[C["ADIT_A_ENDPOINT_ADDRESS"]]
    address = socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)
    return address, struct.unpack("H", found[C["ADIT_A_ENDPOINT_PORT"]])[0]


def set_port(host: Host, port: int) -> None:
    wish = nest(C["ADIT_A_DEVICE"], u16(C["ADIT_A_DEVICE_LISTEN_PORT"], port))
    expect(host.request("SET_DEVICE", wish), 0)


@test
def endpoint_follows_authenticated_packets_only(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    ip("-n mod-a address add 10.8.0.77/24 dev wire")
    assert send_raw(net, b"\4\0\0\0" + struct.pack("<IQ", 3, 1 << 20) + bytes(32), "10.8.0.77")
    assert until(lambda: net.b.drops()["AUTHENTICATION"] == 1)
    assert source_of(net.b) == (net.a.wire(), PORT)
    set_port(net.a, 4444)
    assert ping(net.a, net.b.inner())
    assert source_of(net.b) == (net.a.wire(), 4444)
    assert net.b.genl.event(C["ADIT_CMD_EVENT_ENDPOINT_MOVED"])
    # To the other family and back.
    for address in (net.b.wire(True), net.b.wire()):
        expect(net.a.request("SET_PEER", peer(1, at=(address, PORT))), 0)
        assert ping(net.a, net.b.inner())
        assert source_of(net.b) == (net.a.wire(":" in address), 4444)
        assert ping(net.b, net.a.inner(True))
    # And not when it is told to stay.
    expect(net.b.request("SET_PEER", peer(1, flags=C["ADIT_PEER_F_NO_ROAM"])), 0)
    set_port(net.a, 4445)
    assert no_answer(net.a, net.b.inner())
    assert source_of(net.b) == (net.a.wire(), 4444)


def sticky(net: Topology, first: str, second: str, v6: bool) -> None:
    """Replies come from the address that was contacted; when it goes, from another one."""
    prefix = "/64 nodad" if v6 else "/24"
    for address in (first, second):
        ip(f"-n mod-b address add {address}{prefix} dev wire")
    with Wire("mod-a") as wire:
        for address in (first, second, first):
            expect(net.a.request("SET_PEER", peer(1, at=(address, PORT))), 0)
            assert ping(net.a, net.b.inner()), address
            sources = {outer.source for outer in wire.drain()}
            assert sources == {address}, (address, sources)
            assert source_of(net.a) == (address, PORT)
    ip(f"-n mod-b address delete {first}{prefix.split()[0]} dev wire")
    assert until(lambda: ping(net.b, net.a.inner(), count=1))
    assert source_of(net.a) != (first, PORT)
    assert ping(net.a, net.b.inner())


@test
def sticky_source_address(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    sticky(net, "10.8.0.99", "10.8.0.98", v6=False)


@test
def sticky_source_address_v6(net: Topology) -> None:
    net.add_peers(v6=True)
    net.add_keys()
    sticky(net, "fd08::99", "fd08::98", v6=True)


def link_local(netns: str) -> str:
    """The wire's, once it has one that is known to be its own."""
    found: list[str] = []

    def ready() -> bool:
        done = run_in(netns, "ip", "-j", "-6", "address", "show", "dev", "wire", "scope", "link",
                      "-tentative", capture_output=True, check=True)
        found[:] = (item["local"] for link in json.loads(done.stdout)
                    for item in link.get("addr_info", ()) if "local" in item)
        return bool(found)

    assert until(ready), netns
    return found[0]


@test
def link_local_endpoints(net: Topology) -> None:
    """The scope is the interface: given for the one end, learned by the other."""
    net.add_peers(b_knows_a=False)
    ours, theirs = link_local("mod-a"), link_local("mod-b")
    for scope, works in ((0, False), (interface_index("wire", "mod-a"), True)):
        at = endpoint(C["ADIT_A_PEER_ENDPOINT"], theirs, PORT, scope)
        wish = nest(C["ADIT_A_PEER"], u64(C["ADIT_A_PEER_ID"], 1), at)
        expect(net.a.request("SET_PEER", wish), 0)
        net.add_keys(first_index=100 + scope)
        assert until(lambda: ping(net.a, net.b.inner(), "-w", "2", count=1), 8 if works else 0) \
            == works, scope
    assert source_of(net.b) == (ours, PORT)
    learned = attributes(net.b.peer()[C["ADIT_A_PEER_ENDPOINT"]])
    index = interface_index("wire", "mod-b")
    assert learned[C["ADIT_A_ENDPOINT_IFINDEX"]] == struct.pack("I", index)
    assert ping(net.b, net.a.inner(True), "-s", "1300")
