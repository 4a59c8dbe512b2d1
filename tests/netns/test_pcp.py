#!/usr/bin/env python3
"""Ports that a NAS asks its server for: PCP and NAT-PMP, by adit and by clients of others.

Topology: `Home` in lab/topology.py.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass, field

from lab import (
    PORT,
    Adit,
    Home,
    Lab,
    LabError,
    PeerSpec,
    TunnelSpec,
    WebServer,
    WireGuard,
    cpu_seconds,
    expect,
    fetch_sha256,
    home,
    key_pair,
    main,
    ping,
    progress,
    resident_kib,
    scenario,
    wait_until,
)
from lab import pcp
from lab.source_echo import ask_from, source_echo
from lab.torrent import torrent

SERVER, NAS, OTHER = "10.10.0.1", "10.10.0.2", "10.10.0.3"
GRANTS = "tcp/18000-18100, udp/18000-18100"


@dataclass
class Setup:
    """What differs from the plain; all of it lines of configuration files or environments."""

    allow: str = GRANTS
    nas_maps: list[list[str]] = field(default_factory=list)
    server_maps: list[list[str]] = field(default_factory=list)
    nas_extra: list[str] = field(default_factory=lambda: ["Table = reply", "Expose = maps"])
    server_env: dict[str, str] = field(default_factory=dict)
    nas_env: dict[str, str] = field(default_factory=dict)
    nas_networks: str = f"{NAS}/32, fd10::2/128"


def tunnels(lab: Lab, setup: Setup) -> tuple[Home, Adit, Adit]:
    """Server and NAS, both up; a third peer exists in the server's file alone."""
    net = home(lab)
    server_keys, nas_keys, other_keys = key_pair(), key_pair(), key_pair()
    nas_peer = PeerSpec(nas_keys.public, setup.nas_networks, name="nas")
    nas_peer.extra += [f"AllowMaps = {setup.allow}"] if setup.allow else []
    server = Adit(
        net.server,
        lab.device("srv"),
        TunnelSpec(
            server_keys,
            [f"{SERVER}/24", "fd10::1/64"],
            listen_port=PORT,
            peers=[nas_peer, PeerSpec(other_keys.public, f"{OTHER}/32", name="other")],
            maps=setup.server_maps,
        ),
        env=setup.server_env,
    )
    endpoint = f"{net.server_address}:{PORT}"
    nas = Adit(
        net.nas,
        lab.device("nas"),
        TunnelSpec(
            nas_keys,
            [f"{NAS}/24", "fd10::2/64"],
            extra=list(setup.nas_extra),
            peers=[
                PeerSpec(server_keys.public, "0.0.0.0/0, ::/0", endpoint=endpoint, keepalive=25)
            ],
            maps=setup.nas_maps,
        ),
        env=setup.nas_env,
    )
    server.up()
    nas.up()
    wait_until(lambda: nas.peer().latest_handshake > 0, 20, "the tunnel is up")
    return net, server, nas


def requests(tunnel: Adit, role: str) -> dict[str, dict[str, object]]:
    """By port: what was asked for."""
    found = tunnel.status()["requests"]
    return {entry["listen"]: entry for entry in found if entry["role"] == role}


def leases(server: Adit) -> list[str]:
    return sorted(requests(server, "lease"))


def has_leases(server: Adit, *wanted: str) -> None:
    what = f"the server's leases are {list(wanted)}"
    wait_until(lambda: leases(server) == sorted(wanted), 20, what)


def fetches(net: Home, port: int, timeout: float = 5) -> str | None:
    url = f"http://{net.server_address}:{port}/file"
    try:
        return fetch_sha256(net.client, url, timeout=timeout)
    except LabError:
        return None


def table(server: Adit) -> str:
    """Rules and sets of the server's table, without what counts; empty where there is none."""
    argv = ("nft", "-s", "list", "table", "inet", f"adit_{server.name}")
    return server.where.run(*argv, check=False).out


