"""The ratios that are to be reached, and which of them are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .figures import Number, Results, summary, ratio

CHACHA, GCM = "chacha20-poly1305", "aes-256-gcm"


@dataclass(frozen=True)
class Goal:
    """What a ratio must be: at least `limit`, or at most."""

    what: str
    limit: float
    at_least: bool
    ratio: Callable[[Results], Number]

    def reached(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


def _between(link: str, measure: str, above: str, below: str) -> Callable[[Results], Number]:
    return lambda results: ratio(
        results.value(link, above, measure), results.value(link, below, measure)
    )


def _to_floor(suite: str) -> Callable[[Results], Number]:
    return lambda results: summary(results)["ratio_to_floor"][suite]


def _mapped(suite: str) -> Callable[[Results], Number]:
    return lambda results: ratio(
        results.value("default", suite, "mapped"), results.value("default", suite, "tcp")
    )


def _eight(suite: str) -> Callable[[Results], Number]:
    return lambda results: ratio(
        results.value("default", suite, "eight_streams"), results.value("default", suite, "tcp")
    )


def _retransmits(suite: str) -> Callable[[Results], Number]:
    return lambda results: results.value("default", suite, "tcp", "retransmits")


def _goals() -> Iterator[Goal]:
    for link, name, limits in (
        ("nic_like", "NIC-like, one TCP stream", (1.95, 2.6)),
        ("default", "one TCP stream", (2.15, 3.0)),
    ):
        for suite, limit in zip((CHACHA, GCM), limits):
            what = f"{name}, {suite}: WireGuard / adit"
            yield Goal(what, limit, True, _between(link, "tcp", "wireguard", suite))
        limit = 1.25 if link == "nic_like" else 1.75
        what = f"{name}, {GCM}: IPsec / adit"
        yield Goal(what, limit, True, _between(link, "tcp", "xfrm_aes256gcm", GCM))
    for suite, limit in ((CHACHA, 1.0), (GCM, 1.32)):
        yield Goal(f"one TCP stream, {suite}: adit / floor", limit, False, _to_floor(suite))
    for suite in (CHACHA, GCM):
        yield Goal(f"eight streams / one, {suite}", 1.05, False, _eight(suite))
        for measure, limit in (("udp1372", 1.7), ("udp64", 1.5)):
            what = f"inner UDP {measure[3:]} B, {suite}: WireGuard / adit"
            yield Goal(what, limit, True, _between("default", measure, "wireguard", suite))
        what = f"ping, {suite}: adit / WireGuard"
        yield Goal(what, 0.55, False, _between("default", "ping", suite, "wireguard"))
        yield Goal(f"mapped port / none, {suite}", 1.15, False, _mapped(suite))
        yield Goal(f"retransmits, {suite}", 0, False, _retransmits(suite))


GOALS = tuple(_goals())
