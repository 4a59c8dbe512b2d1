"""A torrent client's way of asking for ports: libtorrent, which speaks PCP to the default gateway.

As a program, with the distribution's own interpreter: torrent.py ADDRESS PORT. It asks for the port
by TCP and UDP, prints a line for each that it gets, and gives them back when it is asked to end.
"""

from __future__ import annotations

import signal
import sys
import time

if __name__ != "__main__":
    from .network import Namespace
    from .process import Process

# The bindings are made for this one.
PYTHON = "/usr/bin/python3"


def torrent(where: Namespace, address: str, port: int) -> Process:
    """Starts it, and waits until it has both ports."""
    process = where.start(PYTHON, __file__, address, str(port), log="torrent")
    process.require(lambda: process.output().count("successfully mapped") == 2, 30, "libtorrent has its ports")
    return process


def main(address: str, port: str) -> None:
    import libtorrent  # type: ignore[import-not-found]

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    session = libtorrent.session(
        {
            "listen_interfaces": f"{address}:{port}",
            "enable_natpmp": True,
            "enable_upnp": False,
            "enable_dht": False,
            "enable_lsd": False,
            "alert_mask": libtorrent.alert.category_t.port_mapping_notification,
        }
    )
    deadline = time.monotonic() + 60
    while not signal.sigtimedwait({signal.SIGTERM}, 0.1) and time.monotonic() < deadline:
        for alert in session.pop_alerts():
            if isinstance(alert, libtorrent.portmap_alert):
                print(f"mapped {alert.message()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
