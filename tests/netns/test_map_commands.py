#!/usr/bin/env python3
"""`adit map list`, `add`, `del`, on the server and on the NAS, and what they refuse.

Topology: `Home` in lab/topology.py.
"""

from __future__ import annotations

import json
import sys

from lab import (
    Adit,
    Completed,
    Lab,
    WebServer,
    expect,
    main,
    ping,
    progress,
    scenario,
    wait_until,
)
from lab.served import echoes, fetches, served_home
from lab.source_echo import ask_from, source_echo
from lab.udp_service import udp_service


def maps(tunnel: Adit) -> dict[str, dict[str, object]]:
    """What `adit map list` says, by port."""
    done = tunnel.cli("map", "list", tunnel.name, "--json")
    return {entry["listen"]: entry for entry in json.loads(done.out)}


def change(tunnel: Adit, verb: str, *args: str, check: bool = True) -> Completed:
    """By the interface's name alone: the daemon knows where its file is."""
    return tunnel.cli("map", verb, tunnel.name, *args, check=check)


def rules(tunnel: Adit) -> str:
    argv = ("nft", "-a", "list", "table", "inet", f"adit_{tunnel.name}")
    return tunnel.where.run(*argv).out


@scenario(seconds=90)
def add_and_del_on_the_server(lab: Lab) -> None:
    """Each obeyed by the next packet, kept over down and up, and the person's file untouched."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    udp_service(net.nas, "0.0.0.0", 6003)
    written, before = server.file.read_text(), rules(server)
    expect(fetches(net, 18090, timeout=2) is None, "the port is closed")
    said = change(server, "add", "tcp/18090", "nas:80").out
    expect("elements added, 0 removed" in said, f"what was done: {said}")
    expect(fetches(net, 18090) == web.sha256, "the mapping works at once")
    change(server, "add", "udp/5103", "nas:6003", "--source", "masquerade")
    expect(echoes(net.client, net.server_address, 5103), "the second one too")
    listed = maps(server)
    expect(listed["tcp/18090"]["active"] and listed["udp/5103"]["active"], f"listed: {listed}")
    expect("tcp/18090" in server.cli("map", "list", server.name).out, "also for a person")
    again = change(server, "add", "tcp/18090", "nas:81", check=False)
    expect(again.code != 0 and "overlaps" in again.err, f"twice is refused: {again}")
    expect(fetches(net, 18090) == web.sha256, "and the first one stays")

    server.down()
    server.up()
    ping(net.nas, "10.10.0.1", timeout=40)
    expect(fetches(net, 18090) == web.sha256, "it is kept")
    change(server, "del", "18090/tcp")
    expect(fetches(net, 18090, timeout=2) is None, "gone with the next packet")
    expect(fetches(net, 18080) == web.sha256, "the file's own stays")
    gone = change(server, "del", "tcp/18090", check=False)
    expect(gone.code != 0 and "there is no mapping tcp/18090" in gone.err, f"once more: {gone}")
    own = change(server, "del", "tcp/18080", check=False)
    expect(own.code != 0 and f"{server.file}:" in own.err, f"the file's own, by line: {own}")
    change(server, "del", "udp/5103")
    expect(server.file.read_text() == written, "the person's file is untouched")
    left = [path.name for path in server.file.with_suffix(".d").iterdir()]
    expect(left == [], f"nothing is left of them: {left}")
    expect(len(rules(server).splitlines()) == len(before.splitlines()), "nor in the kernel")


@scenario(seconds=60)
def add_and_del_on_the_nas(lab: Lab) -> None:
    """The server is asked for the port, and gets it back; one that it does not grant is told."""
    net, server, nas = served_home(lab)
    server.spec.peers[0].extra.append("AllowMaps = tcp/19000-19100")
    server.write()
    server.cli("reload", server.name)
    web = WebServer(net.nas, mebibytes=0.1)
    change(nas, "add", "tcp/19010", "10.10.0.2:80")
    wait_until(lambda: fetches(net, 19010, timeout=1) == web.sha256, 20, "the port is open")
    held = [entry["listen"] for entry in server.status()["requests"] if entry["role"] == "lease"]
    expect(set(held) == {"tcp/19010"}, f"leases of the server: {held}")
    change(nas, "add", "tcp/2222", "10.10.0.2:22")
    refused = wait_until(
        lambda: (found := maps(nas)["tcp/2222"]) and "AllowMaps" in str(found["reason"]) and found,
        20,
        "the refusal is listed",
    )
    expect("tcp/19000-19100" in str(refused["reason"]), f"with what would be granted: {refused}")
    change(nas, "del", "tcp/2222")
    expect("tcp/2222" not in maps(nas), "it is gone")
    change(nas, "del", "tcp/19010")
    wait_until(lambda: fetches(net, 19010, timeout=1) is None, 10, "the port is closed")
    wait_until(
        lambda: not [e for e in server.status()["requests"] if e["role"] == "lease"],
        10,
        "the server has it back",
    )


BAD = (
    ("tcp/0", "nas", "port"),
    ("tcp/65536", "nas", "port"),
    ("tcp/90-80", "nas", ""),
    ("udp/65000-65535", "nas:65500", "65535"),
    ("icmp/80", "nas", ""),
    ("tcp/9000", "nobody", 'no peer is called "nobody"'),
    ("tcp/18080", "nas:81", "overlaps"),
    ("tcp/18000-18100", "nas", "overlaps"),
    ("198.51.100.77:tcp/9000", "nas", "198.51.100.77 is no address of this machine"),
)


@scenario(seconds=60)
def bad_input_disturbs_nothing(lab: Lab) -> None:
    """Refused with the reason; the rules in the kernel, the files and a client's flow stay."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    before = rules(server)
    for listen, to, word in BAD:
        done = change(server, "add", listen, to, check=False)
        progress(f"{listen} {to}: {done.err.strip()}")
        expect(done.code != 0 and word in done.err, f"{listen} {to}: {done}")
        expect(done.err.count("\n") <= 2, f"told in a line: {done.err}")
    as_json = change(server, "add", "198.51.100.77:tcp/9000", "nas", "--json", check=False)
    expect(json.loads(as_json.out)["ok"] is False, f"as JSON: {as_json}")
    expect(rules(server) == before, "the rules are the same")
    expect(not server.file.with_suffix(".d").joinpath("maps.conf").exists(), "no file is left")
    expect(fetches(net, 18080) == web.sha256, "and work")


