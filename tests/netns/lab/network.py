"""Network namespaces, the cables between them, and their unconditional removal.

Everything carries a prefix with the process id of the run: `adit-PID-`. What a run that was killed
by force left behind is recognised by that prefix and swept away by the next one.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType

from .process import Completed, LabError, Process, run, wait_until

ROOT = Path(__file__).resolve().parents[3]
NETNS_DIR = Path("/run/netns")
WIREGUARD_DIR = Path("/var/run/wireguard")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class Interrupted(BaseException):
    """A signal asked the run to end; clean-up follows. Not an Exception: nobody may swallow it."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


def _on_signal(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(number)


def install_signal_handlers() -> None:
    """Turns the usual ways to end a program into Interrupted."""
    for number in SIGNALS:
        signal.signal(number, _on_signal)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Holds signals back, so that a second Ctrl-C does not end a clean-up half-way."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def build_dir() -> Path:
    return Path(os.environ.get("ADIT_BUILD_DIR", ROOT / "build")).resolve()


def tool(relative: str) -> str:
    """A program of the build tree; LabError when it has not been built."""
    path = build_dir() / relative
    if not path.exists():
        raise LabError(f"{path} is missing: run scripts/build, or set ADIT_BUILD_DIR")
    return str(path)


class Namespace:
    """One machine of a lab."""

    def __init__(self, lab: Lab, name: str):
        self.lab = lab
        self.name = name
        self.full_name = f"{lab.prefix}-{name}"
        self.dir = lab.dir / name
        self.dir.mkdir()
        self.env = {
            **os.environ,
            "ADIT_RUNTIME_DIR": str(self.dir / "run"),
            "ADIT_STATE_DIR": str(self.dir / "state"),
        }
        run(["ip", "netns", "add", self.full_name])
        self.ip("link", "set", "lo", "up")
        # A ping from an address that was just added must not wait for duplicate detection.
        self.sysctl("net.ipv6.conf.default.accept_dad", "0")

    def __str__(self) -> str:
        return self.name

    def _enter(self, argv: Sequence[str]) -> list[str]:
        return ["ip", "netns", "exec", self.full_name, *argv]

    def run(
        self,
        *argv: str,
        timeout: float = 30,
        check: bool = True,
        stdin: str | None = None,
        env: dict[str, str] | None = None,
    ) -> Completed:
        return run(
            self._enter(argv),
            timeout=timeout,
            check=check,
            stdin=stdin,
            env={**self.env, **(env or {})},
        )

    def start(self, *argv: str, log: str, env: dict[str, str] | None = None) -> Process:
        """Starts a process here; `log` names its log file within the namespace's folder."""
        path = self.dir / f"{log}.log"
        process = Process(self._enter(argv), path, env={**self.env, **(env or {})})
        self.lab.processes.append(process)
        return process

    def ip(self, *args: str, check: bool = True) -> Completed:
        return run(["ip", "-n", self.full_name, *args], check=check)

    def nft(self, rules: str) -> None:
        self.run("nft", "-f", "-", stdin=rules)

    def sysctl(self, key: str, value: str) -> None:
        self.run("tee", f"/proc/sys/{key.replace('.', '/')}", stdin=value)

    def forward(self) -> None:
        """Makes it a router."""
        self.sysctl("net.ipv4.ip_forward", "1")
        self.sysctl("net.ipv6.conf.all.forwarding", "1")

    def address(self, device: str, *addresses: str) -> None:
        for address in addresses:
            flags = ["nodad"] if ":" in address else []
            self.ip("address", "add", address, "dev", device, *flags)

    def default_via(self, *gateways: str) -> None:
        for gateway in gateways:
            family = "-6" if ":" in gateway else "-4"
            self.ip(family, "route", "add", "default", "via", gateway)

    def pids(self) -> list[int]:
        done = run(["ip", "netns", "pids", self.full_name], check=False)
        return [int(word) for word in done.out.split()]


def link(left: tuple[Namespace, str], right: tuple[Namespace, str], mtu: int = 1500) -> None:
    """Joins two namespaces by a veth pair; each end is given as (namespace, device name)."""
    (a, a_device), (b, b_device) = left, right
    a.ip(
        *("link", "add", a_device, "mtu", str(mtu), "type", "veth"),
        *("peer", "name", b_device, "mtu", str(mtu), "netns", b.full_name),
    )
    a.ip("link", "set", "dev", a_device, "up")
    b.ip("link", "set", "dev", b_device, "up")


class Lab:
    """All namespaces, processes and files of one topology; a context manager."""

    _count = 0

    def __init__(self, keep: bool = False):
        sweep()
        Lab._count += 1
        self.prefix = f"adit-{os.getpid()}-{Lab._count}"
        self.keep = keep
        self.namespaces: list[Namespace] = []
        self.processes: list[Process] = []
        self.devices: list[str] = []
        self._closed = False
        with _undisturbed():
            self.dir = Path(tempfile.mkdtemp(prefix=f"{self.prefix}-"))
            # Daemons that give up root pass through; what is secret has a mode of its own.
            self.dir.chmod(0o755)
            atexit.register(self.close)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if kind is not None and issubclass(kind, (LabError, AssertionError, Interrupted)):
            self.show_logs()
        self.close()

    def namespace(self, name: str) -> Namespace:
        with _undisturbed():
            created = Namespace(self, name)
            self.namespaces.append(created)
        return created

    def device(self, suffix: str) -> str:
        """A tunnel's name, unique on the machine: WireGuard's sockets have no other difference."""
        name = f"ad{os.getpid()}{'abcdefgh'[Lab._count % 8]}{suffix}"
        if len(name) > 15:
            raise LabError(f"{name} is too long for an interface name")
        self.devices.append(name)
        return name

    def show_logs(self, lines: int = 30) -> None:
        for path in sorted(self.dir.rglob("*.log")):
            text = path.read_text(errors="replace").splitlines()
            if text:
                print(f"--- {path.relative_to(self.dir)} (last {lines} lines)", file=sys.stderr)
                print("\n".join(text[-lines:]), file=sys.stderr)

    def close(self) -> None:
        """Ends every process in the namespaces and removes all that was made. Safe to repeat."""
        with _undisturbed():
            if self._closed or not self.dir.exists():
                return
            if self.keep:
                print(f"kept: {self.prefix}-* and {self.dir}", file=sys.stderr)
                self._closed = True
                return
            for process in self.processes:
                process.kill()
            remove(self.prefix)
            for device in self.devices:
                (WIREGUARD_DIR / f"{device}.sock").unlink(missing_ok=True)
            shutil.rmtree(self.dir, ignore_errors=True)
            self._closed = True


def remove(prefix: str) -> None:
    """Kills what runs in the namespaces called PREFIX-*, and deletes them."""
    names = [path.name for path in NETNS_DIR.glob(f"{prefix}-*")]
    for name in names:

        def empty(name: str = name) -> bool:
            pids = run(["ip", "netns", "pids", name], check=False).out.split()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            return not pids

        wait_until(empty, 10, f"{name} is empty")
        run(["ip", "netns", "delete", name], check=False)
        shutil.rmtree(Path("/etc/netns") / name, ignore_errors=True)


def sweep() -> None:
    """Removes what a run that no longer lives left behind."""
    owned = re.compile(r"adit-(\d+)-\d+-")
    leftovers = [*NETNS_DIR.glob("adit-*-*"), *Path(tempfile.gettempdir()).glob("adit-*-*")]
    for path in leftovers:
        match = owned.match(path.name)
        if match is None or Path(f"/proc/{match[1]}").exists():
            continue
        if path.parent == NETNS_DIR:
            remove(f"adit-{match[1]}")
        else:
            shutil.rmtree(path, ignore_errors=True)
