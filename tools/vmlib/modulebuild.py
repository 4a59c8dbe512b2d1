"""Builds adit.ko for a kernel, each in a folder of its own inside the build tree."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from . import cache, kernels
from .contents import ROOT
from .errors import Unavailable, VmError
from .kernels import Kernel

BUILD_SECONDS = 900


def build(kernel: Kernel, build_dir: Path) -> Path:
    """The module; VmError with the compiler's output when it does not build."""
    target = build_dir / f"kmod-{kernel.release}"
    target.mkdir(parents=True, exist_ok=True)
    headers = kernels.headers(kernel)
    argv = ["make", "-s", "-C", str(ROOT / "kmod"), f"KDIR={headers}", f"MO={target}"]
    argv += ["W=1", f"-j{os.cpu_count()}"]
    with cache.locked(target / ".lock", BUILD_SECONDS):
        code, output = _make(argv)
    if code != 0:
        raise VmError(f"{' '.join(argv)} failed:\n{output}")
    if output.strip():
        kernels.say(output.strip())
    return target / "adit.ko"


def _make(argv: list[str]) -> tuple[int, str]:
    """Exit code and output; at the deadline it ends make with all that make started."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise Unavailable("make is missing: apt-get install make gcc-12") from None
    try:
        output, _ = process.communicate(timeout=BUILD_SECONDS)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise VmError(f"{' '.join(argv)}: no end after {BUILD_SECONDS} s") from None
        raise
    return process.returncode, output
