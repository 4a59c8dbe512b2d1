"""The demonstration: a NAS behind a NAT serves the Internet on a public server's ports.

Topology: `Home` in tests/netns/lab/topology.py. scripts/demo runs it after installing and building.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "netns"))

from lab import (  # noqa: E402
    Adit,
    Home,
    Interrupted,
    IperfServer,
    Lab,
    LabError,
    PeerSpec,
    TunnelSpec,
    WebServer,
    fetch_sha256,
    home,
    install_signal_handlers,
    iperf,
    key_pair,
    ping,
    preshared_key,
)

WEB_PORT = 18080
IPERF_PORT = 5201
LINK_PORT = 5202  # on the server itself, beside the mapped port
TUNNEL_PORT = 51820


def say(text: str) -> None:
    print(f"demo: {text}", file=sys.stderr, flush=True)


@dataclass
class MapResult:
    listen: str
    ok: bool
    client_address_kept: bool


def tunnel_specs(net: Home) -> tuple[TunnelSpec, TunnelSpec]:
    """The two configuration files: the server's and the NAS's."""
    server_keys, nas_keys, psk = key_pair(), key_pair(), preshared_key()
    server = TunnelSpec(
        keys=server_keys,
        addresses=["10.10.0.1/24", "fd10::1/64"],
        listen_port=TUNNEL_PORT,
        peers=[
            PeerSpec(
                name="nas",
                public_key=nas_keys.public,
                preshared_key=psk,
                allowed_ips="10.10.0.2/32, fd10::2/128",
            )
        ],
        maps=[
            [f"Listen = tcp/{WEB_PORT}", "To = nas:80"],
            [f"Listen = tcp/{IPERF_PORT}", "To = nas"],
        ],
    )
    nas = TunnelSpec(
        keys=nas_keys,
        addresses=["10.10.0.2/24", "fd10::2/64"],
        extra=["Table = reply"],
        peers=[
            PeerSpec(
                name="server",
                public_key=server_keys.public,
                preshared_key=psk,
                endpoint=f"{net.server_address}:{TUNNEL_PORT}",
                allowed_ips="0.0.0.0/0, ::/0",
                keepalive=25,
            )
        ],
    )
    return server, nas


def bring_up(net: Home) -> tuple[Adit, Adit]:
    server_spec, nas_spec = tunnel_specs(net)
    server = Adit(net.server, net.lab.device("srv"), server_spec)
    nas = Adit(net.nas, net.lab.device("nas"), nas_spec)
    for tunnel in (server, nas):
        say(f"adit up {tunnel.file.name} on the {tunnel.where}")
        tunnel.up()
    ping(net.nas, "10.10.0.1")
    return server, nas


def check_web(net: Home, web: WebServer) -> MapResult:
    """Fetches the file as two clients, IPv4 and IPv6, and reads the web server's log."""
    result = MapResult(f"tcp/{WEB_PORT}", True, True)
    for host, client in (
        (net.server_address, net.client_address),
        (f"[{net.server_address6}]", net.client_address6),
    ):
        url = f"http://{host}:{WEB_PORT}/file"
        before = len(web.clients())
        try:
            right = fetch_sha256(net.client, url, timeout=20) == web.sha256
        except LabError as error:
            say(f"{url}: {error}")
            right = False
        seen = web.clients()[before:]
        kept = seen == [client]
        say(f"{url}: {'right' if right else 'WRONG'} content; the NAS saw {', '.join(seen) or '-'}")
        result.ok = result.ok and right
        result.client_address_kept = result.client_address_kept and kept
    return result


def measure(net: Home, seconds: int) -> tuple[dict[str, float], MapResult]:
    """The NAS sends: over the bare link, through the tunnel, through the mapped port."""
    bare = IperfServer(net.server, LINK_PORT)
    service = IperfServer(net.nas, IPERF_PORT)
    mbps = {}
    say(f"iperf3, {seconds} s each: nas → server, the bare link")
    mbps["link"] = iperf(net.nas, net.server_address, port=LINK_PORT, seconds=seconds).mbps
    say("iperf3: nas → server, the tunnel")
    mbps["tunnel"] = iperf(net.nas, "10.10.0.1", port=LINK_PORT, seconds=seconds).mbps
    say("iperf3: nas → client, the mapped port")
    mapped = iperf(net.client, net.server_address, port=IPERF_PORT, seconds=seconds, reverse=True)
    mbps["mapped"] = mapped.mbps
    kept = service.clients() == [net.client_address]
    for server in (bare, service):
        server.stop()
    return mbps, MapResult(f"tcp/{IPERF_PORT}", True, kept)


def demonstrate(lab: Lab, seconds: int) -> dict[str, Any]:
    say("four machines: client, server, home router with NAT, nas")
    net = home(lab)
    web = WebServer(net.nas)
    server, nas = bring_up(net)
    maps = [check_web(net, web)]
    mbps, iperf_map = measure(net, seconds)
    maps.append(iperf_map)
    status = server.status()
    say("adit down on both")
    for tunnel in (nas, server):
        tunnel.down()
    return {
        "backend": status["backend"],
        "cipher": status["peers"][0]["cipher"],
        "maps": [vars(entry) for entry in maps],
        "mbps": {name: round(value, 1) for name, value in mbps.items()},
    }


def table(result: dict[str, Any]) -> str:
    mbps = result["mbps"]
    lines = [f"backend {result['backend']}, cipher {result['cipher']}", ""]
    lines.append(f"{'mapped port':<14}{'works':<8}{'client address kept':<20}")
    for entry in result["maps"]:
        works, kept = ("yes" if entry[key] else "NO" for key in ("ok", "client_address_kept"))
        lines.append(f"{entry['listen']:<14}{works:<8}{kept:<20}")
    lines += ["", f"{'iperf3, one TCP stream':<32}{'Mbit/s':>9}{'of link':>9}"]
    titles = {
        "link": "bare link, nas → server",
        "tunnel": "tunnel, nas → server",
        "mapped": "mapped port, nas → client",
    }
    for key, title in titles.items():
        lines.append(f"{title:<32}{mbps[key]:>9.0f}{mbps[key] / mbps['link']:>9.0%}")
    return "\n".join(lines)


def positive(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 600:
        raise argparse.ArgumentTypeError("from 1 to 600")
    return value


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.add_argument(
        "--seconds", type=positive, default=5, help="length of each of the three iperf3 runs"
    )
    parser.add_argument("--keep", action="store_true", help="leave everything up at the end")
    # The two that scripts/demo itself acts on, before it starts this program; here for --help.
    parser.add_argument(
        "--vm",
        action="store_true",
        help="Backend = kernel, in an emulated machine with a stock Debian kernel; needs no root",
    )
    parser.add_argument("--kernel", metavar="VERSION", help="of --vm: 6.1 or 6.12 (default)")
    options = parser.parse_args()
    install_signal_handlers()
    started = time.monotonic()
    try:
        with Lab(keep=options.keep) as lab:
            result = demonstrate(lab, options.seconds)
    except LabError as error:
        say(f"failed: {error}")
        return 1
    except Interrupted as stop:
        say(f"ended by {stop}, everything removed")
        return 128 + stop.number
    say(f"done in {time.monotonic() - started:.0f} s")
    print(json.dumps(result) if options.json else table(result), flush=True)
    good = all(entry["ok"] and entry["client_address_kept"] for entry in result["maps"])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
