"""Builds adit.ko for a kernel beside others: in a copy of the sources inside the build tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from . import cache, kernels
from .contents import ROOT
from .errors import Unavailable, VmError
from .kernels import Kernel

# kmod/ includes these headers of userspace by their place in the tree.
SOURCES = ("kmod", "lib/wire")
BUILD_SECONDS = 600


def _mirror(source: Path, target: Path) -> None:
    """Copies what has changed, so that make builds no more than that."""
    for folder, folders, files in os.walk(source):
        folders.sort()
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in files:
            path = Path(folder, name)
            if path.suffix in (".o", ".ko", ".cmd") or ".mod" in name or name.startswith("."):
                continue
            data = path.read_bytes()
            copy = place / name
            if not copy.exists() or copy.read_bytes() != data:
                copy.write_bytes(data)


def build(kernel: Kernel, build_dir: Path) -> Path:
    """The module; VmError with the compiler's output when it does not build."""
    tree = build_dir / "kmod" / kernel.release
    tree.mkdir(parents=True, exist_ok=True)
    headers = kernels.headers(kernel)
    with cache.locked(tree.parent / f"{kernel.release}.lock", BUILD_SECONDS):
        for source in SOURCES:
            _mirror(ROOT / source, tree / source)
        argv = ["make", "-s", "-C", str(tree / "kmod"), f"KDIR={headers}", f"-j{os.cpu_count()}"]
        try:
            done = subprocess.run(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=BUILD_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise Unavailable("make is missing: apt-get install make gcc-12") from None
        except subprocess.TimeoutExpired:
            raise VmError(f"{' '.join(argv)}: no end after {BUILD_SECONDS} s") from None
        if done.returncode != 0:
            raise VmError(f"{' '.join(argv)} failed:\n{done.stdout}")
        if done.stdout.strip():
            kernels.say(done.stdout.strip())
    return tree / "kmod" / "adit.ko"
