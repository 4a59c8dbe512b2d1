"""The user's cache folder: written atomically, shared by runs that go on at once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import VmError

KEEP_DAYS = 7


def folder(name: str) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = base / "adit" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Holds an exclusive lock on a file; VmError when another process keeps it for `seconds`."""
    deadline = time.monotonic() + seconds
    with path.open("a") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise VmError(f"{path} is held by another process: {seconds:g} s") from None
                time.sleep(0.1)
        yield


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name only when it is complete."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            yield out
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def forget_old(pattern: str, where: Path) -> None:
    """Removes files that no run has used for a week; a QEMU that has one open is not disturbed."""
    limit = time.time() - KEEP_DAYS * 86400
    for path in where.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < limit:
                path.unlink()
