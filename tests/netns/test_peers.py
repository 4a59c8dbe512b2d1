#!/usr/bin/env python3
"""Peers that come and go: `adit export`, `import`, `peer list`, `remove` and `rotate`.

Topology: `Home` in lab/topology.py.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from lab import (
    Adit,
    Home,
    Lab,
    LabError,
    WebServer,
    WireGuardGo,
    adit,
    expect,
    main,
    ping,
    preshared_key,
    progress,
    scenario,
    wait_until,
)
from lab.served import fetches, served_home
from lab.tunnel import KeyPair, TunnelSpec, parse_dump


class QuickWireGuard(WireGuardGo):
    """wireguard-go with a wg-quick file of its owner, as `wg-quick strip` hands it to wg(8)."""

    def __init__(self, net: Home, file: Path):
        text = file.read_text()
        addresses = [line.split("=", 1)[1] for line in text.splitlines() if line.startswith("Address")]
        spec = TunnelSpec(KeyPair("", ""), [a.strip() for a in addresses[0].split(",")])
        super().__init__(net.client, file.stem, spec)
        self.quick = file

    def configure(self) -> None:
        stripped = self.where.run("wg-quick", "strip", str(self.quick)).out
        self.wg("setconf", self.name, "/dev/stdin", stdin=stripped)
        for address in self.spec.addresses:
            self.where.address(self.name, address)
        self.where.ip("link", "set", self.name, "mtu", "1420", "up")
        for peer in parse_dump(self.wg("show", self.name, "dump").out):
            for prefix in peer.allowed_ips.split(","):
                self.where.ip("route", "replace", prefix, "dev", self.name)


def peers(tunnel: Adit) -> dict[str, dict[str, object]]:
    done = tunnel.cli("peer", "list", "--interface", str(tunnel.file), "--json")
    return {entry["name"]: entry for entry in json.loads(done.out)}


def exported(net: Home, server: Adit, peer: str, device: str, *args: str) -> QuickWireGuard:
    """The file of `adit export`, with the client that is to use it; not up yet."""
    file = net.client.dir / f"{net.lab.device(device)}.conf"
    done = server.cli("export", peer, "--interface", str(server.file), "--output", str(file), *args)
    progress(done.out.strip())
    expect(file.stat().st_mode & 0o777 == 0o600, "the file is its owner's alone")
    return QuickWireGuard(net, file)


@scenario(seconds=120)
def phone(lab: Lab) -> None:
    """A stock client connects with the exported file, is listed, rotated and removed."""
    net, server, _nas = served_home(lab)
    before = server.file.read_text()
    client = exported(net, server, "phone", "ph")
    expect(f"Endpoint = {net.server_address}:" in client.quick.read_text(), "by its public address")
    client.up()
    ping(net.client, "10.10.0.1")
    ping(net.client, "fd10::1")
    entry = peers(server)["phone"]
    expect(entry["up"] and entry["latest_handshake_age"] is not None, f"it is listed: {entry}")
    expect(entry["allowed_ips"] == ["10.10.0.3/32", "fd10::3/128"], f"its addresses: {entry}")
    expect(set(peers(server)["nas"]["maps"]) >= {"tcp/18080"}, "the NAS with its mappings")
    private = client.quick.read_text().split("PrivateKey = ")[1].split()[0]
    kept = "".join(path.read_text() for path in server.file.with_suffix(".d").iterdir())
    expect(private not in kept + before, "the server does not keep the private key")

    again = exported(net, server, "phone", "pi", "--rotate", "--endpoint", net.server_address)
    client.down()
    again.up()
    ping(net.client, "10.10.0.1", timeout=20)
    client_key = net.client.run("wg", "pubkey", stdin=private + "\n").out.strip()
    expect(client_key not in [peer.public_key for peer in server.dump()], "the old key is gone")

    server.cli("map", "add", server.name, "tcp/9000", "phone:80")
    server.cli("peer", "remove", "phone", "--interface", str(server.file), "--yes")
    expect("phone" not in peers(server), "it is gone")
    maps = [entry["listen"] for entry in json.loads(server.cli("map", "list", "--json").out)]
    expect("tcp/9000" not in maps and "tcp/18080" in maps, f"with its mapping alone: {maps}")
    lost = net.client.run("ping", "-n", "-q", "-c", "2", "-W", "1", "10.10.0.1", check=False)
    expect(lost.code != 0, "and does not get in any more")
    expect(server.file.read_text() == before, "the person's own file is as it was")
    own = server.cli("peer", "remove", "nas", "--interface", str(server.file), "--yes", check=False)
    expect(own.code != 0 and "lines" in own.err, f"whose peers stay: {own}")


@scenario(seconds=120)
def rotate_preshared_key(lab: Lab) -> None:
    """Both sides get a new key under traffic: no ping is lost, and the next session has it."""
    net, server, nas = served_home(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    pings = net.nas.start("ping", "-n", "-i", "0.1", "-W", "1", "10.10.0.1", log="ping")
    wait_until(lambda: "icmp_seq=5 " in pings.output(), 10, "pings pass")
    told = server.cli("peer", "rotate", "nas", "--interface", str(server.file)).out
    key = told.strip()
    expect(len(key) == 44, "the key alone is printed")
    before = nas.peer().latest_handshake
    time.sleep(max(0.0, before + 1 - time.time()))
    server_key = server.spec.keys.public
    done = nas.cli(
        *("peer", "rotate", server_key, "--interface", str(nas.file), "--key", "-"), stdin=key + "\n"
    )
    progress(done.out.strip())
    expect("a session with the new key is up" in done.out, f"both agree: {done}")
    expect(nas.peer().latest_handshake > before, "a new session began")
    for end in (server, nas):
        expect(end.peer().preshared_key == key, f"{end.name} has it")
        expect(f"PresharedKey = {key}" in end.file.read_text(), f"{end.name} keeps it")
    wait_until(lambda: pings.output().count("icmp_seq") > 30, 10, "more pings pass")
    pings.stop()
    numbers = [int(line.split("icmp_seq=")[1].split()[0]) for line in pings.output().splitlines()
               if "icmp_seq=" in line]
    expect(numbers == list(range(1, len(numbers) + 1)), f"none was lost: {numbers}")
    expect(fetches(net, 18080) == web.sha256, "the mapping works")

    wrong = nas.cli(
        *("peer", "rotate", server_key, "--interface", str(nas.file), "--key", "-"),
        stdin=preshared_key() + "\n",
        check=False,
    )
    expect(wrong.code != 0 and "no session" in wrong.err, f"another key is noticed: {wrong}")
    ping(net.nas, "10.10.0.1")


@scenario(seconds=60)
def from_wg_quick(lab: Lab) -> None:
    """`adit import` of what `adit export` has made: the file works as adit's own."""
    net, server, _nas = served_home(lab)
    client = exported(net, server, "laptop", "la")
    folder = net.client.dir / "etc"
    env = {"ADIT_CONFIG_DIR": str(folder)}
    folder.mkdir()
    name = net.lab.device("im")
    text = client.quick.read_text() + "# a remark\n"
    client.quick.write_text(text)
    done = adit(net.client, "import", str(client.quick), "--name", name, env=env)
    expect("wg-quick down" in done.out and f"adit up {name}" in done.out, f"what next: {done}")
    expect((folder / f"{name}.conf").read_text() == text, "the file is the same")
    twice = adit(net.client, "import", str(client.quick), "--name", name, env=env, check=False)
    expect(twice.code != 0 and "already" in twice.err, f"never twice: {twice}")
    adit(net.client, "up", str(folder / f"{name}.conf"))
    try:
        ping(net.client, "10.10.0.1")
    finally:
        adit(net.client, "down", name, check=False)
    if "laptop" not in peers(server):
        raise LabError("the laptop is listed")


if __name__ == "__main__":
    sys.exit(main())
