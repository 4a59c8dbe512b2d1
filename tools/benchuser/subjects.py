"""What is measured: the bare link, adit with each cipher, and the references, all up at once."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from lab import (
    Adit,
    Pair,
    PeerSpec,
    Tunnel,
    TunnelSpec,
    WireGuardGo,
    cpu_seconds,
    key_pair,
    ping,
)

from .references import Reference

CIPHERS = ("chacha20-poly1305", "aes-256-gcm")
LINK = "link"


@dataclass
class Subject:
    """One thing to measure: where its other end is, and which daemons work for it."""

    name: str
    address: str
    tunnels: list[Tunnel] = field(default_factory=list)
    samples: dict[str, list[float]] = field(default_factory=dict)

    def add(self, metric: str, value: float) -> None:
        self.samples.setdefault(metric, []).append(value)

    def median(self, metric: str) -> float | None:
        values = self.samples.get(metric)
        return statistics.median(values) if values else None

    def cpu(self) -> float:
        return sum(cpu_seconds(pid) for tunnel in self.tunnels for pid in tunnel.pids())


def all_subjects(net: Pair, references: Iterable[Reference]) -> list[Subject]:
    """Brings every tunnel up."""
    subjects = [Subject(LINK, net.right_address)]
    for cipher in CIPHERS:
        subjects.append(_tunnel(net, f"adit-{cipher}", len(subjects), cipher))
    for reference in references:
        subjects.append(_tunnel(net, reference.name, len(subjects), reference))
    return subjects


def _tunnel(net: Pair, name: str, number: int, what: str | Reference) -> Subject:
    """A tunnel 10.10.NUMBER.0/24 of adit with a cipher, or of a reference."""
    port = 51820 + number
    prefix = f"10.10.{number}"
    keys = (key_pair(), key_pair())
    addresses = (net.left_address, net.right_address)
    ends: list[Tunnel] = []
    for index, where in enumerate((net.left, net.right)):
        other = 1 - index
        spec = TunnelSpec(
            keys[index],
            [f"{prefix}.{index + 1}/24"],
            listen_port=port,
            extra=[f"Cipher = {what}", "Backend = userspace"] if isinstance(what, str) else [],
            peers=[
                PeerSpec(
                    keys[other].public,
                    f"{prefix}.{other + 1}/32",
                    endpoint=f"{addresses[other]}:{port}",
                )
            ],
        )
        device = net.lab.device(f"{'lr'[index]}{number}")
        if isinstance(what, str):
            ends.append(Adit(where, device, spec))
        else:
            end = WireGuardGo(where, device, spec)
            end.program = what.program
            ends.append(end)
        ends[-1].up()
    subject = Subject(name, f"{prefix}.2", ends)
    ping(net.left, subject.address, timeout=20)
    return subject
