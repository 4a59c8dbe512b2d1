#!/usr/bin/env python3
"""Real-world cases by their numbers: time, names, families, source addresses (28 to 31).

Topology: `Pair` in lab/topology.py; left is adit unless the scenario says otherwise.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

from lab import (
    LEFT,
    PORT,
    RIGHT,
    Adit,
    Lab,
    NameServer,
    Pair,
    Side,
    Tunnel,
    WireGuard,
    answers,
    ends,
    expect,
    main,
    pair,
    ping,
    progress,
    scenario,
    specs,
)

NAME = "vps.example.net"
FOUR_MONTHS_S = 120 * 24 * 3600


def two_ends(net: Pair, endpoint: str, left: Side, right: Side) -> tuple[Any, Any]:
    """Made but not up."""
    left_spec, right_spec = specs(endpoint)
    return (
        ends.make(net.left, net.lab.device("l"), left_spec, left),
        ends.make(net.right, net.lab.device("r"), right_spec, right),
    )


@scenario(seconds=60)
def case_28_clock_goes_backwards(lab: Lab) -> None:
    """After a power cut the clock is months behind: the next handshake still succeeds."""
    net = pair(lab)
    left, right = two_ends(net, f"{net.right_address}:{PORT}", Side(Adit), Side(WireGuard))
    right.up()
    for offset in (FOUR_MONTHS_S, 0, FOUR_MONTHS_S * 2, -FOUR_MONTHS_S):
        left.env["ADIT_TEST_REALTIME_OFFSET_S"] = str(offset)
        progress(f"clock at {offset:+} s")
        left.up()
        handshake = right.peer().latest_handshake
        ping(net.left, RIGHT, timeout=10)
        expect(right.peer().latest_handshake >= handshake, "a handshake")
        age = left.status()["peers"][0]["latest_handshake_age"]
        expect(age is None or 0 <= age < 2 * FOUR_MONTHS_S + 3600, f"a possible age, not {age}")
        left.crash()
        left.down()


@scenario(seconds=60)
def case_28_peer_clock_behind(lab: Lab) -> None:
    """An initiator that has lost its mark and its clock is refused, counted and shown."""
    net = pair(lab)
    left, right = two_ends(net, f"{net.right_address}:{PORT}", Side(Adit), Side(Adit))
    right.up()
    left.up()
    ping(net.left, RIGHT)
    left.down()
    shutil.rmtree(Path(net.left.env["ADIT_STATE_DIR"]), ignore_errors=True)
    left.env["ADIT_TEST_REALTIME_OFFSET_S"] = str(-FOUR_MONTHS_S)
    left.up()
    expect(not answers(net.left, RIGHT, seconds=3), "the old time stamp is refused")
    count = right.status()["peers"][0]["clock_behind"]
    expect(count >= 1, f"it is counted: {count}")
    shown = right.cli("status", right.name).out
    expect("clock" in shown, f"and shown: {shown}")
    # The greatest accepted stamp survives a restart of the responder.
    right.down()
    right.up()
    expect(not answers(net.left, RIGHT, seconds=7), "refused by the restarted responder, too")


@scenario(seconds=120)
def case_29_name_changes_address(lab: Lab) -> None:
    """The server moves: the name is asked again once the session is stale, and only then."""
    net = pair(lab)
    names = NameServer(net.left)
    names.set(NAME, net.right_address)
    quick = {
        "ADIT_TEST_ENDPOINT_STALE_MS": "8000",
        "ADIT_TEST_REKEY_AFTER_MS": "5500",
        "ADIT_TEST_REJECT_AFTER_MS": "11000",
    }
    left, right = two_ends(net, f"{NAME}:{PORT}", Side(Adit, env=quick), Side(WireGuard))
    right.up()
    left.up()
    ping(net.left, RIGHT)

    names.set(NAME, "192.0.2.77")
    asked = names.questions(NAME)
    # Healthy for longer than the stale time: traffic keeps the handshakes coming.
    net.left.run("ping", "-n", "-q", "-i", "0.2", "-c", "70", RIGHT)
    expect(names.questions(NAME) == asked, "a healthy session asks nobody")
    expect(left.peer().endpoint == f"{net.right_address}:{PORT}", "and keeps its endpoint")

    progress("the server moves")
    right.crash()
    net.right.ip("address", "flush", "dev", "eth0", "scope", "global")
    net.right.address("eth0", "192.0.2.77/24")
    right.up()
    ping(net.left, RIGHT, timeout=60)
    expect(left.peer().endpoint == f"192.0.2.77:{PORT}", "the new address is in use")

    progress("the name server fails")
    names.process.stop()
    net.left.run("ping", "-n", "-q", "-i", "0.2", "-c", "60", RIGHT)
    expect(left.peer().endpoint == f"192.0.2.77:{PORT}", "a working address is kept")


def families(
    lab: Lab, addresses: tuple[str, ...], wanted: str, seconds: float, *, drop: str = ""
) -> None:
    net = pair(lab)
    names = NameServer(net.left)
    names.set(NAME, *addresses)
    if drop:
        net.right.nft(
            f"table inet lost {{ chain in {{ type filter hook input priority 0\n"
            f"meta nfproto {drop} udp dport {PORT} drop\n}}\n}}"
        )
    left, right = two_ends(net, f"{NAME}:{PORT}", Side(Adit), Side(WireGuard))
    right.up()
    left.up()
    started = time.monotonic()
    ping(net.left, RIGHT, timeout=seconds)
    progress(f"through after {time.monotonic() - started:.1f} s")
    expect(left.peer().endpoint == wanted, f"by way of {wanted}, not {left.peer().endpoint}")


@scenario(seconds=40)
def case_30_family_without_route(lab: Lab) -> None:
    """AAAA and A, no route for IPv6: IPv4 is used at once."""
    families(lab, ("2001:db8:bad::1", "192.0.2.2"), f"192.0.2.2:{PORT}", seconds=5)


@scenario(seconds=60)
def case_30_ipv6_dies_on_the_way(lab: Lab) -> None:
    """IPv6 has a route but nothing arrives: IPv4 gets its turn after two handshakes."""
    families(lab, ("2001:db8::2", "192.0.2.2"), f"192.0.2.2:{PORT}", seconds=25, drop="ipv6")


@scenario(seconds=60)
def case_30_ipv4_dies_on_the_way(lab: Lab) -> None:
    """The reverse."""
    families(lab, ("192.0.2.2", "2001:db8::2"), f"[2001:db8::2]:{PORT}", seconds=25, drop="ipv4")


def only_from(net: Pair, address: str) -> None:
    """Left accepts the tunnel's datagrams from this address only, as a NAT on the way would."""
    family = "ip6" if ":" in address else "ip"
    net.left.nft(
        f"table inet strict {{ chain in {{ type filter hook input priority 0\n"
        f"udp dport {PORT} {family} saddr != {address} drop\n}}\n}}"
    )


