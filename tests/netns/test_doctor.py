#!/usr/bin/env python3
"""`adit doctor` names what is wrong: each scenario makes one condition.

Topologies: `Pair`, `Crossroads` and `Home` in lab/topology.py.
"""

from __future__ import annotations

import json
import os
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
    Namespace,
    Side,
    WebServer,
    adit,
    crossroads,
    ends,
    expect,
    iperf,
    key_pair,
    main,
    pair,
    ping,
    preshared_key,
    progress,
    relayed,
    scenario,
    specs,
    tool,
    wait_until,
)
from lab.doctor import ADVICE, doctor, finds, ids
from lab.served import served_home

# Who drops it is a router that says nothing: a black hole.
BLACK_HOLE = """
table ip path {
  chain forward {
    type filter hook forward priority filter
    ip protocol udp meta length > 1400 drop
  }
}
"""
BLACK_HOLE_MTU = 1400
# Bytes that IPv4, UDP and a message's own header and tag take.
OVERHEAD = 60


def both(lab: Lab, keepalive: int = 1) -> tuple[Adit, Adit]:
    """Two ends on one cable, down; the left one calls by itself."""
    net = pair(lab)
    left_spec, right_spec = specs(f"{net.right_address}:{PORT}")
    left_spec.peers[0].keepalive = keepalive
    return (
        Adit(net.left, lab.device("l"), left_spec),
        Adit(net.right, lab.device("r"), right_spec),
    )


def start(*tunnels: Adit) -> None:
    for tunnel in tunnels:
        tunnel.write()
        tunnel.up()


def over_router(lab: Lab) -> tuple[Namespace, Adit, Adit]:
    """Two ends with a router between them, and a session."""
    net = crossroads(lab)
    left, right = ends.both_up(
        lab, (net.left, Side()), (net.right, Side()), f"{net.right_address}:{PORT}"
    )
    ping(net.left, RIGHT)
    if not isinstance(left, Adit) or not isinstance(right, Adit):
        raise TypeError("only adit has a doctor")
    return net.middle, left, right


@scenario(seconds=60)
def healthy(lab: Lab) -> None:
    """Nothing is wrong: exit status 0, quickly, and nothing is sent unasked."""
    left, right = both(lab)
    start(right, left)
    wait_until(left.suite, 20, "a session")
    for tunnel in (left, right):
        before = tunnel.status()["peers"][0]["tx_bytes"]
        started = time.monotonic()
        report = doctor(tunnel)
        expect(time.monotonic() - started < 10, "it is quick")
        expect(report["healthy"] and not ids(report), f"{tunnel.name}: {report}")
        sent = tunnel.status()["peers"][0]["tx_bytes"] - before
        expect(sent < 1000, f"passive: {sent} bytes were sent meanwhile")
        report = doctor(tunnel, "--probe")
        expect(report["healthy"] and report["probed"], f"nor do probes find anything: {report}")
    text = left.cli("doctor", left.name).out
    expect(f"healthy: this machine, {left.name}" in text, f"for a person: {text}")


@scenario(seconds=60)
def without_a_tunnel(lab: Lab) -> None:
    """The machine alone; a file whose interface is not up; a name that is none; other users."""
    left, _right = both(lab)
    where = left.where
    report = json.loads(adit(where, "doctor", "--json").out)
    expect(report["healthy"] and report["interfaces"] == [], f"no interface is up: {report}")
    done = left.cli("doctor", str(left.file), "--json", check=False)
    down = json.loads(done.out)["findings"][0]
    expect(done.code == 1 and down["id"] == "interface-down", f"it is not up: {done}")
    done = adit(where, "doctor", "nothing0", check=False)
    expect(done.code == 2 and "nothing0" in done.err, f"an error is not a finding: {done}")
    done = adit(where, "doctor", "--bandwidth", "fast", check=False)
    expect(done.code == 2 and "fast" in done.err, f"so is a wrong option: {done}")
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tool("ctl/cli/adit"))
    done = where.run(*nobody, "doctor", check=False)
    expect(done.code == 0 and "healthy" in done.out, f"without root: {done}")
    done = where.run(*nobody, "doctor", "--probe", check=False)
    expect(done.code == 2 and "root" in done.err, f"probes need root: {done}")


