#!/usr/bin/env python3
"""Runs scenarios of tests/netns one after the other, in one boot of a virtual machine.

    run_scenarios.py test_interop.py:initiator_psk,responder_psk test_adit.py

A name may be a pattern, as in `suite_*`; without names all that are not marked `full` run. What
fails is run once more, since shared machines stall for seconds; the log shows it.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import subprocess
import sys
import time
from pathlib import Path

NETNS = Path(__file__).resolve().parents[1] / "netns"


def scenarios(file: str, patterns: list[str]) -> list[str]:
    listing = subprocess.run(
        [sys.executable, NETNS / file, "--list"], stdout=subprocess.PIPE, text=True, check=True
    )
    known = [line.split(";") for line in listing.stdout.splitlines()]
    if not patterns:
        return [name for name, _, _, full in known if full == "0"]
    found = []
    for pattern in patterns:
        names = [fields[0] for fields in known if fnmatch.fnmatchcase(fields[0], pattern)]
        if not names:
            raise SystemExit(f"{file} has no scenario {pattern}")
        found += names
    return list(dict.fromkeys(found))


def mark(text: str) -> None:
    """A line in the kernel's log, so that its complaints can be told apart."""
    with contextlib.suppress(OSError), open("/dev/kmsg", "w") as log:
        log.write(f"adit-test: {text}\n")


def passes(file: str, name: str) -> bool:
    mark(f"{file} {name}")
    started = time.monotonic()
    code = subprocess.run([sys.executable, NETNS / file, name], check=False).returncode
    print(f"{'PASS' if code == 0 else 'FAIL'} {file} {name} {time.monotonic() - started:.1f} s")
    return code == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", nargs="+", metavar="FILE[:NAME,...]")
    parser.add_argument("--once", action="store_true", help="run nothing a second time")
    options = parser.parse_args()
    plan = []
    for text in options.what:
        file, _, names = text.partition(":")
        plan += [(file, name) for name in scenarios(file, [n for n in names.split(",") if n])]
    failed = [(file, name) for file, name in plan if not passes(file, name)]
    if failed and not options.once:
        print(f"once more: {len(failed)} of {len(plan)}")
        failed = [(file, name) for file, name in failed if not passes(file, name)]
    mark("end")
    print(f"{len(plan) - len(failed)} of {len(plan)} scenarios passed")
    for file, name in failed:
        print(f"FAILED {file} {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
