#!/usr/bin/env python3
"""bench.py KIND [SECONDS] [STREAMS]: iperf3 through the module: adit0, adit1, adit2 (by suite), or
wireguard. Prints the receiver's Mbit/s; with one instruction as 1 ns (tools/vm --icount) that is
Mbit per 10^9 instructions."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from topology import PORT, Topology, ip, run_in


def wireguard(net: Topology) -> None:
    keys = {}
    for host in net.hosts:
        private = subprocess.run(["wg", "genkey"], capture_output=True, text=True).stdout
        public = subprocess.run(
            ["wg", "pubkey"], input=private, capture_output=True, text=True
        ).stdout
        keys[host.name] = private, public.strip()
    for host in net.hosts:
        other = net.other(host)
        path = f"/tmp/{host.name}.key"
        with open(path, "w") as file:
            file.write(keys[host.name][0])
        run_in(
            host.name,
            *f"wg set adit0 listen-port {PORT} private-key {path} peer {keys[other.name][1]} "
            f"endpoint {other.wire()}:{PORT} allowed-ips 10.9.0.0/24".split(),
            check=True,
        )
        ip(f"-n {host.name} link set adit0 up")


def main() -> None:
    kind = sys.argv[1]
    seconds = sys.argv[2] if len(sys.argv) > 2 else "5"
    streams = sys.argv[3] if len(sys.argv) > 3 else "1"
    extra = sys.argv[4:]
    if kind == "wireguard":
        net = Topology(kind="wireguard")
        wireguard(net)
    elif kind == "plain":
        net = Topology()
    else:
        net = Topology()
        net.add_peers()
        net.add_keys(suite=int(kind.removeprefix("adit")))
    server = subprocess.Popen(
        ["/sbin/ip", "netns", "exec", "mod-b", "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL
    )
    time.sleep(1)
    target = net.b.wire() if kind == "plain" else net.b.inner()
    result = run_in(
        "mod-a", "iperf3", "-J", "-c", target, "-t", seconds, "-P", streams, *extra,
        capture_output=True,
    )
    server.wait(30)
    try:
        end = json.loads(result.stdout)["end"]
        received = end.get("sum_received") or end["sum"]
        print(f"{kind} streams={streams} {' '.join(extra)}: "
              f"{received['bits_per_second'] / 1e6:.0f} Mbit/s received", flush=True)
    except (KeyError, ValueError):
        print(result.stdout, result.stderr)
    if kind.startswith("adit"):
        for host in net.hosts:
            print(host.name, {k: v for k, v in (host.counters() | host.drops()).items() if v})
    net.remove()


if __name__ == "__main__":
    main()
