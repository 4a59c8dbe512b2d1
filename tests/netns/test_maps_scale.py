#!/usr/bin/env python3
"""Many mappings and peers, changes under traffic, and a daemon that is killed.

Topology: `Home` in lab/topology.py.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter

from lab import (
    EMULATED,
    PORT,
    Adit,
    Home,
    IperfServer,
    Lab,
    PeerSpec,
    TunnelSpec,
    WebServer,
    cpu_seconds,
    expect,
    home,
    iperf_argv,
    iperf_result,
    key_pair,
    main,
    progress,
    scenario,
    wait_until,
)
from lab.process import PATIENCE
from lab.served import fetches, served_home

PEERS = 200
MAPPINGS = 1000

# The CPU time of sending also holds what the kernel does with each datagram on its way through
# cables, rules and translation: it all happens in the sender's own system call.
SEND = """
import resource, socket, sys
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def send(n):
    for _ in range(n):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"x", (address, port))
send(200)
before = resource.getrusage(resource.RUSAGE_SELF)
send(count)
after = resource.getrusage(resource.RUSAGE_SELF)
print((after.ru_stime - before.ru_stime + after.ru_utime - before.ru_utime) / count * 1e6)
"""

# NFT_MSG_GETGEN of NETLINK_NETFILTER; behind nlmsghdr and nfgenmsg comes NFTA_GEN_ID.
GENERATION = """
import socket, struct
asking = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
asking.send(struct.pack("=IHHIIBBH", 20, 10 << 8 | 16, 1, 1, 0, 0, 0, 0))
print(struct.unpack_from(">I", asking.recv(4096), 16 + 4 + 4)[0])
"""


def mappings(count: int) -> list[list[str]]:
    """All kinds; the last one is the one to look for."""
    maps = []
    for i in range(count):
        protocol = ("tcp", "udp")[i % 2]
        entry = [f"Listen = {protocol}/{10000 + 4 * i}", f"To = 10.9.{i % PEERS}.2:{5000 + i}"]
        if i % 3 == 0:
            entry.append("Source = masquerade")
        if i % 5 == 0:
            entry.append("Allow = 198.51.100.0/24")
        maps.append(entry)
    return maps


def server_with_peers(net: Home, lab: Lab) -> Adit:
    peers = [
        PeerSpec(key_pair().public, f"10.9.{i}.2/32", name=f"peer{i}") for i in range(PEERS)
    ]
    server = Adit(
        net.server,
        lab.device("srv"),
        TunnelSpec(key_pair(), ["10.9.255.1/16"], listen_port=PORT, peers=peers[:1]),
    )
    server.up()
    server.spec.peers = peers
    return server


def rules_generation(net: Home) -> int:
    """Grows with every change to any rule of the server, also to one that was undone."""
    return int(net.server.run(sys.executable, "-c", GENERATION).out)


def daemon_cpu(server: Adit) -> float:
    return sum(cpu_seconds(pid) for pid in server.pids())


def reload(server: Adit) -> tuple[float, float, str]:
    """Wall time, the daemon's CPU time, and what it says."""
    server.write()
    cpu, wall = daemon_cpu(server), time.monotonic()
    out = server.cli("reload", server.name).out
    return time.monotonic() - wall, daemon_cpu(server) - cpu, out


def listed(server: Adit) -> Counter[str]:
    """Rules, sets and chains with their handles, and elements, each as often as it is there."""
    text = server.where.run("nft", "-a", "list", "table", "inet", f"adit_{server.name}").out
    parts = re.split(r"[,\n]", re.sub(r"elements = \{|\}", "\n", text))
    return Counter(part.strip() for part in parts if part.strip())


