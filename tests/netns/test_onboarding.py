#!/usr/bin/env python3
"""Two persons, one with a server and one with a NAS: `adit init`, `adit invite`, `adit join`.

Topology: `Home` in lab/topology.py. The first scenario's transcript is docs/examples/onboarding.txt:
ADIT_UPDATE_TRANSCRIPT=1 writes it, any other run compares with it, keys and addresses aside.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import shlex
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from lab import (
    ROOT,
    Completed,
    Home,
    KeyPair,
    Lab,
    LabError,
    Namespace,
    PeerSpec,
    Process,
    TunnelSpec,
    WebServer,
    WireGuard,
    alive,
    answers,
    expect,
    fetch_sha256,
    home,
    main,
    ping,
    progress,
    relayed,
    run,
    scenario,
    tool,
    wait_until,
)
from lab.process import PATIENCE

TRANSCRIPT = ROOT / "docs/examples/onboarding.txt"
TOKEN = re.compile(r"adit1_[A-Za-z0-9_-]+")


class Person:
    """Somebody with root on one machine. Nobody else's files are in reach."""

    def __init__(self, where: Namespace):
        self.where = where
        self.etc = where.dir / "etc"
        where.env |= {
            "ADIT_CONFIG_DIR": str(self.etc),
            "ADIT_WIREGUARD_DIR": str(where.dir / "wireguard"),
            "PATH": f"{Path(tool('ctl/cli/adit')).parent}:{os.environ['PATH']}",
        }
        self.said: list[str] = []

    def does(self, line: str, *, stdin: str | None = None, timeout: float = 60) -> str:
        """A line for the shell, which must succeed; what it prints goes to the transcript."""
        done = self.where.run("sh", "-c", f"{line} 2>&1", stdin=stdin, timeout=timeout)
        self.said.append(f"{self.where}# {line}\n{done.out}")
        return done.out

    def adit(self, *args: str, stdin: str | None = None, timeout: float = 60) -> Completed:
        """A command that may fail."""
        argv = (tool("ctl/cli/adit"), *args)
        return self.where.run(*argv, check=False, stdin=stdin, timeout=timeout)

    def refused(self, *args: str, word: str, stdin: str | None = None) -> None:
        """A command that must fail for a reason, and leave the files as they were."""
        before = self.files()
        done = self.adit(*args, stdin=stdin)
        progress(done.err.strip().splitlines()[-1] if done.err.strip() else str(done))
        expect(done.code != 0 and word in done.err, f'"{word}": {done}')
        expect(self.files() == before, f"nothing is written: {before} → {self.files()}")

    def files(self) -> dict[str, str]:
        paths = sorted(path for path in self.etc.rglob("*") if path.is_file())
        return {str(path.relative_to(self.etc)): path.read_text() for path in paths}

    def config(self, name: str = "adit0.conf") -> str:
        return (self.etc / name).read_text()

    def address(self, name: str = "adit0.conf") -> str:
        found = re.search(r"^Address = ([0-9.]+)/", self.config(name), re.M)
        if found is None:
            raise LabError(f"no address in {self.config(name)}")
        return found[1]

    def status(self) -> dict[str, object]:
        result: dict[str, object] = json.loads(self.adit("status", "adit0", "--json").out)
        return result

    def crash(self) -> None:
        """kill -9 of the daemon, both of its processes."""
        pids = [
            pid
            for pid in self.where.pids()
            if Path(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()).name
            == "aditd"
        ]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(alive, pids)), 5, f"aditd {pids} is gone")


def token_in(text: str) -> str:
    found = TOKEN.search(text)
    if found is None:
        raise LabError(f"no token in {text!r}")
    return found[0]


def two_persons(lab: Lab) -> tuple[Home, Person, Person]:
    net = home(lab)
    return net, Person(net.server), Person(net.nas)


def server_up(person: Person, *options: str) -> None:
    person.does(shlex.join(["adit", "init", "server", *options]))
    person.does("adit up adit0")


def fetches(net: Home, port: int) -> str | None:
    try:
        return fetch_sha256(net.client, f"http://{net.server_address}:{port}/file", timeout=5)
    except LabError:
        return None


