"""Create, traffic, destroy, again and again: nothing is left over.

ADIT_TEST_CYCLES says how often (50; 1000 with --full). Counted are the module's own objects, made
and freed; its references; namespaces; and all of the kernel's caches of memory.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

from topology import Topology

from .support import background, full_run, ping, test, until

SLAB = Path("/sys/kernel/slab")
TRACING = Path("/sys/kernel/tracing")
# What makes an object, and what frees it.
LIVES = {
    "device": ("adit_device_prepare", "adit_device_free"),
    "peer": ("adit_peer_create", "free_peer"),
    "session": ("adit_session_create", "free_session"),
}
WARM_UP = 3
# Cycles with a link of WireGuard in place of ours: what namespaces cost the kernel anyway.
CONTROL = 8
# Beyond that a cache may grow by less than one object in four cycles.
TOLERATED_SHARE = 4
TOLERATED = 24


class Probes:
    """Counts calls of the module's functions; none where the kernel has no kprobes."""

    def __init__(self) -> None:
        self.available = (TRACING / "kprobe_events").exists()
        if not self.available:
            return
        self.command("-:adit/\n", missing=True)
        for name, functions in LIVES.items():
            for end, function in zip(("made", "freed"), functions):
                self.command(f"p:adit/{name}_{end} adit:{function}\n")
        (TRACING / "events/adit/enable").write_text("1")

    @staticmethod
    def command(text: str, missing: bool = False) -> None:
        # Not by open(): the file does not tell its end.
        file = os.open(TRACING / "kprobe_events", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, text.encode())
        except FileNotFoundError:
            if not missing:
                raise
        finally:
            os.close(file)

    def counts(self) -> dict[str, int]:
        result = {}
        for line in (TRACING / "kprobe_profile").read_text().splitlines():
            name, hits, missed = line.split()
            result[name.split("/")[-1]] = int(hits) + int(missed)
        return result

    def close(self) -> None:
        if self.available:
            (TRACING / "events/adit/enable").write_text("0")
            self.command("-:adit/\n")


def objects() -> dict[str, int]:
    """Objects in use of each cache that a network driver can fill."""
    found = {}
    for path in SLAB.iterdir():
        if path.is_symlink() and not path.name.startswith("net_namespace"):
            continue
        if re.match(r"(kmalloc|net_namespace|skbuff|UDP|dst|ip|sock|pid_)", path.name):
            with contextlib.suppress(OSError):
                (path / "shrink").write_text("1")
                found[path.name] = int((path / "objects").read_text().split()[0])
    return found


def references() -> int:
    return int(Path("/sys/module/adit/refcnt").read_text())


def namespaces() -> int:
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return len(done.stdout.split("\n"))


def cycle(net: Topology, number: int) -> None:
    """One life of two links, ended in one of several ways with packets on their way."""
    net.add_peers(v6=number % 2 == 1)
    net.add_keys(suite=number % 3)
    flood = background("mod-a", "ping", "-f", "-s", "1200", "-w", "60", net.b.inner())
    assert until(lambda: net.b.peer_number_of("RX_PACKETS") > 20)
    if number % 4 == 1:
        net.add_keys(first_index=50, suite=number % 3)
    elif number % 4 == 2:
        subprocess.run(["ip", "-n", "mod-b", "link", "delete", "adit0"], check=True)
    net.remove()
    flood.kill()
    flood.wait()


def control() -> dict[str, float]:
    """By how much each cache grows with a cycle that has nothing of ours."""
    for number in range(WARM_UP + CONTROL):
        if number == WARM_UP:
            time.sleep(2)
            before = objects()
        net = Topology(kind="wireguard")
        flood = background("mod-a", "ping", "-f", "-s", "1200", "-w", "60", net.b.wire())
        time.sleep(0.3)
        net.remove()
        flood.kill()
        flood.wait()
    time.sleep(2)
    now = objects()
    grown = {name: max(0, now[name] - before.get(name, 0)) / CONTROL for name in now}
    print(f"  without ours: {({name: per for name, per in grown.items() if per > 1})}", flush=True)
    return grown


@test
def life_cycles(net: Topology) -> None:
    count = int(os.environ.get("ADIT_TEST_CYCLES") or (1000 if full_run() else 50))
    net.remove()
    usual = control()
    probes = Probes()
    try:
        # Always looked at without namespaces: what a living one holds differs from one to the next.
        for number in range(WARM_UP):
            net.__init__()  # type: ignore[misc]
            cycle(net, number)
        time.sleep(2)
        before = objects(), references(), namespaces()
        begin = time.monotonic()
        for number in range(count):
            net.__init__()  # type: ignore[misc]
            cycle(net, number)
        print(f"  {count} cycles in {time.monotonic() - begin:.0f} s", flush=True)
        assert until(lambda: not leaks(before[0], usual, count), 60), (
            leaks(before[0], usual, count), probes.available and probes.counts())
        assert (references(), namespaces()) == before[1:]
        if probes.available:
            assert until(lambda: not unbalanced(probes.counts())), probes.counts()
            assert probes.counts()["peer_made"] >= 2 * count
            print(f"  {probes.counts()}", flush=True)
        net.__init__()  # type: ignore[misc]
        assert ping(net.a, net.b.inner()) is False  # it has no keys yet
    finally:
        probes.close()


def unbalanced(counts: dict[str, int]) -> dict[str, int]:
    """How many more were made than freed since the probes were set."""
    alive = {name: counts[f"{name}_made"] - counts[f"{name}_freed"] for name in LIVES}
    return {name: number for name, number in alive.items() if number}


def leaks(before: dict[str, int], usual: dict[str, float], cycles: int) -> dict[str, float]:
    """What has grown by more than the same cycles without ours would let it."""
    now = objects()
    most = max(TOLERATED, cycles // TOLERATED_SHARE)
    found = {name: now[name] - before.get(name, 0) - usual.get(name, 0) * cycles for name in now}
    return {name: grown for name, grown in found.items()
            if grown > (0 if name == "net_namespace" else most)}
