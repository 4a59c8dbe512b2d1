"""The kernel's source as Debian packages it: fetched with apt, unpacked into the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vmlib import cache
from vmlib.errors import Unavailable, VmError

from .progress import say

PACKAGE = "linux-source-6.12"
SECONDS = 1800
_PREFIX = "source-"
# User Mode Linux keeps the vector registers of a process in a buffer of this many bytes, and the
# host takes them back only as a whole: 11,008 bytes on processors with AMX.
CHANGES = (
    ("arch/x86/um/user-offsets.c", "(HOST_FP_SIZE, 2696)", "(HOST_FP_SIZE, 16384)"),
)
# Part of the folder's name; raised when CHANGES does.
REVISION = "+adit1"


@dataclass(frozen=True)
class Source:
    """An unpacked source tree; the Debian version of its package, and our revision."""

    tree: Path
    version: str


def root() -> Path:
    return cache.folder("debug-kernels")


def _run(argv: list[str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise Unavailable(f"{argv[0]} is missing: the source is a package of Debian") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{' '.join(argv)}: no end after {SECONDS} s") from None
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(argv)} failed:\n{done.stderr.strip()}")
    return done.stdout


def _candidate() -> str:
    match = re.search(r"Candidate: (\S+)", _run(["apt-cache", "policy", PACKAGE]))
    if match is None or match[1] == "(none)":
        raise Unavailable(
            f"apt knows no {PACKAGE}: run apt-get update; the sources must hold Debian 12 with "
            "bookworm-security"
        )
    return match[1]


def cached() -> Source | None:
    """What was unpacked last."""
    trees = [path for path in root().glob(f"{_PREFIX}*{REVISION}") if path.is_dir()]
    tree = max(trees, key=lambda path: path.stat().st_ctime, default=None)
    return Source(tree, tree.name.removeprefix(_PREFIX)) if tree else None


def _change(tree: Path) -> None:
    for name, old, new in CHANGES:
        path = tree / name
        text = path.read_text()
        if old not in text:
            raise VmError(f"{PACKAGE} has changed: no {old} in {name}")
        path.write_text(text.replace(old, new))


def _unpack(version: str, target: Path, work: Path) -> None:
    """`work` is scratch beside the target, which gets its name only when it is complete."""
    # apt drops root for downloads where its own user may write.
    work.chmod(0o777)
    say(f"fetching {PACKAGE} {version}, 150 MB")
    _run(["apt-get", "-q", "download", f"{PACKAGE}={version}"], cwd=work)
    package = next(work.glob("*.deb"), None)
    if package is None:
        raise Unavailable(f"apt-get download {PACKAGE} left no package")
    say("unpacking it, 1.6 GB")
    _run(["dpkg", "-x", package.name, "."], cwd=work)
    archive = next((work / "usr/src").glob("linux-source-*.tar.xz"), None)
    if archive is None:
        raise VmError(f"{PACKAGE} {version} holds no usr/src/linux-source-*.tar.xz")
    with tarfile.open(archive) as tar:
        tar.extractall(work / "tree", filter="tar")
    (tree,) = (work / "tree").iterdir()
    _change(tree)
    tree.rename(target)


def get(update: bool) -> Source:
    """The newest source in the cache, else or with `update` the newest that apt knows."""
    found = cached()
    if found is not None and not update:
        return found
    version = _candidate()
    name = f"{version}{REVISION}"
    target = root() / f"{_PREFIX}{name}"
    with cache.locked(root() / f"{target.name}.lock", SECONDS):
        if not target.is_dir():
            work = Path(tempfile.mkdtemp(dir=root(), prefix=".source."))
            try:
                _unpack(version, target, work)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return Source(target, name)
