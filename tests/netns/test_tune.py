#!/usr/bin/env python3
"""Tuning: what is written to the real files of an interface with several queues, and back.

::

    left  eth0 192.0.2.1/24  ═════════ eth0 192.0.2.2/24  right
          four queues                       four queues
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from lab import (
    LEFT,
    PORT,
    RIGHT,
    Adit,
    Lab,
    LabError,
    Namespace,
    PeerSpec,
    TunnelSpec,
    adit,
    expect,
    key_pair,
    main,
    ping,
    scenario,
    tool,
    wait_until,
)

QUEUES = 4
TCP = [f"/proc/sys/net/ipv4/tcp_{name}" for name in ("rmem", "wmem", "congestion_control")]
FOLDER = "/sys/class/net/eth0/queues"


def machines(lab: Lab) -> tuple[Namespace, Namespace]:
    left, right = lab.namespace("left"), lab.namespace("right")
    queues = ("numrxqueues", str(QUEUES), "numtxqueues", str(QUEUES))
    left.ip(
        *("link", "add", "eth0", *queues, "type", "veth"),
        *("peer", "name", "eth0", *queues, "netns", right.full_name),
    )
    for where, address in ((left, "192.0.2.1/24"), (right, "192.0.2.2/24")):
        where.address("eth0", address)
        where.ip("link", "set", "eth0", "up")
    return left, right


def files(where: Namespace) -> dict[str, str]:
    """Every file that may be tuned in this namespace, as it reads."""
    script = f"cd {FOLDER} && for f in */rps_cpus */rps_flow_cnt */xps_cpus"
    script += f' {" ".join(TCP)}; do printf "%s=" "$f"; cat "$f"; done'
    lines = where.run("sh", "-c", script).out.splitlines()
    return dict(line.split("=", 1) for line in lines)


def cpus() -> int:
    """A mask of the CPUs that are online."""
    mask = 0
    for part in Path("/sys/devices/system/cpu/online").read_text().strip().split(","):
        first, _, last = part.partition("-")
        for cpu in range(int(first), int(last or first) + 1):
            mask |= 1 << cpu
    return mask


def number(mask: str) -> int:
    return int(mask.replace(",", ""), 16)


def is_tuned(where: Namespace, queues: int = QUEUES) -> bool:
    """Whether the first queues have the masks that a plan has for them."""
    now = files(where)
    received = [number(now.get(f"rx-{i}/rps_cpus", "0")) for i in range(queues)]
    sent = [number(now.get(f"tx-{i}/xps_cpus", "0")) for i in range(queues)]
    union = 0
    for mask in sent:
        union |= mask
    return received == [cpus()] * queues and all(sent) and union == cpus()


def need_cpus() -> None:
    expect(cpus().bit_count() > 1, "this machine has several CPUs: with one there is nothing to do")


def changes(where: Namespace, *args: str) -> dict[str, Any]:
    plan = json.loads(adit(where, "tune", "plan", "--nic", "eth0", "--json", *args).out)
    return {change["file"]: change for change in plan["changes"]}


@scenario(seconds=60)
def apply_and_revert(lab: Lab) -> None:
    """plan changes nothing; apply writes what plan said; revert leaves every byte as before."""
    need_cpus()
    left, _right = machines(lab)
    before = files(left)
    planned = changes(left)
    expect(files(left) == before, "a plan writes nothing")
    expect(f"{FOLDER}/rx-3/rps_cpus" in planned, f"the plan names the files: {list(planned)}")
    expect(all(change["why"] for change in planned.values()), "each with a reason")

    done = json.loads(adit(left, "tune", "apply", "--nic", "eth0", "--json").out)
    expect(done["ok"], f"it applies: {done['warnings']}")
    results = {entry["file"]: entry["result"] for entry in done["results"]}
    expect(set(planned) == set(results), "what was planned was written")
    expect(is_tuned(left), f"the masks: {files(left)}")
    # Parameters of the whole machine cannot be written from a namespace.
    refused = {name for name, result in results.items() if result == "refused"}
    expect(all(name.startswith("/proc/sys/net/core/") for name in refused), f"{refused}")
    expect(bool(refused) == bool(done["warnings"]), f"which is said: {done['warnings']}")
    expect(set(changes(left)) == refused, "after that nothing is left to do")
    status = json.loads(adit(left, "tune", "status", "--json").out)
    expect(len(status) == 1 and all(f["holds"] for f in status[0]["files"]), f"all hold: {status}")

    left.run("tee", f"{FOLDER}/rx-1/rps_cpus", stdin="1")
    text = adit(left, "tune", "status").out
    expect("1 do not hold" in text and "changed by somebody else" in text, f"drift shows: {text}")
    adit(left, "tune", "apply", "--nic", "eth0")
    expect(is_tuned(left), "applied again, it holds again")

    adit(left, "tune", "revert")
    expect(files(left) == before, f"as before: {before} and {files(left)}")
    expect("Nothing was applied" in adit(left, "tune", "revert").out, "there is nothing left to revert")


@scenario(seconds=60)
def bandwidth_and_delay(lab: Lab) -> None:
    """Buffers follow bandwidth x delay and are never lowered."""
    left, _right = machines(lab)
    change = changes(left, "--bandwidth", "10gbit", "--delay", "80ms")["/proc/sys/net/ipv4/tcp_rmem"]
    expect(change["new"].split()[2] == "200003584", f"2 x 10 Gbit/s x 80 ms: {change}")
    small = changes(left, "--bandwidth", "1mbit", "--delay", "1ms")
    expect("/proc/sys/net/ipv4/tcp_rmem" not in small, "smaller than what there is: not planned")
    for wrong in (("--delay", "fast"), ("--bandwidth", "ten"), ("--nic", "nic7")):
        done = adit(left, "tune", "plan", "--nic", "eth0", *wrong, check=False)
        if wrong[0] == "--nic":
            done = adit(left, "tune", "plan", *wrong, check=False)
        expect(done.code == 1 and wrong[1] in done.err, f"the mistake is named: {done}")
    done = adit(left, "tune", "plan", check=False)
    expect(done.code == 1 and "--nic" in done.err, f"no default route: {done}")


def tunnels(lab: Lab) -> tuple[Adit, Adit]:
    """Both ends; the left one tunes its machine while it is up."""
    left, right = machines(lab)
    left_keys, right_keys = key_pair(), key_pair()
    ends = (
        Adit(
            left,
            lab.device("l"),
            TunnelSpec(
                left_keys,
                [f"{LEFT}/24"],
                listen_port=PORT,
                extra=["Public = eth0"],
                peers=[
                    PeerSpec(
                        right_keys.public, f"{RIGHT}/32", name="right", endpoint=f"192.0.2.2:{PORT}"
                    )
                ],
            ),
        ),
        Adit(
            right,
            lab.device("r"),
            TunnelSpec(
                right_keys,
                [f"{RIGHT}/24"],
                listen_port=PORT,
                peers=[PeerSpec(left_keys.public, f"{LEFT}/32", name="left")],
            ),
        ),
    )
    tune(ends[0], "Profile = auto")
    return ends


def tune(tunnel: Adit, *lines: str) -> None:
    """Writes the file with this [Tune]."""
    tunnel.write()
    tunnel.file.write_text(tunnel.file.read_text() + "\n".join(["", "[Tune]", *lines, ""]))


@scenario(seconds=90)
def with_the_interface(lab: Lab) -> None:
    """Profile = auto: applied on up, kept on events (case 62), changed by reload, gone on down."""
    need_cpus()
    left, right = tunnels(lab)
    where = left.where
    before = files(where)
    untouched = files(right.where)
    right.up()
    left.up()
    expect(is_tuned(where), f"on up: {files(where)}; {left.status()['warnings']}")
    expect(files(right.where) == untouched, "the other end, without [Tune], is as it was")
    ping(where, RIGHT)
    own = where.run("cat", f"/sys/class/net/{left.name}/queues/rx-0/rps_cpus").out
    expect(number(own.strip()) == cpus(), f"RPS on the tunnel: {own}")

    where.run("ethtool", "-L", "eth0", "rx", "2", "tx", "2")
    wait_until(lambda: is_tuned(where, 2), 10, "two queues are tuned")
    where.run("ethtool", "-L", "eth0", "rx", "4", "tx", "4")
    wait_until(lambda: is_tuned(where), 10, "four queues are tuned")
    where.run("tee", f"{FOLDER}/rx-2/rps_cpus", stdin="0")
    where.ip("link", "set", "eth0", "down")
    where.ip("link", "set", "eth0", "up")
    wait_until(lambda: is_tuned(where), 10, "a link that went down and up is tuned")

    tune(left, "Rps = eth0:0")
    left.cli("reload", left.name)
    now = files(where)
    expect(number(now["rx-0/rps_cpus"]) == 1, f"the file's CPU: {now}")
    same = [key for key in before if "rps_cpus" not in key]
    expect(all(now[key] == before[key] for key in same), f"the rest is back: {before} {now}")
    tune(left, "Profile = auto")
    left.cli("reload", left.name)
    expect(is_tuned(where), "Profile = auto again")
    kept = left.cli("tune", "apply", str(left.file), check=False)
    expect(kept.code == 1 and "adit reload" in kept.err, f"the daemon keeps it: {kept}")

    left.down()
    expect(files(where) == before, f"as before: {before} and {files(where)}")


@scenario(seconds=90)
def killed(lab: Lab) -> None:
    """kill -9 of the daemon loses no old value: `down` alone, and another `up` and `down`."""
    need_cpus()
    left, _right = tunnels(lab)
    where = left.where
    before = files(where)
    left.up()
    left.crash()
    expect(is_tuned(where), "the values outlive the daemon")
    left.down()
    expect(files(where) == before, f"down restores: {before} and {files(where)}")

    left.up()
    left.crash()
    where.run("tee", f"{FOLDER}/rx-2/rps_cpus", stdin="0")
    left.up()
    expect(is_tuned(where), "the next daemon mends what drifted")
    left.down()
    expect(files(where) == before, f"and still knows the first values: {before} {files(where)}")


@scenario(seconds=60)
def without_rights(lab: Lab) -> None:
    """Only root applies, and a machine that is recorded in a folder is only read."""
    left, _right = machines(lab)
    argv = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    for command in ("apply", "revert", "status"):
        done = left.run(*argv, tool("ctl/cli/adit"), "tune", command, check=False)
        expect(done.code == 1 and "sudo" in done.err, f"{command} names the remedy: {done}")
    plan = left.run(*argv, tool("ctl/cli/adit"), "tune", "plan", "--nic", "eth0")
    expect("FILE" in plan.out, f"plan works without root: {plan}")

    folder = left.dir / "recorded"
    for name, content in {
        "sys/devices/system/cpu/online": "0-7",
        "sys/class/net/lan0/queues/rx-0/rps_cpus": "00",
        "proc/net/route": "Iface Destination Gateway Flags RefCnt Use Metric Mask\n"
        "lan0 00000000 0101A8C0 0003 0 0 0 00000000 0 0 0",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    plan = adit(left, "tune", "plan", "--root", str(folder))
    expect("lan0" in plan.out and "000000ff" in plan.out, f"the recorded machine: {plan}")
    if (folder / "proc/sys").exists():
        raise LabError("a recorded machine was written to")


if __name__ == "__main__":
    sys.exit(main())