def sticky(net: Pair, right_side: Side, address: str) -> tuple[Tunnel, Tunnel]:
    net.right.address("eth0", f"{address}/64" if ":" in address else f"{address}/24")
    host = f"[{address}]" if ":" in address else address
    only_from(net, address)
    left, right = two_ends(net, f"{host}:{PORT}", Side(WireGuard), right_side)
    right.up()
    left.up()
    ping(net.left, RIGHT)
    ping(net.right, LEFT)
    expect(left.peer().endpoint == f"{host}:{PORT}", f"the peer stays at {host}")
    return left, right


@scenario(seconds=60)
def case_31_answer_from_the_contacted_address(lab: Lab) -> None:
    """The server answers from its second address when that was called; falls back if it goes."""
    net = pair(lab)
    left, right = sticky(net, Side(Adit), "192.0.2.30")
    progress("the address disappears")
    net.left.nft("flush ruleset")
    net.right.ip("address", "del", "192.0.2.30/24", "dev", "eth0")
    ping(net.right, LEFT, timeout=20)
    expect(left.peer().endpoint == f"{net.right_address}:{PORT}", "the peer roams to the other")


@scenario(seconds=40)
def case_31_answer_from_the_contacted_address_v6(lab: Lab) -> None:
    sticky(pair(lab), Side(Adit), "2001:db8::30")


@scenario(seconds=40)
def case_31_bind_address(lab: Lab) -> None:
    """A bind address: the port is open there only."""
    net = pair(lab)
    net.right.address("eth0", "192.0.2.30/24")
    left, right = two_ends(
        net, f"192.0.2.30:{PORT}", Side(WireGuard), Side(Adit, extra=["Bind = 192.0.2.30"])
    )
    right.up()
    left.up()
    ping(net.left, RIGHT)
    bound = [line.split()[3] for line in net.right.run("ss", "-Hlnu").out.splitlines()]
    expect(bound == [f"192.0.2.30:{PORT}"], f"bound to that address alone: {bound}")


@scenario(seconds=40)
def case_31_do_not_roam(lab: Lab) -> None:
    """`Roam = off` keeps the configured endpoint whatever authenticated packets say."""
    net = pair(lab)
    left, right = two_ends(
        net, f"{net.right_address}:{PORT}", Side(Adit, peer_extra=["Roam = off"]), Side(Adit)
    )
    right.up()
    left.up()
    ping(net.left, RIGHT)
    net.right.ip("address", "del", f"{net.right_address}/24", "dev", "eth0")
    net.right.address("eth0", "192.0.2.30/24")
    received = left.peer().rx_bytes
    net.right.run("ping", "-n", "-q", "-c", "3", "-i", "0.2", "-W", "1", LEFT, check=False)
    expect(left.peer().endpoint == f"{net.right_address}:{PORT}", "the endpoint did not move")
    expect(left.peer().rx_bytes > received, "though authenticated packets came from elsewhere")


if __name__ == "__main__":
    sys.exit(main())
