"""Builds the small module that measures the kernel's AEADs alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from vmlib import kernels
from vmlib.errors import VmError
from vmlib.kernels import Kernel

SOURCE = Path(__file__).with_name("aead")
NAME = "adit_bench_aead.ko"
BUILD_SECONDS = 300


def build(kernel: Kernel, build_dir: Path) -> Path:
    """The module; VmError with the compiler's output when it does not build."""
    target = build_dir / f"bench-aead-{kernel.release}"
    target.mkdir(parents=True, exist_ok=True)
    for path in SOURCE.iterdir():
        copy = target / path.name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copy(path, copy)
    argv = ["make", "-s", "-C", str(kernels.headers(kernel)), f"M={target}"]
    argv += ["W=1", f"-j{os.cpu_count()}", "modules"]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    if done.returncode != 0:
        raise VmError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
    return target / NAME
