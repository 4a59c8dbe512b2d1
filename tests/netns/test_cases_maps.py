#!/usr/bin/env python3
"""Real-world cases by their numbers: mappings, reply paths, other firewalls (33 to 52).

Topology: `Home` in lab/topology.py. What needs no tunnel is in tests/unit/nat and tests/unit/config
under the same numbers.
"""

from __future__ import annotations

import json
import sys
import time

from lab import (
    PORT,
    Adit,
    Home,
    Lab,
    PeerSpec,
    TunnelSpec,
    WebServer,
    expect,
    home,
    key_pair,
    link,
    main,
    ping,
    progress,
    scenario,
    tool,
    wait_until,
)
from lab.served import echoes, fetches, served_home
from lab.source_echo import ask_from, source_echo
from lab.udp_service import udp_service

ACCEPT_ALL = """
table ip other {
  chain forward { type filter hook forward priority 0; policy accept; ct state invalid counter
  }
}
"""
DROP_INPUT = """
table inet fw {
  chain in {
    type filter hook input priority 0; policy drop;
  }
}
"""
DROP_FORWARD = """
table ip filter {
  chain FORWARD {
    type filter hook forward priority filter; policy drop;
    ct state established,related accept
  }
}
"""


def reload(tunnel: Adit) -> str:
    tunnel.write()
    return tunnel.cli("reload", tunnel.name).out


def checked(tunnel: Adit, *args: str) -> dict[str, dict[str, str]]:
    """What `adit map check` says, by mapping."""
    done = tunnel.cli("map", "check", tunnel.name, "--json", *args, check=False)
    return {entry["listen"]: entry for entry in json.loads(done.out)["maps"]}


@scenario(seconds=60)
def case_33_from_outside(lab: Lab) -> None:
    """A connection from outside works, and the check with a stranger's packet says so; when the way
    back on the NAS is missing, the check names that leg although the server itself gets answers."""
    net, server, nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    expect(fetches(net, 18080) == web.sha256, "a client outside gets the file")
    entry = checked(server, "tcp/18080")["tcp/18080"]
    expect(entry["ok"], f"the check agrees: {entry}")
    nas.spec.extra[:] = ["Table = off" if "Table" in line else line for line in nas.spec.extra]
    reload(nas)
    expect(fetches(net, 18080, timeout=2) is None, "without the reply path nothing comes back")
    entry = checked(server, "tcp/18080")["tcp/18080"]
    progress(str(entry))
    expect(entry.get("leg") == "reply path", f"the check names the leg: {entry}")
    entry = checked(server, "tcp/18081")["tcp/18081"]
    expect(entry["ok"], f"the mapping that hides clients works: {entry}")
    web.stop()
    entry = checked(server, "tcp/18081")["tcp/18081"]
    expect(entry.get("leg") == "service", f"a service that is not there: {entry}")
    nas.down()
    entry = checked(server, "tcp/18081")["tcp/18081"]
    expect(entry.get("leg") in ("target", "tunnel"), f"a NAS that is not there: {entry}")


@scenario(seconds=60)
def case_34_split_tunnel(lab: Lab) -> None:
    """The client's address is kept, and the NAS's own traffic stays at home."""
    net, _server, nas = served_home(lab)
    source_echo(net.nas, ["tcp/80"])
    answers = ask_from(net.client, [f"tcp/{net.server_address}/18080"])
    expect(list(answers.values()) == [net.client_address], f"the real address: {answers}")
    route = net.nas.ip("route", "get", net.client_address).out
    expect("192.168.50.1" in route, f"own traffic takes the home router: {route}")
    nas.spec.peers[0].allowed_ips = "10.10.0.1/32"
    nas.write()
    done = nas.cli("reload", nas.name, check=False)
    expect(done.code != 0 and "too narrow" in done.err, f"narrow AllowedIPs are an error: {done}")


