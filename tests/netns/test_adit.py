#!/usr/bin/env python3
"""adit to adit: cipher suites and their choice, a crash under load, bad links.

Topologies: `Pair` and `Relayed` in lab/topology.py.
"""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

from lab import (
    LEFT,
    PORT,
    RIGHT,
    Adit,
    IperfServer,
    Lab,
    Relayed,
    Side,
    Tunnel,
    WebServer,
    WireGuard,
    add,
    answers,
    ends,
    expect,
    fetch_sha256,
    iperf,
    iperf_argv,
    iperf_result,
    main,
    pair,
    ping,
    preshared_key,
    progress,
    relayed,
    scenario,
    wait_until,
)

SUITES = ("chacha20-poly1305", "aes-256-gcm", "aes-128-gcm")


def cipher(name: str) -> Side:
    return Side(Adit, extra=[f"Cipher = {name}"])


def pair_up(lab: Lab, left: Side, right: Side) -> tuple[Any, Any, Any]:
    net = pair(lab)
    endpoint = f"{net.right_address}:{PORT}"
    both = ends.both_up(lab, (net.left, left), (net.right, right), endpoint, preshared_key())
    return net, *both


def suite_is(end: Tunnel, wanted: str) -> bool:
    if not isinstance(end, Adit):
        raise TypeError("only adit tells its suite")
    return end.suite() == wanted


def pinned(lab: Lab, name: str) -> None:
    net, left, right = pair_up(lab, cipher(name), cipher(name))
    ping(net.left, RIGHT)
    server = IperfServer(net.right)
    for reverse in (False, True):
        mbps = iperf(net.left, RIGHT, seconds=2, reverse=reverse).mbps
        progress(f"{name}: {mbps:.0f} Mbit/s")
    server.stop()
    for end in (left, right):
        expect(end.suite() == name, f"{end.name} runs {name}, not {end.suite()}")


for _number, _name in enumerate(SUITES):
    add(f"suite_{_number}", partial(pinned, name=_name))


def best_suite(*speeds: dict[str, int]) -> str:
    """docs/protocol.md: the largest minimum; less than 20 % apart is a tie, the lower id wins."""
    slower = {name: min(side[name] for side in speeds) for name in SUITES}
    best = max(slower.values())
    return next(name for name in SUITES if slower[name] > best * 0.8)


@scenario()
def suite_auto(lab: Lab) -> None:
    """Two `auto` ends begin with suite 0 and move to the one that both sides' speeds favour."""
    net, left, right = pair_up(lab, Side(Adit), Side(Adit))
    ping(net.left, RIGHT)
    speeds = [end.status()["suite_speeds"] for end in (left, right)]
    wanted = best_suite(*speeds)
    progress(f"speeds {speeds}: {wanted}")
    for end in (left, right):
        wait_until(partial(suite_is, end, wanted), 20, f"{end.name} runs {wanted}")
    ping(net.left, RIGHT, count=20)


def auto_meets_pin(lab: Lab, name: str, pin_initiates: bool) -> None:
    """`auto` reaches a peer that accepts one suite only, whoever calls."""
    sides = (cipher(name), Side(Adit))
    net, left, right = pair_up(lab, *(sides if pin_initiates else reversed(sides)))
    # An `auto` initiator tries its suites in turn, 5 s apart.
    ping(net.left, RIGHT, timeout=45)
    for end in (left, right):
        expect(end.suite() == name, f"{end.name} runs {name}, not {end.suite()}")


for _number, _name in enumerate(SUITES):
    for _initiates in (False, True):
        add(
            f"pin_{_number}_{'calls' if _initiates else 'answers'}_auto",
            partial(auto_meets_pin, name=_name, pin_initiates=_initiates),
            seconds=75,
        )


@scenario(seconds=45)
def pins_differ(lab: Lab) -> None:
    """Two ends that insist on different suites do not talk at all."""
    net, left, right = pair_up(lab, cipher(SUITES[0]), cipher(SUITES[1]))
    expect(not answers(net.left, RIGHT, seconds=7), "no answer")
    expect(left.suite() is None and right.suite() is None, "no session")


