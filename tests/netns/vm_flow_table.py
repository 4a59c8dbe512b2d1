#!/usr/bin/env python3
"""Mapped connections in the kernel's flow table: they go past the forward chain, and everything
that is promised of mappings still holds.

Needs a kernel with flow tables (nft_flow_offload): in a virtual machine (tests/vm).

Topology: `Home` in lab/topology.py.
"""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any

from lab import (
    Adit,
    Home,
    IperfServer,
    Lab,
    Process,
    WebServer,
    expect,
    iperf_argv,
    iperf_result,
    main,
    progress,
    scenario,
    tool,
    wait_until,
)
from lab.served import fetches, served_home
from lab.udp_service import udp_service

SECONDS = 4

# Behind our own forward chain: it counts what the kernel forwards packet by packet.
WATCH = """
table inet watch {
  counter slow { }
  chain forward {
    type filter hook forward priority filter + 10
    ct status dnat counter name slow
  }
}
"""


def watched_home(lab: Lab, maps: list[list[str]]) -> tuple[Home, Adit, Adit]:
    net, server, nas = served_home(lab)
    server.spec.maps += maps
    server.write()
    server.cli("reload", server.name)
    net.server.nft(WATCH)
    table = net.server.run("nft", "list", "table", "inet", f"adit_{server.name}").out
    expect("flowtable fast" in table, f"the table has a flow table:\n{table}")
    return net, server, nas


def slow_packets(net: Home) -> int:
    out = net.server.run("nft", "list", "counter", "inet", "watch", "slow").out
    return int(out.split("packets ")[1].split()[0])


def flows(net: Home, port: int) -> list[str]:
    """Connection tracking's entries of a mapped port."""
    entries = net.server.run("cat", "/proc/net/nf_conntrack").out.splitlines()
    return [entry for entry in entries if f"dport={port} " in entry]


def offloads(net: Home, port: int) -> set[str]:
    """Those that are in the flow table, by the client's port."""
    found = (re.search(r"sport=(\d+)", entry) for entry in flows(net, port) if "OFFLOAD" in entry)
    return {match[1] for match in found if match}


def offloaded(net: Home, port: int) -> bool:
    return bool(offloads(net, port))


def usage(server: Adit, listen: str) -> dict[str, int]:
    maps = {entry["listen"]: entry.get("usage", {}) for entry in server.status()["maps"]}
    found: dict[str, int] = maps[listen]
    return found


def carry(net: Home, address: str, name: str = "plain", **options: Any) -> Process:
    """iperf3 from the client through a mapping."""
    return net.client.start(*iperf_argv(address, seconds=SECONDS, **options), log=f"iperf-{name}")


@scenario(seconds=120)
def bulk_goes_past_the_rules(lab: Lab) -> None:
    """TCP and UDP, both families and both directions; the counters of mappings count it all."""
    net, server, _nas = watched_home(
        lab, [["Listen = tcp/5201", "To = nas"], ["Listen = udp/5201", "To = nas"]]
    )
    IperfServer(net.nas)
    runs: tuple[tuple[str, str, bool, dict[str, Any]], ...] = (
        ("TCP", net.server_address, False, {}),
        ("TCP to the client", net.server_address, False, {"reverse": True}),
        ("TCP over IPv6", net.server_address6, False, {}),
        ("UDP", net.server_address, True, {"udp_rate": "2M", "length": 1000}),
    )
    for what, address, udp, options in runs:
        listen = "udp/5201" if udp else "tcp/5201"
        slow, before, earlier = slow_packets(net), usage(server, listen), offloads(net, 5201)
        flow = carry(net, address, name=what.replace(" ", "-"), **options)
        wait_until(lambda: offloads(net, 5201) - earlier, 20, f"{what}: in the flow table")
        flow.wait(60)
        result = iperf_result(flow.output(), udp=udp)
        after = usage(server, listen)
        way = "out" if options.get("reverse") else "in"
        carried = after[f"bytes_{way}"] - before[f"bytes_{way}"]
        packets = after[f"packets_{way}"] - before[f"packets_{way}"]
        slow = slow_packets(net) - slow
        progress(f"{what}: {result.mbps:.1f} Mbit/s, {packets} packets, {slow} by the rules")
        # The openings of iperf3's two connections and what came before the answers.
        expect(slow < packets / 4, f"{what}: {slow} of {packets} packets went by the rules")
        received = result.mbps * 1e6 / 8 * SECONDS
        expect(carried > 0.9 * received, f"{what}: {carried} bytes counted of {received:.0f}")
    expect(not server.status()["warnings"], "nothing to warn of")