@scenario(seconds=60)
def case_35_lan_host_with_another_gateway(lab: Lab) -> None:
    """A LAN host whose gateway is the home router: masked on the NAS, it answers; the NAS says
    when that may be needed."""
    net, server, nas = served_home(lab)
    host = lab.namespace("tv")
    net.home.ip("link", "add", "br0", "type", "bridge")
    net.home.ip("link", "set", "br0", "up")
    net.home.ip("address", "flush", "dev", "lan")
    net.home.address("br0", "192.168.50.1/24")
    net.home.ip("link", "set", "lan", "master", "br0")
    link((net.home, "lan2"), (host, "eth0"))
    net.home.ip("link", "set", "lan2", "master", "br0")
    for way in ("wan", "br0"):
        net.home.nft(f'insert rule ip home forward iifname "br0" oifname "{way}" accept')
    host.address("eth0", "192.168.50.20/24")
    host.default_via("192.168.50.1")
    source_echo(host, ["tcp/443", "udp/443"])
    udp_service(host, "0.0.0.0", 444)
    server.spec.peers[0].allowed_ips += ", 192.168.50.0/24"
    server.spec.maps = [
        ["Listen = tcp/8443", "To = 192.168.50.20:443"],
        ["Listen = udp/8443", "To = 192.168.50.20:443"],
        ["Listen = udp/8444", "To = 192.168.50.20:444"],
    ]
    reload(server)
    nas.spec.maps = [list(entry) for entry in server.spec.maps]
    reload(nas)
    ping(net.nas, "192.168.50.20")
    targets = [f"{protocol}/{net.server_address}/8443" for protocol in ("tcp", "udp")]
    answers = ask_from(net.client, targets, seconds=1)
    expect(set(answers.values()) == {None}, f"its answers go home: {answers}")
    reasons = [entry.get("reason", "") for entry in nas.status()["maps"]]
    expect(all("Source = masquerade" in reason for reason in reasons), f"it is said: {reasons}")
    entry = checked(server, "tcp/8443")["tcp/8443"]
    expect(entry.get("leg") in ("target", "reply path"), f"the check names the leg: {entry}")
    expect("Source = masquerade" in entry["detail"], f"and what helps: {entry}")
    # Open from before: its next datagram is masked too.
    def tracked() -> int:
        entries = net.nas.run("cat", "/proc/net/nf_conntrack").out.splitlines()
        return sum(" udp " in e and "dst=192.168.50.20 " in e for e in entries)

    before = tracked()
    argv = (tool("tests/peers/pingpong"), f"{net.server_address}:8444", "--seconds", "12")
    flow = net.client.start(*argv, log="flow")
    wait_until(lambda: tracked() > before, 5, "the NAS has it")
    for entry_lines in nas.spec.maps:
        entry_lines.append("Source = masquerade")
    reload(nas)
    answers = ask_from(net.client, targets)
    expect(set(answers.values()) == {net.nas_address}, f"masked by the NAS: {answers}")
    flow.wait(30)
    expect('"count"' in flow.output(), f"the open flow is answered: {flow.output()}")


@scenario(seconds=60)
def case_37_catch_all(lab: Lab) -> None:
    """A catch-all of UDP leaves the tunnel's own port; one of TCP over SSH needs Override."""
    net, server, nas = served_home(lab)
    server.spec.maps = [["Listen = udp/1-65535", "To = nas"]]
    reload(server)
    handshake = server.peer().latest_handshake
    udp_service(net.nas, "0.0.0.0", 9999)
    expect(echoes(net.client, net.server_address, 9999), "any port is mapped")
    nas.down()  # a killed daemon's session would go on in the kernel
    nas.up()
    wait_until(lambda: server.peer().latest_handshake > handshake, 20, "a new handshake arrives")
    source_echo(net.server, ["tcp/22"])
    server.spec.maps.append(["Listen = tcp/1-65535", "To = nas"])
    server.write()
    done = server.cli("reload", server.name, check=False)
    progress(done.err.strip())
    expect(done.code != 0 and "Override" in done.err, f"SSH is not taken: {done}")
    answers = ask_from(net.client, [f"tcp/{net.server_address}/22"])
    expect(None not in answers.values(), "SSH answers as before")


@scenario(seconds=60)
def case_39_shifted_range(lab: Lab) -> None:
    """Each port of a shifted range reaches its own, also for a second flow, also after reload."""
    net, server, _nas = served_home(lab)
    server.spec.maps = [["Listen = udp/5000-5009", "To = nas:6000"]]
    reload(server)
    services = {port: udp_service(net.nas, "0.0.0.0", port) for port in (6000, 6003, 6009)}
    for _round in range(2):
        for port, service in services.items():
            before = service.output().count(net.client_address)
            expect(echoes(net.client, net.server_address, port - 1000), f"{port - 1000} answers")
            expect(service.output().count(net.client_address) > before, f"it is {port} that did")
        reload(server)


