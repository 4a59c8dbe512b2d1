#!/usr/bin/env python3
"""Reads kmod/ with the kernel's own tools: sparse and checkpatch.

check_source.py [--build-dir DIR] [--skip] [checkpatch|sparse...]. Everything without a name.
What one of them says of a file of ours fails the test; of the kernel's own headers nothing is said.

Source: the kernel's Documentation/dev-tools/sparse.rst and checkpatch.rst.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

from debugkernel import source  # noqa: E402
from vmlib import kernels  # noqa: E402
from vmlib.cli import SKIPPED  # noqa: E402
from vmlib.errors import Unavailable, VmError  # noqa: E402

SECONDS = 1800
COMPLAINT = re.compile(r"\b(?:warning|error):")
# The messages' layout is shared with programs that do not have the kernel's short names.
SHARED = "--ignore=PREFER_DEFINED_ATTRIBUTE_MACRO"


def need(packages: dict[str, str]) -> None:
    missing = [package for program, package in packages.items() if shutil.which(program) is None]
    if missing:
        raise Unavailable(f"apt-get install {' '.join(missing)}")


def run(argv: list[str]) -> tuple[int, str]:
    """Exit status and output."""
    try:
        done = subprocess.run(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise VmError(f"{' '.join(argv)}: no end after {SECONDS} s") from None
    return done.returncode, done.stdout


def make(series: str, target: Path, *arguments: str) -> tuple[int, str]:
    """Builds the module with warnings; its output."""
    target.mkdir(parents=True, exist_ok=True)
    headers = kernels.headers(kernels.find(series))
    argv = ["make", "-s", "-C", str(ROOT / "kmod"), f"KDIR={headers}", f"MO={target}"]
    return run([*argv, "W=1", f"-j{os.cpu_count()}", *arguments])


def checkpatch(_: Path) -> list[str]:
    need({"perl": "perl"})
    tree = source.get(False).tree
    argv = ["perl", str(tree / "scripts/checkpatch.pl"), "--no-tree", f"--root={tree}"]
    argv += ["--terse", "--show-types", "--no-summary", "-f"]
    kmod = ROOT / "kmod"
    ours = [*kmod.glob("*.[ch]"), *kmod.glob("*/*.[ch]")]
    complaints = []
    for files, more in ((ours, []), (list((ROOT / "lib/wire").glob("*.h")), [SHARED])):
        assert files
        _, output = run([*argv[:2], *more, *argv[2:], *map(str, sorted(files))])
        complaints += output.splitlines()
    print(f"checkpatch: {len(ours)} files of kmod")
    return complaints


def sparse(build: Path) -> list[str]:
    need({"sparse": "sparse"})
    complaints = []
    for series in kernels.IMAGES:
        target = build / f"sparse-{series}"
        # 2: also what needs no compilation.
        code, output = make(series, target, "C=2")
        lines = [line for line in output.splitlines() if COMPLAINT.search(line)]
        found = [line for line in lines if line.startswith(str(target))]
        complaints += found or (output.splitlines() if code != 0 else [])
        print(f"sparse: {series}")
    return complaints


CHECKS = {check.__name__: check for check in (checkpatch, sparse)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build")
    parser.add_argument("--skip", action="store_true", help="exit 77 if a tool is missing")
    parser.add_argument("names", nargs="*", metavar="CHECK", help=" ".join(CHECKS))
    options = parser.parse_args()
    complaints = []
    try:
        for name in options.names or CHECKS:
            complaints += CHECKS[name](options.build_dir.resolve())
    except Unavailable as error:
        print(f"{name}: {error}", file=sys.stderr)
        return SKIPPED if options.skip and os.environ.get("CI") != "true" else error.code
    for line in complaints:
        print(line, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
