#!/usr/bin/env python3
"""Tuning of a real card with several queues: interrupts, queues and their processors, and back.

For a virtual machine of several processors with `tools/vm --nic-queues`; the card is the guest's own,
so that everything is in its first network namespace.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab import Lab, expect, key_pair, main, scenario, tool, wait_until

DRIVER = Path("/sys/bus/virtio/drivers/virtio_net")
# What tuning could reach, and what lies beside it.
PLACES = ("/proc/irq/*/smp_affinity*", "/proc/sys/net/core/*", "/proc/sys/net/ipv4/tcp_*",
          "/proc/sys/net/netfilter/nf_conntrack_max")
# The kernel's own: these say what happens rather than what was set.
CHANGING = ("limit", "inflight")


def command(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, text=True, capture_output=True, check=check)


def tune(*words: str) -> str:
    done = command(str(tool("ctl/cli/adit")), "tune", *words, check=False)
    expect(done.returncode == 0, f"adit tune {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def card() -> str:
    """The name of the virtio NIC, up and with an address."""
    # The latter two bring files, and stay: what is compared is what was there before.
    command("modprobe", "-a", "virtio_net", "nf_conntrack", "tcp_bbr")
    wait_until(lambda: any(DRIVER.glob("virtio*/net/*")), 10, "the card has its driver")
    name = next(DRIVER.glob("virtio*/net/*")).name
    command("ip", "address", "replace", "192.0.2.1/24", "dev", name)
    command("ip", "link", "set", name, "up")
    command("ip", "route", "replace", "default", "via", "192.0.2.2")
    return name


def snapshot(nic: str) -> dict[str, bytes]:
    """Every file that tuning may write to, and its neighbours, byte for byte."""
    paths: list[Path] = [path for place in PLACES for path in Path("/").glob(place[1:])]
    paths += [path for path in Path(f"/sys/class/net/{nic}/queues").rglob("*")]
    found = {}
    for path in paths:
        if path.is_file() and path.name not in CHANGING:
            try:
                found[str(path)] = path.read_bytes()
            except OSError as error:  # what cannot be read is not to become readable
                found[str(path)] = str(error.errno).encode()
    found["queues"] = command("ethtool", "-l", nic).stdout.encode()
    return found


def difference(before: dict[str, bytes], after: dict[str, bytes]) -> dict[str, Any]:
    names = before.keys() | after.keys()
    return {n: (before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)}


def interrupts(nic: str) -> Iterator[tuple[str, str]]:
    """Number and name of each interrupt of the card's queues."""
    device = Path(f"/sys/class/net/{nic}/device").resolve()
    numbers = {path.name for path in (device.parent / "msi_irqs").iterdir()}
    for line in Path("/proc/interrupts").read_text().splitlines():
        number, _, rest = line.strip().partition(":")
        name = rest.split()[-1] if rest.split() else ""
        if number in numbers and ("-input." in name or "-output." in name):
            yield number, name


def effective(nic: str, queues: int) -> dict[str, int]:
    """The one processor that each interrupt of the first queues really goes to."""
    result = {}
    for number, name in interrupts(nic):
        if int(name.rsplit(".", 1)[1]) < queues:
            text = Path(f"/proc/irq/{number}/effective_affinity_list").read_text().strip()
            result[name.split("-", 1)[1]] = int(text) if text.isdigit() else -1
    return result


def traffic() -> None:
    """An interrupt goes to another processor when it comes for the next time."""
    for cpu in range(os.cpu_count() or 1):
        subprocess.run(
            ["ping", "-q", "-c", "3", "-i", "0.2", "-W", "1", "192.0.2.2"],
            preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, {cpu}),
            stdout=subprocess.DEVNULL,
            check=False,
        )


def await_spread(nic: str, queues: int) -> None:
    for _ in range(8):
        traffic()
        if is_spread(nic, queues):
            return
    expect(False, f"each queue has a processor of its own: {effective(nic, queues)}")


def is_spread(nic: str, queues: int) -> bool:
    """Each queue has a processor of its own, the same for both directions, and none does all."""
    where = effective(nic, queues)
    inputs = [where.get(f"input.{queue}") for queue in range(queues)]
    outputs = [where.get(f"output.{queue}") for queue in range(queues)]
    return None not in inputs and inputs == outputs and len(set(inputs)) == queues


def packet_steering(nic: str) -> set[int]:
    paths = Path(f"/sys/class/net/{nic}/queues").glob("rx-*/rps_cpus")
    return {int(path.read_text().replace(",", ""), 16) for path in paths}


