#!/usr/bin/env python3
"""Mappings from the public server to the NAS, and default routes through the tunnel.

Topologies: `Home` and `Pair` in lab/topology.py.
"""

from __future__ import annotations

import json
import sys

from lab import (
    PORT,
    RIGHT,
    Adit,
    IperfServer,
    Lab,
    Namespace,
    PeerSpec,
    Side,
    TunnelSpec,
    WebServer,
    answers,
    ends,
    expect,
    fetch_sha256,
    home,
    iperf,
    key_pair,
    main,
    pair,
    ping,
    progress,
    scenario,
    specs,
    tool,
    wait_until,
)
from lab.served import MAPS, echoes, fetches, served_home
from lab.udp_service import udp_service


@scenario(seconds=60)
def sources_and_ranges(lab: Lab) -> None:
    """preserve, masquerade, Allow; TCP, UDP, a range of equal ports (cases 33 and 34)."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=1)
    for port, seen in ((18080, net.client_address), (18081, "10.10.0.1")):
        expect(fetches(net, port) == web.sha256, f"the file through port {port}")
        expect(web.clients()[-1] == seen, f"the NAS sees {seen}, not {web.clients()[-1]}")
    expect(fetches(net, 18082, timeout=3) is None, "a client that Allow does not name is refused")
    expect(fetches(net, 18083, timeout=3) is None, "a port without a mapping is closed")
    for port in (7000, 5000, 5003):
        udp_service(net.nas, "10.10.0.2", port)
        expect(echoes(net.client, net.server_address, port), f"UDP through port {port}")
    active = {entry["listen"]: entry["active"] for entry in server.status()["maps"]}
    expect(len(active) == len(MAPS) and all(active.values()), f"status: all active: {active}")


@scenario(seconds=90)
def udp_services_answer_by_the_tunnel(lab: Lab) -> None:
    """With `preserve`, however a service is bound; its clients at home notice nothing."""
    net, server, _nas = served_home(lab)
    # An IPv6 router at home too: the tempting way for answers.
    net.home.address("lan", "2001:db8:50::1/64")
    net.nas.address("eth0", "2001:db8:50::2/64")
    net.nas.default_via("2001:db8:50::1")
    services = [
        ("0.0.0.0", "plain", (4,)),
        ("::", "plain", (4, 6)),
        ("0.0.0.0", "connect", (4,)),
        ("::", "connect", (6,)),
        ("0.0.0.0", "pktinfo", (4,)),
        ("::", "pktinfo", (6,)),
        ("10.10.0.2", "plain", (4,)),
        ("fd10::2", "plain", (6,)),
    ]
    public = {4: net.server_address, 6: net.server_address6}
    seen = {4: net.client_address, 6: net.client_address6}
    at_home = {4: net.nas_address, 6: "2001:db8:50::2"}
    own = {4: "10.10.0.2", 6: "fd10::2"}
    for offset, (address, way, families) in enumerate(services):
        port = 5000 + offset
        service = udp_service(net.nas, address, port, way)
        for family in families:
            what = f"{way} service at {address}, IPv{family}"
            expect(echoes(net.client, public[family], port), f"the client hears the {what}")
            expect(seen[family] in service.output(), f"its address reaches the {what}")
            if address in ("0.0.0.0", "::"):
                expect(echoes(net.home, at_home[family], port), f"the LAN hears the {what}")
                if way != "connect":
                    expect(echoes(net.server, own[family], port), f"the peer hears the {what}")
    # The home address changes, as with DHCP: the flow that is open goes on.
    argv = (tool("tests/peers/pingpong"), f"{net.server_address}:5000", "--seconds", "8")
    flow = net.client.start(*argv, log="flow")
    wait_until(lambda: echoes(net.client, net.server_address, 5000), 5, "UDP is mapped")
    net.nas.ip("address", "del", f"{net.nas_address}/24", "dev", "eth0")
    net.nas.address("eth0", "192.168.50.77/24")
    net.nas.default_via("192.168.50.1")
    # The home router has to see the tunnel's own port from the new address first.
    ping(net.nas, "10.10.0.1")
    wait_until(lambda: echoes(net.client, net.server_address, 5000), 10, "the new address works")
    flow.wait(20)
    lost = json.loads(flow.output())["lost"]
    expect(lost <= 4, f"the open flow recovers within seconds, and lost {lost}")
    expect(not server.status()["warnings"], "and nobody has to be warned")


@scenario(seconds=60)
def own_traffic_stays_at_home(lab: Lab) -> None:
    """`Table = reply` leaves the NAS's own default route and its LAN alone (case 34)."""
    net, _server, nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=1)
    expect(fetches(net, 18080) == web.sha256, "the mapping works")
    route = net.nas.ip("route", "get", net.client_address).out
    expect("192.168.50.1" in route, f"own traffic takes the home router: {route}")
    ping(net.nas, net.client_address)
    ping(net.home, net.nas_address)
    local = fetch_sha256(net.home, f"http://{net.nas_address}/file")
    expect(local == web.sha256, "the LAN reaches the service directly")
    expect(web.clients()[-1] == "192.168.50.1", "and not through the tunnel")
    nas.down()
    ping(net.nas, net.client_address)


