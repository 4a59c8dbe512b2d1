#!/usr/bin/env python3
"""The parts of tools/bench-vm that need no machine: plans, results, ratios, goals, profiles."""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from benchvm import figures, goals, plan, profile, table  # noqa: E402
from benchvm.figures import Results  # noqa: E402

GUEST = Path(__file__).resolve().parents[2] / "tools/benchvm/guest"
CHACHA, GCM, GCM128 = plan.ADIT
# Instructions per byte on the link as it is; twice as many on the other.
STREAMS = {"plain": 4.0, "wireguard": 40.0, "xfrm_aes256gcm": 24.0, CHACHA: 18.0, GCM: 12.5}


def line(subject: str, measure: str, value: float, link: str = "default", **more: object) -> str:
    return json.dumps({"link": link, "subject": subject, "measure": measure, "value": value, **more})


def measured() -> Results:
    results = Results()
    results.add('{"kernel": "6.12.0"}')
    for subject, value in STREAMS.items():
        results.add(line(subject, "tcp", value, retransmits=0, bytes=1))
        results.add(line(subject, "tcp", 2 * value, "nic_like"))
        results.add(line(subject, "ping", 100 * value))
        results.add(line(subject, "udp64", 1000 * value, lost=3))
    results.add(line(CHACHA, "aead", 7.25))
    results.add(line(GCM, "aead", 3.0))
    return results


class Object(unittest.TestCase):
    def test_keys_are_those_of_the_issue(self) -> None:
        keys = {"kernel", "plain", "wireguard", "xfrm_aes256gcm", "adit", "aead", "floor"}
        keys |= {"ratio_to_wireguard", "ratio_to_floor", "udp64", "udp1372", "mapped", "ping"}
        for results in (Results(), measured()):
            told = figures.summary(results)
            self.assertEqual(told.keys(), keys | {"nic_like"})
            self.assertEqual(told["nic_like"].keys(), keys)
            self.assertEqual(tuple(told["adit"]), plan.ADIT)
            self.assertEqual(set(told["floor"]), {CHACHA, GCM})
            json.dumps(told)

    def test_ratios(self) -> None:
        told = figures.summary(measured())
        self.assertEqual(told["kernel"], "6.12.0")
        self.assertEqual(told["floor"], {CHACHA: 18.5, GCM: 10.0})
        self.assertAlmostEqual(told["ratio_to_wireguard"][CHACHA], 40 / 18)
        self.assertAlmostEqual(told["ratio_to_floor"][GCM], 1.25)
        # The floor of the other link: its own plain figure, the same ciphers.
        self.assertEqual(told["nic_like"]["floor"], {CHACHA: 22.5, GCM: 14.0})
        self.assertAlmostEqual(told["nic_like"]["ratio_to_wireguard"][GCM], 40 / 12.5)
        self.assertEqual(told["udp64"]["wireguard"], 40000)

    def test_what_is_missing_is_null(self) -> None:
        told = figures.summary(measured())
        self.assertIsNone(told["adit"][GCM128])
        self.assertIsNone(told["ratio_to_wireguard"][GCM128])
        self.assertIsNone(told["mapped"]["plain"])
        self.assertIsNone(figures.summary(Results())["floor"][GCM])

    def test_details_hold_losses(self) -> None:
        told = figures.details(measured())
        self.assertEqual(told["default"]["udp64"][GCM]["lost"], 3)
        self.assertEqual(told["default"]["aead"][GCM]["value"], 3.0)


class Lines(unittest.TestCase):
    def test_noise_is_no_result(self) -> None:
        results = Results()
        for text in ("Server listening", "{", "[1]", "5", '{"link": "default"}', ""):
            self.assertIsNone(results.add(text), text)
        self.assertEqual(list(results.lines()), [])

    def test_an_error_is_kept_and_gives_no_figure(self) -> None:
        results = Results()
        told = {"link": "default", "subject": GCM, "measure": "ping", "error": "3 were lost"}
        results.add(json.dumps(told))
        self.assertEqual(len(results.errors), 1)
        self.assertIn("3 were lost", results.errors[0])
        self.assertIsNone(results.value("default", GCM, "ping"))

    def test_the_beginning_of_a_measurement_is_none(self) -> None:
        results = Results()
        told = {"link": "default", "subject": GCM, "measure": "tcp", "begin": True}
        self.assertIsNotNone(results.add(json.dumps(told)))
        self.assertEqual(list(results.lines()), [])


