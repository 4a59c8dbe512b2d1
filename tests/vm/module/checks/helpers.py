"""Other processors decrypt what one cannot keep up with; the order stays."""

from __future__ import annotations

import os
import subprocess

from topology import Host, Topology

from .support import ping, sha256, test, transfer

DATA = os.urandom(8 << 20)
# A processor that has no time for it helps nobody.
ATTEMPTS = 3


def out_of_order(host: Host) -> int:
    """TCP segments that came before others that were missing."""
    command = ["ip", "netns", "exec", host.name, "nstat", "-asz", "TcpExtTCPOFOQueue"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-2])


def delay(host: Host) -> bool:
    """What is sent waits, and comes in bursts. Not in a kernel without netem."""
    command = ["tc", "-n", host.name, "qdisc", "add", "dev", "wire", "root", "netem"]
    return subprocess.run([*command, "delay", "20ms", "limit", "10000"]).returncode == 0


def arrive_on_one(host: Host) -> None:
    """As a card does with one flow; between namespaces, packets arrive where they are sent."""
    script = "echo 1 >/sys/class/net/wire/queues/rx-0/rps_cpus"
    # Another view of /sys comes with the namespace.
    subprocess.run(["ip", "netns", "exec", host.name, "sh", "-c", script], check=True)


@test
def a_backlog_is_shared_and_keeps_its_order(net: Topology) -> None:
    if os.cpu_count() == 1:
        print("  one processor: nobody can help")
        return
    bursts = delay(net.a)
    arrive_on_one(net.b)
    for suite, v6 in ((0, False), (1, True), (2, False)):
        if suite == 0:
            net.add_peers()
        net.add_keys(suite=suite, first_index=1 + 10 * suite)
        assert ping(net.a, net.b.inner(v6))
        before, late = net.b.counters()["RX_HELPED"], out_of_order(net.b)
        for _ in range(ATTEMPTS):
            assert transfer(net, net.a, DATA, v6, streams=1 if bursts else 4) == sha256(DATA)
            helped = net.b.counters()["RX_HELPED"] - before
            if helped > 0 or not bursts:
                break
        late = out_of_order(net.b) - late
        print(f"  suite {suite}: {helped} packets by helpers, {late} segments out of order")
        assert helped > 0 or not bursts, net.b.counters()
        assert late == 0, late
        assert net.b.drops()["REPLAY"] == 0, net.b.drops()