@scenario(seconds=60)
def reload_is_obeyed_at_once(lab: Lab) -> None:
    """A mapping that is removed, moved or added holds for the very next packet (case 41)."""
    net, server, _nas = served_home(lab)
    udp_service(net.nas, "0.0.0.0", 7000)
    web = WebServer(net.nas, mebibytes=1)
    # A steady flow from one client port, so that connection tracking would remember it.
    argv = (tool("tests/peers/pingpong"), f"{net.server_address}:7000", "--seconds", "20")
    flow = net.client.start(*argv, log="flow")
    wait_until(lambda: echoes(net.client, net.server_address, 7000), 5, "UDP is mapped")

    server.spec.maps = [entry for entry in server.spec.maps if "udp/7000" not in entry[0]]
    server.spec.maps.append(["Listen = tcp/18090", "To = nas:80"])
    server.write()
    progress(server.cli("reload", server.name).out.strip())
    tracked = net.server.run("cat", "/proc/net/nf_conntrack", check=False).out
    mapped = [
        line
        for line in tracked.splitlines()
        if f"dst={net.server_address} " in line and "dport=7000" in line and "src=10.10.0.2" in line
    ]
    expect(not mapped, f"the flow is forgotten: {mapped}")
    expect(not echoes(net.client, net.server_address, 7000), "the removed mapping is closed")
    expect(fetches(net, 18090) == web.sha256, "the new one is open")
    expect(fetches(net, 18080) == web.sha256, "the others work as before")
    flow.kill()
    again = server.cli("reload", server.name)
    expect("nothing changed" in again.out, f"a second reload changes nothing: {again}")


@scenario(seconds=90, heavy=True)
def rate_is_kept(lab: Lab) -> None:
    """`Rate` bounds each direction of a mapping, also after a reload; others are not bounded."""
    net, server, _nas = served_home(lab)
    server.spec.maps += [["Listen = tcp/5201", "To = nas", "Rate = 20mbit"]]
    server.spec.maps += [["Listen = tcp/5301", "To = nas:5201"]]
    server.write()
    server.cli("reload", server.name)
    IperfServer(net.nas)

    def measured(port: int, reverse: bool) -> float:
        return iperf(
            net.client, net.server_address, port=port, seconds=4, omit=2, reverse=reverse
        ).mbps

    for reverse in (False, True):
        rate = measured(5201, reverse)
        progress(f"Rate = 20mbit, reverse {reverse}: {rate:.1f} Mbit/s")
        expect(8 < rate < 22, f"near 20 Mbit/s and not above it: {rate}")
    free = measured(5301, False)
    progress(f"without Rate: {free:.0f} Mbit/s")
    expect(free > 60, f"another mapping of the same service is not bounded: {free}")
    server.spec.maps[-2] = ["Listen = tcp/5201", "To = nas", "Rate = 80mbit"]
    server.write()
    server.cli("reload", server.name)
    rate = measured(5201, True)
    progress(f"Rate = 80mbit: {rate:.1f} Mbit/s")
    expect(25 < rate < 84, f"the new rate holds: {rate}")