@scenario(seconds=60)
def case_40_overlap(lab: Lab) -> None:
    """Overlapping mappings are refused with both lines, and the old ones stay in force."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    rules = net.server.run("nft", "-a", "list", "table", "inet", f"adit_{server.name}").out
    server.spec.maps += [
        ["Listen = tcp/8000-8100", "To = nas"],
        ["Listen = udp/8080", "To = nas"],
        ["Listen = tcp/8080", "To = nas:80"],
    ]
    server.write()
    done = server.cli("reload", server.name, check=False)
    progress(done.err.strip())
    expect(done.code != 0 and "tcp/8080 overlaps tcp/8000-8100" in done.err, f"refused: {done}")
    expect(done.err.count("overlaps") == 1, "tcp and udp do not conflict")
    after = net.server.run("nft", "-a", "list", "table", "inet", f"adit_{server.name}").out
    expect(after == rules, "the rules in the kernel are the same")
    expect(fetches(net, 18080) == web.sha256, "and work")
    server.spec.maps = server.spec.maps[:-1]
    reload(server)
    for bad in ("tcp/0", "tcp/70000", "tcp/20-10", "udp/60000-65535 nas:2000-2001"):
        listen, *to = bad.split()
        done = server.cli("map", "add", str(server.file), listen, *(to or ["nas"]), check=False)
        expect(done.code != 0 and "error:" in done.err, f"{bad} is refused: {done}")
    done = server.cli("map", "add", str(server.file), "tcp/9000", "nobody", check=False)
    expect('no peer is called "nobody"' in done.err, f"an unknown peer: {done}")


@scenario(seconds=60)
def case_41_next_packet_obeys(lab: Lab) -> None:
    """A steady UDP sender: mapped, moved to another port, unmapped, mapped again."""
    net, server, _nas = served_home(lab)
    for port in (5000, 7000, 7001):
        udp_service(net.nas, "0.0.0.0", port)
    argv = (tool("tests/peers/pingpong"), f"{net.server_address}:7100", "--seconds", "30")
    net.client.start(*argv, log="flow")
    other = net.client.start(
        *(tool("tests/peers/pingpong"), f"{net.server_address}:5000", "--seconds", "10"), log="other"
    )

    def translated_to(port: int) -> bool:
        flows = net.server.run("cat", "/proc/net/nf_conntrack").out.splitlines()
        ours = [line for line in flows if "dport=7100" in line]
        return bool(ours) and all(f"src=10.10.0.2 dst={net.client_address} sport={port}" in line
                                  for line in ours)

    static = server.spec.maps
    for target in ("nas:7000", "nas:7001", None, "nas:7000"):
        server.spec.maps = static + ([["Listen = udp/7100", f"To = {target}"]] if target else [])
        reload(server)
        if target:
            wait_until(lambda: translated_to(int(target[-4:])), 1, f"the next packet goes {target}")
        else:
            flows = net.server.run("cat", "/proc/net/nf_conntrack").out
            mapped = [f for f in flows.splitlines() if "dport=7100" in f and "src=10.10" in f]
            expect(not mapped, f"the next packet is not mapped: {mapped}")
    other.wait(20)
    lost = json.loads(other.output())["lost"]
    expect(lost <= 1, f"the flow of another mapping lost {lost}")


@scenario(seconds=60)
def case_42_public_address_from_inside(lab: Lab) -> None:
    """With Hairpin the server and the NAS reach the public address; outside nobody is hidden."""
    net, server, _nas = served_home(lab)
    source_echo(net.nas, ["tcp/80"])
    target = f"tcp/{net.server_address}/18080"
    expect(ask_from(net.server, [target], 1)[target] is None, "without Hairpin: not from the server")
    server.spec.maps = [["Listen = tcp/18080", "To = nas:80", "Hairpin = on"]]
    reload(server)
    expect(ask_from(net.server, [target])[target] is not None, "the server itself")
    net.nas.ip("route", "add", net.server_address, "dev", _nas.name)
    # The tunnel's own datagrams keep their way.
    net.nas.ip("rule", "add", "ipproto", "udp", "dport", str(PORT), "lookup", "99", "priority", "9")
    net.nas.ip("route", "add", "default", "via", "192.168.50.1", "table", "99")
    expect(ask_from(net.nas, [target])[target] == "10.10.0.1", "the NAS, through the tunnel")
    expect(ask_from(net.client, [target])[target] == net.client_address, "a client is not hidden")


@scenario(seconds=60)
def case_43_boot_order(lab: Lab) -> None:
    """Up without any network: no address, no public NIC. The mappings hold when they appear."""
    net = home(lab)
    keys = key_pair()
    net.server.ip("link", "set", "eth0", "down")
    net.server.ip("address", "flush", "dev", "eth0")
    spec = TunnelSpec(
        key_pair(),
        ["10.10.0.1/24"],
        listen_port=PORT,
        extra=["Public = eth0"],
        peers=[PeerSpec(keys.public, "10.10.0.2/32", name="nas")],
        maps=[["Listen = tcp/18080", "To = nas:80"]],
    )
    server = Adit(net.server, lab.device("srv"), spec)
    server.up()
    nas = Adit(
        net.nas,
        lab.device("nas"),
        TunnelSpec(
            keys,
            ["10.10.0.2/24"],
            extra=["Table = reply"],
            peers=[
                PeerSpec(
                    spec.keys.public,
                    "0.0.0.0/0",
                    endpoint=f"{net.server_address}:{PORT}",
                    keepalive=5,
                )
            ],
        ),
    )
    nas.up()
    web = WebServer(net.nas, mebibytes=0.1)
    net.server.ip("link", "set", "eth0", "up")
    net.server.address("eth0", f"{net.server_address}/24")
    net.server.default_via("203.0.113.1")
    ping(net.nas, "10.10.0.1", timeout=20)
    expect(fetches(net, 18080) == web.sha256, "the mapping works, and nobody had to reload")


def heals_within_a_second(net: Home, server: Adit) -> None:
    table = f"adit_{server.name}"
    before = time.monotonic()
    net.server.run("nft", "flush", "ruleset")
    wait_until(
        lambda: table in net.server.run("nft", "list", "tables").out, 1, "the table is back"
    )
    progress(f"back after {time.monotonic() - before:.2f} s")
    wait_until(lambda: all(entry["active"] for entry in server.status()["maps"]), 1, "status: so")


@scenario(seconds=60)
def case_46_flush_of_the_ruleset(lab: Lab) -> None:
    """`nft flush ruleset`, as a reload of nftables.service does: restored within a second, several
    times, and nobody else's table is touched."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    for _round in range(3):
        heals_within_a_second(net, server)
        expect(fetches(net, 18080) == web.sha256, "the mapping works")
    net.server.nft(ACCEPT_ALL)
    other = net.server.run("nft", "-a", "list", "table", "ip", "other").out
    net.server.run("nft", "delete", "table", "inet", f"adit_{server.name}")
    wait_until(lambda: fetches(net, 18080, timeout=1) == web.sha256, 2, "works again")
    expect(net.server.run("nft", "-a", "list", "table", "ip", "other").out == other, "untouched")


