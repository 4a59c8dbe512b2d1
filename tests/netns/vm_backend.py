#!/usr/bin/env python3
"""Which data plane `Backend = auto` and `kernel` take, and the reason that they give.

Changes the modules of the machine it runs on, for good: in a virtual machine (tests/vm) only, with
the module shipped and not loaded (`tools/vm --no-load`). One scenario, since the order matters.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from lab import Adit, Lab, expect, main, pair, progress, scenario
from lab.process import run
from lab.tunnel import TunnelSpec, key_pair

MODULES = Path("/lib/modules") / os.uname().release


def loaded() -> bool:
    return Path("/sys/module/adit").exists()


def unload() -> None:
    run(["rmmod", "adit"], check=False)
    expect(not loaded(), "adit.ko is unloaded")


def reason(end: Adit, backend: str) -> str:
    """Why a start with `backend` takes what it takes: from the status, or else the error."""
    end.spec.extra = [f"Backend = {backend}"]
    end.write()
    up = end.cli("up", str(end.file), check=False)
    if up.code != 0:
        progress(f"{backend}: {up.err.strip()}")
        return f"error: {up.err.strip()}"
    status = end.status()
    end.down()
    text = f"{status['backend']}: {status['backend_reason']}"
    progress(f"{backend}: {text}")
    return text


@scenario(seconds=240)
def reasons(lab: Lab) -> None:
    net = pair(lab)
    end = Adit(net.left, lab.device("b"), TunnelSpec(key_pair(), ["10.10.0.1/24"]))
    run(["modprobe", "tun"])
    unload()
    expect("userspace: Backend = userspace" in reason(end, "userspace"), "as asked")
    expect(not loaded(), "a module that nobody asked for is not loaded")
    expect(reason(end, "auto").startswith("kernel: adit.ko is loaded, version "), "the kernel")
    expect(loaded(), "the module was loaded")
    unload()
    expect(reason(end, "kernel").startswith("kernel: Backend = kernel"), "the kernel")
    unload()

    module = next(MODULES.rglob("adit.ko"))
    kept = Path(shutil.copy(module, "/tmp/adit.ko"))
    module.unlink()
    run(["depmod", "-a"])
    absent = f"adit.ko is not installed for Linux {os.uname().release}"
    expect(reason(end, "auto") == f"userspace: {absent}", absent)
    error = reason(end, "kernel")
    expect("error: " in error and absent in error and error.count("\n") == 0, error)

    # What modprobe says of a module of another kernel, too.
    module.write_bytes(kept.read_bytes().replace(b"vermagic=", b"vermagic=9"))
    run(["depmod", "-a"])
    expect("built for another kernel" in reason(end, "auto"), "another kernel")

    shutil.copy(kept, module)
    run(["depmod", "-a"])
    Path("/proc/sys/kernel/modules_disabled").write_text("1")
    expect("takes no modules" in reason(end, "auto"), "no modules")
    expect("error: " in reason(end, "kernel"), "an error")


if __name__ == "__main__":
    sys.exit(main())
