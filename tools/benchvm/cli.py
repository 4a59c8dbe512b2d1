"""The command line of tools/bench-vm."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from types import FrameType

from vmlib.contents import ROOT
from vmlib.errors import VmError

from . import figures, machine, plan, profile, table

DESCRIPTION = """\
Boots a stock Debian kernel under QEMU, where an instruction takes a nanosecond of the guest's time,
and measures in that one boot what a tunnel costs: no tunnel, the kernel's WireGuard, IPsec, adit.ko
with its three suites, and the ciphers alone. The figures do not depend on this machine's load. All
of it takes about an hour; --only, --measure, --link and --quick choose a part."""
EPILOG = f"""\
subjects:  aead {" ".join(f"adit/{s}" if s in plan.ADIT else s for s in plan.SUBJECTS)}
measures:  {" ".join(plan.MEASURES)}
links:     {" ".join(plan.LINKS)}

  tools/bench-vm --only adit/chacha20-poly1305 --quick     # one figure, about a minute
  tools/bench-vm --only plain --only wireguard --only 'adit/*' --only aead --measure tcp
  tools/bench-vm --measure default/ping --measure nic_like/tcp
  tools/bench-vm --json >figures.json                      # everything"""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="bench-vm",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add("--json", action="store_true", help="one object instead of the table")
    add("--details", action="store_true", help="in it also `details`: losses and counters")
    add("--kernel", default="6.12", help="6.1, 6.12 (default), or a folder as for tools/vm")
    add("--only", action="append", default=[], metavar="SUBJECT", help="repeatable, may hold *")
    add("--measure", action="append", default=[], metavar="MEASURE", help="repeatable, may hold *")
    add("--link", action="append", default=[], metavar="LINK", help="repeatable, may hold *")
    add("--seconds", type=int, metavar="S", help=f"virtual ones of each stream ({plan.SECONDS})")
    add(
        "--quick",
        action="store_true",
        help=f"{plan.QUICK_SECONDS} virtual second; one TCP stream and the default link, if no "
        "other is named",
    )
    add("--profile", action="store_true", help="also instructions by function, on standard error")
    add("--build-dir", type=Path, metavar="DIR", help="where modules are built (build)")
    return result


def _plan(options: argparse.Namespace) -> plan.Plan:
    seconds = options.seconds or (plan.QUICK_SECONDS if options.quick else plan.SECONDS)
    measures, links = options.measure, options.link
    if options.quick:
        measures, links = measures or ["tcp"], links or ["default"]
    return plan.choose(options.only, measures, links, seconds)


def _run(options: argparse.Namespace) -> figures.Results:
    chosen = _plan(options)
    build_dir = options.build_dir or ROOT / "build"
    if not options.profile:
        return machine.run(chosen, options.kernel, build_dir)
    with profile.profiler() as profiler:
        results = machine.run(chosen, options.kernel, build_dir, profiler)
        print(profiler.report(), file=sys.stderr)
    return results


def _stop(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main(argv: list[str] | None = None) -> int:
    options = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _stop)
    try:
        results = _run(options)
    except plan.PlanError as error:
        machine.say(str(error))
        return 2
    except VmError as error:
        machine.say(str(error))
        return error.code
    except KeyboardInterrupt:
        return 130
    if options.json:
        told = figures.summary(results)
        if options.details:
            told["details"] = figures.details(results)
        print(json.dumps(told, indent=2))
    else:
        print(table.render(results))
    for text in results.errors:
        machine.say(f"failed: {text}")
    return 1 if results.errors else 0


if __name__ == "__main__":
    sys.exit(main())
