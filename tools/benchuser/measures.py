"""One round of one subject."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lab import IperfServer, Pair, Tunnel, iperf, private_kib, resident_kib, tool

from .subjects import Subject

INNER_UDP_BYTES = 1372
PINGPONG_PORT = 7000


@dataclass(frozen=True)
class Rounds:
    seconds: int
    congestion: tuple[str, ...]
    streams: tuple[int, ...] = (1, 4)


def start_servers(net: Pair) -> None:
    """What the measures need on the right; it ends with the laboratory."""
    IperfServer(net.right)
    echo = net.right.start(
        tool("tests/peers/pingpong"), f"0.0.0.0:{PINGPONG_PORT}", "--answer", log="pingpong"
    )
    echo.require(lambda: "ready" in echo.output(), 5, "pingpong answers")


def measure(net: Pair, subject: Subject, rounds: Rounds) -> None:
    """One round: TCP, UDP, round trips, memory."""
    for congestion in rounds.congestion:
        for streams in rounds.streams:
            _tcp(net, subject, rounds.seconds, streams, congestion)
    udp = iperf(
        net.left,
        subject.address,
        seconds=rounds.seconds,
        udp_rate="0",
        length=INNER_UDP_BYTES,
    )
    subject.add(f"udp{INNER_UDP_BYTES}_mbps", udp.mbps)
    asked = net.left.run(
        tool("tests/peers/pingpong"), f"{subject.address}:{PINGPONG_PORT}", "--seconds", "1"
    )
    subject.add("round_trip_median_us", json.loads(asked.out)["median"])
    if subject.tunnels:
        # Per end, the larger one: the two ends share nothing in real life.
        subject.add("resident_mib", max(map(_resident_mib, subject.tunnels)))


def _tcp(net: Pair, subject: Subject, seconds: int, streams: int, congestion: str) -> None:
    busy, cpu = _busy_seconds(), subject.cpu()
    result = iperf(
        net.left, subject.address, seconds=seconds, parallel=streams, congestion=congestion
    )
    subject.add(f"tcp{streams}_{congestion}_mbps", result.mbps)
    if streams > 1:
        return
    gigabytes = result.report["end"]["sum_received"]["bytes"] / 1e9
    subject.add(f"machine_cpu_s_per_gb_{congestion}", (_busy_seconds() - busy) / gigabytes)
    subject.add(f"daemon_cpu_s_per_gb_{congestion}", (subject.cpu() - cpu) / gigabytes)


def _busy_seconds() -> float:
    """CPU time of the whole machine that was not idle, since it booted."""
    user, nice, system, _idle, _iowait, irq, softirq = map(
        int, Path("/proc/stat").read_text().split()[1:8]
    )
    return (user + nice + system + irq + softirq) / 100


def _resident_mib(tunnel: Tunnel) -> float:
    """Resident memory of one end: of its largest process, and what the others have for themselves.
    The program and libraries that they share are there once."""
    largest, *others = sorted(tunnel.pids(), key=resident_kib, reverse=True)
    return (resident_kib(largest) + sum(map(private_kib, others))) / 1024