@scenario(seconds=60)
def two_tunnels_one_port(lab: Lab) -> None:
    """A second tunnel does not take a port of the first, unless it says so."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=1)
    spec = TunnelSpec(
        key_pair(),
        ["10.20.0.1/24"],
        listen_port=PORT + 1,
        peers=[PeerSpec(key_pair().public, "10.20.0.2/32", name="other")],
        maps=[["Listen = tcp/18000-18080", "To = other"]],
    )
    second = Adit(net.server, lab.device("two"), spec)
    done = second.cli("up", str(second.file), check=False)
    progress(done.err.strip())
    said = f"would take the port away from the tunnel {server.name}"
    expect(done.code != 0 and said in done.err, f"refused, and the tunnel is named: {done}")
    expect(fetches(net, 18080) == web.sha256, "the first one's mapping is undisturbed")
    spec.maps = [["Listen = tcp/18000-18079", "To = other"]]
    second.write()
    second.up()
    spec.maps = [["Listen = tcp/18080", "To = other", "Override = yes"]]
    second.write()
    second.cli("reload", second.name)
    expect(fetches(net, 18080, timeout=2) is None, "Override takes it")
    second.down()
    expect(fetches(net, 18080) == web.sha256, "until the second tunnel goes")


SHARED = (
    "net/ipv4/conf/eth0/forwarding",
    "net/ipv6/conf/all/forwarding",
    "net/netfilter/nf_conntrack_acct",
)


@scenario(seconds=60)
def the_last_tunnel_puts_parameters_back(lab: Lab) -> None:
    """Kernel parameters that two tunnels need: neither the order in which they go nor a kill in
    between leaves one of them without, or the machine with what it had not before."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)

    def parameters() -> list[str]:
        return [net.server.run("cat", f"/proc/sys/{path}").out.strip() for path in SHARED]

    def changes() -> int:
        log = net.server.dir / "run" / f"{server.name}.log"
        return sum(log.read_text().count(f"{path} = 1") for path in SHARED)

    server.down()
    before = parameters()
    expect(before == ["0", "0", "0"], f"down has put them back: {before}")
    other = TunnelSpec(
        key_pair(),
        ["10.20.0.1/24", "fd20::1/64"],
        listen_port=PORT + 1,
        peers=[PeerSpec(key_pair().public, "10.20.0.2/32, fd20::2/128", name="other")],
        maps=[["Listen = tcp/19000", "To = other"]],
    )
    first = Adit(net.server, lab.device("one"), other)
    for kill in (False, True):
        first.up()
        server.up()
        if kill:
            server.crash()
            server.up()
        written = changes()
        first.down()
        expect(parameters() == ["1", "1", "1"], f"the second tunnel needs them: {parameters()}")
        ping(net.nas, "10.10.0.1", timeout=40)
        expect(fetches(net, 18080) == web.sha256, "and works")
        # It would have put them right by itself, after a moment without.
        expect(changes() == written, "they have not been away")
        server.down()
        expect(parameters() == before, f"the last one puts them back: {parameters()}")


@scenario(seconds=60)
def the_public_side_gets_mapped_ports_alone(lab: Lab) -> None:
    """A neighbour of the public NIC that routes private addresses to the server reaches nothing
    behind the tunnel, and a packet that claims a peer's address is not translated."""
    net, server, nas = served_home(lab)
    server.spec.peers[0].allowed_ips += ", 192.168.50.0/24"
    server.write()
    server.cli("reload", server.name)
    web = WebServer(net.nas, mebibytes=0.1)
    service = udp_service(net.nas, "0.0.0.0", 7000)
    net.internet.ip("route", "add", "10.10.0.0/24", "via", net.server_address)
    net.internet.ip("route", "add", "192.168.50.0/24", "via", net.server_address)
    net.internet.ip("-6", "route", "add", "fd10::/64", "via", net.server_address6)
    for key in ("all", "default", "eth0"):
        net.server.sysctl(f"net.ipv4.conf.{key}.rp_filter", "0")
    targets = ["10.10.0.2:80", f"{net.nas_address}:80", "fd10::2:80"]
    reached = scanned(net.client, *targets)
    expect(reached == [], f"the NAS is not reachable but by its mappings: {reached}")
    expect(not echoes(net.client, "10.10.0.2", 7000), "nor are its UDP services")
    expect(fetches(net, 18080) == web.sha256, "which work")
    expect(echoes(net.client, net.server_address, 7000), "for UDP too")
    net.client.address("eth0", "10.10.0.77/32")
    server.spec.peers[0].allowed_ips += ", 10.10.0.77/32"
    server.write()
    server.cli("reload", server.name)
    before = service.output()
    spoof = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        f"s.bind(('10.10.0.77', 0)); s.sendto(b'x', ('{net.server_address}', 7000))"
    )
    net.client.run(sys.executable, "-c", spoof)
    expect(echoes(net.client, net.server_address, 7000), "a client as before")
    more = service.output().removeprefix(before)
    expect("10.10.0.77" not in more, f"the peer's address is not believed: {more}")
    expect(nas.peer().latest_handshake > 0, "the tunnel is what it was")


