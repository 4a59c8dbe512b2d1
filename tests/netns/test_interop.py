#!/usr/bin/env python3
"""adit and WireGuard as each other's peer: both roles, with and without a preshared key.

WireGuard is wireguard-go, or the kernel's module in a VM: see `WireGuard` in lab/tunnel.py.

Topologies: `Pair` and `Relayed` in lab/topology.py.
"""

from __future__ import annotations

import sys
from functools import partial

from lab import (
    EMULATED,
    LEFT,
    LEFT6,
    PORT,
    RIGHT,
    RIGHT6,
    Adit,
    IperfServer,
    KeyPair,
    Lab,
    Pair,
    Side,
    Tunnel,
    WireGuard,
    add,
    connected,
    ends,
    expect,
    iperf,
    key_pair,
    main,
    pair,
    ping,
    preshared_key,
    progress,
    scenario,
    wait_until,
)

PRODUCT = Side()
PEER = Side(WireGuard)
# Well below what the slowest data plane passes on.
UDP_RATE = "1M" if EMULATED else "20M"


def both_up(net: Pair, left: Side, right: Side, psk: str = "") -> tuple[Tunnel, Tunnel]:
    endpoint = f"{net.right_address}:{PORT}"
    return ends.both_up(net.lab, (net.left, left), (net.right, right), endpoint, psk)


def traffic(net: Pair) -> None:
    """Ping in both families, iperf3 over TCP and UDP in both directions."""
    ping(net.left, RIGHT)
    ping(net.left, RIGHT6)
    ping(net.right, LEFT, size=1300)
    server = IperfServer(net.right)
    for reverse in (False, True):
        arrow = "←" if reverse else "→"
        tcp = iperf(net.left, RIGHT, seconds=2, reverse=reverse)
        progress(f"TCP {arrow} {tcp.mbps:.0f} Mbit/s")
        udp = iperf(net.left, RIGHT, seconds=2, reverse=reverse, udp_rate=UDP_RATE, length=1372)
        progress(f"UDP {arrow} {udp.mbps:.1f} Mbit/s, {udp.lost_percent:.2f} % lost")
        expect(
            udp.lost_percent < 5, f"less than 5 % of {UDP_RATE}bit/s lost, not {udp.lost_percent}"
        )
    server.stop()


def talk(lab: Lab, initiator: Side, responder: Side, psk: bool) -> None:
    net = pair(lab)
    left, right = both_up(net, initiator, responder, preshared_key() if psk else "")
    traffic(net)
    for end in (left, right):
        expect(connected(end), f"{end.name} reports a handshake")
        state = end.peer()
        expect(state.rx_bytes > 1e6 and state.tx_bytes > 1e6, f"{end.name} counts bytes: {state}")


for _psk in (False, True):
    _suffix = "psk" if _psk else "plain"
    add(f"initiator_{_suffix}", partial(talk, initiator=PRODUCT, responder=PEER, psk=_psk))
    add(f"responder_{_suffix}", partial(talk, initiator=PEER, responder=PRODUCT, psk=_psk))


@scenario(seconds=40)
def wrong_preshared_key(lab: Lab) -> None:
    """With different preshared keys nothing passes; once the right one is set, all does."""
    net = pair(lab)
    left, right = both_up(net, PEER, PRODUCT)
    psk = preshared_key()
    right.set_peer(left.spec.keys.public, "preshared-key", "/dev/stdin", stdin=psk)
    done = net.left.run("ping", "-n", "-q", "-c", "3", "-i", "0.3", "-W", "1", RIGHT, check=False)
    expect(done.code != 0, "no answer under different preshared keys")
    left.set_peer(right.spec.keys.public, "preshared-key", "/dev/stdin", stdin=psk)
    ping(net.left, RIGHT, timeout=20)


def restarted(lab: Lab, left: Side, right: Side) -> None:
    """Either side is ended by force and brought up again; the tunnel works each time."""
    net = pair(lab)
    both = both_up(net, left, right)
    ping(net.left, RIGHT)
    for end in both:
        before = max(other.peer().latest_handshake for other in both)
        progress(f"restart of {type(end).__name__} on the {end.where}")
        end.crash()
        end.up()
        # A responder that has lost its keys is called again after 15 s without an answer.
        ping(net.left, RIGHT, timeout=40)
        expect(all(connected(other, before - 1) for other in both), "both shook hands again")


add("restart_as_initiator", partial(restarted, left=PRODUCT, right=PEER), seconds=120)
add("restart_as_responder", partial(restarted, left=PEER, right=PRODUCT), seconds=120)


def roaming(lab: Lab, left: Side, right: Side) -> None:
    """The initiator's address changes under a session: the responder follows the first packet."""
    net = pair(lab)
    roamer, responder = both_up(net, left, right)
    ping(net.left, RIGHT)
    expect(responder.peer().endpoint == f"{net.left_address}:{PORT}", "the first endpoint is known")
    handshake = responder.peer().latest_handshake
    for address in ("192.0.2.77", net.left_address):
        net.left.ip("address", "flush", "dev", "eth0", "scope", "global")
        net.left.address("eth0", f"{address}/24")
        if left is PEER:
            # It keeps sending from the address that is gone until it hears the endpoint again.
            endpoint = f"{net.right_address}:{PORT}"
            roamer.set_peer(responder.spec.keys.public, "endpoint", endpoint)
        ping(net.left, RIGHT)
        ping(net.right, LEFT)
        seen = responder.peer().endpoint
        expect(seen == f"{address}:{PORT}", f"the endpoint moved to {address}, not {seen}")
    expect(responder.peer().latest_handshake == handshake, "no new handshake was needed")


