"""What in the kernel's log means that a test must fail."""

from __future__ import annotations

import re

TROUBLE = re.compile(
    r"\bBUG:|\bWARNING:|\bOops\b|Kernel panic|general protection fault|unable to handle|"
    r"detected stalls|self-detected stall|soft lockup|blocked for more than|"
    r"unregister_netdevice: waiting for|refcount_t:|UBSAN:|KCSAN:|KASAN:|kmemleak:|"
    r"scheduling while atomic|possible (circular|recursive) locking|suspicious RCU usage|"
    r"ODEBUG:|\bint3: 0000|list_(add|del) corruption|stack-protector|bad page|Bad page|"
    # SLUB names the cache; the reference trackers of debug kernels; lockdep.
    r"Slab corruption|\bBUG \S+ \(|ref_tracker: .* (has \d|already)|non-static key"
)
# Says "kmemleak: ... " at every start of a kernel that has it.
HARMLESS = re.compile(r"kmemleak: Kernel memory leak detector initialized|kmemleak: Automatic")

# Debian 12's QEMU 7.2 can run a breakpoint that another processor has already taken away again
# while the kernel patches its code: seen once in some dozens of starts on a busy machine.
# See linux-kernel, July 2023, "qemu-x86_64 booting with 8.0.0 stil see int3".
EMULATOR = re.compile(r"(Oops: )?\bint3: 0000 \[#1\]")
# Rarer: an interrupt within cmpxchg16b leaves half of a pointer in the flags, and the return from it
# faults. Bits 22 to 31 are zero in every processor, whatever a kernel does.
FLAGS = re.compile(r"\bEFLAGS: ([0-9a-f]{8})\b")
IMPOSSIBLE_FLAGS = 0xFFC00000


def emulator_failed(log: str) -> bool:
    """Whether the first thing that went wrong is the emulator's defect and not the kernel's."""
    first = next(iter(troubles(log)), "")
    if EMULATOR.search(first):
        return True
    flags = FLAGS.search(log[log.index(first) :]) if "double fault" in first else None
    return flags is not None and int(flags[1], 16) & IMPOSSIBLE_FLAGS != 0


def troubles(log: str) -> list[str]:
    """The lines that report trouble, in order, each once."""
    found = []
    for line in log.splitlines():
        if TROUBLE.search(line) and not HARMLESS.search(line):
            found.append(line.strip())
    return list(dict.fromkeys(found))


def excerpt(log: str, lines: int = 60) -> str:
    """From shortly before the first trouble on, or the end when there is none."""
    text = log.splitlines()
    for number, line in enumerate(text):
        if TROUBLE.search(line) and not HARMLESS.search(line):
            return "\n".join(text[max(0, number - 3) : number + lines])
    return "\n".join(text[-lines:])
