#!/usr/bin/env python3
"""scripts/demo.py: its result, and that nothing is left of it, also when it is interrupted.

The part of scripts/demo that installs and builds is not run here: ctest has just built.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from lab import ROOT, Lab, Process, add, expect, main, progress, run, scenario

DEMO = str(ROOT / "scripts" / "demo.py")


def traces(pid: int) -> list[str]:
    """What a demo of that process id has left on this machine."""
    found = [str(path) for path in Path("/run/netns").glob(f"adit-{pid}-*")]
    found += [str(path) for path in Path(tempfile.gettempdir()).glob(f"adit-{pid}-*")]
    found += [str(path) for path in Path("/var/run/wireguard").glob(f"ad{pid}*")]
    found += [str(path) for path in Path("/run/adit").glob(f"ad{pid}*")]
    found += [str(path) for path in Path("/etc/netns").glob(f"adit-{pid}-*")]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if f"adit-{pid}-" in words or f"/ad{pid}" in words:
            found.append(f"process {path.parent.name}: {words}")
    return found


def orphans() -> set[str]:
    """Namespaces of labs that have ended; a test that was killed leaves its own."""
    names = {path.name for path in Path("/run/netns").glob("adit-*-*")}
    return {name for name in names if not Path("/proc", name.split("-")[1]).exists()}


def check_result(result: dict[str, Any]) -> None:
    expect(set(result) == {"backend", "cipher", "maps", "mbps"}, f"the agreed keys: {result}")
    expect(result["backend"] in ("kernel", "userspace"), f"a backend: {result}")
    expect(isinstance(result["cipher"], str) and result["cipher"], f"a cipher: {result}")
    listens = [entry["listen"] for entry in result["maps"]]
    expect(listens == ["tcp/18080", "tcp/5201"], f"both mappings: {listens}")
    for entry in result["maps"]:
        expect(entry["ok"] is True and entry["client_address_kept"] is True, f"works: {entry}")
    expect(set(result["mbps"]) == {"link", "tunnel", "mapped"}, f"three figures: {result}")
    expect(all(value > 1 for value in result["mbps"].values()), f"real figures: {result}")


@scenario(seconds=120, heavy=True)
def json_result(_lab: Lab) -> None:
    """Exactly one object on standard output, progress on standard error, nothing left."""
    orphans_before = orphans()
    before = run(["ip", "-brief", "link"]).out
    done = run([sys.executable, "-B", DEMO, "--json", "--seconds", "2"], timeout=100)
    progress(done.out.strip())
    check_result(json.loads(done.out))
    expect(done.out.count("\n") == 1, "one line")
    expect("demo:" in done.err, "progress on standard error")
    expect(run(["ip", "-brief", "link"]).out == before, "the machine's own links are as before")
    left = orphans() - orphans_before
    expect(not left, f"no namespace is left: {left}")


def reached(demo: Process, moment: int) -> bool:
    text = demo.output()
    return text.count("demo: ") >= moment or "demo: done" in text


def interrupted(lab: Lab, number: int) -> None:
    """The signal comes after the 1st, 2nd, ... line of progress."""
    moment = 0
    while True:
        moment += 1
        demo = Process(
            [sys.executable, "-B", DEMO, "--seconds", "2"], lab.dir / f"demo-{moment}.log"
        )
        lab.processes.append(demo)
        demo.require(partial(reached, demo, moment), 60, f"line {moment} of the demo")
        demo.signal(number)
        code = demo.wait(30)
        left = traces(demo.pid)
        expect(not left, f"nothing left after line {moment}: {left}")
        if "demo: done" in demo.output():
            break
        expect(code == 128 + number, f"the exit code of a signal, not {code}: {demo.output()}")
    progress(f"interrupted at {moment - 1} moments")
    expect(moment > 6, "it was interrupted at many moments")


for _number in (signal.SIGINT, signal.SIGTERM):
    add(
        f"interrupted_by_{_number.name.lower()}",
        partial(interrupted, number=_number),
        seconds=240,
        full=_number == signal.SIGTERM,
    )


if __name__ == "__main__":
    sys.exit(main())
