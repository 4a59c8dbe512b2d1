"""A server with mappings and its NAS, both up, and what a client on the Internet sees of them."""

from __future__ import annotations

import json

from .ends import PORT
from .network import Lab, Namespace, tool
from .process import LabError
from .topology import Home, home
from .traffic import fetch_sha256, ping
from .tunnel import Adit, PeerSpec, TunnelSpec, key_pair

MAPS = [
    ["Listen = tcp/18080", "To = nas:80"],
    ["Listen = 18081/tcp", "To = 10.10.0.2:80", "Source = masquerade"],
    ["Listen = tcp/18082", "To = nas:80", "Allow = 192.0.2.0/24"],
    ["Listen = udp/7000", "To = nas"],
    ["Listen = udp/5000-5009", "To = nas"],
]


def served_home(lab: Lab) -> tuple[Home, Adit, Adit]:
    """Server and NAS, both up; the NAS serves the server's mappings."""
    net = home(lab)
    server_keys, nas_keys = key_pair(), key_pair()
    server = Adit(
        net.server,
        lab.device("srv"),
        TunnelSpec(
            server_keys,
            ["10.10.0.1/24", "fd10::1/64"],
            listen_port=PORT,
            peers=[PeerSpec(nas_keys.public, "10.10.0.2/32, fd10::2/128", name="nas")],
            maps=[list(entry) for entry in MAPS],
        ),
    )
    endpoint = f"{net.server_address}:{PORT}"
    nas = Adit(
        net.nas,
        lab.device("nas"),
        TunnelSpec(
            nas_keys,
            ["10.10.0.2/24", "fd10::2/64"],
            extra=["Table = reply"],
            peers=[
                PeerSpec(server_keys.public, "0.0.0.0/0, ::/0", endpoint=endpoint, keepalive=25)
            ],
        ),
    )
    server.up()
    nas.up()
    ping(net.nas, "10.10.0.1")
    return net, server, nas


def echoes(client: Namespace, address: str, port: int, seconds: float = 0.2) -> bool:
    """Whether UDP datagrams to that port come back."""
    host = f"[{address}]" if ":" in address else address
    argv = (tool("tests/peers/pingpong"), f"{host}:{port}", "--seconds", str(seconds))
    done = client.run(*argv, check=False)
    return done.code == 0 and json.loads(done.out)["count"] > 0


def fetches(net: Home, port: int, timeout: float = 5) -> str | None:
    url = f"http://{net.server_address}:{port}/file"
    try:
        return fetch_sha256(net.client, url, timeout=timeout)
    except LabError:
        return None
