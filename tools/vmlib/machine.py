"""Runs QEMU, relays what the guest prints, and ends it at its end, the deadline or a signal."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from .errors import Unavailable

QEMU = "qemu-system-x86_64"
TAP = "tap0"
# After the guest has said "exit", or that its command's time is over.
END_SECONDS = 60
PORTS = ("stdout", "stderr", "status", "log", "files")
CONSOLE_KEPT = 1 << 20
PR_SET_PDEATHSIG = 1

Channels = dict[str, socket.socket]


@dataclass
class Options:
    """The virtual machine. Sizes in MiB, `timeout` in seconds for the command, 0 for none."""

    smp: int = 2
    memory: int = 1024
    accel: Sequence[str] = ("tcg",)
    icount: bool = False
    gdb: int | None = None
    append: Sequence[str] = ()
    qemu: Sequence[str] = ()
    nic_queues: int = 0  # of a virtio NIC; 0 is no NIC
    timeout: int = 0
    show_console: bool = False


@dataclass
class Outcome:
    """How it ended. `status` is None when the guest never told."""

    status: int | None = None
    console: str = ""
    log: str = ""
    hung: str = ""
    boot_seconds: float = 0.0
    guest_boot_seconds: float = 0.0
    fetch_failed: bool = False
    qemu_errors: str = ""
    _console: bytearray = field(default_factory=bytearray, repr=False)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _accel(options: Options) -> list[str]:
    argv = []
    for name in options.accel:
        argv += ["-accel", name]
    if options.icount:
        argv += ["-icount", "shift=0,sleep=off"]
    return argv


def _nic(queues: int) -> list[str]:
    """A virtio NIC. QEMU gives a card as many queues as what is behind it has: a tap device has."""
    vectors = 2 * queues + 2  # each queue's two ends, changes of the configuration, the control queue
    return [
        *("-netdev", f"tap,id=nic,ifname={TAP},queues={queues},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,netdev=nic,mq=on,vectors={vectors}"),
    ]


def _with_tap() -> list[str]:
    """Starts a program in a network namespace of its own, where a tap device answers as 192.0.2.2;
    both end with the program."""
    program = shutil.which("unshare")
    if program is None:
        raise Unavailable("unshare is missing: apt-get install util-linux")
    flags = ["--net"] if os.geteuid() == 0 else ["--net", "--map-root-user"]
    script = f"""ip tuntap add {TAP} mode tap multi_queue && ip link set {TAP} up &&
        ip address add 192.0.2.2/24 dev {TAP} && exec "$@\""""
    return [program, *flags, "sh", "-c", script, "sh"]