@scenario(seconds=90)
def path_mtu_black_hole(lab: Lab) -> None:
    """Large packets vanish without a word (case 50); what doctor says mends it."""
    middle, left, right = over_router(lab)
    for end in (left, right):
        # On a wire there are single datagrams; the rule would see several as one large packet.
        end.where.run("ethtool", "-K", "eth0", "tx-udp-segmentation", "off", "gso", "off")
    middle.nft(BLACK_HOLE)
    finding = finds(left, "path-mtu-black-hole", "--probe")
    mtu = int(finding["remedy"].split("MTU = ")[1].split()[0])
    fits = BLACK_HOLE_MTU - OVERHEAD
    expect(fits - 16 < mtu <= fits, f"what fits is {fits}, less the padding: {finding}")
    for tunnel in (left, right):
        tunnel.spec.mtu = mtu
        tunnel.write()
        tunnel.cli("reload", tunnel.name)
    report = doctor(left, "--probe")
    expect(report["healthy"], f"mended: {report}")


@scenario(seconds=60)
def path_mtu_of_a_router(lab: Lab) -> None:
    """A router has a smaller MTU and says so; and the same on the own route, without probes."""
    middle, left, right = over_router(lab)
    middle.ip("link", "set", "right0", "mtu", "1400")
    right.where.ip("link", "set", "eth0", "mtu", "1400")
    finding = finds(left, "path-mtu-small", "--probe")
    expect("MTU = 1340" in finding["remedy"], f"{finding}")
    left.spec.mtu = 1420
    left.write()
    left.cli("reload", left.name)
    left.where.ip("route", "replace", "default", "via", "192.0.2.254", "mtu", "1380")
    finding = finds(left, "path-mtu-small")
    expect("MTU = 1320" in finding["remedy"], f"{finding}")


@scenario(seconds=60)
def wrong_public_key(lab: Lab) -> None:
    """The caller has another key for us: the side that is called can tell."""
    left, right = both(lab)
    left.spec.peers[0].public_key = key_pair().public
    start(right, left)
    finding = finds(right, "handshake-wrong-key", seconds=20)
    expect("public-key" in finding["remedy"], f"{finding}")
    # The caller only hears nothing; its probe tells that the host is up.
    finding = finds(left, "handshake-silent", "--probe", seconds=20)
    expect("host is up" in finding["sentence"], f"{finding}")


@scenario(seconds=60)
def unknown_key(lab: Lab) -> None:
    left, right = both(lab)
    left.spec.keys = key_pair()
    start(right, left)
    finding = finds(right, "handshake-unknown-key", seconds=20)
    expect(left.spec.keys.public in finding["evidence"], f"the key is named: {finding}")


@scenario(seconds=60)
def preshared_key_on_one_side(lab: Lab) -> None:
    left, right = both(lab)
    left.spec.peers[0].preshared_key = preshared_key()
    start(right, left)
    finds(left, "handshake-preshared-key", seconds=20)


@scenario(seconds=60)
def clock_behind(lab: Lab) -> None:
    """A machine whose clock went back and whose state is lost (case 28): the peer tells."""
    left, right = both(lab)
    left.env["ADIT_TEST_REALTIME_OFFSET_S"] = "86400"
    start(right, left)
    wait_until(left.suite, 20, "a session")
    left.down()
    state = left.where.dir / "state"
    left.where.run("rm", "-rf", str(state))
    left.env.clear()
    start(left)
    finding = finds(right, "handshake-clock-behind", seconds=30)
    expect("timedatectl" in finding["remedy"], f"{finding}")
    # Its own clock is behind the time of its file.
    later = time.time() + 2 * 86400
    os.utime(right.file, (later, later))
    finds(right, "own-clock-behind")


