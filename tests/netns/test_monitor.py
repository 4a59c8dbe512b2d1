#!/usr/bin/env python3
"""`adit monitor` on a real terminal, and /metrics as a scraper sees it.

Topologies: `Home` and `Pair` in lab/topology.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import sys
import termios
import time
from collections.abc import Iterator

from lab import (
    PORT,
    Adit,
    Lab,
    LabError,
    Namespace,
    WebServer,
    ends,
    expect,
    main,
    pair,
    ping,
    progress,
    scenario,
    specs,
    tool,
    wait_until,
)
from lab.served import fetches, served_home

METRICS_PORT = 9586
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Screen:
    """A program on a pseudo-terminal of a given size."""

    def __init__(self, where: Namespace, columns: int, rows: int, *argv: str):
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.text = ""
        self.pid = os.fork()
        if self.pid == 0:
            os.login_tty(self.slave) if hasattr(os, "login_tty") else self._login()
            os.execvpe("ip", ["ip", "netns", "exec", where.full_name, *argv], where.env)

    def _login(self) -> None:
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for descriptor in range(3):
            os.dup2(self.slave, descriptor)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float = 0.1) -> str:
        """All that has been written so far, after a wait for more."""
        if select.select([self.master], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                self.text += os.read(self.master, 65536).decode(errors="replace")
        return self.text

    def frame(self) -> list[str]:
        """The lines of the last whole picture."""
        frames = self.read().split("\x1b[H")
        last = [frame for frame in frames if "\x1b[J" in frame][-1]
        return ESCAPES.sub("", last.split("\x1b[J")[0]).split("\r\n")

    def wait(self, seconds: float = 5) -> int:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise LabError(f"it does not end: {self.text[-500:]!r}")

    def is_restored(self) -> bool:
        self.read()
        # The line discipline as before, the cursor seen, the usual screen shown.
        return (
            termios.tcgetattr(self.slave) == self.before
            and self.text.rindex("\x1b[?25h") > self.text.rindex("\x1b[?25l")
            and self.text.rindex("\x1b[?1049l") > self.text.rindex("\x1b[?1049h")
        )


def monitor(where: Namespace, tunnel: Adit, columns: int = 80, rows: int = 24) -> Screen:
    argv = (tool("ctl/cli/adit"), "monitor", tunnel.name, "--interval", "0.3")
    return Screen(where, columns, rows, *argv)


@scenario(seconds=90)
def live_view(lab: Lab) -> None:
    """80 x 24, another size while it runs, q and Ctrl-C, and the terminal as before."""
    net, server, _nas = served_home(lab)
    WebServer(net.nas, mebibytes=4)
    for key, end in (("q", "q"), ("Ctrl-C", "\x03"), ("SIGTERM", "")):
        screen = monitor(net.server, server)
        wait_until(lambda: "MAPPING" in screen.read(), 10, "the first picture")
        if key == "q":
            fetches(net, 18080)
            wait_until(lambda: "tcp/18080" in "\n".join(screen.frame()), 5, "the mapping is shown")
            check_frame(screen, 80, 24)
            screen.resize(60, 12)
            os.kill(screen.pid, signal.SIGWINCH)
            wait_until(lambda: max(map(len, screen.frame())) <= 60, 5, "it follows the size")
            check_frame(screen, 60, 12)
        if end:
            os.write(screen.master, end.encode())
        else:
            os.kill(screen.pid, signal.SIGTERM)
        code = screen.wait()
        expect(code == 0, f"{key} ends it cleanly: {code}")
        expect(screen.is_restored(), f"after {key} all is as before: {screen.text[-200:]!r}")


def check_frame(screen: Screen, columns: int, rows: int) -> None:
    frame = screen.frame()
    progress("\n" + "\n".join(frame))
    expect(len(frame) <= rows, f"{len(frame)} lines fit into {rows}")
    expect(all(len(line) <= columns for line in frame), f"lines fit into {columns}: {frame}")
    expect(any("tcp/18080" in line for line in frame), f"the mapping is shown: {frame}")
    expect(any("nas" in line for line in frame), f"the peer is shown: {frame}")


@scenario(seconds=60)
def once(lab: Lab) -> None:
    """--once, and an output that is no terminal: one picture without control characters."""
    net, server, _nas = served_home(lab)
    for args in (("--once",), ("--interval", "0.2")):
        text = server.cli("monitor", server.name, *args).out
        expect("\x1b" not in text and "nas" in text, f"{args}: {text!r}")
        expect(text.count("MAPPING") == 1 and "tcp/18080" in text, f"once: {text}")
        expect(re.search(r"^ +\d+ [#:.]{10} +\d+% si", text, re.M), f"cores are shown: {text}")
    done = server.cli("monitor", "nothing0", "--once", check=False)
    expect(done.code == 1 and "nothing0" in done.err, f"an interface that is not up: {done}")
    done = server.cli("monitor", "--interval", "0", "--once", check=False)
    expect(done.code == 1 and "--interval" in done.err, f"a wrong interval: {done}")
    expect(net.lab is lab, "the network stays until here")


def scrape(where: Namespace, *args: str) -> str:
    return where.run("curl", "-sS", "--fail", "-m", "5", "--noproxy", "*", *args).out


def value(page: str, name: str, *labels: str) -> float:
    """The only sample of that name with these labels."""
    found = [
        line
        for line in page.splitlines()
        if line.startswith(name + "{") and all(label in line for label in labels)
    ]
    expect(len(found) == 1, f"one sample of {name} {labels}: {found}")
    return float(found[0].rsplit(" ", 1)[1])


def two(lab: Lab, metrics: str) -> tuple[Adit, Adit]:
    net = pair(lab)
    left_spec, right_spec = specs(f"{net.right_address}:{PORT}")
    left_spec.extra.append(f"Metrics = {metrics}")
    left = Adit(net.left, lab.device("l"), left_spec)
    right = Adit(net.right, lab.device("r"), right_spec)
    right.up()
    left.up()
    ping(net.left, ends.RIGHT)
    return left, right


@contextlib.contextmanager
def inside(where: Namespace) -> Iterator[None]:
    """This thread in another network namespace."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    other = os.open(f"/run/netns/{where.full_name}", os.O_RDONLY)
    clone_newnet = 0x40000000
    libc = __import__("ctypes").CDLL(None)
    libc.setns(other, clone_newnet)
    try:
        yield
    finally:
        libc.setns(own, clone_newnet)
        os.close(own)
        os.close(other)


