"""The guest's lines become one object: figures of one boot, and the ratios between them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Optional

from .plan import ADIT, LINKS, MEASURES, SUBJECTS

Number = Optional[float]
# Of each pass two are needed: the sender's and the receiver's.
PASSES = 2
FLOORS = ("chacha20-poly1305", "aes-256-gcm")
# Of the object's parts, those that hold one figure for each subject.
BY_SUBJECT = ("udp64", "udp1372", "mapped", "ping")


class Results:
    """What the guest told so far."""

    def __init__(self) -> None:
        self.kernel = ""
        self.errors: list[str] = []
        self._lines: dict[tuple[str, str, str], dict[str, Any]] = {}

    def add(self, text: str) -> dict[str, Any] | None:
        """Takes a line; the result that it holds, or None when it holds none (a program's noise)."""
        try:
            line = json.loads(text)
        except ValueError:
            return None
        if not isinstance(line, dict):
            return None
        if "kernel" in line:
            self.kernel = line["kernel"]
            return None
        if not {"link", "subject", "measure"} <= line.keys():
            return None
        if "begin" in line:
            return line
        if "error" in line:
            self.errors.append(f"{line['link']} {line['subject']} {line['measure']}: {line['error']}")
        else:
            self._lines[line["link"], line["subject"], line["measure"]] = line
        return line

    def value(self, link: str, subject: str, measure: str, key: str = "value") -> Number:
        number: Number = self._lines.get((link, subject, measure), {}).get(key)
        return number

    def lines(self) -> Iterable[dict[str, Any]]:
        return self._lines.values()


def ratio(above: Number, below: Number) -> Number:
    return above / below if above is not None and below else None


def _floor(plain: Number, aead: Number) -> Number:
    return plain + PASSES * aead if plain is not None and aead is not None else None


def _link(results: Results, link: str) -> dict[str, Any]:
    stream = {subject: results.value(link, subject, "tcp") for subject in SUBJECTS}
    # The ciphers do not know of links.
    aead = {suite: results.value("default", suite, "aead") for suite in ADIT}
    floor = {suite: _floor(stream["plain"], aead[suite]) for suite in FLOORS}
    result: dict[str, Any] = {
        "kernel": results.kernel,
        "plain": stream["plain"],
        "wireguard": stream["wireguard"],
        "xfrm_aes256gcm": stream["xfrm_aes256gcm"],
        "adit": {suite: stream[suite] for suite in ADIT},
        "aead": aead,
        "floor": floor,
        "ratio_to_wireguard": {s: ratio(stream["wireguard"], stream[s]) for s in ADIT},
        "ratio_to_floor": {suite: ratio(stream[suite], floor[suite]) for suite in FLOORS},
    }
    for measure in BY_SUBJECT:
        result[measure] = {s: results.value(link, s, measure) for s in SUBJECTS}
    return result


def summary(results: Results) -> dict[str, Any]:
    """Instructions per byte (streams, AEADs), per packet (UDP) or per round trip (ping); null for
    what was not measured."""
    return {**_link(results, "default"), "nic_like": _link(results, "nic_like")}


def details(results: Results) -> dict[str, Any]:
    """All that was measured: by link, measure and subject, with losses and counters."""
    tree: dict[str, Any] = {link: {measure: {} for measure in MEASURES} for link in LINKS}
    for line in results.lines():
        rest = {k: v for k, v in line.items() if k not in ("link", "subject", "measure")}
        tree[line["link"]].setdefault(line["measure"], {})[line["subject"]] = rest
    return tree