@scenario(seconds=60)
def nobody_listens(lab: Lab) -> None:
    """The peer's daemon is down: its kernel says so."""
    left, _right = both(lab)
    start(left)
    finding = finds(left, "handshake-port-closed", "--probe", seconds=20)
    expect("adit up" in finding["remedy"], f"{finding}")


@scenario(seconds=60)
def port_is_blocked(lab: Lab) -> None:
    """A firewall rejects, then drops, the tunnel's port; on its own host its chain is named."""
    left, right = both(lab)
    right.where.nft(
        "table inet guard { chain input { type filter hook input priority filter; policy drop;\n"
        "meta l4proto icmp accept\n"
        f"udp dport {PORT} reject with icmpx admin-prohibited\n}}\n}}\n"
    )
    start(right, left)
    finds(left, "handshake-port-blocked", "--probe", seconds=20)
    right.where.nft("flush chain inet guard input")
    right.where.nft("add rule inet guard input meta l4proto icmp accept")
    finding = finds(left, "handshake-silent", "--probe", seconds=10)
    expect(f"udp/{PORT} is blocked" in finding["sentence"], f"{finding}")
    finding = finds(right, "firewall-drops")
    expect("chain input of table inet guard" in finding["sentence"], f"{finding}")
    expect(str(PORT) in finding["remedy"], f"{finding}")
    right.where.run("sh", "-ec", finding["remedy"].strip("`"))
    wait_until(left.suite, 20, "a session, once the remedy was run")


@scenario(seconds=90)
def nat_forgot_the_flow(lab: Lab) -> None:
    """What the server sends to where it heard the peer last is dropped there, as by a NAT."""
    left, right = both(lab, keepalive=0)
    start(right, left)
    ping(left.where, RIGHT)
    left.where.nft(
        "table inet nat { chain input { type filter hook input priority filter;\n"
        f"udp dport {PORT} drop\n}}\n}}\n"
    )
    right.where.start("ping", "-n", "-q", "-i", "0.5", LEFT, log="ping")
    finding = finds(right, "nat-rebinding", seconds=45)
    expect("PersistentKeepalive = 25" in finding["remedy"], f"{finding}")


@scenario(seconds=60)
def keepalive(lab: Lab) -> None:
    """On the wrong side, and missing behind a NAT."""
    left, right = both(lab)
    right.spec.peers[0].keepalive = 25
    start(right, left)
    wait_until(left.suite, 20, "a session")
    finds(right, "keepalive-wrong-side")
    expect(not ids(doctor(left)), "the side that calls has it rightly")

    net, server, nas = served_home(lab)
    expect(not ids(doctor(nas)) & {"keepalive-missing"}, "the NAS has one")
    nas.spec.peers[0].keepalive = 0
    nas.write()
    nas.cli("reload", nas.name)
    finding = finds(nas, "keepalive-missing")
    expect(net.server_address in finding["evidence"], f"{finding}")
    expect("keepalive-missing" not in ids(doctor(server)), "the server is called")


def set_table(nas: Adit, table: str) -> None:
    nas.spec.extra[:] = [f"Table = {table}" if "Table" in line else line for line in nas.spec.extra]
    nas.write()
    nas.cli("reload", nas.name)