def auto_with_wireguard(lab: Lab, calls: bool) -> None:
    """`auto` against WireGuard stays on suite 0, and its offers disturb nothing."""
    sides = (Side(Adit), Side(WireGuard))
    net, *both = pair_up(lab, *(sides if calls else reversed(sides)))
    ping(net.left, RIGHT, count=40, timeout=30)
    ours = next(end for end in both if isinstance(end, Adit))
    expect(ours.suite() == SUITES[0], f"suite 0, not {ours.suite()}")
    server = IperfServer(net.right)
    progress(f"{iperf(net.left, RIGHT, seconds=2).mbps:.0f} Mbit/s")
    server.stop()
    expect(ours.suite() == SUITES[0], f"still suite 0, not {ours.suite()}")


add("auto_calls_wireguard", partial(auto_with_wireguard, calls=True))
add("auto_answers_wireguard", partial(auto_with_wireguard, calls=False))


def crash(lab: Lab, crashed: str) -> None:
    """kill -9 of aditd during an iperf3 run, then `adit up`: the TCP connection survives."""
    seconds = 20
    net, left, right = pair_up(lab, Side(Adit), Side(Adit))
    ping(net.left, RIGHT)
    server = IperfServer(net.right)
    argv = iperf_argv(RIGHT, seconds=seconds)
    client = net.left.start(*argv, log="client")
    victim: Adit = left if crashed == "left" else right
    before = right.peer().rx_bytes
    wait_until(lambda: right.peer().rx_bytes > before + 20e6, 10, "iperf3 moves data")
    connections = net.left.run("ss", "-Htn", "dst", RIGHT).out
    victim.crash()
    expect(client.running(), "iperf3 goes on without the daemon")
    victim.up()
    wait_until(lambda: right.peer().rx_bytes > 20e6, 15, "data moves again")
    expect(
        net.left.run("ss", "-Htn", "dst", RIGHT).out.count("\n") == connections.count("\n"),
        "the same connections are open",
    )
    client.wait(seconds + 20)
    result = iperf_result(client.output(), udp=False)
    intervals = [part["sum"]["bits_per_second"] / 1e6 for part in result.report["intervals"]]
    progress(" ".join(f"{mbps:.0f}" for mbps in intervals) + " Mbit/s each second")
    expect(min(intervals[-3:]) > 50, f"the last seconds carried data: {intervals[-3:]}")
    server.stop()


add("crash_of_the_sender", partial(crash, crashed="left"), seconds=90)
add("crash_of_the_receiver", partial(crash, crashed="right"), seconds=90)


def link_up(lab: Lab, *options: str) -> tuple[Relayed, Any, Any, Any]:
    """Two ends that change keys every 6 s, behind a relay."""
    net = relayed(lab)
    relay = net.relay(*options)
    quick = {"ADIT_TEST_REKEY_AFTER_MS": "6000"}
    sides = (Side(Adit, env=quick), Side(Adit, env=quick))
    endpoint = f"{net.relay_address}:{net.port}"
    both = ends.both_up(lab, (net.left, sides[0]), (net.right, sides[1]), endpoint)
    return net, relay, *both


def transfer(net: Relayed, mebibytes: float) -> None:
    """A file each way, with the right hash."""
    for server_at, client_at, address in (
        (net.right, net.left, RIGHT),
        (net.left, net.right, LEFT),
    ):
        web = WebServer(server_at, mebibytes=mebibytes)
        digest = fetch_sha256(client_at, f"http://{address}/file", timeout=90)
        expect(digest == web.sha256, f"the file from {server_at} has the right hash")
        web.stop()


def overflows(net: Relayed) -> int:
    """Datagrams that the kernels of both ends threw away because a socket was full."""
    total = 0
    for where in (net.left, net.right):
        for line in where.run("cat", "/proc/net/snmp", "/proc/net/snmp6").out.splitlines():
            words = line.split()
            if words[0] == "Udp:" and words[1].isdigit():
                total += int(words[5])
            if words[0] == "Udp6RcvbufErrors":
                total += int(words[1])
    return total