def elements(server: Adit, port: int) -> list[str]:
    """The elements of all sets that name a port."""
    argv = ("nft", "-j", "list", "table", "inet", f"adit_{server.name}")
    listing = json.loads(server.where.run(*argv).out)["nftables"]
    sets = [entry for part in listing for entry in part.values() if "elem" in entry]
    return sorted(
        f"{entry['name']}: {json.dumps(element)}"
        for entry in sets
        for element in entry["elem"]
        if str(port) in json.dumps(element)
    )


def ask(net: Home, packet: bytes, source: str = NAS) -> pcp.Answer:
    return pcp.ask(net.nas, source, SERVER, packet)


@scenario(seconds=90)
def natpmpc_gets_and_returns_a_port(lab: Lab) -> None:
    """Debian's NAT-PMP client: external address, a mapping, its renewal, its end."""
    net, server, _nas = tunnels(lab, Setup(nas_extra=["Table = reply"]))
    web = WebServer(net.nas, mebibytes=1)

    def natpmpc(*args: str) -> str:
        return net.nas.run("natpmpc", "-g", SERVER, *args).out

    expect(net.server_address in natpmpc(), "natpmpc sees the server's public address")
    expect("Mapped public port 18080" in natpmpc("-a", "18080", "80", "tcp", "600"), "it maps")
    has_leases(server, "tcp/18080")
    lease = requests(server, "lease")["tcp/18080"]
    expect(lease["peer"] == "nas" and lease["protocol"] == "NAT-PMP", f"who asked: {lease}")
    expect(590 <= int(str(lease["lifetime"])) <= 600, f"its lifetime: {lease}")
    expect(fetches(net, 18080) == web.sha256, "the file through the port that was asked for")
    expect(web.clients()[-1] == net.client_address, "the NAS sees the client")
    expect("Mapped public port 18080" in natpmpc("-a", "0", "80", "tcp", "600"), "it renews")
    refused = net.nas.run(
        "natpmpc", "-g", SERVER, "-a", "2222", "22", "udp", "600", check=False
    )
    expect("Mapped public port 18000" in refused.out, f"another port is offered: {refused.out}")
    natpmpc("-a", "0", "80", "tcp", "0")
    natpmpc("-a", "0", "22", "udp", "0")
    has_leases(server)
    expect(fetches(net, 18080, timeout=2) is None, "the port is closed again")


@scenario(seconds=90)
def a_torrent_client_asks_by_pcp(lab: Lab) -> None:
    """libtorrent, on a machine whose default route is the tunnel."""
    net, server, nas = tunnels(lab, Setup(allow="tcp+udp/6881", nas_extra=["Table = off"]))
    net.nas.ip("route", "replace", net.server_address, "via", "192.168.50.1")
    net.nas.ip("route", "replace", "default", "via", SERVER, "dev", nas.name)
    client = torrent(net.nas, NAS, 6881)
    has_leases(server, "tcp/6881", "udp/6881")
    lease = requests(server, "lease")["tcp/6881"]
    expect(lease["protocol"] == "PCP" and lease["target"] == f"{NAS}:6881", f"by PCP: {lease}")
    client.stop()
    has_leases(server)