@scenario(seconds=90)
def mappings(lab: Lab) -> None:
    """The service refuses, the reply path is missing, a firewall's chain drops."""
    net, server, nas = served_home(lab)
    set_table(nas, "off")
    # Without a probe, clients show it: nothing has ever come back.
    for _ in range(3):
        net.client.run(
            "curl", "-s", "-m", "2", f"http://{net.server_address}:18080/file", check=False
        )
    finds(server, "map-no-answer", seconds=10)
    set_table(nas, "reply")
    finding = finds(server, "map-service-refused", "--probe")
    expect("tcp/1808" in finding["sentence"], f"{finding}")
    WebServer(net.nas, mebibytes=0.1)
    left_over = [f for f in doctor(server, "--probe")["findings"] if "tcp/18080" in f["sentence"]]
    expect(not left_over, f"with the service all is well: {left_over}")

    set_table(nas, "off")
    finds(server, "map-no-reply-path", "--probe")
    set_table(nas, "reply")

    server.where.nft(
        "table inet other { chain everything {\n"
        "type filter hook forward priority filter; policy drop;\n}\n}\n"
    )
    finding = finds(server, "firewall-drops")
    expect("chain everything of table inet other" in finding["sentence"], f"{finding}")


@scenario(seconds=60)
def mapped_service_of_this_host(lab: Lab) -> None:
    """On the NAS, without a packet: nothing listens on a port that it asks the server for."""
    net, _server, nas = served_home(lab)
    nas.spec.maps = [["Listen = tcp/8000", "To = 10.10.0.2:80"]]
    nas.write()
    nas.cli("reload", nas.name)
    finding = finds(nas, "service-not-listening")
    expect("tcp/80" in finding["sentence"], f"{finding}")
    WebServer(net.nas, mebibytes=0.1)
    wait_until(lambda: "service-not-listening" not in ids(doctor(nas)), 10, "it listens")


@scenario(seconds=90, heavy=True)
def policed_udp(lab: Lab) -> None:
    """A provider limits each UDP flow and leaves ICMP alone."""
    middle, left, _right = over_router(lab)
    middle.nft(
        "table ip isp { chain forward { type filter hook forward priority filter;\n"
        "ip protocol udp limit rate over 500 kbytes/second burst 50 kbytes drop\n}\n}\n"
    )
    finding = finds(left, "udp-policed", "--probe")
    expect("Mbit/s" in finding["sentence"], f"{finding}")
    middle.nft("delete table ip isp")
    middle.nft(
        "table ip line { chain forward { type filter hook forward priority filter;\n"
        "limit rate over 500 kbytes/second burst 50 kbytes drop\n}\n}\n"
    )
    finds(left, "path-slow", "--probe")


@scenario(seconds=120, heavy=True)
def before_and_after(lab: Lab) -> None:
    """Small buffers, the wrong congestion control and 80 ms: doctor names them, what it says is run
    as it stands, and iperf3 shows the gain."""
    net = relayed(lab)
    net.relay("--delay", "40")
    net.left.default_via(net.relay_address)
    net.right.default_via("198.51.100.254")
    for where in (net.left, net.right):
        where.sysctl("net.ipv4.tcp_rmem", "4096 65536 131072")
        where.sysctl("net.ipv4.tcp_wmem", "4096 16384 131072")
        where.sysctl("net.ipv4.tcp_congestion_control", "reno")
    left, right = ends.both_up(
        lab, (net.left, Side()), (net.right, Side()), f"{net.relay_address}:{net.port}"
    )
    if not isinstance(left, Adit) or not isinstance(right, Adit):
        raise TypeError("only adit has a doctor")
    ping(net.left, RIGHT)
    IperfServer(net.right)
    before = iperf(net.left, RIGHT, seconds=5).mbps
    finding = finds(left, "tcp-buffers", "--probe", "--bandwidth", "100mbit")
    found = ids(doctor(left, "--probe", "--bandwidth", "100mbit"))
    expect({"tcp-buffers", "congestion-control"} <= found, f"both are named: {found}")
    delay = int(finding["remedy"].split("--delay ")[1].split("ms")[0])
    expect(80 <= delay < 200, f"the delay was measured: {finding}")
    command = finding["remedy"].split("`")[1].removeprefix("adit ").split()
    for tunnel in (left, right):
        tunnel.cli(*command)
    found = ids(doctor(left, "--probe", "--bandwidth", "100mbit"))
    expect(not found & {"tcp-buffers", "congestion-control"}, f"mended: {found}")
    after = iperf(net.left, RIGHT, seconds=5).mbps
    progress(f"one TCP stream: {before:.1f} Mbit/s before, {after:.1f} Mbit/s after `adit tune`")
    expect(before < 12, f"a window of 64 KiB every 80 ms carries 6.6 Mbit/s: {before}")
    expect(after > 3 * before, f"{before} Mbit/s before, {after} after")
    left.cli("tune", "revert")
    expect("tcp-buffers" in ids(doctor(left, "--probe", "--bandwidth", "100mbit")), "and back")