def command_line(options: Options, kernel: Path, initrd: Path) -> list[str]:
    """QEMU's arguments without the serial line and the ports."""
    program = shutil.which(QEMU)
    if program is None:
        raise Unavailable(f"{QEMU} is missing: apt-get install qemu-system-x86")
    cmdline = ["console=ttyS0", "loglevel=5", "panic=-1", "oops=panic", "random.trust_cpu=on"]
    # All processors read one counter, which the kernel's own test cannot see; the ciphers' tests
    # at every load of a module take seconds under emulation.
    cmdline += ["tsc=reliable", "cryptomgr.notests"]
    # That check panics when the machine gives the processor's thread no time for some ticks.
    cmdline += ["no_timer_check"]
    cmdline += ["nokaslr"] if options.gdb else []
    cmdline += options.append
    return [
        *(_with_tap() if options.nic_queues else ()),
        *(program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35", "-cpu", "max", *_accel(options)),
        *("-smp", "1" if options.icount else str(options.smp), "-m", str(options.memory)),
        *("-kernel", str(kernel), "-initrd", str(initrd), "-append", " ".join(cmdline)),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", "-device", "virtio-serial-pci"),
        *(("-gdb", f"tcp:127.0.0.1:{options.gdb}") if options.gdb else ()),
        *(_nic(options.nic_queues) if options.nic_queues else ()),
        *options.qemu,
    ]


@contextlib.contextmanager
def _channels(
    names: Sequence[str], tell: Callable[[str, int], list[str]]
) -> Iterator[tuple[Channels, list[int], list[str]]]:
    """Our ends by name, the machine's ends, and the arguments that tell the machine of them."""
    ours: Channels = {}
    theirs: list[socket.socket] = []
    argv: list[str] = []
    try:
        for name in names:
            near, far = socket.socketpair()
            ours[name] = near
            theirs.append(far)
            near.setblocking(False)
            argv += tell(name, far.fileno())
        yield ours, [far.fileno() for far in theirs], argv
    finally:
        for end in (*ours.values(), *theirs):
            end.close()


class Machine:
    """One run. `files` receives the tar archive of what was asked for."""

    # The guest's devices of the ports, as NAME:DEVICE, where they are not virtio ports.
    GUEST_PORTS: ClassVar[str] = ""
    BOOT_SECONDS: ClassVar[int] = 180

    def __init__(self, options: Options, kernel: Path, initrd: Path, files: Path):
        self.options = options
        self.argv = self.command_line(kernel, initrd)
        self.outcome = Outcome()
        self._files = files
        self._status = bytearray()
        self._log = bytearray()
        self._started = 0.0
        self._deadline = 0.0

    def command_line(self, kernel: Path, initrd: Path) -> list[str]:
        return command_line(self.options, kernel, initrd)

    def channel(self, name: str, descriptor: int) -> list[str]:
        """The arguments that join the console or a port to a socket."""
        argv = ["-chardev", f"socket,id={name},fd={descriptor}"]
        if name == "console":
            return [*argv, "-serial", "chardev:console"]
        return [*argv, "-device", f"virtserialport,chardev={name},name=adit.{name}"]

    def terminal(self) -> list[str]:
        """Ctrl-A X ends QEMU, Ctrl-A C opens its monitor."""
        argv = ["-chardev", "stdio,id=terminal,mux=on,signal=off"]
        return [*argv, "-serial", "chardev:terminal", "-mon", "chardev=terminal"]

    def end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    def interactive(self) -> Outcome:
        """The serial line is the terminal."""
        with _channels(PORTS, self.channel) as (ours, theirs, argv):
            process = subprocess.Popen(
                [*self.argv, *self.terminal(), *argv],
                pass_fds=theirs,
                preexec_fn=_die_with_parent,
            )
            self._started = time.monotonic()
            try:
                self._relay(process, ours, endless=True)
            finally:
                self.end(process)
        return self._finish()

    def run(self) -> Outcome:
        errors = self._files.with_name("qemu.errors")
        with (
            _channels(("console", *PORTS), self.channel) as (ours, theirs, argv),
            errors.open("wb") as sink,
        ):
            process = subprocess.Popen(
                [*self.argv, *argv],
                pass_fds=theirs,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                preexec_fn=_die_with_parent,
            )
            self._started = time.monotonic()
            self._deadline = self._started + self.BOOT_SECONDS
            try:
                self._relay(process, ours, endless=False)
            finally:
                self.end(process)
        self.outcome.qemu_errors = errors.read_text(errors="replace").strip()
        return self._finish()

    def _finish(self) -> Outcome:
        outcome = self.outcome
        outcome.console = outcome._console.decode(errors="replace").replace("\r", "")
        outcome.log = self._log.decode(errors="replace")
        return outcome

    def _relay(self, process: subprocess.Popen[bytes], ours: Channels, endless: bool) -> None:
        with selectors.DefaultSelector() as selector, self._files.open("wb") as files:
            for name, end in ours.items():
                selector.register(end, selectors.EVENT_READ, name)
            while selector.get_map():
                if not endless and time.monotonic() >= self._deadline:
                    self.outcome.hung = self._what_hangs()
                    return
                ended = process.poll() is not None
                ready = selector.select(0 if ended else 0.2)
                if ended and not ready:
                    return
                for key, _ in ready:
                    data = ours[key.data].recv(1 << 16)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.data == "files":
                        files.write(data)
                    else:
                        self._receive(key.data, data)

    def _receive(self, name: str, data: bytes) -> None:
        if name in ("stdout", "stderr"):
            sink = sys.stdout.buffer if name == "stdout" else sys.stderr.buffer
            sink.write(data)
            sink.flush()
        elif name == "console":
            self.outcome._console += data
            del self.outcome._console[:-CONSOLE_KEPT]
            if self.options.show_console:
                sys.stderr.buffer.write(data)
                sys.stderr.flush()
        elif name == "log":
            self._log += data
        else:
            self._status += data
            *lines, rest = self._status.split(b"\n")
            self._status = bytearray(rest)
            for line in lines:
                self._told(line.decode(errors="replace").split())

    def _told(self, words: list[str]) -> None:
        match words:
            case ["started", uptime]:
                self.outcome.guest_boot_seconds = float(uptime)
                self.outcome.boot_seconds = time.monotonic() - self._started
                limit = self.options.timeout + END_SECONDS if self.options.timeout else float("inf")
                self._deadline = time.monotonic() + limit
            case ["exit", status]:
                self.outcome.status = int(status)
                self._deadline = time.monotonic() + END_SECONDS
            case ["fetch-failed"]:
                self.outcome.fetch_failed = True

    def _what_hangs(self) -> str:
        if self.outcome.status is not None:
            return f"the guest did not power off within {END_SECONDS} s"
        if self.outcome.boot_seconds == 0:
            return f"the guest did not boot within {self.BOOT_SECONDS} s"
        return f"no end {END_SECONDS} s after the command's {self.options.timeout} s"