@scenario(seconds=120)
def the_nas_s_own_file_asks(lab: Lab) -> None:
    """[Map] in the NAS's file alone; refusals on both sides; reload and down give ports back."""
    maps = [
        ["Listen = tcp/18080", f"To = {NAS}:80"],
        ["Listen = udp/18010-18019", f"To = {NAS}:6000"],
        ["Listen = tcp/2222", f"To = {NAS}:22"],
    ]
    net, server, nas = tunnels(lab, Setup(nas_maps=maps))
    web = WebServer(net.nas, mebibytes=1)
    has_leases(server, "tcp/18080", "udp/18010-18019")
    expect(fetches(net, 18080) == web.sha256, "the file through the port that was asked for")
    expect(web.clients()[-1] == net.client_address, "the NAS sees the client")
    asked = wait_until(
        lambda: (found := requests(nas, "request"))
        and found["tcp/2222"]["state"] == "refused"
        and found,
        20,
        "the NAS hears the refusal",
    )
    expect(asked["tcp/18080"]["state"] == "granted", f"granted: {asked}")
    reason = f"tcp/2222 is not within AllowMaps of nas (tcp/18000-18100, udp/18000-18100)"
    expect(reason in str(asked["tcp/2222"]["reason"]), f"the NAS knows why: {asked['tcp/2222']}")
    refusal = requests(server, "refusal")["tcp/2222"]
    expect(refusal["peer"] == "nas" and reason in str(refusal["reason"]), f"the server: {refusal}")
    states = {entry["listen"]: entry for entry in nas.status()["maps"]}
    expect(states["tcp/18080"]["active"], f"status of the mapping: {states}")
    expect(reason in states["tcp/2222"]["reason"], f"status of the refused one: {states}")
    expect("tcp/2222" in nas.cli("status", nas.name).out, "the text of status has it")

    before = elements(server, 18080)
    nas.spec.maps = [maps[0], ["Listen = tcp/18090", f"To = {NAS}:81"]]
    nas.write()
    nas.cli("reload", nas.name)
    has_leases(server, "tcp/18080", "tcp/18090")
    expect(fetches(net, 18080) == web.sha256, "the mapping that stayed still works")
    expect(bool(before) and elements(server, 18080) == before, "its elements are untouched")
    nas.down()
    expect(leases(server) == [], "down has given the ports back")
    expect(fetches(net, 18080, timeout=2) is None, "the port is closed")


@scenario(seconds=120)
def restarts_lose_nothing(lab: Lab) -> None:
    """Either daemon is killed, or taken down and up: the ports come back by themselves."""
    net, server, nas = tunnels(lab, Setup(nas_maps=[["Listen = tcp/18080", f"To = {NAS}:80"]]))
    web = WebServer(net.nas, mebibytes=1)
    has_leases(server, "tcp/18080")

    rules = table(server)
    server.crash()
    expect(table(server) == rules, "the rules outlive the server's daemon")
    server.up()
    expect(leases(server) == ["tcp/18080"], "the leases outlive it too")
    expect(table(server) == rules, "and the restart changes no rule")

    nas.crash()
    expect(leases(server) == ["tcp/18080"], "a NAS that is killed keeps its port")
    nas.up()
    ping(net.nas, SERVER)
    wait_until(
        lambda: requests(nas, "request")["tcp/18080"]["state"] == "granted", 20, "asked again"
    )
    has_leases(server, "tcp/18080")
    expect(fetches(net, 18080) == web.sha256, "the file")

    # What the server knows of its past is gone: the NAS hears of it, and asks again at once.
    server.down()
    for path in (net.server.dir / "state").rglob("leases.json"):
        path.unlink()
    server.up()
    # With traffic, a peer notices after fifteen seconds that its session is gone.
    probe = ("ping", "-c", "1", "-W", "1", SERVER)
    wait_until(lambda: net.nas.run(*probe, check=False).code == 0, 60, "a new session")
    has_leases(server, "tcp/18080")
    expect(fetches(net, 18080) == web.sha256, "the file")
    server.down()
    server.up()
    expect(leases(server) == ["tcp/18080"], "leases are there before the NAS has asked")


@scenario(seconds=90)
def leases_end_when_they_are_not_renewed(lab: Lab) -> None:
    setup = Setup(
        nas_extra=["Table = reply"], server_env={"ADIT_TEST_PCP_MINIMUM_LIFETIME_S": "2"}
    )
    net, server, _nas = tunnels(lab, setup)
    WebServer(net.nas, mebibytes=1)
    answer = ask(net, pcp.map_request(NAS, 80, 18080, lifetime=10))
    expect(answer.result == pcp.SUCCESS and answer.lifetime == 10, f"a short lease: {answer}")
    expect(fetches(net, 18080) is not None, "it works")
    has_leases(server)
    expect(fetches(net, 18080, timeout=2) is None, "and has gone by itself")
    expect("18080" not in table(server), "the rules are gone")


