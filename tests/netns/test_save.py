#!/usr/bin/env python3
"""`adit save`: what was set goes into the person's file, and nothing else does.

Topology: `Pair` in lab/topology.py; both ends are adit.
"""

from __future__ import annotations

import sys

from lab import (
    PORT,
    RIGHT,
    Adit,
    Lab,
    NameServer,
    Pair,
    PeerState,
    expect,
    key_pair,
    main,
    pair,
    ping,
    preshared_key,
    progress,
    scenario,
    specs,
    tool,
    wait_until,
)


def both_up(net: Pair, host: str = "") -> tuple[Adit, Adit]:
    """Left calls; right learns where left is. Both files have a person's remarks."""
    left_spec, right_spec = specs(f"{host or net.right_address}:{PORT}")
    left_spec.peers[0].keepalive = 1
    tunnels = (
        Adit(net.left, net.lab.device("l"), left_spec),
        Adit(net.right, net.lab.device("r"), right_spec),
    )
    for tunnel in tunnels:
        text = tunnel.file.read_text().replace("[Peer]", "# my remark\n[Peer] # the other one")
        tunnel.file.write_text(text.replace("AllowedIPs =", "allowedips="))
        tunnel.up()
    ping(net.left, RIGHT)
    return tunnels


@scenario(seconds=60)
def set_and_save(lab: Lab) -> None:
    """Changes are saved in place; a learned endpoint is not; the file works afterwards."""
    net = pair(lab)
    left, right = both_up(net)
    before = right.file.read_text()
    done = right.cli("save", right.name)
    expect("nothing to save" in done.out, f"an endpoint that was learned is no change: {done}")
    expect(right.file.read_text() == before, "the file is as it was")

    newcomer, psk = key_pair().public, preshared_key()
    peer = right.spec.peers[0].public_key
    right.cli("set", right.name, "peer", peer, "allowed-ips", "+10.10.0.77/32")
    for end, other in ((right, left), (left, right)):
        end.cli(
            *("set", end.name, "peer", other.spec.keys.public, "preshared-key", "/dev/stdin"),
            stdin=psk,
        )
    right.cli(
        *("set", right.name, "listen-port", str(PORT + 1)),
        *("peer", newcomer, "allowed-ips", "10.10.0.9/32", "endpoint", "192.0.2.9:999"),
    )
    dump = right.dump()
    # From another folder than the one that the daemon was started in.
    done = right.where.run("sh", "-c", 'cd / && "$0" "$@"', *(tool("ctl/cli/adit"), "save", right.name))
    progress(done.out.strip())
    expect(psk not in done.out + done.err, "keys are not shown")
    text = right.file.read_text()
    for part in (
        "# my remark\n[Peer] # the other one\n",
        "allowedips=",
        "10.10.0.77/32",
        f"PresharedKey = {psk}",
        f"ListenPort = {PORT + 1}",
        f"PublicKey = {newcomer}",
        "Endpoint = 192.0.2.9:999",
    ):
        expect(part in text, f"{part!r} is in the file: {text}")
    expect(net.left_address not in text, f"where the peer was seen is not: {text}")
    expect(right.file.stat().st_mode & 0o777 == 0o600, "the file is still for root alone")

    done = right.cli("save", right.name)
    expect("nothing to save" in done.out, f"our own change is no edit: {done}")
    right.down()
    right.up()

    expect(plain(right.dump()) == plain(dump), "the file brings back what was saved")


def plain(peers: list[PeerState]) -> list[tuple[str, str, list[str]]]:
    """What a file can say of the peers."""
    return sorted((p.public_key, p.preshared_key, sorted(p.allowed_ips.split(","))) for p in peers)


@scenario(seconds=60)
def edited_meanwhile(lab: Lab) -> None:
    """A file that somebody edited since is left alone, and the remedy is named."""
    net = pair(lab)
    left, _right = both_up(net)
    edited = left.file.read_text() + "# one more remark\n"
    left.file.write_text(edited)
    left.cli("set", left.name, "peer", left.spec.peers[0].public_key, "persistent-keepalive", "5")
    done = left.cli("save", left.name, check=False)
    expect(done.code != 0 and "adit reload" in done.err, f"it is refused: {done}")
    expect(left.file.read_text() == edited, "the edit is there")
    left.cli("reload", left.name)
    left.cli("set", left.name, "peer", left.spec.peers[0].public_key, "persistent-keepalive", "5")
    left.cli("save", left.name)
    text = left.file.read_text()
    expect("PersistentKeepalive = 5" in text and "# one more remark" in text, f"now it is: {text}")


@scenario(seconds=60)
def host_name_stays(lab: Lab) -> None:
    """The file's host name outlives both its resolution and an address that was set by hand."""
    net = pair(lab)
    names = NameServer(net.left)
    names.set("right.example", net.right_address)
    names.start()
    left, _right = both_up(net, "right.example")
    before = left.file.read_text()
    expect("nothing to save" in left.cli("save", left.name).out, "the name is no change")
    peer = left.spec.peers[0].public_key
    left.cli("set", left.name, "peer", peer, "endpoint", f"{net.right_address}:{PORT}")
    done = left.cli("save", left.name)
    expect("not saved" in done.err and "Endpoint" in done.err, f"that is said: {done}")
    expect(left.file.read_text() == before, "the host name is there")
    left.cli("set", left.name, "peer", peer, "remove")
    left.cli("save", left.name)
    text = left.file.read_text()
    expect("right.example" not in text and "[Interface]" in text, f"the peer has gone: {text}")
    wait_until(lambda: not left.dump(), 5, "the peer has gone")


if __name__ == "__main__":
    sys.exit(main())