@scenario(seconds=60)
def case_47_docker(lab: Lab) -> None:
    """Docker's FORWARD policy: found, the accept goes to DOCKER-USER after consent and goes with
    down; the policy stays."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    net.server.run(
        *("sh", "-c"),
        "iptables -P FORWARD DROP; iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER; "
        "iptables -A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    )
    expect(fetches(net, 18080, timeout=2) is None, "Docker drops it")
    rules = net.server.run("iptables", "-S").out
    done = server.cli("map", "check", server.name, check=False)
    expect(done.code != 0 and "DOCKER-USER" in done.out, f"the check says what helps: {done}")
    expect(net.server.run("iptables", "-S").out == rules, "and touches nothing unasked")
    done = server.cli("map", "check", server.name, "--fix", check=False)
    expect(net.server.run("iptables", "-S").out == rules, f"without a yes neither: {done}")
    server.cli("map", "check", server.name, "tcp/18080", "--fix", "--yes")
    expect(fetches(net, 18080) == web.sha256, "with consent it works")
    expect("-P FORWARD DROP" in net.server.run("iptables", "-S").out, "the policy stays")
    server.down()
    expect(net.server.run("iptables", "-S").out == rules, "down takes it back")


@scenario(seconds=60)
def case_48_our_accept_is_not_the_last_word(lab: Lab) -> None:
    """Another chain's drop, in forward and in input for the tunnel's own port: no success is
    claimed, the command is told, and helps."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    net.server.nft(DROP_FORWARD)
    net.server.nft(DROP_INPUT)
    warnings = wait_until(
        lambda: len(found := server.status()["warnings"]) == 2 and found, 5, "both are named"
    )
    for warning, word in zip(sorted(warnings), ("FORWARD", "the tunnel's own packets (udp/51820)")):
        progress(warning)
        expect(word in warning, f"{word}: {warning}")
    expect(fetches(net, 18080, timeout=2) is None, "the packets are dropped indeed")
    entry = checked(server, "tcp/18080")["tcp/18080"]
    expect(entry.get("leg") == "firewall", f"the check names the leg: {entry}")
    trace = server.cli("trace", "tcp", f"{net.server_address}:18080", "from", net.client_address)
    progress(trace.out.strip())
    expect("chain FORWARD of table ip filter drops" in trace.out, "so does the trace")
    for warning in warnings:
        net.server.run("sh", "-c", warning.split("to let them through: ")[1])
    wait_until(lambda: not server.status()["warnings"], 5, "the warnings go")
    expect(fetches(net, 18080) == web.sha256, "and the mapping works")


