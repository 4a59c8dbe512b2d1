"""python3 -m guest PLAN: measures what the plan names, and prints a line of JSON for each result.

The plan is JSON: {"subjects", "measures" of each link, "seconds", "aead": path of the module or null,
"profile": whether to say when a measurement begins, and to leave the kernel's symbols}.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from .hosts import SERVER, GuestError, hosts, run, within
from .measures import MEASURES
from .subjects import SUBJECTS, Subject

AEAD_PARAMETERS = Path("/sys/module/adit_bench_aead/parameters")
SYMBOLS = Path("/tmp/kallsyms")
AEADS = {
    "chacha20-poly1305": "chacha20_poly1305",
    "aes-256-gcm": "aes_256_gcm",
    "aes-128-gcm": "aes_128_gcm",
}


def tell(**result: Any) -> None:
    print(json.dumps(result), flush=True)


def measure_aead(module: str) -> None:
    """Instructions per byte of one pass: the mean of encryption and decryption."""
    # What it needs; insmod itself looks for nothing.
    run("modprobe", "-a", "libchacha20poly1305", "aesni_intel")
    run("insmod", module)
    numbers = {path.name: int(path.read_text()) for path in AEAD_PARAMETERS.iterdir()}
    for name, parameter in AEADS.items():
        passes = 2 * numbers["packets"] * numbers["length"]
        tell(link="default", subject=name, measure="aead", value=numbers[parameter] / passes)
    run("rmmod", "adit_bench_aead")


def measure_one(
    link: str, name: str, subject: Subject, measure: str, plan: dict[str, Any]
) -> None:
    before = subject.counters()
    if plan["profile"]:
        tell(link=link, subject=name, measure=measure, begin=True)
    try:
        result = MEASURES[measure](subject, plan["seconds"])
    except GuestError as error:
        tell(link=link, subject=name, measure=measure, error=str(error))
        return
    after = subject.counters()
    grown = {key: value - before.get(key, 0) for key, value in after.items()}
    result["counters"] = {key: value for key, value in grown.items() if value}
    tell(link=link, subject=name, measure=measure, **result)


def measure_subject(link: str, name: str, plan: dict[str, Any]) -> None:
    with hosts(link == "nic_like"):
        subject = SUBJECTS[name]()
        # Addresses are resolved and handshakes done before anything counts.
        run(*within(SERVER), "ping", "-c", "3", "-i", "0.2", "-W", "5", subject.address)
        for measure in plan["measures"][link]:
            measure_one(link, name, subject, measure, plan)


def main() -> None:
    plan = json.loads(sys.argv[1])
    tell(kernel=os.uname().release)
    if plan["aead"]:
        measure_aead(plan["aead"])
    if plan["profile"]:
        SYMBOLS.write_text(Path("/proc/kallsyms").read_text())
    for link in plan["measures"]:
        for name in plan["subjects"]:
            try:
                measure_subject(link, name, plan)
            except GuestError as error:
                tell(link=link, subject=name, measure="setup", error=str(error))


if __name__ == "__main__":
    main()
