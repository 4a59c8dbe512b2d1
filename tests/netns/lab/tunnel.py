"""The kinds of tunnel ends: adit by its shipped daemon and CLI, wireguard-go, and wireguard.ko.

Both are described by the same configuration; a scenario says what it wants and which implementation
each end uses.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .network import WIREGUARD_DIR, Namespace, tool
from .process import Completed, LabError, Process, run, wait_until

# Drop counters of packets on their way out.
SEND_DROPS = ("no-peer", "no-endpoint", "queue-full", "send-failed")


@dataclass(frozen=True)
class KeyPair:
    private: str
    public: str


def key_pair() -> KeyPair:
    private = run(["wg", "genkey"]).out.strip()
    return KeyPair(private, run(["wg", "pubkey"], stdin=private).out.strip())


def preshared_key() -> str:
    return run(["wg", "genpsk"]).out.strip()


@dataclass
class PeerSpec:
    public_key: str
    allowed_ips: str
    name: str = ""
    endpoint: str = ""
    preshared_key: str = ""
    keepalive: int = 0
    extra: list[str] = field(default_factory=list)

    def lines(self, wireguard: bool) -> Iterator[str]:
        yield "[Peer]"
        if self.name and not wireguard:
            yield f"Name = {self.name}"
        yield f"PublicKey = {self.public_key}"
        if self.preshared_key:
            yield f"PresharedKey = {self.preshared_key}"
        if self.endpoint:
            yield f"Endpoint = {self.endpoint}"
        if self.allowed_ips:
            yield f"AllowedIPs = {self.allowed_ips}"
        if self.keepalive:
            yield f"PersistentKeepalive = {self.keepalive}"
        if not wireguard:
            yield from self.extra


@dataclass
class TunnelSpec:
    """A configuration file's content. `extra` are further lines of [Interface], adit's only."""

    keys: KeyPair
    addresses: list[str]
    peers: list[PeerSpec] = field(default_factory=list)
    listen_port: int = 0
    mtu: int = 0
    extra: list[str] = field(default_factory=list)
    maps: list[list[str]] = field(default_factory=list)

    def text(self) -> str:
        """adit's whole file."""
        lines = ["[Interface]", f"PrivateKey = {self.keys.private}"]
        lines += [f"Address = {', '.join(self.addresses)}"] if self.addresses else []
        lines += [f"ListenPort = {self.listen_port}"] if self.listen_port else []
        lines += [f"MTU = {self.mtu}"] if self.mtu else []
        lines += self.extra
        for peer in self.peers:
            lines += ["", *peer.lines(wireguard=False)]
        for entry in self.maps:
            lines += ["", "[Map]", *entry]
        return "\n".join(lines) + "\n"

    def wireguard_text(self) -> str:
        """What `wg setconf` understands of it."""
        lines = ["[Interface]", f"PrivateKey = {self.keys.private}"]
        lines += [f"ListenPort = {self.listen_port}"] if self.listen_port else []
        for peer in self.peers:
            lines += ["", *peer.lines(wireguard=True)]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class PeerState:
    """One peer as `wg show NAME dump` prints it."""

    public_key: str
    preshared_key: str
    endpoint: str
    allowed_ips: str
    latest_handshake: int
    rx_bytes: int
    tx_bytes: int
    keepalive: str


def parse_dump(text: str) -> list[PeerState]:
    peers = []
    for line in text.splitlines()[1:]:
        key, psk, endpoint, allowed, handshake, rx, tx, keepalive = line.split("\t")
        peers.append(
            PeerState(key, psk, endpoint, allowed, int(handshake), int(rx), int(tx), keepalive)
        )
    return peers


class Tunnel:
    """One end. `name` is its interface."""

    def __init__(self, where: Namespace, name: str, spec: TunnelSpec):
        self.where = where
        self.name = name
        self.spec = spec

    @property
    def address(self) -> str:
        return self.spec.addresses[0].split("/")[0]

    def up(self) -> None:
        raise NotImplementedError

    def down(self) -> None:
        raise NotImplementedError

    def crash(self) -> None:
        """Ends the daemon as kill -9 does."""
        raise NotImplementedError

    def pids(self) -> list[int]:
        """The daemon's processes."""
        raise NotImplementedError

    def dump(self) -> list[PeerState]:
        return parse_dump(self.wg("show", self.name, "dump").out)

    def wg(self, *args: str, stdin: str | None = None) -> Completed:
        """wg(8) beside the interface: it sees the kernel's own in their namespace alone."""
        return self.where.run("wg", *args, stdin=stdin)

    def set_peer(self, public_key: str, *args: str, stdin: str | None = None) -> None:
        self.wg("set", self.name, "peer", public_key, *args, stdin=stdin)

    def peer(self) -> PeerState:
        """The state of the only peer."""
        peers = self.dump()
        if len(peers) != 1:
            raise LabError(f"{self.name} has {len(peers)} peers, not one")
        return peers[0]

    def socket(self) -> Path:
        return WIREGUARD_DIR / f"{self.name}.sock"