SCAN = """
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 1).close()
        print(target)
    except OSError:
        pass
"""


def scanned(source: Namespace, *targets: str) -> list[str]:
    """Those of the targets HOST:PORT that take a TCP connection."""
    return source.run(sys.executable, "-c", SCAN, *targets, timeout=60).out.split()


@scenario(seconds=120)
def only_declared_targets_are_exposed(lab: Lab) -> None:
    """`Expose = maps`: a scan from the server's side finds what the NAS's file declares, alone."""
    net, server, nas = served_home(lab)
    server.spec.peers[0].allowed_ips += ", 192.168.50.0/24"
    server.write()
    server.cli("reload", server.name)
    net.home.ip("route", "add", "10.10.0.0/24", "via", net.nas_address)
    for where in (net.nas, net.home):
        for port in (80, 8081):
            WebServer(where, port=port, mebibytes=0.1)
    udp_service(net.nas, "0.0.0.0", 7000)
    udp_service(net.nas, "0.0.0.0", 5353)
    hosts = ("10.10.0.2", net.nas_address, "192.168.50.1")
    targets = [f"{host}:{port}" for host in hosts for port in (22, 80, 8081)]
    nas_only = [target for target in targets[:6] if not target.endswith(":22")]
    expect(scanned(net.server, *targets) == nas_only, "Expose = all: the whole NAS is open")
    expect(echoes(net.server, "10.10.0.2", 5353), "and its UDP services")

    forwarding = net.nas.run("cat", "/proc/sys/net/ipv4/ip_forward").out.strip()
    expect(forwarding == "0", "a NAS that declares no other host is no router")
    nas.spec.extra.append("Expose = maps")
    nas.spec.maps = [
        ["Listen = tcp/18080", "To = 10.10.0.2:80"],
        ["Listen = udp/7000", "To = 10.10.0.2"],
        ["Listen = tcp/18090", "To = 192.168.50.1:8081"],
    ]
    nas.write()
    progress(nas.cli("reload", nas.name).out.strip())
    found = scanned(net.server, *targets)
    expect(found == ["10.10.0.2:80", "192.168.50.1:8081"], f"the declared ones: {found}")
    expect(scanned(net.server, "fd10::2:80", "fd10::2:8081") == ["fd10::2:80"], "IPv6 alike")
    expect(not echoes(net.server, "10.10.0.2", 5353), "no other UDP service")
    expect(not answers(net.server, "10.10.0.2"), "no ping")
    ping(net.nas, "10.10.0.1")
    expect(echoes(net.client, net.server_address, 7000), "clients reach what is declared")
    expect(fetches(net, 18080) is not None, "by TCP too")
    states = [(entry["active"], entry["reason"]) for entry in nas.status()["maps"]]
    # The server's own file leads the first two here; the third one it was asked for in vain.
    expect([active for active, _ in states] == [True, True, False], f"as status says: {states}")
    expect("third-party" in states[2][1], f"with the reason: {states}")
    nas.spec.maps = nas.spec.maps[1:]
    nas.write()
    nas.cli("reload", nas.name)
    expect(scanned(net.server, "10.10.0.2:80") == [], "what is declared no more is closed")


