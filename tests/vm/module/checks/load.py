"""Eight TCP streams each way on all processors, while keys of each suite take turns.

ADIT_TEST_SECONDS says for how long (60; 600 with --full). The kernel's log, which tools/vm reads,
must stay without a word.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import time

from adit_genl import namespace
from topology import Host, Topology

from .support import full_run, test

STREAMS = 8
BLOCK = os.urandom(1 << 16)
REKEY_SECONDS = 4


def send_for(connections: list[socket.socket], seconds: float, report: int) -> None:
    """Sends the block again and again on all; at the end tells how much on each."""
    chosen = selectors.DefaultSelector()
    sent = [0] * len(connections)
    for number, connection in enumerate(connections):
        connection.setblocking(False)
        chosen.register(connection, selectors.EVENT_WRITE, number)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for key, _ in chosen.select(0.2):
            at = sent[key.data] % len(BLOCK)
            sent[key.data] += key.fileobj.send(memoryview(BLOCK)[at:])  # type: ignore[union-attr]
    for connection in connections:
        connection.shutdown(socket.SHUT_WR)
    os.write(report, struct.pack(f"{len(sent)}Q", *sent))


def receive_all(connections: list[socket.socket], report: int) -> None:
    """Compares all that comes with the block; tells how much came on each."""
    chosen = selectors.DefaultSelector()
    got = [0] * len(connections)
    for number, connection in enumerate(connections):
        connection.setblocking(False)
        chosen.register(connection, selectors.EVENT_READ, number)
    while chosen.get_map():
        for key, _ in chosen.select():
            at = got[key.data] % len(BLOCK)
            part = key.fileobj.recv(len(BLOCK) - at)  # type: ignore[union-attr]
            if not part:
                chosen.unregister(key.fileobj)
            elif part != BLOCK[at : at + len(part)]:
                os._exit(1)
            got[key.data] += len(part)
    os.write(report, struct.pack(f"{len(got)}Q", *got))


def child(function, *arguments: object) -> int:  # type: ignore[no-untyped-def]
    number = os.fork()
    if number == 0:
        try:
            function(*arguments)
        except BaseException as error:
            print(f"  {function.__name__}: {error!r}", flush=True)
            os._exit(1)
        os._exit(0)
    return number


def connect(net: Topology, sender: Host, port: int) -> list[tuple[socket.socket, socket.socket]]:
    """Pairs of a sending and a receiving end; every other one over IPv6."""
    pairs = []
    for number in range(STREAMS):
        v6 = number % 2 == 1
        receiver = net.other(sender)
        family = socket.AF_INET6 if v6 else socket.AF_INET
        with namespace(receiver.name):
            listener = socket.create_server((receiver.inner(v6), port + number), family=family)
        with namespace(sender.name):
            near = socket.create_connection((receiver.inner(v6), port + number), timeout=30)
        pairs.append((near, listener.accept()[0]))
        listener.close()
    return pairs


@test
def parallel_streams_both_ways(net: Topology) -> None:
    seconds = float(os.environ.get("ADIT_TEST_SECONDS") or (600 if full_run() else 60))
    net.add_peers()
    net.add_keys()
    reports, children = [], []
    for sender, port in ((net.a, 7100), (net.b, 7200)):
        pairs = connect(net, sender, port)
        for function, ends, extra in ((send_for, [near for near, _ in pairs], (seconds,)),
                                      (receive_all, [far for _, far in pairs], ())):
            reader, writer = os.pipe()
            children.append(child(function, ends, *extra, writer))
            os.close(writer)
            reports.append(reader)
        for pair in pairs:
            for end in pair:
                end.close()
    end = time.monotonic() + seconds
    for round_ in range(1, 10000):
        time.sleep(max(0.0, min(REKEY_SECONDS, end - time.monotonic())))
        if time.monotonic() >= end:
            break
        net.add_keys(suite=round_ % 3, first_index=10 * round_)
    statuses = [os.waitpid(number, 0)[1] for number in children]
    assert statuses == [0] * len(children), statuses
    counts = [struct.unpack(f"{STREAMS}Q", os.read(reader, 8 * STREAMS)) for reader in reports]
    for reader in reports:
        os.close(reader)
    total = sum(map(sum, counts)) / 2e6
    print(f"  {total:.0f} MB in {seconds:.0f} s, {round_} keys", flush=True)
    assert counts[0] == counts[1] and counts[2] == counts[3], counts
    assert all(count > len(BLOCK) for part in counts for count in part), counts
    for host in net.hosts:
        wrong = {k: v for k, v in host.drops().items() if v and k not in ("NO_PEER", "QUEUE_FULL")}
        assert not wrong, wrong
        assert host.counters()["RX_INNER_SUPER"] > 10, host.counters()
