"""The figures: what the receiver got, in virtual time, which is instructions."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .hosts import CLIENT, DOOR, NAS, SERVER, GuestError, run, within
from .subjects import Subject

INSTRUCTIONS_PER_SECOND = 1e9
PINGS = 200
MAPPED_PORT = 5201
RULES = """
table ip bench {{
  flowtable fast {{ hook ingress priority filter; devices = {{ {devices} }}; }}
  chain prerouting {{
    type nat hook prerouting priority dstnat;
    iifname door tcp dport {port} dnat to {target}
  }}
  chain forward {{
    type filter hook forward priority filter;
    tcp flags syn tcp option maxseg size set rt mtu
    ct state established flow add @fast
  }}
}}
"""

Result = dict[str, Any]


@contextmanager
def _server() -> Iterator[None]:
    """An iperf3 server on the NAS for one run."""
    process = subprocess.Popen(
        [*within(NAS), "iperf3", "-s", "-1", "--forceflush"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "listening" in line:
                break
        else:
            raise GuestError("the iperf3 server did not start")
        yield
        process.stdout.read()
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def _iperf(host: str, address: str, seconds: int, *options: str) -> dict[str, Any]:
    with _server():
        text = run(*within(host), "iperf3", "-J", "-c", address, "-t", str(seconds), *options)
    report: dict[str, Any] = json.loads(text)
    if "error" in report:
        raise GuestError(f"iperf3: {report['error']}")
    return report["end"]


def _stream(end: dict[str, Any]) -> Result:
    """Instructions per byte over all streams and both directions."""
    sums = [end[name] for name in ("sum_received", "sum_received_bidir_reverse") if name in end]
    received = sum(one["bytes"] for one in sums)
    sent = [end[name] for name in ("sum_sent", "sum_sent_bidir_reverse") if name in end]
    return {
        "value": INSTRUCTIONS_PER_SECOND * sums[0]["seconds"] / received,
        "bytes": received,
        "seconds": sums[0]["seconds"],
        "retransmits": sum(one.get("retransmits", 0) for one in sent),
    }


def tcp(subject: Subject, seconds: int) -> Result:
    return _stream(_iperf(SERVER, subject.address, seconds))


def bidirectional(subject: Subject, seconds: int) -> Result:
    return _stream(_iperf(SERVER, subject.address, seconds, "--bidir"))


def eight(subject: Subject, seconds: int) -> Result:
    return _stream(_iperf(SERVER, subject.address, seconds, "-P", "8"))


def _udp(subject: Subject, seconds: int, length: int) -> Result:
    """Instructions per packet that arrived; what was lost on the way is a part of their cost."""
    end = _iperf(SERVER, subject.address, seconds, "-u", "-b", "0", "-l", str(length))
    total = end["sum"]
    arrived = total["packets"] - total["lost_packets"]
    return {
        "value": INSTRUCTIONS_PER_SECOND * total["seconds"] / arrived,
        "packets": arrived,
        "lost": total["lost_packets"],
        "seconds": total["seconds"],
    }


def udp64(subject: Subject, seconds: int) -> Result:
    return _udp(subject, seconds, 64)


def udp1372(subject: Subject, seconds: int) -> Result:
    return _udp(subject, seconds, 1372)


def mapped(subject: Subject, seconds: int) -> Result:
    """From the client through the server's port to the NAS."""
    devices = ", ".join(dict.fromkeys(("door", subject.device)))
    rules = RULES.format(devices=devices, port=MAPPED_PORT, target=subject.address)
    nft = [*within(SERVER), "nft", "-f", "-"]
    subprocess.run(nft, input=rules, text=True, check=True, timeout=60)
    try:
        return _stream(_iperf(CLIENT, DOOR[SERVER], seconds))
    finally:
        run(*within(SERVER), "nft", "delete", "table", "ip", "bench")


def ping(subject: Subject, _seconds: int) -> Result:
    """Instructions of a round trip: the mean of the middle half of many, one after the other."""
    command = ("ping", "-c", str(PINGS), "-i", "0.002", "-s", "56", subject.address)
    text = run(*within(SERVER), *command)
    times = sorted(float(value) for value in re.findall(r"time=([\d.]+) ms", text))
    if len(times) < PINGS:
        raise GuestError(f"{PINGS - len(times)} of {PINGS} pings were lost")
    middle = times[PINGS // 4 : -PINGS // 4]
    value = sum(middle) / len(middle) * INSTRUCTIONS_PER_SECOND / 1e3
    return {"value": value, "trips": PINGS}


MEASURES: dict[str, Callable[[Subject, float], Result]] = {
    "tcp": tcp,
    "bidirectional": bidirectional,
    "eight_streams": eight,
    "udp1372": udp1372,
    "udp64": udp64,
    "mapped": mapped,
    "ping": ping,
}
