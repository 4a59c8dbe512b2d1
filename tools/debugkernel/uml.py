"""A kernel that is a program of the host, in the place of QEMU.

Source: the kernel's Documentation/virt/uml/user_mode_linux_howto_v2.rst, and what its drivers
(arch/um/drivers/line.c, fd.c) accept as a channel.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from vmlib.errors import VmError
from vmlib.machine import PORTS, Machine

TERMINAL_LINE = 0
# The serial lines of the ports, after that of the terminal.
LINES = {name: number for number, name in enumerate(PORTS, start=TERMINAL_LINE + 1)}


class UmlMachine(Machine):
    """One run of User Mode Linux. It has one processor and the host's instructions."""

    BOOT_SECONDS = 600
    GUEST_PORTS = " ".join(f"{name}:/dev/ttyS{line}" for name, line in LINES.items())

    def command_line(self, kernel: Path, initrd: Path) -> list[str]:
        options = self.options
        if options.icount or options.gdb or options.qemu:
            raise VmError("--icount, --gdb and --qemu are QEMU's: attach gdb to the process")
        # A session of its own: at a panic the kernel sends SIGTERM to its process group. A process
        # namespace of its own: no process of the guest outlives the kernel, which is not the first
        # one in there, since that could not abort.
        prefix = ["setsid", "-w", "unshare", "--pid", "--fork", "--kill-child"]
        if os.geteuid() != 0:
            prefix += ["--user", "--map-root-user"]
        prefix += ["sh", "-c", '"$@"; exit $?', "sh"]
        return [
            *prefix,
            *(str(kernel), f"mem={options.memory}M", f"initrd={initrd}"),
            *("console=tty0", "loglevel=5", "oops=panic", "cryptomgr.notests"),
            # SLUB's own marks are written before KASAN is ready here, which it reports, and after
            # one report it says nothing more.
            *("slub_debug=-", "kasan_multi_shot"),
            # Its files go with the run's.
            *("con=null", "ssl=null", f"uml_dir={initrd.parent}", *options.append),
        ]

    def channel(self, name: str, descriptor: int) -> list[str]:
        if name == "console":
            return [f"con0=null,fd:{descriptor}"]
        return [f"ssl{LINES[name]}=null,fd:{descriptor}"]

    def terminal(self) -> list[str]:
        return ["con0=null", f"ssl{TERMINAL_LINE}=fd:0,fd:1"]

    def end(self, process: subprocess.Popen[bytes]) -> None:
        # With the first process of the namespace all others die.
        with contextlib.suppress(ProcessLookupError):
            for child in _children(process.pid):
                os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []
