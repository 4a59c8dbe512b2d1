#!/usr/bin/env python3
"""Unwanted datagrams at the tunnel's port: no crash, no growth, and the tunnel goes on.

Topology: `Crossroads` in lab/topology.py.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from functools import partial
from typing import Any

from lab import (
    PORT,
    RIGHT,
    Adit,
    Crossroads,
    IperfServer,
    Lab,
    LabError,
    Process,
    Side,
    add,
    crossroads,
    ends,
    expect,
    iperf,
    listening,
    main,
    ping,
    progress,
    resident_kib,
    tool,
    wait_until,
)

SINK_PORT = 51821
PACKETS_PER_SECOND = 20000
LEAST_RATIO = 0.8
MOST_GROWTH_KIB = 8 * 1024
FULL = bool(os.environ.get("ADIT_TEST_FULL"))
ROUNDS = 7 if FULL else 3
SECONDS = 6 if FULL else 3

SINK = """
import signal, socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
    sink.bind(("", {port}))
    signal.pause()
"""


def flood(net: Crossroads, kinds: list[str], port: int, key: str, seconds: float) -> Process:
    argv = [tool("tests/peers/flood"), f"{net.right_address}:{port}"]
    argv += ["--pps", str(PACKETS_PER_SECOND), "--seconds", str(seconds), "--public-key", key]
    argv += ["--capture", str(net.lab.dir / "capture")]
    for kind in kinds:
        argv += ["--kind", kind]
    for source in net.attackers:
        argv += ["--source", source]
    process = net.attacker.start(*argv, log=f"flood-{os.urandom(3).hex()}")
    process.require(lambda: "ready" in process.output(), 10, "the flood is ready")
    return process


def finish(process: Process) -> dict[str, Any]:
    code = process.wait(60)
    last = process.output().splitlines()[-1]
    if code != 0 or not last.startswith("{"):
        raise LabError(f"the flood failed:\n{process.output()}")
    result: dict[str, Any] = json.loads(last)
    return result


def resident(end: Adit) -> int:
    return sum(resident_kib(pid) for pid in end.pids())


def capture_some(net: Crossroads, left: Adit, right: Adit) -> None:
    """Records a handshake and packets of the running session, then takes the direct way."""
    relay = net.relay("--capture", str(net.lab.dir / "capture"), "--capture-limit", "4000")
    ping(net.left, RIGHT, timeout=20)
    iperf(net.left, RIGHT, seconds=1)
    relay.stop()
    left.set_peer(right.spec.keys.public, "endpoint", f"{net.right_address}:{PORT}")
    ping(net.left, RIGHT, timeout=20)


def flooded(lab: Lab, kinds: list[str]) -> None:
    net = crossroads(lab)
    quick = Side(Adit, env={"ADIT_TEST_REKEY_AFTER_MS": "6000"})
    left, right = ends.both_up(
        lab, (net.left, quick), (net.right, quick), f"{net.relay_address}:{net.port}"
    )
    assert isinstance(left, Adit) and isinstance(right, Adit)
    server = IperfServer(net.right)
    capture_some(net, left, right)
    sink = net.right.start(sys.executable, "-c", SINK.format(port=SINK_PORT), log="sink")
    sink.require(lambda: listening(sink.pid, "udp", SINK_PORT), 5, "the sink is bound")
    key, pids = right.spec.keys.public, right.pids()

    def measure(port: int) -> float:
        attack = flood(net, kinds, port, key, SECONDS + 1)
        mbps = iperf(net.left, RIGHT, seconds=SECONDS).mbps
        sent = finish(attack)
        expect(sent["failed"] == 0, f"all was sent: {sent}")
        expect(sent["seconds"] < SECONDS + 2, f"at the wanted pace: {sent}")
        return mbps

    measure(PORT)
    memory, handshake = resident(right), right.peer().latest_handshake
    control, attacked = [], []
    for _ in range(ROUNDS):
        control.append(measure(SINK_PORT))
        attacked.append(measure(PORT))
    server.stop()
    growth = resident(right) - memory
    ratio = statistics.median(attacked) / statistics.median(control)
    progress(f"control {control}, attacked {attacked} Mbit/s: ratio {ratio:.2f}")
    progress(f"memory {memory} KiB, growth {growth} KiB; drops {right.receive_drops()}")
    expect(right.pids() == pids, "the daemon has not been restarted")
    expect(growth < MOST_GROWTH_KIB, f"memory grew by {growth} KiB only")
    expect(ratio >= LEAST_RATIO, f"{ratio:.2f} of the throughput is left, at least {LEAST_RATIO}")
    wait_until(lambda: right.peer().latest_handshake > handshake, 10, "handshakes went on")
    expect(len(right.dump()) == 1, "no peer came into being")
    ping(net.left, RIGHT)


ALL = ["garbage", "truncated", "replayed", "initiation"]
add("everything", partial(flooded, kinds=ALL), seconds=180, heavy=True)
for _kind in ALL:
    add(_kind, partial(flooded, kinds=[_kind]), seconds=180, heavy=True, full=True)


if __name__ == "__main__":
    sys.exit(main())
