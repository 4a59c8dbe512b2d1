"""How a run can fail beside the command's own exit status."""

from __future__ import annotations

UNAVAILABLE = 69
GUEST_DIED = 122
KERNEL_COMPLAINED = 123
TIMED_OUT = 124


class VmError(Exception):
    """What went wrong and what to do about it, for the person who reads the terminal."""

    code = 1


class Unavailable(VmError):
    """QEMU, a kernel or a package cannot be had on this machine."""

    code = UNAVAILABLE