@scenario(seconds=90)
def rates_are_not_passed_by(lab: Lab) -> None:
    """A mapping with a rate keeps to it: none of its packets takes the short way, nor do those of a
    flow that was there before its rate."""
    net, server, _nas = watched_home(
        lab,
        [
            ["Listen = tcp/5201", "To = nas", "Rate = 2mbit"],
            ["Listen = udp/7100", "To = nas:7000"],
        ],
    )
    udp_service(net.nas, "0.0.0.0", 7000)
    argv = (tool("tests/peers/pingpong"), f"{net.server_address}:7100", "--seconds", "120")
    net.client.start(*argv, log="flow")
    wait_until(lambda: offloaded(net, 7100), 20, "a flow without a rate is in the flow table")
    server.spec.maps[-1].append("Rate = 1mbit")
    server.write()
    server.cli("reload", server.name)
    wait_until(lambda: not offloaded(net, 7100), 2, "with a rate it is there no more")
    IperfServer(net.nas)
    flow = carry(net, net.server_address)
    until = time.monotonic() + 3
    while time.monotonic() < until and flow.running():
        for port in (5201, 7100):
            expect(not offloaded(net, port), f"not in the flow table: {flows(net, port)}")
        time.sleep(0.1)
    flow.wait(60)
    result = iperf_result(flow.output(), udp=False)
    progress(f"{result.mbps:.2f} Mbit/s of 2")
    expect(result.mbps < 2.5, f"the rate holds: {result.mbps}")
    expect(server.status()["maps"] != [], "it is mapped")


@scenario(seconds=120)
def the_next_packet_obeys(lab: Lab) -> None:
    """A flow in the flow table, while its mapping is led elsewhere and removed, and another one's
    flow goes on (case 41)."""
    net, server, _nas = watched_home(
        lab, [["Listen = udp/7100", "To = nas:7000"], ["Listen = udp/7200", "To = nas:7002"]]
    )
    services = {port: udp_service(net.nas, "0.0.0.0", port) for port in (7000, 7001, 7002)}
    other = net.client.start(
        tool("tests/peers/pingpong"), f"{net.server_address}:7200", "--seconds", "60", log="other"
    )
    net.client.start(
        tool("tests/peers/pingpong"), f"{net.server_address}:7100", "--seconds", "90", log="flow"
    )
    for port in (7100, 7200):
        wait_until(lambda: offloaded(net, port), 10, f"udp/{port} is in the flow table")

    def reload(*maps: list[str]) -> None:
        server.spec.maps[-len(maps) :] = list(maps)
        server.write()
        server.cli("reload", server.name)

    def nothing_more(port: int) -> None:
        """At that service; one datagram may be on its way."""
        before = services[port].output().count("\n")
        time.sleep(1)
        more = services[port].output().count("\n") - before
        expect(more <= 1, f"{more} datagrams still arrive at {port}: {flows(net, 7100)}")

    kept = server.spec.maps[-1]
    reload(["Listen = udp/7100", "To = nas:7001"], kept)
    nothing_more(7000)
    wait_until(lambda: offloaded(net, 7100), 10, "the new way is offloaded too")
    expect(all("sport=7001" in entry for entry in flows(net, 7100)), f"{flows(net, 7100)}")
    server.spec.maps.pop()
    reload(kept)
    nothing_more(7001)
    reply = f"src=10.10.0.2 dst={net.client_address}"
    left = [entry for entry in flows(net, 7100) if reply in entry]
    expect(not left, f"no flow of the removed mapping is left: {left}")
    expect(other.running(), "the other one's flow goes on")
    wait_until(lambda: offloaded(net, 7200), 5, "and is back in the flow table")
    other.wait(120)
    lost = json.loads(other.output())["lost"]
    expect(lost == 0, f"the other one lost {lost}")


@scenario(seconds=90)
def a_killed_daemon_leaves_it(lab: Lab) -> None:
    """`kill -9 aditd` and the next start: neither touches the flow table or what is in it."""
    net, server, _nas = watched_home(lab, [["Listen = udp/7100", "To = nas:7000"]])
    web = WebServer(net.nas, mebibytes=0.1)
    udp_service(net.nas, "0.0.0.0", 7000)
    argv = (tool("tests/peers/pingpong"), f"{net.server_address}:7100", "--seconds", "60")
    net.client.start(*argv, log="flow")
    wait_until(lambda: offloaded(net, 7100), 10, "in the flow table")
    rules = net.server.run("nft", "-a", "list", "table", "inet", f"adit_{server.name}").out
    server.crash()
    server.up()
    expect(fetches(net, 18080) == web.sha256, "mappings work")
    now = net.server.run("nft", "-a", "list", "table", "inet", f"adit_{server.name}").out
    expect(now == rules, "the same table under the same handles")
    expect(offloaded(net, 7100), "the flow is still there")
    server.down()
    expect(not flows(net, 7100) or not offloaded(net, 7100), f"down ends it: {flows(net, 7100)}")


if __name__ == "__main__":
    sys.exit(main())
