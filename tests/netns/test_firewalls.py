#!/usr/bin/env python3
"""Firewall weather: real ufw and firewalld beside our mappings, switched on after the tunnel.

Each has its own configuration, which `ip netns exec` lays over /etc. Topology: `Home` in
lab/topology.py.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from lab import (
    Adit,
    Home,
    Lab,
    LabError,
    Namespace,
    WebServer,
    expect,
    main,
    ping,
    progress,
    scenario,
    wait_until,
)
from lab.served import fetches, served_home

BUS = """
<busconfig>
  <type>system</type>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_type="method_call"/>
    <allow send_type="method_return"/>
    <allow send_type="signal"/>
    <allow send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="signal"/>
    <allow receive_type="error"/>
  </policy>
</busconfig>
"""


def private_etc(where: Namespace, *names: str) -> None:
    folder = Path("/etc/netns") / where.full_name
    for name in names:
        source = Path("/etc") / name
        if not source.exists():
            raise LabError(f"{source} is missing: install the package of that firewall")
        shutil.copytree(source, folder / name)


def findings(server: Adit, *args: str) -> dict[str, str]:
    """What is in the way, and the command that helps."""
    done = server.cli("map", "check", server.name, "--json", *args, check=False)
    return {entry["what"]: entry["fix"] for entry in json.loads(done.out)["obstacles"]}


def session_again(net: Home, nas: Adit) -> None:
    """The NAS calls anew: what its home router and connection tracking remember does not help."""
    nas.down()
    net.server.run("conntrack", "-F", check=False)
    nas.up()


@scenario(seconds=120)
def real_ufw(lab: Lab) -> None:
    """ufw with its defaults drops mapped ports and the tunnel's own: both are named with ufw's own
    commands, which `map check --fix` runs after consent, and down takes back."""
    net, server, nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    private_etc(net.server, "ufw", "default")
    expect(fetches(net, 18080) == web.sha256, "before ufw it works")
    net.server.run("ufw", "--force", "enable")
    rules = net.server.run("ufw", "show", "added").out
    found = wait_until(lambda: findings(server), 5, "obstacles are found")
    for what, fix in found.items():
        progress(f"{what}: {fix}")
    fixes = set(found.values())
    expect(f"ufw route allow in on eth0 out on {server.name}" in fixes, f"forward: {fixes}")
    expect("ufw allow in on eth0 to any port 51820 proto udp" in fixes, f"input: {fixes}")
    expect(len(server.status()["warnings"]) >= 2, "status has them too")
    session_again(net, nas)
    expect(fetches(net, 18080, timeout=2) is None, "they are in the way indeed")
    findings(server, "--fix", "--yes")
    expect(not findings(server), "nothing is left")
    ping(net.nas, "10.10.0.1", timeout=20)
    expect(fetches(net, 18080) == web.sha256, "it works")
    net.server.run("ufw", "reload")
    expect(fetches(net, 18080) == web.sha256, "also after ufw's reload")
    expect(net.server.run("ufw", "show", "added").out != rules, "ufw has our rules")
    server.down()
    expect(net.server.run("ufw", "show", "added").out == rules, "down takes them back")


@scenario(seconds=120)
def real_firewalld(lab: Lab) -> None:
    """firewalld flushes, rebuilds and rejects the tunnel's port: restored, named, fixed, undone."""
    net, server, nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    private_etc(net.server, "firewalld")
    bus = net.server.dir / "bus"
    config = net.server.dir / "bus.conf"
    config.write_text(BUS.format(path=bus))
    net.server.env["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={bus}"
    daemon = net.server.start(
        *("dbus-daemon", f"--config-file={config}", "--nofork", "--nopidfile"), log="dbus"
    )
    daemon.require(bus.exists, 5, "the bus is there")
    net.server.start("firewalld", "--nofork", "--nopid", log="firewalld")
    wait_until(
        lambda: "firewalld" in net.server.run("nft", "list", "tables").out, 60, "firewalld runs"
    )
    net.server.run("firewall-cmd", "--state", timeout=60)
    ports = net.server.run("firewall-cmd", "--permanent", "--list-all-zones").out
    found = wait_until(lambda: findings(server), 10, "obstacles are found")
    for what, fix in found.items():
        progress(f"{what}: {fix}")
    expect(all("firewall-cmd" in fix for fix in found.values()), f"by its own command: {found}")
    session_again(net, nas)
    expect(fetches(net, 18080, timeout=2) is None, "it is in the way indeed")
    findings(server, "--fix", "--yes")
    wait_until(lambda: not findings(server), 10, "nothing is left")
    ping(net.nas, "10.10.0.1", timeout=20)
    expect(fetches(net, 18080) == web.sha256, "it works")
    net.server.run("firewall-cmd", "--complete-reload")
    wait_until(lambda: fetches(net, 18080, timeout=1) == web.sha256, 10, "also after its reload")
    server.down()
    after = net.server.run("firewall-cmd", "--permanent", "--list-all-zones").out
    expect(after == ports, "down takes it back")


@scenario(seconds=90)
def forwarding_is_watched(lab: Lab) -> None:
    """Somebody turns forwarding or loose reverse path filtering off: back with the next look, and
    the former values come back with down. IPv6 forwarding keeps the router's advertisements."""
    net, server, nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    expect(fetches(net, 18080) == web.sha256, "it works")

    def value(where: Namespace, key: str) -> str:
        return where.run("cat", f"/proc/sys/net/{key}").out.strip()

    expect(value(net.server, "ipv4/ip_forward") == "0", "not the whole server forwards IPv4")
    expect(value(net.server, "ipv4/conf/eth0/forwarding") == "1", "its public NIC does")
    expect(value(net.server, "ipv6/conf/all/forwarding") == "1", "IPv6 knows only all")
    expect(value(net.server, "ipv6/conf/eth0/accept_ra") == "2", "and advertisements are kept")
    net.server.sysctl("net.ipv4.conf.eth0.forwarding", "0")
    net.nas.run("tee", f"/proc/sys/net/ipv4/conf/{nas.name}/rp_filter", stdin="1")
    expect(fetches(net, 18080, timeout=1) is None, "broken by hand")
    for tunnel in (server, nas):
        tunnel.cli("reload", tunnel.name)
    expect(fetches(net, 18080) == web.sha256, "reload mends it")
    server.down()
    expect(value(net.server, "ipv6/conf/all/forwarding") == "0", "down restores it")
    expect(value(net.server, "ipv6/conf/eth0/accept_ra") == "1", "and this")


if __name__ == "__main__":
    sys.exit(main())
