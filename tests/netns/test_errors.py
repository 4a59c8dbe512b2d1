#!/usr/bin/env python3
"""Bad input and life cycles: one clear line, a non-zero exit, and nothing left behind.

Topology: one machine with one network card (`machine` below).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lab import (
    PORT,
    Adit,
    Completed,
    Lab,
    Namespace,
    PeerSpec,
    TunnelSpec,
    add,
    expect,
    key_pair,
    link,
    listening,
    main,
    progress,
    require_same,
    scenario,
    snapshot,
    tool,
    wait_until,
)

CYCLES = 200 if os.environ.get("ADIT_TEST_FULL") else 25


def machine(lab: Lab) -> Namespace:
    """A server that nobody talks to.

    ::

        host  eth0 203.0.113.9/24 ── eth0 203.0.113.1/24  gateway
    """
    host, gateway = lab.namespace("host"), lab.namespace("gateway")
    link((host, "eth0"), (gateway, "eth0"))
    host.address("eth0", "203.0.113.9/24", "2001:db8:9::9/64")
    gateway.address("eth0", "203.0.113.1/24", "2001:db8:9::1/64")
    host.default_via("203.0.113.1", "2001:db8:9::1")
    return host


def full_spec() -> TunnelSpec:
    """Everything at once: addresses, default routes, a mapping, hooks."""
    return TunnelSpec(
        key_pair(),
        ["10.10.0.1/24", "fd10::1/64"],
        listen_port=PORT,
        peers=[
            PeerSpec(key_pair().public, "10.10.0.2/32, fd10::2/128", name="nas"),
            PeerSpec(
                key_pair().public,
                "0.0.0.0/0, ::/0",
                name="rest",
                endpoint="203.0.113.77:51820",
            ),
        ],
        maps=[["Listen = tcp/18080", "To = nas:80"], ["Listen = udp/5000-5009", "To = nas"]],
    )


def refused(done: Completed, *words: str, lines: int = 1) -> None:
    """It failed, and said so in one line that has the words in it."""
    said = [line for line in done.err.splitlines() if line.strip()]
    progress(f"exit {done.code}: {' / '.join(said)}")
    expect(done.code not in (0, 139, 134), f"a proper non-zero exit code: {done}")
    expect(len(said) == lines, f"{lines} line of explanation: {done}")
    expect(not done.out.strip(), f"nothing on standard output: {done}")
    for word in words:
        expect(word.lower() in done.err.lower(), f"{word!r} is named: {done}")


def fails_cleanly(
    lab: Lab,
    change: Callable[[Namespace, TunnelSpec], None],
    words: tuple[str, ...],
    prefix: tuple[str, ...] = (),
) -> None:
    """`adit up` of a changed specification is refused and leaves nothing."""
    host = machine(lab)
    spec = full_spec()
    change(host, spec)
    tunnel = Adit(host, lab.device("x"), spec)
    before = snapshot(host)
    done = host.run(*prefix, tool("ctl/cli/adit"), "up", str(tunnel.file), check=False)
    refused(done, *words)
    require_same(before, snapshot(host), "a failed `adit up`")
    expect(not tunnel.pids(), "no daemon is left")


def wrong_key(_host: Namespace, spec: TunnelSpec) -> None:
    spec.extra.append("Adress = 10.0.0.1/24")


def unknown_peer(_host: Namespace, spec: TunnelSpec) -> None:
    spec.maps[0] = ["Listen = tcp/18080", "To = nobody:80"]


def taken_port(host: Namespace, _spec: TunnelSpec) -> None:
    code = (
        f"import signal, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        f"s.bind(('', {PORT})); signal.pause()"
    )
    holder = host.start(sys.executable, "-c", code, log="holder")
    holder.require(lambda: listening(holder.pid, "udp", PORT), 5, "the port is taken")


def taken_map_port(host: Namespace, _spec: TunnelSpec) -> None:
    code = "import signal, socket; s = socket.create_server(('', 18080)); signal.pause()"
    holder = host.start(sys.executable, "-c", code, log="holder")
    holder.require(lambda: listening(holder.pid, "tcp", 18080), 5, "the port is taken")


def failing_hook(_host: Namespace, spec: TunnelSpec) -> None:
    spec.extra += ["PostUp = true", "PostUp = echo reason >&2; exit 7"]


def unchanged(_host: Namespace, _spec: TunnelSpec) -> None:
    pass


NO_TUN = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh")

for _name, _change, _words, _prefix in (
    ("wrong_file", wrong_key, ("adress", ".conf:", "address"), ()),
    ("map_to_unknown_peer", unknown_peer, ("nobody", ".conf:"), ()),
    ("taken_port", taken_port, (str(PORT), "python"), ()),
    ("taken_map_port", taken_map_port, ("18080", "override"), ()),
    ("absent_tun", unchanged, ("/dev/net/tun",), NO_TUN),
    ("failing_hook", failing_hook, ("exit 7",), ()),
):
    add(
        _name,
        partial(fails_cleanly, change=_change, words=_words, prefix=_prefix),
        seconds=30,
    )


@scenario(seconds=30)
def not_root(lab: Lab) -> None:
    """Without root: one line that says so, for `up` and for aditd itself."""
    host = machine(lab)
    tunnel = Adit(host, lab.device("x"), full_spec())
    folder = lab.dir / "bin"
    folder.mkdir()
    for program in ("ctl/cli/adit", "ctl/daemon/aditd"):
        shutil.copy(tool(program), folder)
    shutil.chown(tunnel.file, "nobody")
    before = snapshot(host)
    nobody = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
    for argv in ((f"{folder}/adit", "up"), (f"{folder}/aditd", "--foreground")):
        done = host.run(*nobody, *argv, str(tunnel.file), check=False)
        refused(done, "root")
    require_same(before, snapshot(host), "`adit up` without root")
    # A file of root's alone.
    shutil.chown(tunnel.file, "root")
    refused(host.run(*nobody, f"{folder}/adit", "up", str(tunnel.file), check=False), "sudo adit up")
    refused(host.run(*nobody, f"{folder}/adit", "check", str(tunnel.file), check=False), "sudo")
    shutil.chown(tunnel.file, "nobody")
    # Validating needs no right.
    host.run(*nobody, f"{folder}/adit", "check", str(tunnel.file))


@scenario(seconds=60)
def up_after_failed_up(lab: Lab) -> None:
    """Whoever mends the file can go on at once: nothing of the failed start is in the way."""
    host = machine(lab)
    tunnel = Adit(host, lab.device("x"), full_spec())
    for _ in range(10):
        tunnel.spec.extra = ["PostUp = exit 7"]
        tunnel.write()
        refused(tunnel.cli("up", str(tunnel.file), check=False), "exit 7")
        expect(not tunnel.pids(), "the daemon has ended when `adit up` has")
        tunnel.spec.extra = []
        tunnel.write()
        tunnel.up()
        tunnel.down()


@scenario(seconds=40)
def up_says_what_does_not_work(lab: Lab) -> None:
    """`adit up` succeeds and prints the warnings of `adit status`; what was mended is not repeated."""
    host = machine(lab)
    host.ip("route", "delete", "default")
    host.ip("-6", "route", "delete", "default")
    spec = full_spec()
    spec.peers.pop()
    spec.extra += ["Table = off"]
    spec.maps.append(["Listen = tcp/7000", "To = nas", "[Tune]", "Profile = auto"])
    tunnel = Adit(host, lab.device("x"), spec)
    # Where it is installed it would change this machine's resolver.
    dns = shutil.which("resolvconf") is None
    if dns:
        spec.extra += ["DNS = 10.64.0.1"]
        tunnel.write()
    done = tunnel.cli("up", str(tunnel.file))
    words = ["no default route", "tuning: "] + (["resolvconf"] if dns else [])
    for word in words:
        expect(word in done.err, f"up says {word!r}: {done}")
        expect(word in str(tunnel.status()["warnings"]), f"so does status: {tunnel.status()}")
    spec.maps.pop()
    spec.extra = ["Table = off"]
    tunnel.write()
    done = tunnel.cli("reload", tunnel.name)
    for word in words[1:]:
        expect(word not in str(tunnel.status()["warnings"]), f"{word!r} is over: {tunnel.status()}")
    tunnel.down()


@scenario(seconds=30)
def absent_things(lab: Lab) -> None:
    """Names of interfaces and files that do not exist."""
    host = machine(lab)
    before = snapshot(host)
    adit = tool("ctl/cli/adit")
    for argv in (
        ("up", "/nonexistent/adit-no.conf"),
        ("down", "adit-no"),
        ("reload", "adit-no"),
        ("status", "adit-no"),
        ("status", "adit-no", "--json"),
        ("show", "adit-no"),
        ("set", "adit-no", "listen-port", "5"),
        ("check", "/nonexistent/adit-no.conf"),
    ):
        refused(host.run(adit, *argv, check=False), "adit-no")
    require_same(before, snapshot(host), "commands for absent interfaces")


@scenario(seconds=40)
def bad_set(lab: Lab) -> None:
    """`adit set` with an endpoint that does not resolve or a wrong value changes nothing."""
    host = machine(lab)
    tunnel = Adit(host, lab.device("x"), full_spec())
    tunnel.up()
    before, dump = snapshot(host), tunnel.dump()
    peer = tunnel.spec.peers[0].public_key
    for argv, word in (
        (("peer", peer, "endpoint", "nx.invalid:51820"), "nx.invalid"),
        (("peer", peer, "endpoint", "2001:db8::7:51820"), "bracket"),
        (("peer", peer, "allowed-ips", "10.0.0.0/33"), "33"),
        (("peer", peer, "persistent-keepalive", "65536"), "65536"),
        (("peer", "not-a-key", "remove"), "key"),
        (("listen-port", "70000"), "70000"),
    ):
        done = host.run(
            *(tool("ctl/cli/adit"), "set", tunnel.name, *argv),
            check=False,
            env={"WG_ENDPOINT_RESOLUTION_RETRIES": "0"},
        )
        refused(done, word)
    expect(tunnel.dump() == dump, "the interface is as it was")
    require_same(before, snapshot(host), "`adit set` with wrong values")
    again = host.run(tool("ctl/cli/adit"), "up", str(tunnel.file), check=False)
    refused(again, tunnel.name, "already up")
    require_same(before, snapshot(host), "a second `adit up`")
    tunnel.down()


def life_cycle(lab: Lab, table: str, crashed: bool) -> None:
    """Up and down again and again: the machine looks as before, every time."""
    host = machine(lab)
    spec = full_spec()
    spec.extra += [f"Table = {table}"]
    tunnel = Adit(host, lab.device("x"), spec)
    before = snapshot(host)
    cycles = CYCLES if table == "auto" and not crashed else 3
    for cycle in range(cycles):
        tunnel.up()
        if cycle == 0:
            expect(snapshot(host) != before, "up changes something")
            expect(len(tunnel.dump()) == 2, "both peers are there")
        if crashed:
            tunnel.crash()
        tunnel.down()
        require_same(before, snapshot(host), f"cycle {cycle}")
    expect(not tunnel.pids(), "no daemon is left")
    progress(f"{cycles} cycles")


for _table in ("auto", "off", "reply", "1234"):
    add(f"cycles_table_{_table}", partial(life_cycle, table=_table, crashed=False), seconds=150)
add("down_after_crash", partial(life_cycle, table="auto", crashed=True), seconds=60)
add("down_after_crash_reply", partial(life_cycle, table="reply", crashed=True), seconds=60)


@scenario(seconds=40)
def up_after_crash(lab: Lab) -> None:
    """`adit up` takes over what a killed daemon left, and the next `down` removes it all."""
    host = machine(lab)
    tunnel = Adit(host, lab.device("x"), full_spec())
    before = snapshot(host)
    tunnel.up()
    up = snapshot(host)
    for _ in range(3):
        tunnel.crash()
        tunnel.up()
        require_same(up, snapshot(host), "`adit up` after kill -9")
    tunnel.down()
    require_same(before, snapshot(host), "`adit down` after kill -9 and `adit up`")


@scenario(seconds=40)
def hostile_undo_record(lab: Lab) -> None:
    """`adit down` of a killed daemon does as root only what adit can have to undo."""
    host = machine(lab)
    tunnel = Adit(host, lab.device("x"), full_spec())
    record = Path(host.env["ADIT_RUNTIME_DIR"], tunnel.name, "undo.json")
    before = snapshot(host)
    kept = host.run("sysctl", "-n", "net.ipv4.tcp_syncookies").out

    tunnel.up()
    tunnel.crash()
    content = json.loads(record.read_text())
    content["sysctls"]["net/ipv4/tcp_syncookies"] = "2" if kept.strip() != "2" else "1"
    content["sysctls"]["../../etc/passwd"] = "x"
    record.write_text(json.dumps(content))
    done = tunnel.cli("down", tunnel.name, check=False)
    expect(done.code != 0 and "tcp_syncookies" in done.err, f"what is left alone is named: {done}")
    expect(host.run("sysctl", "-n", "net.ipv4.tcp_syncookies").out == kept, "and left alone")
    require_same(before, snapshot(host), "the rest is undone")

    tunnel.up()
    tunnel.crash()
    record.unlink()
    os.mkfifo(record)
    done = tunnel.cli("down", tunnel.name, check=False)
    expect(done.code != 0 and "undo.json" in done.err, f"a pipe in its place is named: {done}")
    expect(not record.exists(), "and not waited for")


@scenario(seconds=40)
def secrets(lab: Lab) -> None:
    """A file that others may read is warned about; no output of ours holds a private key."""
    host = machine(lab)
    tunnel = Adit(host, lab.device("x"), full_spec())
    tunnel.file.chmod(0o644)
    done = tunnel.cli("up", str(tunnel.file))
    expect("chmod" in done.err, f"the warning names the remedy: {done}")
    private = tunnel.spec.keys.private
    texts = [
        done.out,
        done.err,
        tunnel.cli("status", tunnel.name).out,
        tunnel.cli("status", tunnel.name, "--json").out,
        tunnel.cli("show", tunnel.name).out,
    ]
    tunnel.down()
    log = Path(host.env["ADIT_RUNTIME_DIR"], f"{tunnel.name}.log")
    if log.exists():
        texts.append(log.read_text())
        mode = stat.S_IMODE(log.stat().st_mode)
        expect(mode & 0o007 == 0, f"the log is not for others: {mode:o}")
    expect(not any(private in text for text in texts), "the private key is never shown")
    spec = full_spec()
    broken = Adit(host, lab.device("y"), spec)
    broken.file.write_text(spec.text().replace("PrivateKey", "PrivatKey"))
    done = broken.cli("check", str(broken.file), check=False)
    expect(
        done.code != 0 and spec.keys.private not in done.out + done.err,
        "a wrong line with a key in it is not repeated",
    )


@scenario(seconds=40)
def foreground_for_systemd(lab: Lab) -> None:
    """What the systemd unit relies on: READY=1 once it is up, and an end by `adit down`."""
    host = machine(lab)
    tunnel = Adit(host, lab.device("x"), full_spec())
    before = snapshot(host)
    path = lab.dir / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(path))
        path.chmod(0o777)
        notify.settimeout(20)
        daemon = host.start(
            *(tool("ctl/daemon/aditd"), "--foreground", str(tunnel.file)),
            log="daemon",
            env={"NOTIFY_SOCKET": str(path)},
        )
        said = notify.recv(4096).decode()
    expect("READY=1" in said.splitlines(), f"readiness is told: {said}")
    expect(len(tunnel.dump()) == 2, "it is up then")
    expect(daemon.running(), "it stays in the foreground")
    tunnel.down()
    expect(daemon.wait(10) == 0, "it ends well")
    require_same(before, snapshot(host), "`adit down` of a daemon in the foreground")
    again = host.start(tool("ctl/daemon/aditd"), "--foreground", str(tunnel.file), log="daemon")
    again.require(tunnel.socket().exists, 10, "it is up again")
    wait_until(lambda: len(tunnel.dump()) == 2, 10, "with its peers")
    expect(again.stop(10) == 0, "SIGTERM ends it well")
    tunnel.cli("down", tunnel.name, check=False)
    require_same(before, snapshot(host), "SIGTERM")


if __name__ == "__main__":
    sys.exit(main())
