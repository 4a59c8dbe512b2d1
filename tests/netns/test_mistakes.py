#!/usr/bin/env python3
"""What a newcomer gets wrong: adit says what it is and how to mend it.

Topology: `Pair` in lab/topology.py; both ends are adit, and the left one calls.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from lab import (
    PORT,
    Adit,
    Lab,
    expect,
    key_pair,
    main,
    pair,
    preshared_key,
    progress,
    scenario,
    specs,
    wait_until,
)


def both(lab: Lab) -> tuple[Adit, Adit]:
    """The two ends, down; the left one calls by itself."""
    net = pair(lab)
    left_spec, right_spec = specs(f"{net.right_address}:{PORT}")
    left_spec.peers[0].keepalive = 1
    return (
        Adit(net.left, lab.device("l"), left_spec),
        Adit(net.right, lab.device("r"), right_spec),
    )


def start(*tunnels: Adit) -> None:
    for tunnel in tunnels:
        tunnel.write()
        tunnel.up()


def log(tunnel: Adit) -> str:
    return Path(tunnel.where.env["ADIT_RUNTIME_DIR"], f"{tunnel.name}.log").read_text()


def warned(tunnel: Adit, *words: str, seconds: float = 25) -> str:
    """Waits for a warning of `adit status` that has all the words; the log must have it too."""

    def find() -> str:
        for warning in tunnel.status()["warnings"]:
            if all(word in warning for word in words):
                return str(warning)
        return ""

    warning = wait_until(find, seconds, f"{tunnel.name} warns of {words}")
    progress(f"{tunnel.name}: {warning}")
    lines = [line for line in log(tunnel).splitlines() if all(word in line for word in words)]
    expect(1 <= len(lines) <= 2, f"the log says it, and does not repeat it: {lines}")
    return warning


def mended(left: Adit, right: Adit) -> None:
    """After the file is right and reloaded, there is a session and no warning."""
    for tunnel in (left, right):
        tunnel.write()
        tunnel.cli("reload", tunnel.name)
    wait_until(left.suite, 20, "a session")
    for tunnel in (left, right):
        expect(not tunnel.status()["warnings"], f"no warning is left: {tunnel.status()}")


@scenario(seconds=90)
def wrong_public_key(lab: Lab) -> None:
    """The caller has another public key for the server: both ends say so."""
    left, right = both(lab)
    true_key = left.spec.peers[0].public_key
    left.spec.peers[0].public_key = key_pair().public
    start(right, left)
    warned(right, "PublicKey = " + true_key)
    warned(left, "peer right has not answered", "PublicKey", "Endpoint", "firewall", seconds=40)
    left.spec.peers[0].public_key = true_key
    mended(left, right)


@scenario(seconds=60)
def wrong_private_key(lab: Lab) -> None:
    """The caller has a private key whose public half the server does not know."""
    left, right = both(lab)
    true_keys = left.spec.keys
    left.spec.keys = key_pair()
    start(right, left)
    warned(right, left.spec.keys.public, "[Peer]")
    left.spec.keys = true_keys
    mended(left, right)


@scenario(seconds=60)
def different_ciphers(lab: Lab) -> None:
    left, right = both(lab)
    left.spec.extra += ["Cipher = aes-256-gcm"]
    right.spec.extra += ["Cipher = chacha20-poly1305"]
    start(right, left)
    warned(right, "peer left", "aes-256-gcm", "Cipher")
    left.spec.extra.remove("Cipher = aes-256-gcm")
    mended(left, right)


@scenario(seconds=60)
def preshared_key_on_one_side(lab: Lab) -> None:
    left, right = both(lab)
    left.spec.peers[0].preshared_key = preshared_key()
    start(right, left)
    warned(left, "peer right", "PresharedKey")
    left.spec.peers[0].preshared_key = ""
    mended(left, right)


@scenario(seconds=40)
def no_drops_in_peace(lab: Lab) -> None:
    """A healthy tunnel drops nothing by itself: the kernel sends nothing of its own into it."""
    left, right = both(lab)
    start(right, left)
    wait_until(left.suite, 20, "a session")
    time.sleep(4)  # Router solicitations come in this time.
    for tunnel in (left, right):
        status = tunnel.status()
        expect(not status["drops"], f"{tunnel.name} drops nothing: {status['drops']}")
        addresses = status["addresses"]
        expect(addresses == tunnel.spec.addresses, f"only configured addresses: {addresses}")


if __name__ == "__main__":
    sys.exit(main())