class Goals(unittest.TestCase):
    def verdicts(self, results: Results) -> dict[str, bool]:
        values = ((goal, goal.ratio(results)) for goal in goals.GOALS)
        return {goal.what: goal.reached(value) for goal, value in values if value is not None}

    def test_both_directions(self) -> None:
        told = self.verdicts(measured())
        self.assertTrue(told[f"one TCP stream, {CHACHA}: WireGuard / adit"])
        self.assertTrue(told[f"one TCP stream, {GCM}: adit / floor"])
        self.assertTrue(told[f"ping, {CHACHA}: adit / WireGuard"])
        self.assertTrue(told[f"retransmits, {GCM}"])
        results = measured()
        results.add(line(CHACHA, "tcp", 30.0, retransmits=1))
        results.add(line(CHACHA, "ping", 4000.0))
        told = self.verdicts(results)
        self.assertFalse(told[f"one TCP stream, {CHACHA}: WireGuard / adit"])
        self.assertFalse(told[f"one TCP stream, {CHACHA}: adit / floor"])
        self.assertFalse(told[f"ping, {CHACHA}: adit / WireGuard"])
        self.assertFalse(told[f"retransmits, {CHACHA}"])

    def test_names_differ(self) -> None:
        self.assertEqual(len({goal.what for goal in goals.GOALS}), len(goals.GOALS))


class Plans(unittest.TestCase):
    def test_all(self) -> None:
        chosen = plan.choose([], [], [], 5)
        measures = {link: list(plan.MEASURES) for link in plan.LINKS}
        self.assertEqual(chosen, plan.Plan(list(plan.SUBJECTS), measures, 5, True))
        self.assertEqual(chosen.steps(), 3 + 6 * 7 * 2)

    def test_parts(self) -> None:
        chosen = plan.choose(["adit/aes*", "plain"], ["tcp"], ["default"], 1)
        self.assertEqual(chosen.subjects, ["plain", GCM, GCM128])
        self.assertFalse(chosen.aead)
        self.assertEqual(chosen.steps(), 3)
        self.assertTrue(plan.choose(["aead"], [], [], 1).aead)
        chosen = plan.choose([], ["tcp", "default/udp*"], [], 1)
        told = {"default": ["tcp", "udp1372", "udp64"], "nic_like": ["tcp"]}
        self.assertEqual(chosen.measures, told)
        self.assertEqual(plan.choose([], ["default/ping"], [], 1).measures, {"default": ["ping"]})

    def test_wrong_names(self) -> None:
        for only, measures, links in ((["adit"], [], []), ([], ["udp"], []), ([], [], ["nic"])):
            with self.assertRaises(plan.PlanError):
                plan.choose(only, measures, links, 1)

    def test_the_guest_knows_the_same_names(self) -> None:
        subjects = (GUEST / "subjects.py").read_text()
        measures = (GUEST / "measures.py").read_text()
        for name in plan.SUBJECTS:
            self.assertIn(f'    "{name}": ', subjects)
        for name in plan.MEASURES:
            self.assertIn(f'    "{name}": ', measures)


class Table(unittest.TestCase):
    def test_figures_ratios_and_verdicts(self) -> None:
        text = table.render(measured())
        self.assertIn("18.00 (2.22x)", text)
        self.assertIn("NIC-like", text)
        self.assertRegex(text, rf"one TCP stream, {CHACHA}: WireGuard / adit +2.22 +>= 2.15 +yes")
        self.assertRegex(text, rf"NIC-like, one TCP stream, {GCM}: IPsec / adit +1.92 +>= 1.25 +yes")
        self.assertNotIn(GCM128, text)

    def test_nothing(self) -> None:
        self.assertIn("instructions", table.render(Results()))


class Profile(unittest.TestCase):
    SYMBOLS = (
        "ffffffff81000000 T first\nffffffff81000010 t second\n"
        "ffffffff81000018 D data\nffffffffc0000000 t third\t[adit]\n"
    )

    def test_differences_by_function(self) -> None:
        symbols = profile.Symbols(self.SYMBOLS)
        before = profile.parse_counts("ffffffff81000000 10\nend\n")
        after = profile.parse_counts(
            "ffffffff81000000 15\nffffffff81000008 1\nffffffff8100001f 7\n"
            "ffffffffc0000004 20\n401000 2\nend\n"
        )
        self.assertEqual(
            profile.by_function(before, after, symbols),
            [("third [adit]", 20), ("second", 7), ("first", 6), ("user space", 2)],
        )

    def test_report(self) -> None:
        text = profile.render("one", [("third [adit]", 30), ("first", 10)], "byte", 10.0)
        self.assertIn("4.00 instructions per byte", text)
        self.assertRegex(text, r"3\.000 +75\.0 % +third \[adit\]")


if __name__ == "__main__":
    unittest.main()
