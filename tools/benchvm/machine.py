"""Runs a plan in one boot of tools/vm, and follows what the guest tells."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from vmlib import kernels, modulebuild
from vmlib.errors import VmError

from . import aead
from .figures import Results
from .plan import Plan
from .profile import Profiler

TOOLS = Path(__file__).resolve().parents[1]
GUEST = Path(__file__).with_name("guest")
GUEST_PLACE = "/adit/bench"
# Far more than a slow machine needs; a hanging guest ends by it.
SECONDS_PER_STEP = 400
BOOT_SECONDS = 300


def say(text: str) -> None:
    print(f"bench-vm: {text}", file=sys.stderr, flush=True)


def _argv(plan: Plan, series: str, build_dir: Path, profiler: Profiler | None) -> list[str]:
    kernel = kernels.find(series)
    argv = [sys.executable, "-B", str(TOOLS / "vm"), "--quiet", "--icount"]
    argv += ["--kernel", series, "--module", str(modulebuild.build(kernel, build_dir))]
    argv += ["--timeout", str(BOOT_SECONDS + SECONDS_PER_STEP * plan.steps())]
    argv += ["--include", f"{GUEST}:{GUEST_PLACE}/guest"]
    told = {
        "subjects": list(plan.subjects),
        "measures": dict(plan.measures),
        "seconds": plan.seconds,
        "aead": None,
        "profile": profiler is not None,
    }
    if profiler:
        argv += profiler.vm_options()
    if plan.aead:
        module = aead.build(kernel, build_dir)
        argv += ["--include", f"{module}:{GUEST_PLACE}/{module.name}"]
        told["aead"] = f"{GUEST_PLACE}/{module.name}"
    argv += ["--env", f"PYTHONPATH={GUEST_PLACE}"]
    return [*argv, "--", "python3", "-m", "guest", json.dumps(told)]


def _profile(profiler: Profiler, what: str, line: dict[str, Any]) -> None:
    if "begin" in line:
        profiler.begin(what)
    elif "bytes" in line:
        profiler.end(what, "byte", line["bytes"])
    elif "packets" in line:
        profiler.end(what, "packet", line["packets"])
    elif "trips" in line:
        profiler.end(what, "round trip", line["trips"])


def run(
    plan: Plan, series: str, build_dir: Path, profiler: Profiler | None = None
) -> Results:
    """All results; VmError when the machine failed. Single measurements may have failed."""
    argv = _argv(plan, series, build_dir, profiler)
    results = Results()
    started = time.monotonic()
    done = 0
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for text in process.stdout:
            line = results.add(text)
            if line is None:
                continue
            what = f"{line['link']} {line['subject']} {line['measure']}"
            if profiler:
                _profile(profiler, what, line)
            if "begin" in line:
                continue
            done += 1
            value = line.get("error") or f"{line['value']:,.2f}"
            say(f"{done}/{plan.steps()} {time.monotonic() - started:.0f} s  {what}: {value}")
        process.wait()
    finally:
        process.terminate()
        process.wait()
    if process.returncode != 0:
        raise VmError(f"tools/vm ended with {process.returncode}; its messages stand above")
    return results