@scenario(seconds=90)
def renewed_for_as_long_as_it_is_wanted(lab: Lab) -> None:
    """Lifetimes of four seconds, for longer than that."""
    setup = Setup(
        nas_maps=[["Listen = tcp/18080", f"To = {NAS}:80"]],
        server_env={"ADIT_TEST_PCP_MINIMUM_LIFETIME_S": "1"},
        nas_env={"ADIT_TEST_PCP_LIFETIME_S": "12"},
    )
    net, server, nas = tunnels(lab, setup)
    has_leases(server, "tcp/18080")
    seen: list[int] = []

    def renewed_twice() -> bool:
        seen.append(int(str(requests(server, "lease")["tcp/18080"]["lifetime"])))
        return sum(later > earlier for earlier, later in zip(seen, seen[1:])) >= 2

    wait_until(renewed_twice, 40, "the lease is renewed twice")
    expect(min(seen) >= 4, f"at about half its lifetime: {min(seen)} s were left")
    nas.down()
    expect(leases(server) == [], "given back")
    expect(net is not None, "")


@scenario(seconds=180)
def guards(lab: Lab) -> None:
    """What a peer must not get, and what nobody but a peer gets at all."""
    setup = Setup(
        allow=f"{GRANTS}, udp/{PORT}, third-party",
        server_maps=[["Listen = tcp/18050", "To = other:80"]],
        nas_extra=["Table = reply"],
        server_env={"ADIT_TEST_PCP_QUOTA": "3"},
        nas_networks=f"{NAS}/32, 192.168.50.0/24",
    )
    net, server, _nas = tunnels(lab, setup)
    WebServer(net.server, port=18060, mebibytes=0.1)

    def refused(packet: bytes, code: int, what: str) -> None:
        answer = ask(net, packet)
        expect(answer.result == code, f"{what}: {answer}")

    refused(pcp.map_request(OTHER, 80, 18080), pcp.ADDRESS_MISMATCH, "another client's address")
    refused(pcp.map_request(NAS, 22, 22), pcp.NOT_AUTHORIZED, "a port outside AllowMaps")
    refused(pcp.map_request(NAS, 80, 18050), pcp.CANNOT_PROVIDE_EXTERNAL, "the file's mapping")
    refused(pcp.map_request(NAS, 80, 18060), pcp.CANNOT_PROVIDE_EXTERNAL, "a local listener")
    refused(
        pcp.map_request(NAS, 80, PORT, protocol=pcp.UDP),
        pcp.CANNOT_PROVIDE_EXTERNAL,
        "the tunnel's own port",
    )
    for target in (OTHER, SERVER, net.server_address, "127.0.0.1", "8.8.8.8"):
        packet = pcp.map_request(NAS, 80, 18080, options=pcp.third_party(target))
        refused(packet, pcp.NOT_AUTHORIZED, f"for {target}")
    expect(leases(server) == [], "none of that left a lease")

    def granted(packet: bytes, what: str) -> None:
        answer = ask(net, packet)
        expect(answer.result == pcp.SUCCESS, f"{what}: {answer}")

    behind = pcp.third_party(net.nas_address)
    granted(pcp.map_request(NAS, 80, 18080, options=behind), "a host of its own network")
    granted(pcp.map_request(NAS, 81, 18081), "one")
    granted(pcp.map_request(NAS, 82, 18082), "two")
    refused(pcp.map_request(NAS, 83, 18083), pcp.USER_EX_QUOTA, "the quota")
    stranger = pcp.map_request(NAS, 81, 18081, nonce=bytes(12), lifetime=0)
    refused(stranger, pcp.NOT_AUTHORIZED, "deletion by another nonce")
    granted(pcp.map_request(NAS, 81, 18081, lifetime=0), "deletion")
    has_leases(server, "tcp/18080", "tcp/18082")

    # From the public side: to the public address, and spoofed to the tunnel's.
    def from_outside(source: str, to: str, claimed: str) -> bytes:
        packet = pcp.map_request(claimed, 84, 18084)
        return pcp.exchange(net.client, source, to, packet, seconds=1)

    own = net.client_address
    expect(from_outside(own, net.server_address, own) == b"", "nobody answers in public")
    net.client.address("eth0", f"{NAS}/32")
    net.internet.ip("route", "add", "10.10.0.0/24", "via", net.server_address)
    for key in ("all", "default", "eth0"):
        net.server.sysctl(f"net.ipv4.conf.{key}.rp_filter", "0")
    for to in (SERVER, net.server_address):
        expect(from_outside(NAS, to, NAS) == b"", f"a spoofed request to {to}")
    expect(leases(server) == ["tcp/18080", "tcp/18082"], "and it leaves nothing behind")


