#!/usr/bin/env python3
"""A debug kernel reports what it is for: errors that planted/adit_planted.c makes on purpose.

test_planted.py [--skip] [--build-dir DIR] [--log FILE] KERNEL. One boot: each error comes after a
mark in the kernel's log, and what makes a run fail (exit status 123) has to stand between that mark
and the next. A module without an error, the first one, has to make no run fail.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

from debugkernel import build, races  # noqa: E402
from debugkernel.kinds import KINDS  # noqa: E402
from vmlib import kernels, kmsg  # noqa: E402
from vmlib.cli import SKIPPED  # noqa: E402
from vmlib.errors import KERNEL_COMPLAINED, Unavailable, VmError  # noqa: E402

MODULE = "adit_planted"
SOURCE = Path(__file__).resolve().parent / "planted"
MARK = "planted: "
SECONDS = 600
MAKE_SECONDS = 300

# Of each error: the line that makes the run fail, and what else the report says.
LOCK_ORDER = ("possible circular locking dependency", "planted_lock_order")
SLEEP = ("BUG: sleeping function called from invalid context", "planted_sleep_in_atomic")
ACTIVE = ("ODEBUG: free active", "planted_free_of_active")
BOUNDS = ("KASAN: slab-out-of-bounds in planted_out_of_bounds", "of size 1")
FREED = ("KASAN: slab-use-after-free in planted_use_after_free", "of size 1")
LEAK = ("kmemleak: unreferenced object", "planted_leak")
INDEX = ("UBSAN: array-index-out-of-bounds", "planted_index")
RACE = ("KCSAN: data-race in planted_race_thread", "race at|write to")

# In the order of the boot: after a report of a memory error the search for lock orders ends. Leaks
# are told at the end of the run.
EXPECTED = {
    "uml": {
        "lock_order": LOCK_ORDER,
        "sleep_in_atomic": SLEEP,
        "index": INDEX,
        "free_of_active": ACTIVE,
        "out_of_bounds": BOUNDS,
        "use_after_free": FREED,
        "leak": LEAK,
    },
    "kasan": {
        "lock_order": LOCK_ORDER,
        "sleep_in_atomic": SLEEP,
        "free_of_active": ACTIVE,
        "out_of_bounds": BOUNDS,
        "use_after_free": FREED,
    },
    "kcsan": {"sleep_in_atomic": SLEEP, "race": RACE},
}
READERS = {"kcsan": races}


def module(name: str, scratch: Path) -> Path:
    """Builds the module for a debug kernel."""
    folder = shutil.copytree(SOURCE, scratch / "module")
    headers = kernels.headers(kernels.find(str(build.build(KINDS[name]))))
    argv = ["make", "-s", "-C", str(headers), f"M={folder}", "modules"]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=MAKE_SECONDS, check=False
    )
    if done.returncode != 0:
        raise VmError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
    return folder / f"{MODULE}.ko"


def command(errors: list[str]) -> str:
    """For the guest's shell: each error once, and each told in the log before. The module is loaded
    once, since KASAN in User Mode Linux keeps the marks of a module's variables when it is gone."""
    lines = ["set -e", f"modprobe {MODULE}"]
    for error in errors:
        lines.append(f"echo '{MARK}{error}' >/dev/kmsg")
        lines.append(f"echo {error} >/sys/module/{MODULE}/parameters/error")
    return "\n".join(lines)


def sections(log: str) -> dict[str, str]:
    """What the kernel said from each mark to the next, by error."""
    parts = re.split(rf"^.*{MARK}(\w+)$", log, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def complaints(name: str, log: str) -> list[str]:
    """What is wrong with the log of a kernel's run."""
    trouble = READERS.get(name, kmsg).troubles
    found = sections(log)
    wrong = []
    if lines := trouble(found.get("nothing", "BUG: not run")):
        wrong.append(f"nothing was wrong, but the kernel says: {lines}")
    for error, (line, more) in EXPECTED[name].items():
        part = found.get(error, "")
        lines = trouble(part)
        if not any(line in one for one in lines) or not re.search(more, part):
            wrong.append(f"{error} is not reported; the kernel says: {lines}")
    return wrong


def run(name: str, ko: Path, log: Path, build_dir: Path | None) -> int:
    argv = [sys.executable, str(ROOT / "tools/debug-kernel"), "run", name]
    argv += ["--build-dir", str(build_dir)] if build_dir else []
    argv += ["--module", str(ko), "--no-load", "--log", str(log), "--timeout", str(SECONDS)]
    argv += ["--", "sh", "-c", command(["nothing", *EXPECTED[name]])]
    return subprocess.run(argv, check=False).returncode


def test(name: str, log: Path | None, build_dir: Path | None) -> int:
    with tempfile.TemporaryDirectory(prefix="adit-planted-") as place:
        scratch = Path(place)
        path = log or scratch / "log"
        status = run(name, module(name, scratch), path, build_dir)
        wrong = complaints(name, path.read_text()) if path.is_file() else ["there is no log"]
    if status != KERNEL_COMPLAINED:
        wrong.append(f"exit status {status}, not {KERNEL_COMPLAINED}")
    for text in wrong:
        print(f"FAILED {text}", file=sys.stderr)
    if not wrong:
        print(f"{name} reports {', '.join(EXPECTED[name])}; it says nothing of a sound module")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel", choices=EXPECTED)
    parser.add_argument("--build-dir", type=Path, help="as of tools/vm")
    parser.add_argument("--log", type=Path, help="write the kernel's log to this file")
    parser.add_argument("--skip", action="store_true", help="exit 77 if it cannot be built")
    options = parser.parse_args()
    try:
        return test(options.kernel, options.log, options.build_dir)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return SKIPPED if options.skip and os.environ.get("CI") != "true" else error.code
    except VmError as error:
        print(error, file=sys.stderr)
        return error.code


if __name__ == "__main__":
    sys.exit(main())