def explained(net: Relayed, both: tuple[Adit, Adit], wanted: int, slack: int) -> None:
    """The counters of both ends account for `wanted` bad datagrams."""
    drops = [end.receive_drops() for end in both]
    total = sum(sum(side.values()) for side in drops)
    lost = overflows(net)
    progress(f"{wanted} to explain, counted {total}, overflowed {lost}: {drops}")
    expect(wanted - slack - lost <= total <= wanted + slack, f"{total} drops explain {wanted}")
    for end in both:
        log = Path(end.where.env["ADIT_RUNTIME_DIR"], f"{end.name}.log").read_text().lower()
        expect("twice" not in log, f"no key was installed twice:\n{log[-2000:]}")


@scenario(seconds=240, heavy=True)
def bad_link(lab: Lab) -> None:
    """1 % loss, reordering and corruption at once: right content, every drop is explained."""
    net, relay, left, right = link_up(
        lab, "--loss", "1", "--reorder", "3", "--corrupt", "0.5", "--seed", "11"
    )
    ping(net.left, RIGHT, timeout=30)
    transfer(net, mebibytes=64)
    counts = relay.stop()
    corrupted = sum(side["corrupted"] for side in counts.values())
    progress(f"relay: {counts}")
    expect(corrupted > 50, "enough was corrupted to count")
    # A flipped bit in mac2 of a handshake message does no harm without load: not every one drops.
    explained(net, (left, right), corrupted, slack=5)


@scenario(seconds=150, heavy=True)
def everything_twice(lab: Lab) -> None:
    """Every datagram comes twice: the second is dropped as a replay, handshakes included."""
    net, relay, left, right = link_up(lab, "--duplicate", "100")
    ping(net.left, RIGHT)
    first = right.peer().latest_handshake
    transfer(net, mebibytes=32)
    wait_until(lambda: right.peer().latest_handshake > first, 15, "a handshake with duplicates")
    ping(net.left, RIGHT, count=20)
    counts = relay.stop()
    progress(f"relay: {counts}")
    duplicated = sum(side["duplicated"] for side in counts.values())
    explained(net, (left, right), duplicated, slack=40)


@scenario(seconds=60)
def forgetful_nat(lab: Lab) -> None:
    """A NAT on the way forgets its table: the other end follows to the new port, both ways."""
    net, relay, left, right = link_up(lab)
    ping(net.left, RIGHT)
    before = right.peer().endpoint
    relay.process.signal(signal.SIGUSR1)
    ping(net.left, RIGHT)
    ping(net.right, LEFT)
    after = right.peer().endpoint
    expect(before != after, f"the endpoint moved from {before}")


# Four bytes of the first datagram of each super-packet become others on the way over loopback.
CORRUPTING = """table inet damage {
  chain output { type filter hook output priority 0; ip daddr 127.0.0.1 meta l4proto udp @th,96,32 set 0xdeadbeef; }
}"""


@scenario(seconds=60)
def a_kernel_that_changes_what_it_segments(lab: Lab) -> None:
    """Found out when the link is made: the offload is not used, status says so, traffic passes."""
    net = pair(lab)
    net.left.run("nft", "-f", "-", stdin=CORRUPTING)
    userspace = Side(Adit, extra=["Backend = userspace"])
    endpoint = f"{net.right_address}:{PORT}"
    left, right = ends.both_up(
        lab, (net.left, userspace), (net.right, userspace), endpoint, preshared_key()
    )
    told = {end: " ".join(end.status()["warnings"]) for end in (left, right)}
    expect("UDP segmentation offload" in told[left], f"the broken one says so: {told[left]}")
    expect("offload" not in told[right], f"the other one is sound: {told[right]}")
    server = IperfServer(net.right)
    for reverse in (False, True):
        result = iperf(net.left, RIGHT, seconds=2, reverse=reverse)
        expect(result.mbps > 20, f"it works without: {result.mbps:.0f} Mbit/s")
    server.stop()


if __name__ == "__main__":
    sys.exit(main())