@scenario(seconds=90)
def malformed_requests_disturb_nothing(lab: Lab) -> None:
    """Answered by the RFC's errors, or not at all; the fuzzer of tests/fuzz sends more."""
    net, server, nas = tunnels(lab, Setup(nas_extra=["Table = reply"]))
    good = pcp.map_request(NAS, 80, 18080)
    expect(ask(net, good).result == pcp.SUCCESS, "a good one first")
    cases = [
        (good[:30], pcp.MALFORMED_REQUEST),
        (good + bytes(1200), pcp.MALFORMED_REQUEST),
        (b"\x01" + good[1:], pcp.UNSUPP_VERSION),
        (good[:1] + b"\x02" + good[2:], pcp.UNSUPP_OPCODE),
        (good + pcp.option(60), pcp.UNSUPP_OPTION),
        (good + pcp.PREFER_FAILURE, pcp.MALFORMED_OPTION),
        (good[:60] + b"\x01\x00\xff\xff", pcp.MALFORMED_OPTION),
        (good[:60] + pcp.option(200, b"ignored"), pcp.SUCCESS),
    ]
    for packet, code in cases:
        answer = ask(net, packet)
        expect(answer.result == code, f"{packet[24:70].hex()} is answered by {answer}")
    for packet in (b"", b"\x02", good[:1] + b"\x81" + good[2:], b"\x00\x81\x00\x00"):
        silence = pcp.exchange(net.nas, NAS, SERVER, packet, seconds=0.3)
        expect(silence == b"", f"{packet[:4].hex()} is not answered")
    noise = random.Random(5351)
    for _ in range(12):
        size = noise.randrange(2, 200)
        packet = noise.choice((b"\x02\x01", b"\x00\x07", b"\x02\x00")) + noise.randbytes(size)
        pcp.exchange(net.nas, NAS, SERVER, packet, seconds=0.05)
    expect(leases(server) == ["tcp/18080"], "the lease is what it was")
    expect(ask(net, good).result == pcp.SUCCESS, "and the server answers")
    ping(net.nas, SERVER)
    expect(len(nas.pids()) > 0, "nothing has crashed")


@scenario(seconds=90)
def a_mapping_of_the_server_s_file_is_enough(lab: Lab) -> None:
    """Without AllowMaps, as it was before there was PCP; and what changes when the file changes."""
    setup = Setup(
        allow="",
        server_maps=[["Listen = tcp/18080", "To = nas:80"]],
        nas_maps=[["Listen = tcp/18080", f"To = {NAS}:80"], ["Listen = tcp/18090", f"To = {NAS}:81"]],
    )
    net, server, nas = tunnels(lab, setup)
    web = WebServer(net.nas, mebibytes=1)
    asked = wait_until(
        lambda: (found := requests(nas, "request"))
        and found["tcp/18090"]["state"] == "refused"
        and found,
        20,
        "the server has answered",
    )
    expect(asked["tcp/18080"]["state"] == "granted", f"the file's own: {asked}")
    expect("nas has no AllowMaps" in str(asked["tcp/18090"]["reason"]), f"refused: {asked}")
    expect(leases(server) == [], "no lease is needed")
    expect(fetches(net, 18080) == web.sha256, "the file")
    server.spec.peers[0].extra.append(f"AllowMaps = {GRANTS}")
    server.write()
    server.cli("reload", server.name)
    has_leases(server, "tcp/18090")
    server.spec.peers[0].extra[-1] = "AllowMaps = tcp/18000-18010"
    server.write()
    server.cli("reload", server.name)
    has_leases(server)
    wait_until(
        lambda: requests(nas, "request")["tcp/18090"]["state"] == "refused", 20, "the NAS hears it"
    )
    expect(fetches(net, 18080) == web.sha256, "the file's mapping is undisturbed")


