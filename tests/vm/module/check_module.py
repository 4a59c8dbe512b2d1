#!/usr/bin/env python3
"""Drives adit.ko directly: traffic with keys set by hand, every kind of bad input, and a fuzzer.

    check_module.py [--full] [--list] [NAME...]

All checks, or those whose name contains one of the words. --full: longer and more of each (see the
environment variables in docs/testing.md). Needs root, and the module loaded. Ends with 1 when a
check failed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import traceback

from checks import CHECKS, Entry
from topology import Topology


def mark(text: str) -> None:
    """A line in the kernel's log, so that its complaints can be told apart."""
    with contextlib.suppress(OSError), open("/dev/kmsg", "w") as log:
        log.write(f"adit-test: {text}\n")


def passes(entry: Entry) -> bool:
    mark(entry.name)
    begin = time.monotonic()
    try:
        with contextlib.closing(Topology()) as net:
            entry.body(net)
        passed = True
    except Exception:
        traceback.print_exc()
        passed = False
    print(f"{'ok' if passed else 'FAILED'}  {entry.name}  {time.monotonic() - begin:.1f} s",
          flush=True)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.full:
        os.environ["ADIT_TEST_FULL"] = "1"
    wanted = [
        entry
        for entry in sorted(CHECKS, key=lambda entry: entry.last)
        if not options.names or any(word in entry.name for word in options.names)
    ]
    if not wanted:
        parser.error("there is no such check")
    if options.list:
        print("\n".join(entry.name for entry in wanted))
        return 0
    failed = [entry.name for entry in wanted if not passes(entry)]
    mark("end")
    print(f"{len(failed)} failed: {' '.join(failed)}" if failed else f"all {len(wanted)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
