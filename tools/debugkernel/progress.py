"""What long steps tell the person who waits, on standard error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from vmlib.errors import VmError

EVERY_SECONDS = 20


def say(text: str) -> None:
    print(f"debug-kernel: {text}", file=sys.stderr, flush=True)


def run(argv: list[str], what: str, log: Path, environment: dict[str, str]) -> None:
    """Runs make: its output into the log, a line now and then; VmError with its last words."""
    started = said = time.monotonic()
    steps = 0
    with log.open("a", buffering=1) as sink:
        process = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                sink.write(line)
                steps += 1
                now = time.monotonic()
                if now - said >= EVERY_SECONDS:
                    said = now
                    say(f"{what}: {now - started:.0f} s, {steps} steps, {line.strip()}")
            process.wait()
        finally:
            # Also the makes below it, which would go on for long.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
    if process.returncode != 0:
        last = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        raise VmError(f"{what} failed; the end of {log}:\n{last}")
