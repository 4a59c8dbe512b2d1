"""Scenarios: what one test does, found by name, with a deadline of its own.

A test file defines functions with @scenario and ends with `sys.exit(main())`.
`FILE.py --list` tells ctest what there is; `FILE.py NAME` runs one.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from .network import Interrupted, Lab, install_signal_handlers
from .process import PATIENCE, LabError

SKIPPED = 77


@dataclass(frozen=True)
class Scenario:
    name: str
    body: Callable[[Lab], None]
    seconds: int
    heavy: bool
    full: bool


_scenarios: dict[str, Scenario] = {}


def scenario(
    *, seconds: int = 60, heavy: bool = False, full: bool = False
) -> Callable[[Callable[[Lab], None]], Callable[[Lab], None]]:
    """Registers a function as a test.

    seconds: it fails when it takes longer (times PATIENCE). heavy: it measures or moves much data,
    and runs while no other test does. full: only in `scripts/test --full`.
    """

    def register(body: Callable[[Lab], None]) -> Callable[[Lab], None]:
        add(body.__name__, body, seconds=seconds, heavy=heavy, full=full)
        return body

    return register


def add(
    name: str,
    body: Callable[[Lab], None],
    *,
    seconds: int = 60,
    heavy: bool = False,
    full: bool = False,
) -> None:
    """As @scenario, for one of several names that share a body."""
    if name in _scenarios:
        raise ValueError(f"two scenarios are called {name}")
    _scenarios[name] = Scenario(name, body, seconds, heavy, full)


def progress(text: str) -> None:
    print(f"  {text}", flush=True)


def expect(condition: object, what: str) -> None:
    """What an assertion would do, but also under python -O."""
    if not condition:
        raise LabError(f"not so: {what}")


def _run_one(item: Scenario, keep: bool) -> int:
    if os.geteuid() != 0:
        print("network namespaces need root", file=sys.stderr)
        return 1 if os.environ.get("CI") == "true" else SKIPPED
    install_signal_handlers()
    seconds = item.seconds * PATIENCE
    signal.alarm(seconds)
    started = time.monotonic()
    try:
        with Lab(keep=keep) as lab:
            item.body(lab)
            signal.alarm(0)
    except LabError as error:
        where = traceback.extract_tb(error.__traceback__)
        frames = [f for f in where if "/lab/" not in f.filename]
        at = " ← ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames))
        print(f"FAILED {item.name} at {at}\n{error}", file=sys.stderr)
        return 1
    except Interrupted as stop:
        frames = traceback.extract_tb(stop.__traceback__)
        line = [f for f in frames if "/lab/" not in f.filename][-1]
        reason = f"no end after {seconds} s" if stop.number == signal.SIGALRM else str(stop)
        print(f"FAILED {item.name}: {reason}, at {line.filename}:{line.lineno}", file=sys.stderr)
        return 1
    print(f"passed {item.name} in {time.monotonic() - started:.1f} s")
    return 0


def main() -> int:
    """The command line of a test file."""
    parser = argparse.ArgumentParser(description="Runs one scenario, or all in turn.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="name;seconds;heavy;full, one a line")
    parser.add_argument("--keep", action="store_true", help="leave the namespaces for a look")
    options = parser.parse_args()
    if options.list:
        for item in _scenarios.values():
            print(f"{item.name};{item.seconds};{int(item.heavy)};{int(item.full)}")
        return 0
    unknown = [name for name in options.names if name not in _scenarios]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(_scenarios)}")
    names = options.names or list(_scenarios)
    codes = [_run_one(_scenarios[name], options.keep) for name in names]
    return max(codes)
