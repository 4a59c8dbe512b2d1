"""Programs and the shared libraries that they need."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .errors import VmError

_PATH = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$")
_MISSING = re.compile(r"^\s*(\S+) => not found$")


def is_elf(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def needed(binaries: Iterable[Path]) -> list[Path]:
    """Every library and program interpreter that ldd names for these ELF files."""
    files = [str(path) for path in binaries]
    if not files:
        return []
    try:
        done = subprocess.run(
            ["ldd", *files],
            env={**os.environ, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError:
        raise VmError("ldd is missing (Debian package libc-bin)") from None
    found: dict[Path, None] = {}
    program = files[0]
    for line in done.stdout.splitlines():
        if line.startswith("/") and line.endswith(":"):
            program = line[:-1]
        elif match := _MISSING.match(line):
            raise VmError(f"{program} needs {match[1]}, which is not installed")
        elif match := _PATH.match(line):
            found[Path(match[1])] = None
    return list(found)