@scenario(seconds=90)
def leases_are_whole_mappings(lab: Lab) -> None:
    """IPv6, Source = masquerade, Allow and Rate of a NAS's [Map], through the port it was given."""
    maps = [
        ["Listen = tcp/18010", f"To = {NAS}"],
        ["Listen = udp/18010", f"To = {NAS}"],
        ["Listen = tcp/18011", "To = [fd10::2]"],
        ["Listen = udp/18011", "To = [fd10::2]"],
        ["Listen = tcp/18012", f"To = {NAS}", "Source = masquerade"],
        ["Listen = tcp/18013", f"To = {NAS}", "Allow = 192.0.2.0/24"],
        ["Listen = tcp/18014", f"To = {NAS}", "Allow = 192.0.2.0/24, 198.51.100.0/24"],
        ["Listen = tcp/18015", f"To = {NAS}:80", "Rate = 4mbit"],
    ]
    net, server, _nas = tunnels(lab, Setup(nas_maps=maps))
    web = WebServer(net.nas, mebibytes=1)
    source_echo(net.nas, [f"tcp/{port}" for port in range(18010, 18015)] + ["udp/18010", "udp/18011"])
    has_leases(server, *(entry[0].removeprefix("Listen = ") for entry in maps))
    v4, v6 = net.server_address, net.server_address6
    seen = {
        f"tcp/{v4}/18010": net.client_address,
        f"udp/{v4}/18010": net.client_address,
        f"tcp/{v6}/18011": net.client_address6,
        f"udp/{v6}/18011": net.client_address6,
        f"tcp/{v4}/18012": SERVER,
        f"tcp/{v4}/18013": None,
        f"tcp/{v4}/18014": net.client_address,
    }
    answers = ask_from(net.client, seen, seconds=3)
    expect(answers == seen, f"each service sees the right client: {answers}")
    began = time.monotonic()
    expect(fetches(net, 18015, timeout=20) == web.sha256, "the file through the paced port")
    took = time.monotonic() - began
    progress(f"1 MiB at 4 Mbit/s took {took:.2f} s")
    # 8.4 Mbit, of which the bucket passes a second's worth at once.
    expect(took > 0.9, f"the rate holds: {took:.2f} s")


@scenario(seconds=180, heavy=True)
def a_thousand_leases(lab: Lab) -> None:
    """500 ports of one NAS, for clients of either family: granted as fast as a peer may ask; what a
    restart costs."""
    count = 500
    setup = Setup(
        allow="tcp/20000-21999",
        nas_maps=[[f"Listen = tcp/{20000 + 2 * i}", f"To = {NAS}"] for i in range(count)],
    )
    began = time.monotonic()
    net, server, nas = tunnels(lab, setup)
    first, last = 20000, 20000 + 2 * (count - 1)
    source_echo(net.nas, [f"tcp/{first}", f"tcp/{last}"])
    targets = {
        f"tcp/{net.server_address}/{first}": net.client_address,
        f"tcp/{net.server_address}/{last}": net.client_address,
        f"tcp/{net.server_address6}/{last}": net.client_address6,
    }

    def held() -> int:
        return sum(entry["role"] == "lease" for entry in server.status()["requests"])

    wait_until(lambda: held() == 2 * count, 120, f"{2 * count} leases")
    cpu = sum(cpu_seconds(pid) for pid in server.pids())
    progress(f"{held()} leases after {time.monotonic() - began:.1f} s, {cpu:.2f} s of the server's CPU")
    progress(f"resident: {sum(resident_kib(pid) for pid in server.pids()) / 1024:.0f} MiB")
    expect(ask_from(net.client, targets) == targets, "the first and the last one work")
    server.crash()
    began = time.monotonic()
    server.up()
    progress(f"after kill -9: up in {time.monotonic() - began:.2f} s")
    expect(held() == 2 * count, "all of them outlive the daemon")
    expect(ask_from(net.client, targets) == targets, "and work")
    nas.down()
    progress(f"{held()} of them are left after down, until their lifetimes end")
    # As many withdrawals at once as a peer may send.
    expect(held() <= 2 * count - 100, "down gives back what the server's limit lets it")


