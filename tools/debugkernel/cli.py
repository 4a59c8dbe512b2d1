"""The command line of tools/debug-kernel."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType, ModuleType

from vmlib import cli as vm
from vmlib import kmsg
from vmlib.errors import Unavailable, VmError
from vmlib.machine import Machine

from . import build, races
from .kinds import KINDS
from .progress import say
from .uml import UmlMachine

# Memory in MiB: the shadow of KASAN takes an eighth, its quarantine more. Four emulated processors
# on a busy machine see too few ticks of the timer for the kernel's test of it.
QEMU = ("--smp", "4", "--memory", "2048", "--append", "no_timer_check kasan_multi_shot")
DEFAULTS = {"uml": ("--memory", "1536"), "kasan": QEMU, "kcsan": QEMU}
READERS: dict[str, ModuleType] = {"kcsan": races}
DESCRIPTION = """\
Builds kernels that look for errors, once, into the cache, and runs commands in them. `run` takes
all options of tools/vm (see its --help), and returns its exit status."""


class SlowMachine(Machine):
    """QEMU with a kernel that checks each access to memory."""

    BOOT_SECONDS = 600


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="debug-kernel",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="kernels:\n" + "".join(f"  {k.name:6} {k.looks_for}\n" for k in KINDS.values()),
    )
    commands = result.add_subparsers(dest="verb", required=True, metavar="build|run|path")
    one = commands.add_parser("build", help="build what is not in the cache; print the folders")
    one.add_argument("kinds", nargs="+", choices=KINDS, metavar="KERNEL")
    one.add_argument("--update", action="store_true", help="from the newest source that apt knows")
    one.add_argument("--skip", action="store_true", help="exit 77 if not available, unless CI=true")
    one = commands.add_parser("run", help="run a command in it, built when it is not in the cache")
    one.add_argument("kind", choices=KINDS, metavar="KERNEL")
    one.add_argument("rest", nargs=argparse.REMAINDER, metavar="[OPTION...] -- COMMAND")
    one = commands.add_parser("path", help="print the folder; fail when it has to be built first")
    one.add_argument("kind", choices=KINDS, metavar="KERNEL")
    return result


def _run(name: str, rest: list[str]) -> int:
    folder = build.build(KINDS[name])
    machine = UmlMachine if name == "uml" else SlowMachine
    argv = ["--kernel", str(folder), *DEFAULTS[name], *rest]
    return vm.main(argv, machine, READERS.get(name, kmsg))


def _path(name: str) -> int:
    folder = build.cached(KINDS[name])
    if folder is None:
        raise VmError(f"{name} has to be built: tools/debug-kernel build {name}")
    print(folder)
    return 0


def _stop(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    options = parser().parse_args(arguments)
    # So that what was started ends as well.
    signal.signal(signal.SIGTERM, _stop)
    try:
        if options.verb == "build":
            for name in options.kinds:
                print(build.build(KINDS[name], options.update), flush=True)
            return 0
        if options.verb == "path":
            return _path(options.kind)
        return _run(options.kind, options.rest)
    except Unavailable as error:
        say(str(error))
        skip = "--skip" in arguments and os.environ.get("CI") != "true"
        return vm.SKIPPED if skip else error.code
    except VmError as error:
        say(str(error))
        return error.code
    except KeyboardInterrupt:
        return 130
