"""Create, traffic, destroy, again and again: nothing is left over.

ADIT_TEST_CYCLES says how often (50; 1000 with --full). Counted are the module's own objects, made
and freed; its references; namespaces; and all of the kernel's caches of memory.
"""

from __future__ import annotations

import math
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
# What leaks grows in each of them; what the kernel keeps for once does not.
PARTS = 3
LOOKS = 3


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

    def alive(self) -> dict[str, int]:
        """How many more were made than freed since the probes were set."""
        if not self.available:
            return {}
        counts = self.counts()
        return {name: counts[f"{name}_made"] - counts[f"{name}_freed"] for name in LIVES}

    def none_more_than(self, before: dict[str, int]) -> bool:
        return all(number <= before[name] for name, number in self.alive().items())

    def close(self) -> None:
        if self.available:
            (TRACING / "events/adit/enable").write_text("0")
            self.command("-:adit/\n")


class Caches:
    """Objects in use of each cache that a network driver can fill.

    All of a slab that a processor allocates from count as used, so none may be: nothing may be
    allocated between the cleaning up and the look. Opening a file allocates, and what closing it
    frees waits for seconds, hence all are open from the beginning; a write allocates as much as it
    is long.
    """

    def __init__(self) -> None:
        self.files: dict[str, tuple[int, int]] = {}
        for path in SLAB.iterdir():
            if path.is_symlink() and not path.name.startswith("net_namespace"):
                continue
            if re.match(r"(kmalloc|net_namespace|skbuff|UDP|dst|ip|sock|pid_)", path.name):
                self.files[path.name] = (os.open(path / "shrink", os.O_WRONLY),
                                         os.open(path / "objects", os.O_RDONLY))
        self.objects()  # the first reading gives each file its buffer

    def objects(self) -> dict[str, int]:
        return {name: min(self.look(name) for _ in range(LOOKS)) for name in self.files}

    def look(self, name: str) -> int:
        shrink, count = self.files[name]
        os.write(shrink, b"1" if name != "kmalloc-8" else b"1".ljust(3000))
        return int(os.pread(count, 100, 0).split()[0])

    def close(self) -> None:
        for pair in self.files.values():
            for file in pair:
                os.close(file)


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
    net.close()
    flood.kill()
    flood.wait()


@test
def life_cycles(net: Topology) -> None:
    count = int(os.environ.get("ADIT_TEST_CYCLES") or (1000 if full_run() else 50))
    net.close()
    probes = Probes()
    caches = Caches()
    try:
        # Always looked at without namespaces: what a living one holds differs from one to the next.
        cycles(net, WARM_UP)
        # Less than none where what lived before was freed since, which can take some seconds.
        alive = settled(probes)
        before = references(), namespaces()
        begin = time.monotonic()
        grown = [growth(net, caches, math.ceil(count / PARTS)) for _ in range(PARTS)]
        print(f"  {count} cycles in {time.monotonic() - begin:.0f} s", flush=True)
        assert not set.intersection(*map(set, grown)), (
            grown, probes.available and probes.counts())
        assert (references(), namespaces()) == before
        if probes.available:
            assert until(lambda: probes.none_more_than(alive)), (alive, probes.counts())
            assert probes.counts()["peer_made"] >= 2 * count
            print(f"  {probes.counts()}", flush=True)
        net.__init__()  # type: ignore[misc]
        assert ping(net.a, net.b.inner()) is False  # it has no keys yet
    finally:
        caches.close()
        probes.close()


def cycles(net: Topology, count: int) -> None:
    for number in range(count):
        net.__init__()  # type: ignore[misc]
        cycle(net, number)


def settled(probes: Probes) -> dict[str, int]:
    """What is alive, when that has not changed for five seconds."""
    seen, since = probes.alive(), time.monotonic()
    while time.monotonic() < since + 5:
        time.sleep(0.5)
        if (now := probes.alive()) != seen:
            seen, since = now, time.monotonic()
    return seen


def growth(net: Topology, caches: Caches, count: int) -> dict[str, int]:
    """The caches that `count` lives have left with more than an object for every second life."""
    before = caches.objects()
    cycles(net, count)

    def grown() -> dict[str, int]:
        now = caches.objects()
        found = {name: now[name] - before.get(name, 0) for name in now}
        return {name: more for name, more in found.items()
                if more > (0 if name == "net_namespace" else max(4, count // 2))}

    end = time.monotonic() + 20
    while (left := grown()) and time.monotonic() < end:
        time.sleep(2)
    print(f"  after {count} cycles: {left}", flush=True)
    return left