class WireGuardReference(Tunnel):
    """An implementation of WireGuard that is not ours, set up with wg(8) and ip(8)."""

    def configure(self) -> None:
        """What follows once the device is there."""
        config = self.where.dir / f"{self.name}.wg"
        config.write_text(self.spec.wireguard_text())
        config.chmod(0o600)
        self.wg("setconf", self.name, str(config))
        for address in self.spec.addresses:
            self.where.address(self.name, address)
        self.where.ip("link", "set", self.name, "mtu", str(self.spec.mtu or 1420), "up")
        for peer in self.spec.peers:
            for prefix in filter(None, (part.strip() for part in peer.allowed_ips.split(","))):
                if not prefix.endswith("/0"):
                    self.where.ip("route", "replace", prefix, "dev", self.name)


class WireGuardGo(WireGuardReference):
    process: Process | None = None
    # The interface's name follows. Others that work the same way may be put here.
    program: tuple[str, ...] = ("wireguard-go", "-f")

    def up(self) -> None:
        self.process = self.where.start(
            *(*self.program, self.name),
            log=self.name,
            env={"LOG_LEVEL": os.environ.get("ADIT_LAB_WG_LOG", "error")},
        )
        self.process.require(self.socket().exists, 10, f"{self.socket()} exists")
        self.configure()

    def pids(self) -> list[int]:
        return [self.process.pid] if self.process is not None and self.process.running() else []

    def down(self) -> None:
        if self.process is not None:
            self.process.stop()
            self.socket().unlink(missing_ok=True)

    def crash(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.socket().unlink(missing_ok=True)


class WireGuardKernel(WireGuardReference):
    """The kernel's own module. It has no process: a crash is the loss of the device."""

    def up(self) -> None:
        self.where.ip("link", "add", self.name, "type", "wireguard")
        self.configure()

    def pids(self) -> list[int]:
        return []

    def down(self) -> None:
        self.where.ip("link", "delete", self.name)

    def crash(self) -> None:
        self.down()


# `ADIT_LAB_PEER=kernel` takes the distribution's module: in a VM, where it can be loaded.
WireGuard: type[WireGuardReference] = (
    WireGuardKernel if os.environ.get("ADIT_LAB_PEER") == "kernel" else WireGuardGo
)


class Adit(Tunnel):
    """The product: `adit up FILE` and what follows from it."""

    def __init__(
        self, where: Namespace, name: str, spec: TunnelSpec, env: dict[str, str] | None = None
    ):
        super().__init__(where, name, spec)
        self.file = where.dir / f"{name}.conf"
        self.env = dict(env or {})
        self.write()

    def write(self) -> None:
        """Writes the specification to the file, as a person would edit it."""
        backend = os.environ.get("ADIT_TEST_BACKEND")
        if backend and not any(line.lower().startswith("backend") for line in self.spec.extra):
            self.spec.extra.append(f"Backend = {backend}")
        self.file.touch(mode=0o600)
        self.file.write_text(self.spec.text())

    def cli(self, *args: str, check: bool = True, stdin: str | None = None) -> Completed:
        return adit(self.where, *args, check=check, env=self.env, stdin=stdin)

    def up(self) -> None:
        self.cli("up", str(self.file))

    def down(self) -> None:
        self.cli("down", self.name)

    def status(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.cli("status", self.name, "--json").out)
        return result

    def pids(self) -> list[int]:
        """The daemon's processes: the aditd in this namespace that were started for this file."""
        found = []
        for pid in self.where.pids():
            try:
                argv = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if Path(argv[0]).name == "aditd" and any(self.name in arg for arg in argv[1:]):
                found.append(pid)
        return found

    def crash(self) -> None:
        pids = self.pids()
        if not pids:
            raise LabError(f"no aditd runs for {self.name}")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(alive, pids)), 5, f"aditd {pids} is gone")

    def suite(self) -> str | None:
        """The cipher of the current session, or None."""
        name: str | None = self.status()["peers"][0]["cipher"]
        return name

    def receive_drops(self) -> dict[str, int]:
        """By reason, every datagram that the device received and did not pass on."""
        drops: dict[str, int] = self.status()["drops"]
        return {name: count for name, count in drops.items() if name not in SEND_DROPS}


def alive(pid: int) -> bool:
    """Whether any thread of the process still lives, and with it the process's descriptors."""
    # A thread, or the whole process, may go between two looks.
    with contextlib.suppress(FileNotFoundError):
        for path in Path(f"/proc/{pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):
                if path.read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
                    return True
    return False


def adit(
    where: Namespace,
    *args: str,
    check: bool = True,
    env: dict[str, str] | None = None,
    stdin: str | None = None,
) -> Completed:
    """Runs the CLI in a namespace."""
    return where.run(tool("ctl/cli/adit"), *args, check=check, env=env, stdin=stdin)


def connected(tunnel: Tunnel, since: int = 0) -> bool:
    """Whether the only peer has shaken hands later than `since` (seconds since the epoch)."""
    return tunnel.peer().latest_handshake > since