@scenario(seconds=60)
def case_50_small_path_mtu(lab: Lab) -> None:
    """A path of 1400 below the tunnel: bulk goes both ways, and the real sender is told."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=4)
    for host, device in ((net.internet, "to-home"), (net.home, "wan")):
        host.ip("link", "set", device, "mtu", "1400")
    before = time.monotonic()
    expect(fetches(net, 18080, timeout=15) == web.sha256, "a large object arrives")
    progress(f"after {time.monotonic() - before:.1f} s")
    # Larger than the tunnel: the server tells the client.
    done = net.client.run(
        *("ping", "-n", "-c", "2", "-W", "1", "-M", "do", "-s", "1472", net.server_address),
        check=False,
    )
    expect(done.code == 0, f"what is not for the tunnel is not limited: {done}")
    source_echo(net.nas, ["udp/7000"])
    ask_from(net.client, [f"udp/{net.server_address}/7000"])
    net.client.run(
        *(sys.executable, "-c"),
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        f"s.setsockopt(0, 10, 2); s.connect(('{net.server_address}', 7000)); s.send(bytes(1472))",
    )
    route = wait_until(
        lambda: "mtu" in (r := net.client.ip("route", "get", net.server_address).out) and r, 3,
        "the client learns of the smaller MTU",
    )
    progress(route.strip())


NO_ERRORS = """
table inet hole {
  chain in {
    type filter hook input priority 0;
    icmp type destination-unreachable drop
    icmpv6 type packet-too-big drop
  }
}
"""


@scenario(seconds=60)
def case_50_black_hole(lab: Lab) -> None:
    """Both ends with an MTU of 1500 on their own networks, and both deaf to ICMP: bulk from a host
    behind the NAS arrives, since the segments are made small enough on the way."""
    net, server, nas = served_home(lab)
    host = lab.namespace("lanhost")
    link((net.nas, "lan1"), (host, "eth0"))
    net.nas.address("lan1", "192.168.60.1/24")
    host.address("eth0", "192.168.60.20/24")
    host.default_via("192.168.60.1")
    server.spec.peers[0].allowed_ips += ", 192.168.60.0/24"
    mapping = ["Listen = tcp/8088", "To = 192.168.60.20:80"]
    server.spec.maps.append(mapping)
    reload(server)
    nas.spec.maps = [mapping]
    reload(nas)
    for where in (net.client, host):
        where.nft(NO_ERRORS)
    web = WebServer(host, mebibytes=2)
    expect(fetches(net, 8088, timeout=15) == web.sha256, "a large object arrives")


@scenario(seconds=60)
def case_52_passive_ftp(lab: Lab) -> None:
    """Control port and passive range under equal numbers, without helpers; a shift is warned of."""
    net, server, _nas = served_home(lab)
    server.spec.maps = [
        ["Listen = tcp/21", "To = nas:21"],
        ["Listen = tcp/50000-50100", "To = nas"],
    ]
    reload(server)
    source_echo(net.nas, ["tcp/21", "tcp/50042"])
    targets = [f"tcp/{net.server_address}/{port}" for port in (21, 50042)]
    answers = ask_from(net.client, targets)
    expect(set(answers.values()) == {net.client_address}, f"both connections arrive: {answers}")
    modules = net.server.run("nft", "list", "ruleset").out
    expect("ct helper" not in modules, "no helper is set")
    server.spec.maps[1] = ["Listen = tcp/50000-50100", "To = nas:40000"]
    server.write()
    done = server.cli("check", str(server.file))
    expect("passive mode" in done.out + done.err, f"the shifted range is warned of: {done}")


if __name__ == "__main__":
    sys.exit(main())
