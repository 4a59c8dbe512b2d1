#!/usr/bin/env python3
"""The kernel data plane outlives its daemon: kill -9, traffic goes on, the next daemon takes over.

Needs adit.ko, so it runs in a virtual machine (tests/vm). Topology: `Pair` in lab/topology.py.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from typing import Any

from lab import (
    LEFT,
    PORT,
    RIGHT,
    Adit,
    IperfServer,
    Lab,
    Side,
    ends,
    expect,
    iperf_argv,
    main,
    pair,
    ping,
    preshared_key,
    progress,
    scenario,
    wait_until,
)

KERNEL = "Backend = kernel"
USERSPACE = "Backend = userspace"


def pair_up(lab: Lab, left: str, right: str, env: dict[str, str] | None = None) -> Any:
    net = pair(lab)
    sides = [Side(Adit, extra=[backend], env=dict(env or {})) for backend in (left, right)]
    endpoint = f"{net.right_address}:{PORT}"
    return net, *ends.both_up(
        lab, (net.left, sides[0]), (net.right, sides[1]), endpoint, preshared_key()
    )


def link(end: Adit) -> tuple[int, str]:
    """Index and kind of the interface."""
    found = json.loads(end.where.run("ip", "-d", "-j", "link", "show", end.name).out)[0]
    return found["ifindex"], found["linkinfo"]["info_kind"]


def lost(log: str) -> int:
    """Packets without an answer, as ping(8) counts them at the end."""
    sent, received = map(int, re.findall(r"(\d+) packets transmitted, (\d+) received", log)[-1])
    return sent - received


def replays(*sides: Adit) -> int:
    return sum(end.status()["drops"].get("replay", 0) for end in sides)


def killed(lab: Lab, left_backend: str, right_backend: str, victim_is_left: bool) -> None:
    net, left, right = pair_up(lab, left_backend, right_backend)
    ping(net.left, RIGHT)
    victim = left if victim_is_left else right
    expect(victim.status()["backend"] == "kernel", f"the kernel, not {victim.status()['backend']}")
    progress(f"{victim.name}: {victim.status()['backend_reason']}")
    # The suite settles in the first seconds, with a handshake of its own.
    time.sleep(8)
    ping(net.left, RIGHT)
    handshakes = [end.peer().latest_handshake for end in (left, right)]
    before = victim.peer()
    suite = victim.suite()
    index = link(victim)
    client = net.left.start("ping", "-i", "0.1", "-w", "25", RIGHT, log="ping")
    time.sleep(2)
    victim.crash()
    # Nobody is there, and packets go both ways.
    ping(net.left, RIGHT, count=20)
    victim.up()
    after = victim.peer()
    expect(after.rx_bytes > before.rx_bytes, "the counters go on")
    expect(link(victim) == index, f"the same interface, {index}, not {link(victim)}")
    expect(victim.suite() == suite, f"the same session: {suite}, not {victim.suite()}")
    expect(after.endpoint == before.endpoint, "the same endpoint")
    client.wait(60)
    expect(lost(client.output()) == 0, f"nothing is lost: {client.output()[-300:]}")
    now = [end.peer().latest_handshake for end in (left, right)]
    # The wall clock of the handshake is computed anew from its age.
    expect(
        all(abs(a - b) <= 1 for a, b in zip(now, handshakes, strict=True)),
        f"no handshake: {handshakes}, then {now}",
    )
    expect(replays(left, right) == 0, "no counter was used twice")


@scenario(seconds=120)
def killed_initiator(lab: Lab) -> None:
    """kill -9 of the side that called, both in the kernel."""
    killed(lab, KERNEL, KERNEL, victim_is_left=True)


@scenario(seconds=120)
def killed_responder(lab: Lab) -> None:
    killed(lab, KERNEL, KERNEL, victim_is_left=False)


@scenario(seconds=120)
def killed_beside_userspace(lab: Lab) -> None:
    """The other end has the data plane in user space."""
    killed(lab, KERNEL, USERSPACE, victim_is_left=True)


@scenario(seconds=180)
def killed_under_load(lab: Lab) -> None:
    """A TCP stream does not notice that the daemon is killed and started, three times."""
    net, left, right = pair_up(lab, KERNEL, KERNEL)
    ping(net.left, RIGHT)
    server = IperfServer(net.right)
    # Longer than all that follows, on any machine.
    client = net.left.start(*iperf_argv(RIGHT, seconds=200), log="client")
    wait_until(lambda: right.peer().rx_bytes > 1e5, 20, "iperf3 moves data")
    for victim in (left, right, left):
        victim.crash()
        expect(client.running(), "iperf3 goes on without the daemon")
        time.sleep(2)
        victim.up()
        seen = right.peer().rx_bytes
        wait_until(lambda seen=seen: right.peer().rx_bytes > seen + 1e5, 10, "data moves")
    expect(client.running(), "it is the same connection all along")
    client.kill()
    expect(replays(left, right) == 0, "no counter was used twice")
    server.stop()


@scenario(seconds=240)
def killed_in_handshakes(lab: Lab) -> None:
    """Killed again and again at any point of handshakes that follow each other closely."""
    quick = {"ADIT_TEST_REKEY_AFTER_MS": "1000", "ADIT_TEST_REJECT_AFTER_MS": "60000"}
    net, left, right = pair_up(lab, KERNEL, KERNEL, quick)
    ping(net.left, RIGHT)
    chance = random.Random(1)
    client = net.left.start("ping", "-i", "0.05", "-w", "200", RIGHT, log="ping")
    for turn in range(12):
        victim = (left, right)[turn % 2]
        time.sleep(chance.uniform(0, 1.5))
        victim.crash()
        victim.up()
        expect(victim.status()["backend"] == "kernel", "the kernel")
    before = left.peer().rx_bytes
    wait_until(lambda: left.peer().rx_bytes > before, 20, "packets go on")
    ping(net.left, RIGHT, count=10)
    client.kill()
    expect(replays(left, right) == 0, "no counter was used twice")
    drops = [end.status()["drops"] for end in (left, right)]
    progress(f"drops {drops}")


@scenario(seconds=120)
def changed_meanwhile(lab: Lab) -> None:
    """What was edited while no daemon was there holds; a peer that went is gone from the kernel."""
    net, left, right = pair_up(lab, KERNEL, KERNEL)
    ping(net.left, RIGHT)
    left.crash()
    kept = left.spec.peers[0]
    kept.keepalive = 7
    kept.allowed_ips += ", 10.77.0.0/24"
    left.write()
    left.up()
    expect(left.peer().keepalive == "7", f"keepalive 7, not {left.peer().keepalive}")
    expect("10.77.0.0/24" in left.peer().allowed_ips, left.peer().allowed_ips)
    ping(net.left, RIGHT, count=5)
    left.crash()
    left.spec.peers = []
    left.write()
    left.up()
    expect(left.dump() == [], "no peers")
    left.down()
    expect(left.name not in left.where.run("ip", "link").out, "the interface is gone")


@scenario(seconds=120)
def other_data_plane(lab: Lab) -> None:
    """A daemon that is to use the other data plane replaces the interface that was left."""
    net, left, right = pair_up(lab, KERNEL, KERNEL)
    ping(net.left, RIGHT)
    for backend, kind in ((USERSPACE, "tun"), (KERNEL, "adit")):
        left.crash()
        left.spec.extra = [backend]
        left.write()
        left.up()
        expect(link(left)[1] == kind, f"kind {kind}, not {link(left)}")
        ping(net.left, RIGHT, count=5, timeout=30)
    ping(net.right, LEFT, count=5)


@scenario(seconds=60)
def second_daemon(lab: Lab) -> None:
    """An interface that a daemon serves, and a foreign one, are left alone."""
    net, left, _ = pair_up(lab, KERNEL, KERNEL)
    again = left.cli("up", str(left.file), check=False)
    expect(again.code != 0, "a second `adit up` fails")
    ping(net.left, RIGHT)
    left.down()
    left.where.ip("link", "add", left.name, "type", "dummy")
    foreign = left.cli("up", str(left.file), check=False)
    expect(foreign.code != 0 and "dummy" in foreign.err, f"names the kind: {foreign.err}")
    expect("dummy" in left.where.run("ip", "-d", "link", "show", left.name).out, "still there")


if __name__ == "__main__":
    sys.exit(main())