def shape(text: str) -> str:
    """A transcript without what differs from run to run."""
    text = re.sub(r"/tmp/adit-\d+-\d+-\w+/\w+/etc", "/etc/adit", text)
    text = TOKEN.sub("adit1_AC2SD2sAAAAATGSmHELtsW-D3X69F5ZA8CfTtslcGI4z…", text)
    text = re.sub(r"\b10\.\d+\.\d+\.(\d+)", r"10.77.3.\1", text)
    text = re.sub(r"\bfd[0-9a-f]{2}:[0-9a-f:]*:([0-9a-f]+)\b", r"fd4e:91c2:7a05:1::\1", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-12-01T12:00:00Z", text)


def compare(persons: list[Person], order: list[str]) -> None:
    if os.environ.get("ADIT_VM"):
        return  # the guest has no docs, and its kernel may have other words for what was done
    text = shape("\n".join(order))
    if os.environ.get("ADIT_UPDATE_TRANSCRIPT"):
        TRANSCRIPT.write_text(text)
        progress(f"written: {TRANSCRIPT}")
    written = TRANSCRIPT.read_text() if TRANSCRIPT.exists() else ""
    expect(text == written, f"the transcript in the docs is another one:\n{text}")
    expect(all(person.said for person in persons), "both have done something")


@scenario(seconds=90)
def both_persons_in_a_minute(lab: Lab) -> None:
    """From nothing to a service that the Internet reaches, by the README's commands alone."""
    net, server, nas = two_persons(lab)
    web = WebServer(net.nas, mebibytes=0.1)
    client = Person(net.client)
    started = time.monotonic()
    server.does("adit init server")
    server.does("adit up adit0")
    token = token_in(server.does("adit invite nas --maps tcp/8000-9000"))
    nas.does(f"adit join {token}")
    nas.does(f"adit map add adit0 tcp/8080 {nas.address()}:80")
    wait_until(lambda: fetches(net, 8080) == web.sha256, 20, "the Internet reaches the NAS")
    client.does(f"curl -sS http://{net.server_address}:8080/file | wc -c")
    took = time.monotonic() - started
    planes = {str(person.status()["backend"]) for person in (server, nas)}
    progress(f"{took:.1f} s, data plane: {planes}")
    if os.environ.get("ADIT_VM") and os.environ.get("ADIT_TEST_BACKEND") == "kernel":
        expect(planes == {"kernel"}, "the module moves the packets")
    expect(took < 60 * PATIENCE, "within a minute")
    expect(web.clients()[-1] == net.client_address, f"as who it is: {web.clients()}")
    ping(net.nas, server.address())
    expect(not answers(net.server, nas.address()), "the server reaches nothing else of the NAS")
    order = [*server.said, *nas.said, *client.said]
    compare([server, nas], order)

    for person, names in ((server, ["adit0.conf", "adit0.d/peer-nas.conf"]), (nas, ["adit0.conf"])):
        modes = {name: (person.etc / name).stat().st_mode & 0o777 for name in names}
        expect(set(modes.values()) == {0o600}, f"only root reads keys: {modes}")
        expect((person.etc.stat().st_mode & 0o777) == 0o700, "and opens the folder")
    left = sorted(name for name in nas.files() if not name.startswith("adit0.d/"))
    expect(left == ["adit0.conf"], f"the key under way is gone: {left}")
    key = re.search(r"^PrivateKey = (\S+)", nas.config(), re.M)
    expect(key and key[1] not in str(server.files()), "the NAS's key is on the NAS alone")
    for line in ("Table = reply", "Expose = maps", "PersistentKeepalive = 25", "PresharedKey = "):
        expect(line in nas.config(), f"{line} in {nas.config()}")
    server.refused("init", "server", word="adit0.conf exists already")
    nas.refused("join", token, word="adit0.conf exists already")
    server.refused("invite", "nas", word="there is a peer nas already")


def changed(token: str, at: int) -> str:
    return token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]


