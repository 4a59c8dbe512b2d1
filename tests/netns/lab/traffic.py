"""Traffic and its measurement: ping, iperf3, a web server, fetching with a hash."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .network import Namespace
from .process import LabError, Process, listening, wait_until


def ping(
    source: Namespace, address: str, *, count: int = 3, timeout: float = 10, size: int = 56
) -> None:
    """Needs `count` answers within `timeout` seconds; lost ones in between are forgiven."""

    def answered() -> bool:
        argv = ("ping", "-n", "-q", "-c", str(count), "-i", "0.05", "-W", "1", "-s", str(size))
        return source.run(*argv, address, check=False, timeout=timeout + 5).code == 0

    wait_until(answered, timeout, f"{source} gets {count} answers from {address}")


def answers(source: Namespace, address: str, seconds: int = 1) -> bool:
    """Whether one ping is answered within `seconds`."""
    argv = ("ping", "-n", "-q", "-c", "1", "-W", str(seconds))
    return source.run(*argv, address, check=False).code == 0


@dataclass(frozen=True)
class Iperf:
    """What one iperf3 run measured, at the receiver."""

    mbps: float
    lost_percent: float
    report: dict[str, Any]


class IperfServer:
    def __init__(self, where: Namespace, port: int = 5201, address: str | None = None):
        bind = ["-B", address] if address else []
        self.port = port
        self.process: Process = where.start(
            *("iperf3", "-s", "-p", str(port), "--forceflush", *bind), log=f"iperf3-{port}"
        )
        pid = self.process.pid
        self.process.require(lambda: listening(pid, "tcp", port), 5, f"iperf3 listens on {port}")

    def clients(self) -> list[str]:
        """Addresses that connections came from, oldest first."""
        return re.findall(r"Accepted connection from ([0-9a-fA-F.:]+)", self.process.output())

    def stop(self) -> None:
        self.process.stop()


def iperf_argv(
    address: str,
    *,
    port: int = 5201,
    seconds: int = 3,
    reverse: bool = False,
    parallel: int = 1,
    udp_rate: str | None = None,
    length: int | None = None,
    congestion: str | None = None,
    omit: int = 0,
) -> list[str]:
    """The client's command line. `reverse` makes the server send; `udp_rate` is bits per second."""
    argv = ["iperf3", "-J", "-c", address, "-p", str(port), "-t", str(seconds)]
    argv += ["-P", str(parallel), "-O", str(omit), "--connect-timeout", "5000"]
    argv += ["-R"] if reverse else []
    argv += ["-u", "-b", udp_rate] if udp_rate else []
    argv += ["-l", str(length)] if length else []
    argv += ["-C", congestion] if congestion else []
    return argv


def iperf_result(text: str, udp: bool) -> Iperf:
    """Reads a JSON report. An error, or a report without a figure, is never taken for zero."""
    try:
        report = json.loads(text)
    except ValueError:
        raise LabError(f"iperf3 printed no JSON: {text[:500]!r}") from None
    if "error" in report:
        raise LabError(f"iperf3: {report['error']}")
    try:
        if udp:
            total = report["end"]["sum"]
            received = total["packets"] - total["lost_packets"]
            length = report["start"]["test_start"]["blksize"]
            mbps = received * length * 8 / total["seconds"] / 1e6
            result = Iperf(mbps, total["lost_percent"], report)
        else:
            total = report["end"]["sum_received"]
            result = Iperf(total["bits_per_second"] / 1e6, 0.0, report)
    except (KeyError, ZeroDivisionError) as error:
        raise LabError(f"iperf3's report lacks {error}: {text[-500:]}") from None
    if result.mbps <= 0:
        raise LabError(f"iperf3 received nothing: {text[-800:]}")
    return result


def iperf(source: Namespace, address: str, **options: Any) -> Iperf:
    """Runs the client to its end; options are those of iperf_argv()."""
    seconds = options.get("seconds", 3) + options.get("omit", 0)
    done = source.run(*iperf_argv(address, **options), timeout=seconds + 20, check=False)
    if not done.out.strip():
        raise LabError(str(done))
    return iperf_result(done.out, bool(options.get("udp_rate")))


NGINX = """
daemon off;
worker_processes 1;
pid {dir}/nginx.pid;
error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{
  log_format client '$remote_addr $status $request_uri';
  access_log {dir}/access.log client;
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  sendfile on;
  server {{
    listen {port};
    listen [::]:{port};
    root {root};
  }}
}}
"""


class WebServer:
    """nginx with one file of random bytes, whose hash is known."""

    def __init__(self, where: Namespace, *, port: int = 80, mebibytes: float = 8):
        self.port = port
        self.dir = where.dir / f"nginx-{port}"
        root = self.dir / "root"
        root.mkdir(parents=True)
        content = random.Random(port).randbytes(int(mebibytes * 1024 * 1024))
        (root / "file").write_bytes(content)
        self.sha256 = hashlib.sha256(content).hexdigest()
        config = self.dir / "nginx.conf"
        config.write_text(NGINX.format(dir=self.dir, root=root, port=port))
        self.process: Process = where.start(
            *("nginx", "-p", str(self.dir), "-c", str(config), "-e", str(self.dir / "error.log")),
            log=f"nginx-{port}",
        )
        pid = self.process.pid
        self.process.require(lambda: listening(pid, "tcp", port), 10, f"nginx listens on {port}")

    def clients(self) -> list[str]:
        """Addresses of the clients in the access log, oldest first."""
        log = self.dir / "access.log"
        return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []

    def stop(self) -> None:
        self.process.stop()


def fetch_sha256(
    source: Namespace, url: str, *, timeout: float = 60, env: dict[str, str] | None = None
) -> str:
    """Fetches with curl and returns the hash of what came."""
    target = source.dir / f"fetched-{os.urandom(4).hex()}"
    argv = ("curl", "-sS", "--fail", "--noproxy", "*", "--connect-timeout", "10", "-g")
    try:
        source.run(*argv, "-o", str(target), url, timeout=timeout, env=env)
        return hashlib.sha256(Path(target).read_bytes()).hexdigest()
    finally:
        target.unlink(missing_ok=True)