@scenario(seconds=60)
def metrics(lab: Lab) -> None:
    """/metrics on loopback: right figures, no secrets, and nobody else may ask."""
    left, right = two(lab, f"127.0.0.1:{METRICS_PORT}")
    url = f"http://127.0.0.1:{METRICS_PORT}/metrics"
    page = scrape(left.where, url)
    key = f'public_key="{left.spec.peers[0].public_key}"'
    received = value(page, "adit_peer_receive_bytes_total", key, 'name="right"')
    expect(received > 0, f"traffic was counted: {received}")
    expect(value(page, "adit_peer_handshakes_total", key) >= 1, "a handshake")
    handshake = value(page, "adit_peer_last_handshake_timestamp_seconds", key)
    expect(abs(handshake - time.time()) < 60, f"it was just now: {handshake}")
    ping(left.where, ends.RIGHT)
    time.sleep(0.3)  # Within 0.2 s a page is used again.
    later = value(scrape(left.where, url), "adit_peer_receive_bytes_total", key)
    expect(later > received, f"it grows: {received} {later}")
    for secret in (left.spec.keys.private, "192.0.2.2"):
        expect(secret not in page, "neither keys nor addresses of peers are told")
    done = right.where.run("curl", "-sS", "-m", "2", "http://192.0.2.1:9586/metrics", check=False)
    expect(done.code != 0, "other machines do not reach it")
    argv = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: evil", url)
    done = left.where.run(*argv)
    expect(done.out == "403", f"nor a page in a browser by a name of its own: {done.out}")
    if promtool := shutil.which("promtool"):
        left.where.run(promtool, "check", "metrics", stdin=page)
    left.down()
    done = left.where.run("curl", "-sS", "-m", "2", url, check=False)
    expect(done.code != 0, "it ends with the interface")


@scenario(seconds=60)
def metrics_on_a_socket(lab: Lab) -> None:
    """A unix socket, for users without rights too, gone with the interface; a taken port."""
    folder = lab.dir / "sockets"
    folder.mkdir(mode=0o755)
    path = folder / "adit.metrics"
    left, right = two(lab, f"unix:{path}")
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    page = left.where.run(
        *nobody, "curl", "-sS", "--fail", "--unix-socket", str(path), "http://adit/metrics"
    ).out
    expect("adit_interface_info{" in page, f"the page: {page[:300]}")
    left.down()
    expect(not path.exists(), "the socket goes with the interface")

    right.down()
    with inside(right.where):
        holder = socket.create_server(("127.0.0.1", METRICS_PORT))
    right.spec.extra.append(f"Metrics = 127.0.0.1:{METRICS_PORT}")
    right.write()
    done = right.cli("up", str(right.file))
    expect("Metrics" in done.err and str(METRICS_PORT) in done.err, f"it is up, and says: {done}")
    holder.close()


@scenario(seconds=90)
def metrics_under_attack(lab: Lab) -> None:
    """Clients that hold on, dribble or never read: scrapes, the tunnel and the CLI go on."""
    left, _right = two(lab, f"127.0.0.1:{METRICS_PORT}")
    url = f"http://127.0.0.1:{METRICS_PORT}/metrics"
    words = (b"", b"GET /met", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    held = []
    with inside(left.where):
        for i in range(200):
            client = socket.create_connection(("127.0.0.1", METRICS_PORT))
            client.setblocking(False)
            with contextlib.suppress(OSError):
                client.send(words[i % 3])
            held.append(client)
    started = time.monotonic()
    expect("adit_interface_info" in scrape(left.where, url), "a scrape works")
    ping(left.where, ends.RIGHT)
    expect(left.status()["name"] == left.name, "the daemon answers")
    expect(time.monotonic() - started < 5, "at once")
    worker = max(left.pids(), key=lambda pid: len(os.listdir(f"/proc/{pid}/fd")))
    descriptors = len(os.listdir(f"/proc/{worker}/fd"))
    expect(descriptors < 80, f"the daemon holds few of them: {descriptors}")
    for client in held:
        client.close()


if __name__ == "__main__":
    sys.exit(main())