@scenario(seconds=120)
def refusals_write_nothing(lab: Lab) -> None:
    """Tokens that are expired, revoked, cut, altered or none; a server that is down."""
    net, server, nas = two_persons(lab)
    server_up(server)
    token = token_in(server.does("adit invite nas --maps tcp/8000-9000"))
    nas.refused("join", token[:-1], word="copy the whole line")
    nas.refused("join", token[: len(token) // 2], word="copy the whole line")
    nas.refused("join", changed(token, 60), word="copy the whole line")
    nas.refused("join", "hello", word="no token")
    nas.refused("join", "-", word="no token", stdin="")
    nas.refused("join", "adit2_" + token[6:], word="another version")
    short = token_in(server.does("adit invite brief --expires 1s"))
    time.sleep(1.1)
    nas.refused("join", short, word="expired")
    listed = {i["name"]: i["state"] for i in json.loads(server.adit("invite", "--list", "--json").out)}
    expect(listed == {"nas": "open", "brief": "expired"}, f"listed: {listed}")
    server.does("adit invite brief")
    gone = token_in(server.does("adit invite gone"))
    server.does("adit invite --revoke gone")
    nas.refused("join", "--timeout", "2", gone, word="nothing was written")
    server.refused("invite", "--revoke", "gone", word="no invitation of gone")
    server.refused("invite", "nas", word="invited already")
    server.refused("invite", "NAS", word="invited already")
    server.refused("invite", "box", "--maps", "tcp/0", word="--maps")
    server.refused("invite", "box", "--expires", "never", word="30 days")
    server.refused("invite", "../box", word="letters")
    server.does("adit down adit0")
    nas.refused("join", "--timeout", "2", token, word="no answer from 203.0.113.9:51820")
    server.refused("init", "server", word="adit0.conf exists already")
    expect(nas.files() == {}, f"nothing at all: {nas.files()}")
    server.does("adit up adit0")
    nas.does("adit join --no-up -", stdin=f"  {token[:50]}\r\n{token[50:]}\n")
    expect(list(nas.files()) == ["adit0.conf"], "after all that the token still works")


@scenario(seconds=90)
def a_server_takes_no_networks_of_a_nas(lab: Lab) -> None:
    """Addresses that would bring the NAS's own traffic into the tunnel are refused."""
    net, server, nas = two_persons(lab)
    server_up(server)
    config = server.etc / "adit0.conf"
    at_home = net.nas_address.rsplit(".", 1)[0]
    for offer, word in (
        ("128.0.0.1/1", "no private network"),
        ("10.0.0.1/8", "no private network"),
        ("2000::1/3", "no private network"),
        (f"{at_home}.193/26", "this machine uses"),
    ):
        text = re.sub(r"^Address = .*$", f"Address = {offer}", config.read_text(), flags=re.M)
        config.write_text(text)
        server.does("adit reload adit0")
        name = re.sub(r"\W", "-", offer)
        nas.refused("join", token_in(server.does(f"adit invite {name}")), word=word)
        server.does(f"adit peer remove --yes {name}")
        expect("adit0.conf" not in nas.files(), "and nothing is set up")


@scenario(seconds=90)
def one_token_one_machine(lab: Lab) -> None:
    """The first machine has it. The next one is told, leaves nothing, and the server says so."""
    net, server, nas = two_persons(lab)
    stranger = Person(net.client)
    server_up(server)
    token = token_in(server.does("adit invite nas --maps tcp/8000-9000"))
    nas.does(f"adit join {token}")
    peers = server.config("adit0.d/peer-nas.conf")
    stranger.refused("join", token, word="has been used already")
    stranger.refused("join", token, word="has been used already")
    expect(stranger.files() == {}, f"no key is left: {stranger.files()}")
    expect(server.config("adit0.d/peer-nas.conf") == peers, "the peer is who it was")
    warnings = server.status()["warnings"]
    expect("the token of nas was used 2 times by another" in str(warnings), f"told: {warnings}")
    own = server.config()
    server.does("adit save adit0")
    expect(server.config() == own, "nothing of it gets into the person's file")
    shown = server.adit("show", "adit0").out
    expect(shown.count("peer:") == 1, f"the enrolment's own peer is shown nowhere: {shown}")
    ping(net.nas, server.address())
    server.crash()
    server.does("adit up adit0")
    stranger.refused("join", token, word="has been used already")


def start_join(person: Person, token: str) -> Process:
    return person.where.start(tool("ctl/cli/adit"), "join", "--no-up", token, log="join")


# Handshakes pass; the server's answers, which are longer, do not.
LOSES_ANSWERS = """
table ip lossy {
  chain input {
    type filter hook input priority filter
    udp sport 51820 udp length > 120 counter drop
  }
}
"""


@scenario(seconds=90)
def an_interrupted_join_goes_on(lab: Lab) -> None:
    """Killed after the server has bound its key: the next try has the same key, and is let in."""
    net, server, nas = two_persons(lab)
    server_up(server)
    token = token_in(server.does("adit invite nas"))
    net.nas.nft(LOSES_ANSWERS)
    join = start_join(nas, token)
    bound = re.compile(r"^Bound = (\S+)", re.M)
    found = wait_until(
        lambda: bound.search(server.config("adit0.d/peer-nas.conf")), 20, "the key is bound"
    )
    join.kill()
    kept = nas.etc / "adit0.join"
    expect(kept.exists() and kept.stat().st_mode & 0o777 == 0o600, "the key is kept, for root")
    expect(not (nas.etc / "adit0.conf").exists(), "and no configuration is there")
    peer = server.config("adit0.d/peer-nas.conf")
    server.crash()
    server.does("adit up adit0")
    give_up = nas.adit("join", "--timeout", "3", token)
    expect(give_up.code != 0 and "the key of this try is kept" in give_up.err, f"told: {give_up}")
    net.nas.run("nft", "delete", "table", "ip", "lossy")
    nas.does(f"adit join {token}")
    expect(server.config("adit0.d/peer-nas.conf") == peer, "it is the same peer")
    key = re.search(r"^PrivateKey = (\S+)", nas.config(), re.M)
    own = net.nas.run(tool("ctl/cli/adit"), "pubkey", stdin=key[1] if key else "").out.strip()
    expect(own == found[1], "with the same key")
    expect(not kept.exists(), "which is in one place now")
    ping(net.nas, server.address())


@scenario(seconds=90)
def a_bad_line(lab: Lab) -> None:
    """Loses, repeats and reorders; the server's file pins a cipher and switches extensions off, and
    its daemon is killed between the invitation and the join."""
    net = relayed(lab)
    server, nas = Person(net.right), Person(net.left)
    net.right.default_via("198.51.100.254")
    server.does(f"adit init server --endpoint {net.relay_address}")
    file = server.etc / "adit0.conf"
    text = file.read_text().replace(
        "ListenPort", "Cipher = aes-256-gcm\nExtensions = off\nMTU = 1400\nListenPort"
    )
    file.write_text(text)
    server.does("adit up adit0")
    token = token_in(server.does("adit invite nas --maps udp/51413"))
    server.crash()
    server.does("adit up adit0")
    relay = net.relay("--loss", "30", "--duplicate", "30", "--reorder", "30")
    nas.does(f"adit join --no-up --timeout 60 {token}", timeout=70)
    relay.stop()
    expect("MTU = 1400" in nas.config(), f"the server's MTU: {nas.config()}")
    expect(f"Endpoint = {net.relay_address}:51820" in nas.config(), "where it was reached")
    peers = [p["name"] for p in server.status()["peers"]]  # type: ignore[attr-defined]
    expect(peers == ["nas"], f"one peer: {peers}")


def enrolment_keys(token: str) -> tuple[KeyPair, str, str]:
    """What docs/protocol.md derives from a token: key pair and preshared key of the enrolment peer,
    and the server's public key."""
    text = token.removeprefix("adit1_")
    body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    server, secret = body[9:41], body[41:73]
    chain = hashlib.blake2s(b"adit enrolment 1" + server).digest()
    extracted = hmac.digest(chain, secret, "blake2s")
    private = bytearray(hmac.digest(extracted, b"\x01", "blake2s"))
    preshared = hmac.digest(extracted, bytes(private) + b"\x02", "blake2s")
    private[0] &= 248
    private[31] = private[31] & 127 | 64
    key = base64.b64encode(private).decode()
    public = run(["wg", "pubkey"], stdin=key).out.strip()
    encode = base64.b64encode
    return KeyPair(key, public), encode(preshared).decode(), encode(server).decode()


@scenario(seconds=60)
def an_enrolment_peer_reaches_nothing(lab: Lab) -> None:
    """Whoever has the token, and any WireGuard, gets a session and not one packet further."""
    net, server, nas = two_persons(lab)
    server_up(server)
    token = token_in(server.does("adit invite nas"))
    invited = re.search(r"^Address = ([0-9.]+/\d+)", server.config("adit0.d/peer-nas.conf"), re.M)
    keys, preshared, public = enrolment_keys(token)
    peer = PeerSpec(
        public,
        "0.0.0.0/0",
        endpoint=f"{net.server_address}:51820",
        preshared_key=preshared,
        keepalive=1,
    )
    thief = WireGuard(
        net.nas, lab.device("t"), TunnelSpec(keys, [invited[1] if invited else ""], peers=[peer])
    )
    thief.up()
    wait_until(lambda: thief.peer().latest_handshake > 0, 10, "the session is there")
    net.nas.ip("route", "add", f"{server.address()}/32", "dev", thief.name)
    net.nas.ip("route", "add", f"{net.client_address}/32", "dev", thief.name)
    for address in (server.address(), net.client_address):
        expect(not answers(net.nas, address), f"no answer from {address}")
    drops = server.status()["drops"]
    expect("source-not-allowed" in str(drops), f"they were dropped: {drops}")
    expect(server.status()["peers"] == [], "and it is no peer")
    server.does("adit invite --revoke nas")
    thief.down()
    thief.up()
    time.sleep(1)
    expect(thief.peer().latest_handshake == 0, "revoked, it does not even get a session")


if __name__ == "__main__":
    sys.exit(main())