add("roaming_of_the_peer", partial(roaming, left=PEER, right=PRODUCT))
add("roaming_of_ours", partial(roaming, left=PRODUCT, right=PEER))


@scenario(seconds=90)
def rekey_as_initiator(lab: Lab) -> None:
    """The initiator changes keys again and again under load; no packet is lost by it."""
    rekeys(lab, seconds=16, count=2)


def rekeys(lab: Lab, seconds: int, count: int) -> None:
    net = pair(lab)
    quick = Side(Adit, env={"ADIT_TEST_REKEY_AFTER_MS": "6000"})
    _, right = both_up(net, quick, PEER)
    ping(net.left, RIGHT)
    seen = {right.peer().latest_handshake}
    # 20 packets a second for the whole time; all must be answered.
    pinger = net.left.start(
        *("ping", "-n", "-i", "0.05", "-c", str(seconds * 20), "-W", "2", RIGHT), log="ping"
    )

    def enough() -> bool:
        seen.add(right.peer().latest_handshake)
        return len(seen) > count

    wait_until(enough, seconds, f"{count} new handshakes within {seconds} s")
    pinger.wait(seconds + 10)
    expect(" 0% packet loss" in pinger.output(), f"no packet was lost: {pinger.output()[-200:]}")


@scenario(seconds=200, full=True)
def rekey_by_the_peer(lab: Lab) -> None:
    """WireGuard's own timer: a new handshake after 120 s, answered by adit."""
    net = pair(lab)
    both = both_up(net, PEER, PRODUCT)
    ping(net.left, RIGHT)
    first = both[1].peer().latest_handshake
    pinger = net.left.start("ping", "-n", "-i", "0.2", "-c", "700", "-W", "2", RIGHT, log="ping")
    wait_until(lambda: connected(both[1], first), 140, "a second handshake")
    pinger.wait(60)
    expect(" 0% packet loss" in pinger.output(), f"no packet was lost: {pinger.output()[-200:]}")


@scenario(seconds=60)
def wg_show_and_set(lab: Lab) -> None:
    """The stock wg tool shows and changes an adit interface through the userspace socket."""
    net = pair(lab)
    left, right = both_up(net, PEER, PRODUCT, preshared_key())
    ping(net.left, RIGHT)
    name = right.name

    def show(what: str) -> str:
        return right.wg("show", name, what).out.strip()

    expect(name in right.wg("show", "interfaces").out.split(), "wg lists the interface")
    expect(show("public-key") == right.spec.keys.public, "its public key")
    expect(show("private-key") == right.spec.keys.private, "its private key")
    expect(show("listen-port") == str(PORT), "its port")
    state = right.peer()
    expect(state.public_key == left.spec.keys.public, "its peer")
    expect(state.preshared_key == left.spec.peers[0].preshared_key, "the peer's preshared key")
    expect(set(state.allowed_ips.split(",")) == {f"{LEFT}/32", f"{LEFT6}/128"}, "allowed IPs")

    settings = ("persistent-keepalive", "7", "allowed-ips", f"{LEFT}/32,10.20.0.0/16")
    right.set_peer(left.spec.keys.public, *settings)
    state = right.peer()
    expect(state.keepalive == "7", f"the new keepalive, not {state.keepalive}")
    expect(set(state.allowed_ips.split(",")) == {f"{LEFT}/32", "10.20.0.0/16"}, "new allowed IPs")
    ping(net.left, RIGHT)

    other = key_pair()
    settings = ("allowed-ips", "10.30.0.1/32", "endpoint", "192.0.2.99:1234")
    right.set_peer(other.public, *settings)
    peers = {peer.public_key: peer for peer in right.dump()}
    expect(peers[other.public].endpoint == "192.0.2.99:1234", "a peer was added")
    right.set_peer(other.public, "remove")
    expect(len(right.dump()) == 1, "and removed")

    move_port(net, left, right)
    change_key(net, left, right, key_pair())


def move_port(net: Pair, left: Tunnel, right: Tunnel) -> None:
    right.wg("set", right.name, "listen-port", "51999")
    left.set_peer(right.spec.keys.public, "endpoint", f"{net.right_address}:51999")
    ping(net.left, RIGHT, timeout=20)


def change_key(net: Pair, left: Tunnel, right: Tunnel, keys: KeyPair) -> None:
    right.wg("set", right.name, "private-key", "/dev/stdin", stdin=keys.private)
    left.set_peer(right.spec.keys.public, "remove")
    settings = ("allowed-ips", f"{RIGHT}/32", "endpoint", f"{net.right_address}:51999")
    psk = left.spec.peers[0].preshared_key
    left.set_peer(keys.public, *settings, "preshared-key", "/dev/stdin", stdin=psk)
    ping(net.left, RIGHT, timeout=20)


if __name__ == "__main__":
    sys.exit(main())
