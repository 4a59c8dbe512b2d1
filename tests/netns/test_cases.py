#!/usr/bin/env python3
"""Real-world cases by their numbers: hooks, files, reload, names, ports (20, 22 to 25).

Topology: `Pair` in lab/topology.py; left is adit, right is WireGuard.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lab import (
    LEFT,
    PORT,
    RIGHT,
    Adit,
    Lab,
    NameServer,
    Pair,
    PeerSpec,
    Side,
    TunnelSpec,
    WireGuard,
    difference,
    ends,
    expect,
    key_pair,
    main,
    pair,
    ping,
    progress,
    require_same,
    scenario,
    snapshot,
    specs,
    tool,
    wait_until,
)


def with_peer(net: Pair) -> Adit:
    """adit on the left, not yet up, and its peer on the right, up."""
    left_spec, right_spec = specs(f"{net.right_address}:{PORT}")
    right = ends.make(net.right, net.lab.device("r"), right_spec, Side(WireGuard))
    right.up()
    return Adit(net.left, net.lab.device("l"), left_spec)


@scenario(seconds=40)
def case_20_hooks(lab: Lab) -> None:
    """Each hook is a shell command of its own, in order; `#` stays; `%i` is the interface."""
    net = pair(lab)
    tunnel = with_peer(net)
    out = net.left.dir / "hooks"
    runtime = net.left.env["ADIT_RUNTIME_DIR"]
    name = tunnel.name
    tunnel.spec.extra += [
        f"PreUp = ip link show %i >/dev/null 2>&1 || echo preup no %i yet >>{out}",
        f'PostUp = echo %i "up #1" >>{out}; echo second >>{out}',
        f"PostUp = test -e /sys/class/net/%i && echo exists >>{out}",
        f"PostUp = echo $((1+1)) '%i' \"a;b\" >>{out}",
        f"PreDown = ip link show %i >/dev/null && echo still %i >>{out}",
        f"PreDown = ADIT_RUNTIME_DIR={runtime} {tool('ctl/cli/adit')} show %i listen-port >>{out}",
        "PreDown = exit 3",
        f"PostDown = ip link show %i >/dev/null 2>&1 || echo gone %i >>{out}",
        'PostDown = echo "unbalanced',
        f"PostDown = echo last >>{out}",
    ]
    tunnel.write()
    before = snapshot(net.left)
    tunnel.up()
    ping(net.left, RIGHT)
    wanted = [f"preup no {name} yet", f"{name} up #1", "second", "exists", f"2 {name} a;b"]
    expect(out.read_text().splitlines() == wanted, f"up hooks: {out.read_text()}")
    done = tunnel.cli("down", name, check=False)
    wanted += [f"still {name}", str(PORT), f"gone {name}", "last"]
    expect(out.read_text().splitlines() == wanted, f"down hooks: {out.read_text()}")
    expect("exit 3" in done.out + done.err, f"the failing hook is reported: {done}")
    require_same(before, snapshot(net.left), "down with failing hooks")


@scenario(seconds=40)
def case_20_failing_up_hook(lab: Lab) -> None:
    """A failing PostUp undoes everything; hooks after it do not run."""
    net = pair(lab)
    tunnel = with_peer(net)
    out = net.left.dir / "hooks"
    tunnel.spec.extra += [
        f"PostUp = echo one >>{out}",
        "PostUp = exit 7",
        f"PostUp = echo three >>{out}",
    ]
    tunnel.write()
    before = snapshot(net.left)
    done = tunnel.cli("up", str(tunnel.file), check=False)
    expect(done.code != 0 and "exit 7" in done.err, f"the hook is named: {done}")
    expect(out.read_text() == "one\n", f"hooks after the failing one do not run: {out.read_text()}")
    require_same(before, snapshot(net.left), "a failing PostUp")


@scenario(seconds=40)
def case_22_file_is_never_rewritten(lab: Lab) -> None:
    """An edit made while the interface is up is there after down and after the next up."""
    net = pair(lab)
    tunnel = with_peer(net)
    tunnel.up()
    ping(net.left, RIGHT)
    edited = "# my remark\n" + tunnel.file.read_text().replace(
        "[Peer]", "# the server at home\n[Peer]\nPersistentKeepalive = 17"
    )
    tunnel.file.write_text(edited)
    tunnel.down()
    expect(tunnel.file.read_text() == edited, "down leaves the file alone")
    tunnel.up()
    expect(tunnel.peer().keepalive == "17", "the edit is in force")
    tunnel.crash()
    tunnel.up()
    tunnel.down()
    expect(tunnel.file.read_text() == edited, "so do kill -9 and another up and down")


@scenario(seconds=60)
def case_23_reload(lab: Lab) -> None:
    """Reload brings addresses, routes and MTU in line, keeps the session, and repeats nothing."""
    net = pair(lab)
    tunnel = with_peer(net)
    tunnel.up()
    ping(net.left, RIGHT)
    handshake = tunnel.peer().latest_handshake
    pinger = net.left.start("ping", "-n", "-i", "0.1", "-c", "40", "-I", LEFT, RIGHT, log="ping")
    tunnel.spec.addresses.append("10.10.0.12/32")
    tunnel.spec.addresses.remove("fd10::1/64")
    tunnel.spec.peers[0].allowed_ips += ", 192.168.50.0/24"
    tunnel.spec.mtu = 1380
    tunnel.write()
    progress(tunnel.cli("reload", tunnel.name).out.strip())
    addresses = net.left.ip("-brief", "address", "show", tunnel.name).out
    expect("10.10.0.12/32" in addresses and "fd10::1" not in addresses, f"addresses: {addresses}")
    route = net.left.ip("route", "get", "192.168.50.7").out
    expect(tunnel.name in route, f"a route for the new prefix: {route}")
    expect("mtu 1380" in net.left.ip("link", "show", tunnel.name).out, "the new MTU")
    expect("192.168.50.0/24" in tunnel.peer().allowed_ips, "the new allowed IP")
    pinger.wait(20)
    expect(" 0% packet loss" in pinger.output(), f"nothing was lost: {pinger.output()[-200:]}")
    expect(tunnel.peer().latest_handshake == handshake, "the session was kept")
    settled = snapshot(net.left)
    again = tunnel.cli("reload", tunnel.name)
    require_same(settled, snapshot(net.left), "a second reload")
    expect("nothing changed" in again.out, f"a second reload says so: {again}")
    reload_refuses(net, tunnel)


def reload_refuses(net: Pair, tunnel: Adit) -> None:
    """A wrong file changes nothing; what was removed by hand comes back with the next reload."""
    good, settled = tunnel.file.read_text(), snapshot(net.left)
    tunnel.file.write_text(good + "Wrong = 1\n")
    done = tunnel.cli("reload", tunnel.name, check=False)
    expect(done.code != 0 and ".conf:" in done.err, f"the wrong line is named: {done}")
    require_same(settled, snapshot(net.left), "reload of a wrong file")
    tunnel.file.write_text(good)
    net.left.ip("address", "del", "10.10.0.12/32", "dev", tunnel.name)
    net.left.ip("route", "del", "192.168.50.0/24")
    tunnel.cli("reload", tunnel.name)
    changes = difference(settled, snapshot(net.left))
    expect(not changes, f"reload repairs what was changed by hand: {changes}")


@scenario(seconds=90)
def case_24_unresolvable_endpoint(lab: Lab) -> None:
    """One name that does not resolve: the rest works at once, the name is tried again."""
    net = pair(lab)
    names = NameServer(net.left)
    tunnel = with_peer(net)
    late_keys = key_pair()
    tunnel.spec.peers.append(
        PeerSpec(late_keys.public, "10.10.0.3/32", name="late", endpoint="late.example.net:51999")
    )
    tunnel.write()
    tunnel.up()
    ping(net.left, RIGHT, timeout=5)

    def unresolved() -> bool:
        return "late.example.net:51999" in str(tunnel.status()["peers"])

    wait_until(unresolved, 10, "status shows the unresolved name")
    wait_until(lambda: names.questions("late.example.net") >= 2, 30, "the name is tried again")
    names.set("late.example.net", net.right_address)

    def arrived() -> bool:
        peers = {peer.public_key: peer for peer in tunnel.dump()}
        return peers[late_keys.public].endpoint == f"{net.right_address}:51999"

    wait_until(arrived, 70, "the name is resolved in the background")
    tunnel.down()


@scenario(seconds=60)
def case_24_no_name_server(lab: Lab) -> None:
    """No name server answers at all: up does not wait for it."""
    net = pair(lab)
    folder = Path("/etc/netns") / net.left.full_name
    folder.mkdir(parents=True)
    (folder / "resolv.conf").write_text("nameserver 192.0.2.250\n")
    tunnel = with_peer(net)
    tunnel.spec.peers.append(
        PeerSpec(key_pair().public, "10.10.0.3/32", endpoint="late.example.net:51999")
    )
    tunnel.write()
    done = net.left.run(tool("ctl/cli/adit"), "up", str(tunnel.file), timeout=4)
    progress(done.err.strip())
    ping(net.left, RIGHT, timeout=5)
    tunnel.down()


@scenario(seconds=40)
def case_25_port_taken(lab: Lab) -> None:
    """Two interfaces, one port: the second is refused, names port and holder; the first stays."""
    net = pair(lab)
    first = with_peer(net)
    first.up()
    ping(net.left, RIGHT)
    settled = snapshot(net.left)
    spec = TunnelSpec(key_pair(), ["10.20.0.1/24"], listen_port=PORT)
    second = Adit(net.left, lab.device("s"), spec)
    done = second.cli("up", str(second.file), check=False)
    expect(done.code != 0, "it is refused")
    # In the kernel's data plane the port is the kernel's own.
    holder = "the kernel" if first.status()["backend"] == "kernel" else "aditd"
    expect(str(PORT) in done.err and holder in done.err, f"port and holder are named: {done}")
    require_same(settled, snapshot(net.left), "the second interface")
    ping(net.left, RIGHT)
    spec.listen_port = 51830
    spec.maps.append(["Listen = udp/51830", "To = 10.20.0.2"])
    spec.peers.append(PeerSpec(key_pair().public, "10.20.0.2/32"))
    second.write()
    done = second.cli("up", str(second.file), check=False)
    expect(done.code != 0 and "51830" in done.err, f"no mapping of the own port: {done}")
    require_same(settled, snapshot(net.left), "a mapping of the tunnel's own port")


if __name__ == "__main__":
    sys.exit(main())
