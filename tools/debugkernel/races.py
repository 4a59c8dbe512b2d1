"""Reads the log of a kernel with KCSAN: which of its data races are the module's.

The kernel has many races that are known and harmless. One counts here when the module is among the
innermost frames of one of the two accesses. Everything else in the log is judged as usual.

Source: the kernel's Documentation/dev-tools/kcsan.rst, "Error reports".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vmlib import kmsg

# Also that of tests/vm/debug/planted.
MODULE = re.compile(r"\[adit(_planted)?\]")
# An access through a helper of the kernel is the module's; one far below it is the kernel's.
INNERMOST = 4
_STAMP = re.compile(r"^\[[^\]]*\] ?")
_RULE = "=" * 60
_ACCESS = re.compile(
    r"^(?:race at unknown origin, with )?(?:read|write|assert no \w+).* 0x[0-9a-f]+ of "
)


def _plain(line: str) -> str:
    return _STAMP.sub("", line.rstrip())


def reports(log: str) -> Iterator[list[str]]:
    """The lines of each report, without time stamps and rules."""
    inside: list[str] | None = None
    for line in map(_plain, log.splitlines()):
        if line.startswith(_RULE):
            if inside and "KCSAN:" in inside[0]:
                yield inside
                inside = None
            else:
                inside = []
        elif inside is not None:
            inside.append(line)


def is_ours(report: list[str]) -> bool:
    left = 0
    for line in report:
        if _ACCESS.match(line):
            left = INNERMOST
        elif not line.strip():
            left = 0
        elif left > 0:
            left -= 1
            if MODULE.search(line):
                return True
    return False


def _without_reports(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if "KCSAN:" not in line)


def troubles(log: str) -> list[str]:
    """The titles of the module's races, and what else is wrong."""
    titles = [report[0] for report in reports(log) if is_ours(report)]
    return list(dict.fromkeys(titles)) + kmsg.troubles(_without_reports(log))


def excerpt(log: str) -> str:
    """The module's races; when there are none, the rest of the log around what is wrong."""
    ours = ["\n".join(report) for report in reports(log) if is_ours(report)]
    return "\n\n".join(ours[:5]) if ours else kmsg.excerpt(_without_reports(log))
