"""What in the kernel's log means that a test must fail."""

from __future__ import annotations

import re

TROUBLE = re.compile(
    r"\bBUG:|\bWARNING:|\bOops\b|Kernel panic|general protection fault|unable to handle|"
    r"detected stalls|self-detected stall|soft lockup|blocked for more than|"
    r"unregister_netdevice: waiting for|refcount_t:|UBSAN:|KCSAN:|KASAN:|kmemleak:|"
    r"scheduling while atomic|possible (circular|recursive) locking|suspicious RCU usage|"
    r"ODEBUG:|list_(add|del) corruption|stack-protector|bad page|Bad page|Slab corruption"
)
# Says "kmemleak: ... " at every start of a kernel that has it.
HARMLESS = re.compile(r"kmemleak: Kernel memory leak detector initialized|kmemleak: Automatic")


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
