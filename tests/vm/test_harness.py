#!/usr/bin/env python3
"""tools/vm itself: what it gives to the guest and brings back, and that it hides no failure."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNEL = os.environ.get("ADIT_VM_KERNEL", "6.12")
HARD_LIMIT = 400
UNAVAILABLE = 69
SKIPPED = 77


def vm(*argv: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "vm", "--kernel", KERNEL, *argv],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=HARD_LIMIT,
        check=False,
    )
    if done.returncode == UNAVAILABLE and os.environ.get("CI") != "true":
        print(f"skipped: {done.stderr}", file=sys.stderr, flush=True)
        os._exit(SKIPPED)
    return done


class Harness(unittest.TestCase):
    def test_streams_status_and_files(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            here = Path(name)
            (here / "script").write_text(SCRIPT)
            (here / "script").chmod(0o755)
            (here / "given").mkdir()
            (here / "given" / "file").write_text("shipped\n")
            done = vm(
                *("--script", str(here / "script"), "--include", f"{here / 'given'}:/srv/given"),
                *("--env", 'GREETING=it\'s "quoted"', "--fetch", "/srv/out"),
                *("--fetch-to", str(here), "--", "first", "two words"),
            )
            self.assertEqual(done.returncode, 42, done.stderr)
            self.assertEqual(
                done.stdout.splitlines(),
                ["shipped", "first|two words", 'it\'s "quoted"', "0", "lo up"],
                done.stderr,
            )
            self.assertIn("to the error stream", done.stderr)
            self.assertEqual((here / "srv/out/blob").stat().st_size, 300000)
            self.assertEqual((here / "srv/out/text").read_text(), "made in the guest\n")

    def test_time_out(self) -> None:
        done = vm("--timeout", "3", "--", "sh", "-c", "echo begun; sleep 1000")
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertEqual(done.stdout, "begun\n")
        self.assertIn("no end after 3 s", done.stderr)
        self.assertIn("sleep 1000", done.stderr)

    def test_kernel_warning(self) -> None:
        complain = "echo 'WARNING: CPU: 0 PID: 1 at nowhere' >/dev/kmsg"
        done = vm("--", "sh", "-c", complain)
        self.assertEqual(done.returncode, 123, done.stderr)
        self.assertIn("at nowhere", done.stderr)
        self.assertEqual(vm("--allow-warnings", "--", "sh", "-c", complain).returncode, 0)

    def test_panic(self) -> None:
        done = vm("--", "sh", "-c", "echo begun; sleep 0.5; echo c >/proc/sysrq-trigger; sleep 60")
        self.assertEqual(done.returncode, 122, done.stderr)
        self.assertIn("begun", done.stdout)
        self.assertIn("Kernel panic", done.stderr)

    def test_two_at_once(self) -> None:
        argv = [sys.executable, ROOT / "tools" / "vm", "--kernel", KERNEL, "-q", "--"]
        both = [
            subprocess.Popen([*argv, "echo", str(number)], stdout=subprocess.PIPE, text=True)
            for number in range(2)
        ]
        for number, process in enumerate(both):
            out, _ = process.communicate(timeout=HARD_LIMIT)
            self.assertEqual((process.returncode, out), (0, f"{number}\n"))


SCRIPT = """#!/bin/sh
cat /srv/given/file
echo "$1|$2"
echo "$GREETING"
id -u
ip -br link show lo | grep -q UNKNOWN && echo lo up
echo to the error stream >&2
mkdir /srv/out
head -c 300000 /dev/urandom >/srv/out/blob
echo made in the guest >/srv/out/text
exit 42
"""

if __name__ == "__main__":
    unittest.main()