@scenario(seconds=60)
def provider_that_translates(lab: Lab) -> None:
    """The server's file names its public address, which its provider translates to another: the
    mapping says so, the others work, and it works once the address is there."""
    net, server, _nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    source_echo(net.nas, ["tcp/90"])
    server.spec.maps.append(["Listen = 203.0.113.80:tcp/9090", "To = nas:90"])
    server.write()
    server.cli("reload", server.name)
    entry = maps(server)["203.0.113.80:tcp/9090"]
    progress(str(entry["reason"]))
    expect(not entry["active"], f"not claimed to work: {entry}")
    expect(f"which has {net.server_address}" in str(entry["reason"]), f"with the reason: {entry}")
    checked = server.cli("map", "check", server.name, "203.0.113.80:tcp/9090", check=False)
    expect(checked.code != 0 and "no address" in checked.out, f"the check agrees: {checked}")
    expect(fetches(net, 18080) == web.sha256, "the others work")
    net.server.address("eth0", "203.0.113.80/24")
    wait_until(lambda: maps(server)["203.0.113.80:tcp/9090"]["active"], 5, "with the address")
    answers = ask_from(net.client, ["tcp/203.0.113.80/9090"])
    expect(list(answers.values()) == [net.client_address], f"it works: {answers}")
    refused = ask_from(net.client, [f"tcp/{net.server_address}/9090"], seconds=1)
    expect(list(refused.values()) == [None], "on that address alone")


DROPS = """
table ip odd {
  chain before { type filter hook prerouting priority raw; tcp dport 18080 drop; }
  chain after {
    type filter hook postrouting priority filter;
    oifname "eth0" meta l4proto tcp ct original proto-dst 18081 drop
  }
}
"""


@scenario(seconds=60)
def check_goes_the_whole_way(lab: Lab) -> None:
    """Its packet comes in by the public NIC as a client's does: what drops it or its answer on the
    server is told apart from what fails beyond the tunnel, also where no firewall is recognised."""
    net, server, _nas = served_home(lab)
    WebServer(net.nas, mebibytes=0.1)
    source_echo(net.nas, ["udp/7000"])

    def checked() -> dict[str, dict[str, object]]:
        done = server.cli("map", "check", server.name, "--json", check=False)
        return {entry["listen"]: entry for entry in json.loads(done.out)["maps"]}

    before = server.status()["maps"]
    found = checked()
    wrong = [entry for entry in found.values() if not entry["ok"]]
    # Nobody listens on the range's ports.
    expect([entry["listen"] for entry in wrong] == ["udp/5000-5009"], f"all but one: {found}")
    expect(wrong[0]["leg"] == "service", f"which is refused: {wrong}")
    alone = [name for name, entry in found.items() if "alone" in str(entry["detail"])]
    expect(alone == ["tcp/18082"], f"a stranger that Allow keeps out is not let in: {alone}")
    counted = {m["listen"]: m["usage"]["connections"] for m in server.status()["maps"]}
    expect(counted["tcp/18080"] > before[0]["usage"]["connections"], f"they came in: {counted}")
    links = net.server.ip("link").out
    expect("aditprobe" not in links, f"no interface is left: {links}")
    net.server.nft(DROPS)
    found = checked()
    for port, word in (("tcp/18080", "does not go on"), ("tcp/18081", "does not leave")):
        progress(str(found[port]))
        expect(found[port].get("leg") == "server", f"dropped by the server: {found[port]}")
        expect(word in str(found[port]["detail"]), f"{word}: {found[port]}")
    expect(found["udp/7000"]["ok"], f"the others are well: {found['udp/7000']}")


if __name__ == "__main__":
    sys.exit(main())