def set_queues(nic: str, number: int) -> None:
    now = command("ethtool", "-l", nic).stdout.rsplit("Combined:", 1)[1].split()[0]
    if int(now) != number:
        command("ethtool", "-L", nic, "combined", str(number))


@scenario(seconds=120)
def as_many_queues_as_processors(lab: Lab) -> None:
    """One interrupt for each processor, read back from where it goes; revert restores each byte."""
    nic, count = card(), os.cpu_count() or 1
    expect(count > 1, "the machine has several processors")
    set_queues(nic, count)
    # The driver spreads them well by itself.
    for number, _ in interrupts(nic):
        Path(f"/proc/irq/{number}/smp_affinity_list").write_text("0")
    before = snapshot(nic)
    planned = json.loads(tune("plan", "--nic", nic, "--json"))["changes"]
    changed = difference(before, snapshot(nic))
    expect(changed == {}, f"a plan writes nothing: {changed}")
    files = {change["file"] for change in planned}
    expect(any("/proc/irq/" in file for file in files), f"interrupts are planned: {files}")
    expect(not any("rps_cpus" in file for file in files), f"no RPS with enough queues: {files}")

    done = json.loads(tune("apply", "--nic", nic, "--json"))
    expect(done["ok"] and not done["warnings"], f"nothing was refused: {done}")
    await_spread(nic, count)
    # Parameters that follow counters of drops may be wanted higher meanwhile.
    left = {change["file"] for change in json.loads(tune("plan", "--nic", nic, "--json"))["changes"]}
    expect(not any("/irq/" in file or "/queues/" in file for file in left), f"left to do: {left}")
    status = json.loads(tune("status", "--json"))
    expect(all(f["holds"] for entry in status for f in entry["files"]), f"all holds: {status}")
    changed = difference(before, snapshot(nic))
    expect(len(changed) >= len(files), f"it was written: {changed.keys()} for {files}")

    tune("revert")
    changed = difference(before, snapshot(nic))
    expect(changed == {}, f"every byte as before: {changed}")


@scenario(seconds=120)
def fewer_queues_than_the_card_has(lab: Lab) -> None:
    """Queues that are switched off are switched on, and off again by revert."""
    nic, count = card(), os.cpu_count() or 1
    set_queues(nic, 1)
    try:
        before = snapshot(nic)
        tune("apply", "--nic", nic)
        await_spread(nic, count)
        tune("revert")
        left = difference(before, snapshot(nic))
        expect(left == {}, f"every byte as before: {left}")
    finally:
        set_queues(nic, count)


def daemon_file(nic: str) -> Path:
    keys = key_pair()
    path = Path("/etc/adit/tune0.conf")
    path.write_text(
        f"[Interface]\nPrivateKey = {keys.private}\nAddress = 10.77.0.1/24\nListenPort = 51900\n"
        f"Public = {nic}\nBackend = {os.environ.get('ADIT_TEST_BACKEND', 'auto')}\n"
        "[Tune]\nProfile = auto\n"
    )
    path.chmod(0o600)
    return path


@scenario(seconds=180)
def with_the_interface(lab: Lab) -> None:
    """Profile = auto: on up, again when queues or processors come and go, gone on down."""
    nic, count = card(), os.cpu_count() or 1
    set_queues(nic, count)
    file = daemon_file(nic)
    before = snapshot(nic)
    adit = str(tool("ctl/cli/adit"))
    up = command(adit, "up", "tune0", check=False)
    expect(up.returncode == 0, f"up: {up.stdout}{up.stderr}")
    try:
        await_spread(nic, count)
        number = next(number for number, name in interrupts(nic) if name.endswith("-input.0"))
        processor = Path("/sys/devices/system/cpu") / f"cpu{count - 1}" / "online"
        processor.write_text("0")
        wait_until(lambda: count - 1 not in effective(nic, count).values(), 15, "processors left")
        processor.write_text("1")
        await_spread(nic, count)
        expect(Path(f"/proc/irq/{number}").is_dir(), "the card was not reset")
    finally:
        down = command(adit, "down", "tune0", check=False)
        file.unlink()
    expect(down.returncode == 0, f"down: {down.stdout}{down.stderr}")
    left = difference(before, snapshot(nic))
    expect(left == {}, f"every byte as before: {left}")


if __name__ == "__main__":
    sys.exit(main())
