"""Builds adit.ko for a kernel, each in a folder of its own inside the build tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from . import cache, kernels
from .contents import ROOT
from .errors import Unavailable, VmError
from .kernels import Kernel

BUILD_SECONDS = 600


def build(kernel: Kernel, build_dir: Path) -> Path:
    """The module; VmError with the compiler's output when it does not build."""
    target = build_dir / f"kmod-{kernel.release}"
    target.mkdir(parents=True, exist_ok=True)
    headers = kernels.headers(kernel)
    argv = ["make", "-s", "-C", str(ROOT / "kmod"), f"KDIR={headers}", f"MO={target}"]
    argv += ["W=1", f"-j{os.cpu_count()}"]
    with cache.locked(target / ".lock", BUILD_SECONDS):
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
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
    return target / "adit.ko"
