"""Commands and background processes with deadlines: nothing here waits for ever.

Output goes to files, never to pipes: a daemon that a command leaves behind may keep its standard
error open, and a pipe would then never end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.02

# Set by tools/vm: the machine is emulated, and all that a processor does takes ten times as long.
EMULATED = "ADIT_VM" in os.environ
# What every deadline is multiplied by; none of them is what a scenario measures.
PATIENCE = 4 if EMULATED else 1


class LabError(Exception):
    """What was expected did not happen; the message is for the person who reads the test's log."""


@dataclass(frozen=True)
class Completed:
    """A command that ended."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    def __str__(self) -> str:
        text = f"{' '.join(self.argv)}: exit code {self.code}"
        for title, body in (("stdout", self.out), ("stderr", self.err)):
            if body.strip():
                text += f"\n--- {title}\n{body.rstrip()}"
        return text


def wait_until(check: Callable[[], T], seconds: float, what: str) -> T:
    """Polls `check` until it returns something true, and returns that; LabError at the deadline."""
    seconds *= PATIENCE
    deadline = time.monotonic() + seconds
    while True:
        result = check()
        if result:
            return result
        if time.monotonic() >= deadline:
            raise LabError(f"after {seconds:g} s still not: {what}")
        time.sleep(POLL_SECONDS)


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kills a process that leads its own group, and the rest of that group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(
    argv: Sequence[str],
    *,
    timeout: float = 30,
    check: bool = True,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    cwd: Path | None = None,
) -> Completed:
    """Runs a command to its end. LabError on a non-zero exit code unless `check` is off."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as source,
    ):
        source.write((stdin or "").encode())
        source.seek(0)
        process = subprocess.Popen(
            list(argv),
            stdin=source,
            stdout=out,
            stderr=err,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            _end_group(process)
            done = Completed(tuple(argv), -signal.SIGKILL, _read(out), _read(err))
            raise LabError(f"no end after {timeout * PATIENCE:g} s: {done}") from None
        except BaseException:
            _end_group(process)
            raise
        done = Completed(tuple(argv), code, _read(out), _read(err))
    if check and code != 0:
        raise LabError(str(done))
    return done


class Process:
    """A command in the background, its output in a log file."""

    def __init__(self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None):
        self.argv = tuple(argv)
        self.log = log
        with log.open("ab") as sink:
            self._popen = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=dict(env) if env is not None else None,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def running(self) -> bool:
        return self._popen.poll() is None

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def require(self, check: Callable[[], T], seconds: float, what: str) -> T:
        """wait_until(), but the end of the process ends the wait."""

        def still() -> T:
            result = check()
            if not result and not self.running():
                raise LabError(f"{' '.join(self.argv)} ended early:\n{self.output()}")
            return result

        return wait_until(still, seconds, what)

    def wait(self, timeout: float) -> int:
        try:
            return self._popen.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            seconds = timeout * PATIENCE
            raise LabError(f"no end after {seconds:g} s: {' '.join(self.argv)}") from None

    def signal(self, number: int) -> None:
        if self.running():
            self._popen.send_signal(number)

    def stop(self, seconds: float = 5) -> int:
        """SIGTERM, and SIGKILL for what does not obey; the exit code."""
        self.signal(signal.SIGTERM)
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            _end_group(self._popen)
            return -signal.SIGKILL

    def kill(self) -> None:
        _end_group(self._popen)


def listening(pid: int, protocol: str, port: int) -> bool:
    """Whether a socket in the network namespace of `pid` listens (tcp) or is bound (udp) there."""
    wanted = "0A" if protocol == "tcp" else "07"
    for suffix in ("", "6"):
        try:
            lines = Path(f"/proc/{pid}/net/{protocol}{suffix}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == wanted and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return True
    return False


def resident_kib(pid: int) -> int:
    """Resident memory of a process in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise LabError(f"process {pid} has no resident memory: it has ended")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all threads, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def private_kib(pid: int) -> int:
    """What no other process shares of a process's resident memory, in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
