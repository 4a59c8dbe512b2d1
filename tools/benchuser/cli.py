"""The command line of tools/bench-user."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from lab import Interrupted, Lab, LabError, install_signal_handlers, pair

from . import links, measures, references, report, subjects

DESCRIPTION = """\
Compares the userspace data plane with the bare link and with other implementations of WireGuard in
userspace, in one run.

    left  ── veth ──  right         two network namespaces of this machine (`Pair` in the lab)

Every tunnel is up all the time; the rounds go through them in turn, so that a busy moment of the
machine does not fall on one of them alone. Medians of the rounds, receivers' figures. Needs root, a
build (scripts/build; the tests for `pingpong`: scripts/test) and the packages of scripts/test. The
newest wireguard-go and boringtun are built into the cache where a Go or Rust toolchain and its
registry are there; else a line says that they are left out. All of it takes about twenty minutes.
  tools/bench-user --link gso --congestion cubic --rounds 1 --reference wireguard-go"""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="bench-user",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add("--json", action="store_true", help="one JSON object on stdout")
    add("--seconds", type=int, default=3, help="of each measurement (default 3)")
    add("--rounds", type=int, default=3, help="default 3")
    add(
        "--congestion",
        nargs="+",
        choices=("cubic", "bbr", "reno"),
        default=["cubic", "bbr"],
        help="TCP's congestion control (default: cubic bbr)",
    )
    add(
        "--link",
        nargs="+",
        choices=tuple(links.LINKS),
        default=list(links.LINKS),
        help="super-packets pass; segmented and merged like a NIC; no offload (default: all)",
    )
    add(
        "--reference",
        nargs="+",
        choices=tuple(references.FINDERS),
        default=list(references.FINDERS),
        help="what to compare with; ratios refer to the first that is there (default: all)",
    )
    return result


def say(text: str) -> None:
    print(f"bench-user: {text}", file=sys.stderr, flush=True)


def find_references(names: list[str]) -> list[references.Reference]:
    found = []
    for name in names:
        say(f"looking for {name}")
        reference = references.FINDERS[name]()
        if isinstance(reference, references.Absent):
            say(f"left out: {reference.name}: {reference.why}")
        else:
            say(f"{reference.name} {reference.version}")
            found.append(reference)
    return found


def run_link(kind: str, options: argparse.Namespace, others: list[references.Reference]) -> Any:
    with Lab() as lab:
        net = pair(lab)
        links.apply(net, kind)
        measured = subjects.all_subjects(net, others)
        measures.start_servers(net)
        rounds = measures.Rounds(options.seconds, tuple(options.congestion))
        for number in range(options.rounds):
            for subject in measured:
                say(f"{kind} link, round {number + 1} of {options.rounds}: {subject.name}")
                measures.measure(net, subject, rounds)
        return report.summary(measured, others[0].name if others else None)


def main() -> int:
    options = parser().parse_args()
    if min(options.seconds, options.rounds) < 1:
        parser().error("--seconds and --rounds are at least 1")
    install_signal_handlers()
    others = find_references(options.reference)
    reference = others[0].name if others else None
    results: dict[str, Any] = {}
    try:
        for kind in options.link:
            results[kind] = run_link(kind, options, others)
            if not options.json:
                print(report.table(kind, results[kind], options.rounds, reference), flush=True)
    except LabError as error:
        say(f"failed: {error}")
        return 1
    except Interrupted as stop:
        say(f"ended by {stop}, everything removed")
        return 128 + stop.number
    if options.json:
        print(
            json.dumps(
                {
                    "seconds": options.seconds,
                    "rounds": options.rounds,
                    "references": {other.name: other.version for other in others},
                    "ratios_to": reference,
                    "links": results,
                }
            )
        )
    return 0
