"""The command line of tools/vm."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Protocol

from . import image, kernels, kmsg, modulebuild
from .contents import GUEST_BUILD, ROOT, Contents, Run
from .errors import GUEST_DIED, KERNEL_COMPLAINED, TIMED_OUT, Unavailable, VmError
from .kernels import say
from .machine import Machine, Options, Outcome

DESCRIPTION = f"""\
Boots a stock Debian kernel under QEMU's software emulation and runs a command in it, with this
tree's tests in /adit and a build tree's programs in {GUEST_BUILD}. Exit status: the command's own;
{GUEST_DIED} the guest ended without one; {KERNEL_COMPLAINED} the command succeeded, but the kernel
reported a bug or a warning; {TIMED_OUT} time-out; {Unavailable.code} QEMU, a kernel or a package
is missing."""
SKIPPED = 77
ATTEMPTS = 3
DEFAULT_KERNEL = "6.12"


class LogReader(Protocol):
    """What vmlib.kmsg is: it finds in a kernel's log what a test must fail for."""

    def troubles(self, log: str) -> list[str]: ...

    def excerpt(self, log: str) -> str: ...


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="vm",
        description=DESCRIPTION,
        usage="tools/vm [OPTION...] [--] COMMAND [ARGUMENT...]",
    )
    add = result.add_argument
    add("command", nargs="*", metavar="COMMAND", help="a program and its arguments")
    add("--script", type=Path, metavar="FILE", help="ship this executable and run it")
    guest = result.add_argument_group("guest")
    add = guest.add_argument
    add("--kernel", help="6.1, 6.12 (default), or a folder (vmlinux, lib/modules/RELEASE)")
    add("--smp", type=int, default=2, help="processors (2)")
    add("--memory", type=int, default=1024, metavar="MIB", help="(1024)")
    add("--accel", default="tcg", help="accelerators in order, such as kvm:tcg (tcg)")
    add("--icount", action="store_true", help="one instruction is 1 ns; one processor")
    add("--append", action="append", default=[], metavar="WORDS", help="kernel command line")
    add("--nic-queues", type=int, default=0, metavar="N", help="a virtio NIC with so many queues")
    add("--qemu", action="append", default=[], metavar="ARG", help="one more for QEMU")
    files = result.add_argument_group("files")
    add = files.add_argument
    add("--build-dir", type=Path, metavar="DIR", help="of the programs ($ADIT_BUILD_DIR, build)")
    add("--module", type=Path, metavar="KO", help="ship and load this kernel module")
    add("--build-module", action="store_true", help="build kmod/ for the kernel; ship and load it")
    add("--no-load", action="store_true", help="ship the module, but do not load it")
    add("--include", action="append", default=[], metavar="PATH[:GUESTPATH]", help="file or folder")
    add("--env", action="append", default=[], metavar="NAME=VALUE", help="for the command")
    add("--fetch", action="append", default=[], metavar="GUESTPATH", help="copy out at the end")
    add("--fetch-to", type=Path, default=Path(), metavar="DIR", help="where to (.)")
    control = result.add_argument_group("control")
    add = control.add_argument
    add("--timeout", type=int, default=600, metavar="S", help="for the command; 0 is none (600)")
    add("--allow-warnings", action="store_true", help="ignore what the kernel's log complains of")
    add("--console", action="store_true", help="show the serial console on standard error")
    add("--log", type=Path, metavar="FILE", help="write the kernel's log to a file")
    add("--shell", action="store_true", help="a shell on the serial console, after the command")
    add("--gdb", nargs="?", type=int, const=1234, metavar="PORT", help="let gdb attach (1234)")
    add("--skip", action="store_true", help=f"exit {SKIPPED} when not available, unless CI=true")
    add("--fetch-only", action="store_true", help="only fetch kernels and headers: the newest")
    add("-q", "--quiet", action="store_true", help="nothing but the command's output and errors")
    return result