@scenario(seconds=60)
def public_interface_that_is_not_there(lab: Lab) -> None:
    """Mappings on it say so, and are active as soon as it appears."""
    net, server, _nas = served_home(lab)
    server.spec.extra.append("Public = late0")
    server.write()
    server.cli("reload", server.name)
    status = server.status()
    reasons = {(entry["active"], entry["reason"]) for entry in status["maps"]}
    expect(reasons == {(False, "there is no interface late0 (Public = late0)")}, str(reasons))
    expect(len(status["warnings"]) == 1, f"one warning: {status['warnings']}")
    net.server.ip("link", "add", "late0", "type", "veth", "peer", "name", "late1")
    wait_until(
        lambda: all(entry["active"] for entry in server.status()["maps"]), 5, "they are active"
    )
    forwarding = net.server.run("cat", "/proc/sys/net/ipv4/conf/late0/forwarding").out.strip()
    expect(forwarding == "1", "and it forwards")
    expect(not server.status()["warnings"], "nothing is left to warn of")


@scenario(seconds=60)
def other_firewalls_are_noticed(lab: Lab) -> None:
    """A chain that drops mapped packets is named; the command that is printed helps."""
    net, server, nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    for rules in (
        "nft add table ip fw; "
        "nft 'add chain ip fw f { type filter hook forward priority 0; policy drop; }'",
        "iptables -P FORWARD DROP",
    ):
        net.server.run("sh", "-c", rules)
        warnings = wait_until(lambda: server.status()["warnings"], 5, "a warning")
        progress(warnings[0])
        expect(len(warnings) == 1, f"one warning: {warnings}")
        expect(fetches(net, 18080, timeout=2) is None, "the packets are dropped indeed")
        net.server.run("sh", "-c", warnings[0].split("to let them through: ")[1])
        wait_until(lambda: not server.status()["warnings"], 5, "the warning goes")
        expect(fetches(net, 18080) == web.sha256, "and the mapping works")
    nas.down()
    server.down()
    server.up()
    states = {(entry["active"], entry["reason"]) for entry in server.status()["maps"]}
    expect(states == {(True, "no session with nas")}, f"without the NAS: {states}")


@scenario(seconds=30)
def preserve_needs_wide_allowed_ips(lab: Lab) -> None:
    """Narrow AllowedIPs on the NAS with a mapping of its own that preserves: refused (case 34)."""
    net = home(lab)
    spec = TunnelSpec(
        key_pair(),
        ["10.10.0.2/24"],
        extra=["Table = reply"],
        peers=[PeerSpec(key_pair().public, "10.10.0.1/32", endpoint="203.0.113.9:51820")],
    )
    tunnel = Adit(net.nas, lab.device("nas"), spec)
    done = tunnel.cli("check", str(tunnel.file), check=False)
    said = done.out + done.err
    progress(said.strip())
    expect("AllowedIPs" in said or "0.0.0.0/0" in said, f"the narrow AllowedIPs are named: {done}")


@scenario(seconds=40)
def default_route_through_the_tunnel(lab: Lab) -> None:
    """AllowedIPs = 0.0.0.0/0 and Table = auto, as wg-quick: all goes through, the rest returns."""
    net = pair(lab)
    net.right.address("lo", "198.51.100.77/32", "2001:db8:77::77/128")
    left_spec, right_spec = specs(f"{net.right_address}:{PORT}")
    left_spec.peers[0].allowed_ips = "0.0.0.0/0, ::/0"
    right = ends.make(net.right, lab.device("r"), right_spec, Side(Adit))
    left = ends.make(net.left, lab.device("l"), left_spec, Side(Adit))
    right.up()
    left.up()
    ping(net.left, RIGHT)
    ping(net.left, "198.51.100.77")
    ping(net.left, "2001:db8:77::77")
    route = net.left.ip("route", "get", "198.51.100.77").out
    expect(left.name in route, f"the default route is the tunnel: {route}")
    # More specific routes of the main table still win: the cable's own network.
    ping(net.left, net.right_address)
    direct = net.left.ip("route", "get", net.right_address).out
    expect("dev eth0" in direct, f"the cable stays: {direct}")
    left.down()
    expect(not net.left.ip("route", "get", "198.51.100.77", check=False).out, "no route is left")


if __name__ == "__main__":
    sys.exit(main())
