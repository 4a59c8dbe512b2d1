"""Instructions by function of the guest's kernel: counted by a plugin of QEMU, not sampled."""

from __future__ import annotations

import bisect
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from vmlib.errors import Unavailable, VmError

SOURCE = Path(__file__).with_name("counter.c")
# Where the guest leaves its table of symbols.
SYMBOLS = "/tmp/kallsyms"
KERNEL_START = 1 << 63
USER = "user space"
WAIT_SECONDS = 60
SHOWN = 45

Counts = dict[int, int]


class Symbols:
    """The functions of a kernel and its modules, by address."""

    def __init__(self, kallsyms: str):
        entries = []
        for line in kallsyms.splitlines():
            words = line.split()
            if len(words) >= 3 and words[1] in "tTwW":
                module = f" {words[3]}" if len(words) > 3 else ""
                entries.append((int(words[0], 16), words[2] + module))
        entries.sort()
        self._addresses = [address for address, _ in entries]
        self._names = [name for _, name in entries]

    def name(self, address: int) -> str:
        if address < KERNEL_START:
            return USER
        place = bisect.bisect_right(self._addresses, address) - 1
        return self._names[place] if place >= 0 else "?"


def parse_counts(text: str) -> Counts:
    """What the plugin wrote, without its last line."""
    pairs = (line.split() for line in text.splitlines() if line != "end")
    return {int(address, 16): int(count) for address, count in pairs}


def by_function(before: Counts, after: Counts, symbols: Symbols) -> list[tuple[str, int]]:
    """Instructions between two states of the counters, the most first."""
    totals: dict[str, int] = {}
    for address, count in after.items():
        grown = count - before.get(address, 0)
        if grown:
            name = symbols.name(address)
            totals[name] = totals.get(name, 0) + grown
    return sorted(totals.items(), key=lambda item: -item[1])


def render(title: str, functions: Iterable[tuple[str, int]], unit: str, amount: float) -> str:
    """A line for each of the largest: instructions per `unit`, of which there were `amount`."""
    rows = list(functions)
    total = sum(count for _, count in rows)
    lines = [f"{title}: {total / amount:.2f} instructions per {unit}, by function"]
    for name, count in rows[:SHOWN]:
        lines.append(f"{count / amount:10.3f} {100 * count / total:5.1f} %  {name}")
    rest = sum(count for _, count in rows[SHOWN:])
    lines.append(f"{rest / amount:10.3f} {100 * rest / total:5.1f} %  all others")
    return "\n".join(lines)


@dataclass
class Profiler:
    """One boot's counters. The folder holds the plugin, its FIFO and what it wrote."""

    folder: Path

    def __post_init__(self) -> None:
        self.plugin = self.folder / "counter.so"
        self.fifo = self.folder / "requests"
        self._requests = 0
        self._pipe: TextIO | None = None
        self._begun: dict[str, Counts] = {}
        self._done: list[tuple[str, Counts, Counts, str, float]] = []
        subprocess.run(["mkfifo", self.fifo], check=True)
        argv = ["gcc", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-o", self.plugin, SOURCE]
        try:
            subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
        except FileNotFoundError:
            raise Unavailable("gcc is missing: apt-get install gcc") from None
        except subprocess.CalledProcessError as error:
            raise VmError(f"QEMU's plugin does not build:\n{error.stderr}") from None

    def vm_options(self) -> list[str]:
        """For tools/vm."""
        plugin = f"{self.plugin},fifo={self.fifo}"
        return ["--qemu=-plugin", f"--qemu={plugin}", "--fetch", SYMBOLS, "--fetch-to",
                str(self.folder)]

    def _counts(self) -> Counts:
        self._requests += 1
        path = self.folder / f"counts-{self._requests}"
        if self._pipe is None:
            # Open until the end: the plugin takes its closing for the last request.
            self._pipe = self.fifo.open("w")
        self._pipe.write(f"{path}\n")
        self._pipe.flush()
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            text = path.read_text() if path.exists() else ""
            if text.endswith("end\n"):
                path.unlink()
                return parse_counts(text)
            time.sleep(0.01)
        raise VmError("QEMU's plugin does not answer")

    def begin(self, what: str) -> None:
        self._begun[what] = self._counts()

    def end(self, what: str, unit: str, amount: float) -> None:
        if what in self._begun:
            self._done.append((what, self._begun.pop(what), self._counts(), unit, amount))

    def report(self) -> str:
        """Once the guest has ended, which left its symbols."""
        path = self.folder / SYMBOLS.lstrip("/")
        if not path.is_file():
            raise VmError("the guest left no table of symbols")
        symbols = Symbols(path.read_text())
        return "\n\n".join(
            render(what, by_function(before, after, symbols), unit, amount)
            for what, before, after, unit, amount in self._done
        )


@contextmanager
def profiler() -> Iterator[Profiler]:
    with tempfile.TemporaryDirectory(prefix="adit-profile-") as name:
        yield Profiler(Path(name))
