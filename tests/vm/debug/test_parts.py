#!/usr/bin/env python3
"""The parts of tools/debug-kernel that need no kernel: wishes, fingerprints, reports of races."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import test_planted  # noqa: E402
from debugkernel import build, kinds, races  # noqa: E402
from debugkernel.uml import UmlMachine  # noqa: E402
from vmlib import kmsg  # noqa: E402

STAMP = "[   12.345678] "
RULE = "=" * 66


def report(title: str, first: list[str], second: list[str]) -> str:
    lines = [
        RULE,
        f"BUG: KCSAN: data-race in {title}",
        "",
        "write to 0xffff88800a5b2c40 of 8 bytes by task 91 on cpu 1:",
        *(f" {frame}" for frame in first),
        "",
        "read to 0xffff88800a5b2c40 of 8 bytes by interrupt on cpu 0:",
        *(f" {frame}" for frame in second),
        "",
        "Reported by Kernel Concurrency Sanitizer on:",
        "CPU: 0 UID: 0 PID: 12 Comm: iperf3 Not tainted 6.12.117-adit-kcsan",
        RULE,
    ]
    return "".join(f"{STAMP}{line}\n" for line in lines)


OURS = ["adit_stats_add+0x24/0x60 [adit]", "adit_transmit+0x90/0x200 [adit]"]
KERNEL = [f"function{number}+0x1/0x2" for number in range(6)]


class Races(unittest.TestCase):
    def test_of_the_module(self) -> None:
        log = report("adit_stats_add [adit] / function0", OURS, KERNEL)
        self.assertEqual(
            races.troubles(log), ["BUG: KCSAN: data-race in adit_stats_add [adit] / function0"]
        )
        self.assertIn("adit_transmit", races.excerpt(log))

    def test_of_another_module(self) -> None:
        planted, other = ([f"f+0x1/0x2 [{name}]"] for name in ("adit_planted", "wireguard"))
        self.assertEqual(len(races.troubles(report("f / f", planted, planted))), 1)
        self.assertEqual(races.troubles(report("f / f", other, other)), [])

    def test_of_the_kernel(self) -> None:
        self.assertEqual(races.troubles(report("a / b", KERNEL, KERNEL)), [])

    def test_far_below_the_module(self) -> None:
        self.assertEqual(races.troubles(report("a / b", KERNEL[:4] + OURS, KERNEL)), [])

    def test_in_a_helper_called_by_the_module(self) -> None:
        self.assertEqual(len(races.troubles(report("a / b", KERNEL, KERNEL[:2] + OURS))), 1)

    def test_other_trouble_is_seen_between_reports(self) -> None:
        log = report("a / b", KERNEL, KERNEL) + f"{STAMP}WARNING: CPU: 1 PID: 2\n"
        log += report("c / d", KERNEL, KERNEL)
        self.assertEqual(races.troubles(log), [f"{STAMP}WARNING: CPU: 1 PID: 2".strip()])
        self.assertIn("WARNING", races.excerpt(log))


class Configuration(unittest.TestCase):
    def test_refused_wishes_are_named(self) -> None:
        wishes = kinds.settings('CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C="x y"\nCONFIG_D=5\n')
        actual = 'CONFIG_A=m\nCONFIG_B=y\nCONFIG_C="x y"\n'
        self.assertEqual(
            kinds.refused(wishes, actual),
            [
                "CONFIG_A: y was wanted, it is m",
                "CONFIG_B: not set was wanted, it is y",
                "CONFIG_D: 5 was wanted, it is not set",
            ],
        )
        self.assertEqual(kinds.refused(wishes, "CONFIG_A=y\nCONFIG_C=\"x y\"\nCONFIG_D=5\n"), [])

    def test_comments_are_no_wishes(self) -> None:
        self.assertEqual(kinds.settings("# What CONFIG_A is for\n# CONFIG_B: =y\n"), {})

    def test_each_kind_looks_for_what_it_says(self) -> None:
        uml, kasan, kcsan = (kinds.wanted(kinds.KINDS[name]) for name in kinds.KINDS)
        for option in ("KASAN", "DEBUG_KMEMLEAK", "DEBUG_OBJECTS", "FAILSLAB", "SLUB_DEBUG_ON"):
            self.assertEqual(uml[f"CONFIG_{option}"], "y", option)
        for option in ("KASAN", "PROVE_LOCKING", "PROVE_RCU", "DEBUG_ATOMIC_SLEEP", "SMP"):
            self.assertEqual(kasan[f"CONFIG_{option}"], "y", option)
        self.assertEqual(kcsan["CONFIG_KCSAN"], "y")
        self.assertNotIn("CONFIG_KASAN", kcsan)

    def test_a_fingerprint_changes_with_the_configuration_and_the_compiler(self) -> None:
        prints = {build.fingerprint(kind, "gcc 12") for kind in kinds.KINDS.values()}
        prints.add(build.fingerprint(kinds.KINDS["uml"], "gcc 13"))
        self.assertEqual(len(prints), 4)


class Log(unittest.TestCase):
    def test_what_debug_kernels_complain_of(self) -> None:
        for line in (
            "BUG: KASAN: slab-use-after-free in adit_peer_put+0x10/0x20 [adit]",
            "BUG kmalloc-64 (Not tainted): Poison overwritten",
            "BUG: sleeping function called from invalid context at mm/slab.h:300",
            "WARNING: possible circular locking dependency detected",
            "WARNING: inconsistent lock state",
            "INFO: trying to register non-static key.",
            "kmemleak: 1 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
            "ref_tracker: net notrefcnt@00000000abcd has 1/1 users at",
            "ODEBUG: free active (active state 0) object: 00000000 object type: timer_list",
            "UBSAN: shift-out-of-bounds in kernel/time.c:1:2",
        ):
            self.assertEqual(kmsg.troubles(line), [line])

    def test_what_they_say_without_need(self) -> None:
        for line in (
            "kmemleak: Kernel memory leak detector initialized (mem pool available: 61000)",
            "kmemleak: Automatic memory scanning thread started",
            "FAULT_INJECTION: forcing a failure.",
            "KernelAddressSanitizer initialized",
        ):
            self.assertEqual(kmsg.troubles(line), [])


class Planted(unittest.TestCase):
    """That test_planted.py fails where a kernel is silent, or talks of a sound module."""

    def log(self, *without: str, more: str = "") -> str:
        lines = [f"{test_planted.MARK}nothing", more]
        for error, (line, detail) in test_planted.EXPECTED["uml"].items():
            lines.append(f"{test_planted.MARK}{error}")
            if error not in without:
                lines += [line, detail]
        return "".join(f"{STAMP}{line}\n" for line in lines)

    def test_all_reported(self) -> None:
        self.assertEqual(test_planted.complaints("uml", self.log()), [])

    def test_one_is_silent(self) -> None:
        for error in test_planted.EXPECTED["uml"]:
            (complaint,) = test_planted.complaints("uml", self.log(error))
            self.assertIn(f"{error} is not reported", complaint)

    def test_another_report_is_none(self) -> None:
        log = self.log("leak") + f"{STAMP}BUG: KASAN: slab-use-after-free in other+0x1/0x2\n"
        (complaint,) = test_planted.complaints("uml", log)
        self.assertIn("leak is not reported", complaint)

    def test_a_sound_module_is_reported(self) -> None:
        (complaint,) = test_planted.complaints("uml", self.log(more="BUG: something"))
        self.assertIn("BUG: something", complaint)

    def test_nothing_ran(self) -> None:
        wrong = test_planted.complaints("kasan", "")
        self.assertEqual(len(wrong), 1 + len(test_planted.EXPECTED["kasan"]))


class Uml(unittest.TestCase):
    def test_every_port_has_a_line_of_its_own(self) -> None:
        lines = dict(entry.split(":") for entry in UmlMachine.GUEST_PORTS.split())
        self.assertEqual(lines["stdout"], "/dev/ttyS1")
        self.assertEqual(len(set(lines.values())), 5)
        self.assertNotIn("/dev/ttyS0", lines.values())


if __name__ == "__main__":
    unittest.main()
