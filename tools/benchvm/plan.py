"""What a run measures: subjects, measures and kinds of link, by their names."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ADIT = ("chacha20-poly1305", "aes-256-gcm", "aes-128-gcm")
SUBJECTS = ("plain", "wireguard", "xfrm_aes256gcm", *ADIT)
MEASURES = ("tcp", "bidirectional", "eight_streams", "udp1372", "udp64", "mapped", "ping")
LINKS = ("default", "nic_like")
AEAD = "aead"
SECONDS = 5
QUICK_SECONDS = 1


class PlanError(Exception):
    """A name that stands for nothing."""


@dataclass(frozen=True)
class Plan:
    """`seconds` are virtual: of each stream."""

    subjects: Sequence[str]
    measures: Mapping[str, Sequence[str]]  # of each link
    seconds: int = SECONDS
    aead: bool = True

    def steps(self) -> int:
        """Lines of results that the guest will print."""
        count = len(self.subjects) * sum(map(len, self.measures.values()))
        return count + (len(ADIT) if self.aead else 0)


def _name(subject: str) -> str:
    return f"adit/{subject}" if subject in ADIT else subject


def choose(
    only: Iterable[str], measures: Iterable[str], links: Iterable[str], seconds: int
) -> Plan:
    """The plan of these patterns, of which an empty list stands for all; a measure may be named for
    one link alone, as LINK/MEASURE. PlanError if one fits nothing."""
    known = {AEAD: AEAD, **{_name(subject): subject for subject in SUBJECTS}}
    subjects = _matching(only, known)
    chosen_links = _matching(links, {name: name for name in LINKS})
    return Plan(
        subjects=[subject for subject in subjects if subject != AEAD],
        measures=_measures(measures, chosen_links),
        seconds=seconds,
        aead=AEAD in subjects,
    )


def _measures(patterns: Iterable[str], links: Iterable[str]) -> dict[str, Sequence[str]]:
    whole = [pattern if "/" in pattern else f"*/{pattern}" for pattern in patterns]
    names = _matching(whole, {f"{link}/{name}": f"{link}/{name}" for link in links
                              for name in MEASURES})
    result: dict[str, Sequence[str]] = {}
    for link in links:
        inside = [name.split("/")[1] for name in names if name.startswith(f"{link}/")]
        if inside:
            result[link] = inside
    return result


def _matching(patterns: Iterable[str], known: dict[str, str]) -> list[str]:
    wished = list(patterns)
    for pattern in wished:
        if not fnmatch.filter(known, pattern):
            raise PlanError(f"{pattern!r} is none of: {' '.join(known)}")
    return [
        value
        for name, value in known.items()
        if not wished or any(fnmatch.fnmatchcase(name, pattern) for pattern in wished)
    ]