@scenario(seconds=120, heavy=True)
def wide_requests_cost_little(lab: Lab) -> None:
    """A peer that may have any port asks for as many as there are, again and again, beside many
    mappings of the file: the daemon has other things to do."""
    setup = Setup(
        allow="tcp/1-65535",
        nas_extra=["Table = reply"],
        server_maps=[[f"Listen = tcp/{1000 + 50 * i}", "To = other"] for i in range(500)],
    )
    net, server, _nas = tunnels(lab, setup)
    rounds = 10

    def granted(packet: bytes, what: str) -> None:
        """Asked again, as clients do: a daemon that is busy with its rules hears nobody."""
        answer = wait_until(
            lambda: pcp.exchange(net.nas, NAS, SERVER, packet, seconds=2), 20, "an answer"
        )
        expect(pcp.parse(answer).result == pcp.SUCCESS, f"{what}: {pcp.parse(answer)}")

    granted(pcp.header(0, 0, NAS), "the daemon has started")
    before = sum(cpu_seconds(pid) for pid in server.pids())
    for i in range(rounds):
        # None of them fits where it is wanted, so that the server looks for the most that is free.
        first = 1 + i
        everything = pcp.port_set(60000, first)
        granted(pcp.map_request(NAS, first, 900, options=everything), "what is free is given")
        granted(pcp.map_request(NAS, first, 0, options=b"", lifetime=0), "and taken back")
    cost = (sum(cpu_seconds(pid) for pid in server.pids()) - before) / rounds
    progress(f"{cost * 1000:.0f} ms of the server's CPU for each")
    # More than five seconds before ports were counted once, and shifted ones bounded.
    expect(cost < 1.5, f"it costs little: {cost} s")
    expect(leases(server) == [], "nothing is left")


@scenario(seconds=90)
def a_plain_wireguard_server_is_one_warning(lab: Lab) -> None:
    net = home(lab)
    server_keys, nas_keys = key_pair(), key_pair()
    server = WireGuard(
        net.server,
        lab.device("srv"),
        TunnelSpec(
            server_keys,
            [f"{SERVER}/24"],
            listen_port=PORT,
            peers=[PeerSpec(nas_keys.public, f"{NAS}/32")],
        ),
    )
    endpoint = f"{net.server_address}:{PORT}"
    nas = Adit(
        net.nas,
        lab.device("nas"),
        TunnelSpec(
            nas_keys,
            [f"{NAS}/24"],
            extra=["Table = reply", "Expose = maps"],
            peers=[PeerSpec(server_keys.public, "0.0.0.0/0", endpoint=endpoint, keepalive=25)],
            maps=[["Listen = tcp/18080", f"To = {NAS}:80"], ["Listen = udp/18081", f"To = {NAS}"]],
        ),
        env={"ADIT_TEST_PCP_PATIENCE_MS": "2000"},
    )
    server.up()
    nas.up()

    def warnings() -> list[str]:
        return [line for line in nas.status()["warnings"] if "takes no requests for ports" in line]

    wait_until(lambda: len(warnings()) == 1, 20, "one warning")
    ping(net.nas, SERVER)
    web = WebServer(net.nas, mebibytes=0.1)
    url = f"http://{NAS}/file"
    expect(fetch_sha256(net.server, url, timeout=5) == web.sha256, "the mapping is reachable")


if __name__ == "__main__":
    sys.exit(main())