@scenario(seconds=180, heavy=True)
def a_thousand_mappings(lab: Lab) -> None:
    """1,000 mappings and 200 peers are applied in under a second; one change touches only itself;
    a packet costs the same at 10, 100 and 1,000."""
    net = home(lab)
    server = server_with_peers(net, lab)
    costs = {}
    for count in (10, 100, MAPPINGS):
        server.spec.maps = mappings(count)
        wall, cpu, out = reload(server)
        progress(f"{count} mappings: {wall:.2f} s, {cpu:.2f} s of the daemon's CPU")
        expect("nft table" in out, f"they are applied: {out[-500:]}")
        # The best of three: a moment's load only adds.
        costs[count] = min(
            float(
                net.client.run(
                    *(sys.executable, "-c", SEND, net.server_address, "10004", "1000"), timeout=60
                ).out
            )
            for _round in range(3)
        )
        progress(f"{count} mappings: {costs[count]:.1f} µs for a datagram of a new flow")
    limit = 1.0 * (20 if EMULATED else 1)
    expect(cpu < limit, f"all of it costs {cpu:.2f} s")
    expect(costs[MAPPINGS] < 1.5 * costs[10], f"the cost does not grow: {costs}")
    before = listed(server)
    server.spec.maps.append(["Listen = tcp/9000", "To = peer7"])
    wall, cpu, out = reload(server)
    progress(f"one more: {wall:.2f} s, {cpu:.2f} s of the daemon's CPU: {out.strip()[-200:]}")
    # A table, chain, set or rule that was made anew would have another handle.
    now = listed(server)
    expect(not before - now, f"nothing goes: {before - now}")
    added = list((now - before).elements())
    expect(len(added) == 1 and "9000" in added[0], f"nothing but the one element comes: {added}")
    server.spec.maps.pop()
    reload(server)
    expect(listed(server) == before, "and goes alone")


@scenario(seconds=180, heavy=True)
def changes_under_traffic(lab: Lab) -> None:
    """iperf3 through mapping A while B is added, changed and removed a hundred times."""
    net, server, _nas = served_home(lab)
    server.spec.maps += [["Listen = tcp/5201", "To = nas"], ["Listen = udp/5201", "To = nas"]]
    server.write()
    server.cli("reload", server.name)
    IperfServer(net.nas)
    # It has to last longer than the hundred changes, which take minutes under emulation.
    argv = iperf_argv(net.server_address, seconds=60 * PATIENCE, udp_rate="4M", length=1000)
    flow = net.client.start(*argv, log="iperf")
    wait_until(lambda: "udp" in str(server.status()["maps"]), 5, "status")
    base = list(server.spec.maps)
    began = time.monotonic()
    steps: tuple[list[list[str]], ...] = (
        [["Listen = udp/5300-5309", "To = nas:6000"]],
        [["Listen = udp/5300-5309", "To = nas:7000", "Source = masquerade"]],
        [],
    )
    for i in range(100):
        server.spec.maps = base + steps[i % 3]
        server.write()
        out = server.cli("reload", server.name).out
        expect("elements added" in out and "replaced" not in out, f"change {i}: {out}")
        expect(flow.running(), "A goes on")
    progress(f"100 changes in {time.monotonic() - began:.1f} s")
    flow.wait(120)
    result = iperf_result(flow.output(), udp=True)
    progress(f"A: {result.mbps:.2f} Mbit/s, lost {result.lost_percent:.3f} %")
    expect(result.lost_percent == 0, "A lost nothing")


@scenario(seconds=90)
def killed_daemon(lab: Lab) -> None:
    """`kill -9 aditd`: mappings stay in the kernel; the restart changes nothing that is right."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    expect(fetches(net, 18080) == web.sha256, "it works")

    def ruleset() -> str:
        return net.server.run("nft", "-a", "list", "ruleset").out

    def routing() -> str:
        return "\n".join(
            sorted((net.server.ip("rule").out + net.server.ip("route", "show", "table", "all").out)
                   .splitlines())
        )

    rules, routes, generation = ruleset(), routing(), rules_generation(net)
    server.crash()
    expect(ruleset() == rules, "the rules stay, whoever dies")
    if os.environ.get("ADIT_TEST_BACKEND") == "kernel":
        expect(fetches(net, 18080) == web.sha256, "so does the tunnel, with sessions and all")
    server.up()
    wait_until(lambda: fetches(net, 18080, timeout=2) == web.sha256, 20, "it works again")
    # Not even an element was replaced by its equal.
    expect(rules_generation(net) == generation, "nothing was written into the kernel's rules")
    expect(ruleset() == rules, "the same rules under the same handles")
    expect(routing() == routes, "the same routes and rules")
    expect(json.loads(server.cli("map", "list", server.name, "--json").out), "and it knows them")


if __name__ == "__main__":
    sys.exit(main())