def _stop(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _build_dir(given: Path | None) -> Path | None:
    if given is not None:
        if not given.is_dir():
            raise VmError(f"{given} does not exist")
        return given.resolve()
    default = Path(os.environ.get("ADIT_BUILD_DIR") or ROOT / "build")
    return default.resolve() if (default / "ctl").is_dir() else None


def _include(text: str) -> tuple[Path, str]:
    host, colon, guest = text.rpartition(":")
    if not colon or not guest.startswith("/"):
        host, guest = text, os.path.abspath(text)
    return Path(host), guest


def _fetch_only(series: str | None) -> int:
    for name in [series] if series else kernels.IMAGES:
        kernel = kernels.fetch_or_cached(name)
        print(f"{name} {kernel.release} {kernel.base} {kernels.headers(kernel)}")
    return 0


def _sweep() -> None:
    """Removes what a run that was killed by force left: its image of some 100 MB."""
    for path in Path(tempfile.gettempdir()).glob("adit-vm-*-*"):
        if not Path("/proc", path.name.split("-")[2]).exists():
            shutil.rmtree(path, ignore_errors=True)


def _extract(archive: Path, target: Path) -> None:
    """Plain files and folders only, each inside the target."""
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            name = Path(member.name)
            if name.is_absolute() or ".." in name.parts:
                continue
            stream = tar.extractfile(member) if member.isfile() else None
            if stream is not None:
                path = target / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as out:
                    shutil.copyfileobj(stream, out)


def _judge(outcome: Outcome, options: argparse.Namespace, reader: LogReader) -> int:
    complaints = reader.troubles(f"{outcome.console}\n{outcome.log}")
    if outcome.status is None or outcome.hung:
        say(outcome.hung or "the guest ended without an exit status")
        for text in (outcome.qemu_errors, kmsg.excerpt(outcome.console)):
            if text:
                print(text, file=sys.stderr)
        return TIMED_OUT if outcome.hung else GUEST_DIED
    if outcome.status == TIMED_OUT:
        say(f"no end after {options.timeout} s; the kernel's last words:")
        print(kmsg.excerpt(outcome.log or outcome.console), file=sys.stderr)
    if outcome.fetch_failed:
        say("not everything could be fetched")
    if complaints and not options.allow_warnings:
        say("the kernel complains:")
        text = outcome.log if reader.troubles(outcome.log) else outcome.console
        print(reader.excerpt(text), file=sys.stderr)
        return outcome.status or KERNEL_COMPLAINED
    return outcome.status or int(outcome.fetch_failed)


def _module(options: argparse.Namespace, kernel: kernels.Kernel, build: Path | None) -> Path | None:
    if options.build_module:
        return modulebuild.build(kernel, build or ROOT / "build")
    module: Path | None = options.module
    if module is not None and not module.is_file():
        raise VmError(f"{module} does not exist")
    return module


def _boot(machine: Callable[[], Machine], shell: bool = False) -> Outcome:
    """Runs a machine; a new one when the emulator itself has failed."""
    for left in reversed(range(ATTEMPTS)):
        one = machine()
        outcome = one.interactive() if shell else one.run()
        if outcome.status is not None or not kmsg.emulator_failed(outcome.console):
            break
        say(f"QEMU's known defect; {'starting again' if left else 'giving up'}")
    return outcome


def _run(options: argparse.Namespace, machine_class: type[Machine], reader: LogReader) -> int:
    kernel = kernels.find(options.kernel or DEFAULT_KERNEL)
    build = _build_dir(options.build_dir)
    run = Run(
        kernel=kernel,
        command=options.command,
        script=options.script,
        build_dir=build,
        module=_module(options, kernel, build),
        load_module=not options.no_load,
        includes=[_include(text) for text in options.include],
        fetch=options.fetch,
        environment=dict(text.split("=", 1) for text in options.env),
        timeout=0 if options.icount or options.shell else options.timeout,
        shell=options.shell,
        ports=machine_class.GUEST_PORTS,
    )
    machine_options = Options(
        smp=options.smp,
        memory=options.memory,
        accel=options.accel.split(":"),
        icount=options.icount,
        gdb=options.gdb,
        append=options.append,
        qemu=options.qemu,
        nic_queues=options.nic_queues,
        timeout=options.timeout,
        show_console=options.console,
    )
    _sweep()
    with tempfile.TemporaryDirectory(prefix=f"adit-vm-{os.getpid()}-") as name:
        scratch = Path(name)
        archive = image.describe(kernel, debugging=options.shell)
        base = image.cached(archive, kernel)
        extra = Contents(run, archive, scratch).write()
        initrd = scratch / "initrd"
        with initrd.open("wb") as out:
            for part in (base, extra):
                with part.open("rb") as source:
                    shutil.copyfileobj(source, out, 1 << 20)
        if options.gdb:
            say(f"gdb {kernel.image} -ex 'target remote 127.0.0.1:{options.gdb}'")
        files = scratch / "files.tar"
        outcome = _boot(
            lambda: machine_class(machine_options, kernel.image, initrd, files), options.shell
        )
        if options.fetch and outcome.status is not None:
            _extract(scratch / "files.tar", options.fetch_to)
    if options.log is not None:
        options.log.write_text(outcome.log or outcome.console)
    if not options.quiet and outcome.boot_seconds:
        say(f"{kernel.release}: up after {outcome.boot_seconds:.1f} s")
    return 0 if options.shell else _judge(outcome, options, reader)


def main(
    argv: list[str] | None = None,
    machine: type[Machine] = Machine,
    reader: LogReader = kmsg,
) -> int:
    """Other machines than QEMU, and other judges of the kernel's log, are a caller's."""
    options = parser().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        if platform.machine() != "x86_64":
            raise Unavailable("the guest runs programs of this machine, and is x86-64")
        if options.fetch_only:
            return _fetch_only(options.kernel)
        if not (options.command or options.script or options.shell):
            if options.build_module:
                kernel = kernels.find(options.kernel or DEFAULT_KERNEL)
                print(modulebuild.build(kernel, _build_dir(options.build_dir) or ROOT / "build"))
                return 0
            raise VmError("no command: give one, or --script, or --shell")
        return _run(options, machine, reader)
    except Unavailable as error:
        say(str(error))
        return SKIPPED if options.skip and os.environ.get("CI") != "true" else error.code
    except VmError as error:
        say(str(error))
        return error.code
    except KeyboardInterrupt:
        return 130