def recorded(where: Namespace, name: str, files: dict[str, str]) -> dict[str, Any]:
    """What doctor says of a machine of which these files were recorded."""
    folder = where.dir / name
    base = {"proc/sys/kernel/osrelease": "6.1.0-9-amd64", **files}
    for path, content in base.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if content.endswith("\0") else content + "\n")
    done = adit(where, "doctor", "--root", str(folder), "--json", check=False)
    report: dict[str, Any] = json.loads(done.out)
    expect(done.code == (0 if report["healthy"] else 1), f"status and report agree: {done}")
    return report


@scenario(seconds=60)
def recorded_machines(lab: Lab) -> None:
    """Conditions that cannot be made here, from recorded files."""
    where = lab.namespace("host")
    table = {
        "proc/sys/net/netfilter/nf_conntrack_count": "65500",
        "proc/sys/net/netfilter/nf_conntrack_max": "65536",
    }
    expect("conntrack-full" in ids(recorded(where, "full", table)), "the table is full")
    table["proc/sys/net/netfilter/nf_conntrack_count"] = "100"
    expect("conntrack-full" not in ids(recorded(where, "free", table)), "it is not")
    report = recorded(where, "cubic", {"proc/sys/net/ipv4/tcp_congestion_control": "cubic"})
    expect("congestion-control" in ids(report, ADVICE), f"{report}")
    busy = {"proc/net/softnet_stat": "000f4240 00001000 00000000 0 0 0 0 0 0 0 0 0 0"}
    expect("backlog-drops" in ids(recorded(where, "busy", busy)), "queues overflow")


@scenario(seconds=60)
def recorded_modules(lab: Lab) -> None:
    """Why adit.ko is not loaded: absent, without headers, another kernel's, Secure Boot."""
    where = lab.namespace("host")
    tree = "lib/modules/6.1.0-9-amd64"
    listed = {f"{tree}/modules.dep": "updates/dkms/adit.ko:"}
    right = "vermagic=6.1.0-9-amd64 SMP preempt mod_unload modversions \0"
    secure = {"sys/kernel/security/lockdown": "none [integrity] confidentiality"}
    cases = {
        "module-not-installed": {},
        "module-headers": {"usr/src/adit-0.1.0/dkms.conf": ""},
        "module-not-built": {
            "usr/src/adit-0.1.0/dkms.conf": "",
            f"{tree}/build/Makefile": "",
        },
        "module-vermagic": {
            **listed,
            f"{tree}/updates/dkms/adit.ko": right.replace("-9-", "-7-"),
        },
        "module-secure-boot": {**listed, **secure, f"{tree}/updates/dkms/adit.ko": right},
        "module-disabled": {
            **listed,
            f"{tree}/updates/dkms/adit.ko": right,
            "proc/sys/kernel/modules_disabled": "1",
        },
    }
    for wanted, files in cases.items():
        found = {name for name in ids(recorded(where, wanted, files), ADVICE) if "module" in name}
        progress(f"{wanted}: {found}")
        expect(found == {wanted}, f"{wanted} is told from the others: {found}")
    loaded = {**listed, "sys/module/adit/version": "0.1.0"}
    expect(not ids(recorded(where, "loaded", loaded), ADVICE), "it is loaded")


if __name__ == "__main__":
    sys.exit(main())
