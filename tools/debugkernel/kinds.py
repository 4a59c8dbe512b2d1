"""The debug kernels that there are, and the fragments that make their configurations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
_WANTED = re.compile(r"^(?:(CONFIG_\w+)=(.+)|# (CONFIG_\w+) is not set)$")


@dataclass(frozen=True)
class Kind:
    """`fragments`: names of the .config files beside this one; a later one wins."""

    name: str
    arch: str
    fragments: tuple[str, ...]
    looks_for: str

    def fragment_files(self) -> list[Path]:
        return [HERE / f"{name}.config" for name in self.fragments]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("uml", "um", ("common", "uml"), "memory errors, leaks, failing allocations; one CPU"),
        Kind("kasan", "x86_64", ("common", "x86", "kasan"), "memory errors, lock order, RCU use"),
        Kind("kcsan", "x86_64", ("common", "x86", "kcsan"), "data races"),
    )
}


def settings(text: str) -> dict[str, str | None]:
    """The options of a configuration and their values, None where one "is not set"."""
    found: dict[str, str | None] = {}
    for line in text.splitlines():
        if match := _WANTED.match(line.strip()):
            found[match[1] or match[3]] = match[2]
    return found


def wanted(kind: Kind) -> dict[str, str | None]:
    result: dict[str, str | None] = {}
    for path in kind.fragment_files():
        result.update(settings(path.read_text()))
    return result


def refused(wishes: dict[str, str | None], configuration: str) -> list[str]:
    """One line for each wish that the kernel's configuration did not take over."""
    actual = settings(configuration)
    lines = []
    for name, value in wishes.items():
        got = actual.get(name)
        if got != value:
            lines.append(f"{name}: {value or 'not set'} was wanted, it is {got or 'not set'}")
    return lines
