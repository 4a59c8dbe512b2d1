"""What the machine looks like, to show that something left nothing behind."""

from __future__ import annotations

import re
from pathlib import Path

from .network import WIREGUARD_DIR, Namespace
from .process import LabError

COMMANDS = (
    ("ip", "-oneline", "link"),
    ("ip", "-oneline", "address"),
    ("ip", "-4", "rule"),
    ("ip", "-6", "rule"),
    ("ip", "-4", "route", "show", "table", "all"),
    ("ip", "-6", "route", "show", "table", "all"),
    ("nft", "list", "ruleset"),
)
SYSCTLS = (
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/conf/default/rp_filter",
    "net/ipv4/conf/all/src_valid_mark",
)

# Differs between two equal states: an interface's number, whether its carrier has been seen, a
# random link-local address; and the process that holds a socket, but for its name.
PASSING = re.compile(r"^\d+: (?=\S+[: ] ?(<|inet))| state \w+|inet6 fe80::\S+")
OWNER = re.compile(r'users:\(\("([^"]+)".*')

State = dict[str, list[str]]


def snapshot(where: Namespace) -> State:
    """Links, addresses, rules, routes, firewall, sysctls, sockets, runtime files but the logs."""
    state: State = {}
    for argv in COMMANDS:
        lines = where.run(*argv).out.splitlines()
        state[" ".join(argv)] = sorted(PASSING.sub("", " ".join(line.split())) for line in lines)
    values = where.run("sh", "-c", "cd /proc/sys && cat " + " ".join(SYSCTLS)).out.split()
    state["sysctl"] = [f"{key} {value}" for key, value in zip(SYSCTLS, values, strict=True)]
    lines = where.run("ss", "-Hlnptu").out.splitlines()
    state["sockets"] = sorted(OWNER.sub(r"\1", " ".join(line.split()[4:])) for line in lines)
    runtime = Path(where.env["ADIT_RUNTIME_DIR"])
    files = [path for path in runtime.rglob("*") if not path.is_dir() and path.suffix != ".log"]
    state["runtime files"] = sorted(str(path.relative_to(runtime)) for path in files)
    names = where.lab.devices
    state["sockets of wg"] = sorted(n for n in names if (WIREGUARD_DIR / f"{n}.sock").exists())
    return state


def difference(before: State, after: State) -> list[str]:
    """One line for each thing that came or went."""
    lines = []
    for key, old in before.items():
        new = after[key]
        lines += [f"{key}: - {line}" for line in old if line not in new]
        lines += [f"{key}: + {line}" for line in new if line not in old]
    return lines


def require_same(before: State, after: State, what: str) -> None:
    changes = difference(before, after)
    if changes:
        raise LabError(f"{what}: left behind\n" + "\n".join(changes))
