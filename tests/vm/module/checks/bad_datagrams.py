"""Datagrams that are dropped, each under the reason that fits: cut, too long, of unknown kinds,
scattered, in fragments, at odd addresses, and joined with others into one super-packet."""

from __future__ import annotations

import os
import random
import struct

from adit_genl import C
from topology import PORT, Host, Topology, run_in

from .handshakes import cookie_message, initiation
from .support import Wire, ping, send_raw, test, until

INDEX = struct.pack("<I", 3)  # of B's session
KIND = b"\4\0\0\0" + INDEX
DATA = KIND + struct.pack("<Q", 1 << 20)  # a counter that was never used
WRONG = (
    ("MALFORMED", b""),
    ("MALFORMED", b"\4"),
    ("MALFORMED", b"\4\0\0"),
    ("MALFORMED", DATA + bytes(15)),
    ("MALFORMED", b"\4\3\0\0" + INDEX + bytes(40)),
    ("MALFORMED", b"\4\1\0\0" + INDEX + bytes(40)),
    ("MALFORMED", b"\4\0\0\1" + INDEX + bytes(40)),
    ("MALFORMED", b"\5\0\0\0" + INDEX + bytes(40)),
    ("MALFORMED", b"\0\0\0\0" + bytes(144)),
    ("MALFORMED", b"\1\0\0\0" + bytes(143)),
    ("MALFORMED", b"\1\0\0\0" + bytes(145)),
    ("MALFORMED", b"\2\0\0\0" + bytes(144)),
    ("MALFORMED", b"\1\3\0\0" + bytes(144)),
    ("MALFORMED", b"\3\1\0\0" + bytes(60)),
    ("UNKNOWN_INDEX", b"\4\0\0\0" + bytes(4) + bytes(40)),
    ("AUTHENTICATION", DATA + bytes(16)),
    ("AUTHENTICATION", DATA + bytes(17)),
    ("AUTHENTICATION", DATA + bytes(1400)),
    ("AUTHENTICATION", DATA + bytes(20000)),
    ("REPLAY", KIND + bytes(8) + bytes(40)),
    ("KEY_EXPIRED", KIND + b"\xff" * 8 + bytes(32)),
    ("BAD_MAC", b"\1\0\0\0" + bytes(144)),
    ("BAD_MAC", b"\2\0\0\0" + bytes(88)),
)


def drops_by(host: Host, before: dict[str, int]) -> dict[str, int]:
    """What was dropped since, but for the stack's own packets to nobody."""
    after = host.drops()
    return {name: after[name] - before[name] for name in after
            if after[name] != before[name] and name != "NO_PEER"}


@test
def bad_datagrams_are_dropped_and_counted(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    for name, datagram in WRONG:
        for v6 in (False, True):
            before = net.b.drops()
            send_raw(net, datagram, target=(net.b.wire(v6), PORT))
            assert until(lambda: net.b.drops()[name] == before[name] + 1), (name, datagram[:8])
            assert drops_by(net.b, before) == {name: 1}
    # The largest that UDP has.
    before = net.b.drops()
    send_raw(net, DATA + bytes(65507 - len(DATA)))
    assert until(lambda: sum(drops_by(net.b, before).values()) == 1), drops_by(net.b, before)
    assert set(drops_by(net.b, before)) <= {"RECEIVE_FAILED", "MALFORMED"}
    assert ping(net.a, net.b.inner())


@test
def datagrams_in_fragments(net: Topology) -> None:
    """Whole ones are looked at as any other; parts of one are no datagram."""
    net.add_peers()
    net.add_keys()
    for v6 in (False, True):
        before = net.b.drops()
        send_raw(net, DATA + bytes(9000), target=(net.b.wire(v6), PORT))
        assert until(lambda: drops_by(net.b, before) == {"AUTHENTICATION": 1}), v6
    rules = """
      table ip cut {
        chain in {
          type filter hook prerouting priority -450
          ip frag-off & 0x1fff == 0x00b9 drop
        }
      }
    """
    run_in("mod-b", "nft", "-f", "-", input=rules, check=True)
    before = net.b.drops()
    send_raw(net, DATA + bytes(4000))
    assert ping(net.a, net.b.inner())
    assert drops_by(net.b, before) == {}
    run_in("mod-b", "nft", "delete", "table", "ip", "cut", check=True)


@test
def joined_datagrams_are_judged_alone(net: Topology) -> None:
    """Of several kinds and indices in one super-packet, whose last segment is shorter; real ones
    among them are passed on, at whatever address they begin."""
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    mixed = b"".join(
        start.ljust(200, b"\0")
        for start in (DATA, b"\5\0\0\0", b"\4\0\0\0" + bytes(4), DATA)
    ) + cookie_message()
    before, supers = net.b.drops(), net.b.counters()["RX_SUPER"]
    send_raw(net, mixed, segment=200)
    assert net.b.genl.event(C["ADIT_CMD_EVENT_HANDSHAKE"]), "the handshake behind data is lost"
    changed = drops_by(net.b, before)
    assert changed == {"AUTHENTICATION": 2, "MALFORMED": 1, "UNKNOWN_INDEX": 1}, changed
    assert net.b.counters()["RX_SUPER"] == supers + 1
    for size in (161, 162, 163, 164):
        real_among_wrong(net, size)
    assert ping(net.a, net.b.inner())


def real_among_wrong(net: Topology, size: int) -> None:
    """Datagrams of A that never arrived, each behind a wrong one of an odd length."""
    with Wire("mod-b") as wire:
        # B does not hear them, the wire is seen before that.
        run_in("mod-b", "nft", "-f", "-", check=True, input="""
          table ip deaf {
            chain in {
              type filter hook input priority 0
              udp dport 51820 drop
            }
          }
        """)
        assert not ping(net.a, net.b.inner(), "-s", "100", "-w", "1", count=3)
        run_in("mod-b", "nft", "delete", "table", "ip", "deaf", check=True)
        real = [outer.payload for outer in wire.drain() if len(outer.payload) == 160]
    assert real
    # A datagram ends a super-packet when it is shorter, so each real one is the last of its own.
    before, packets = net.b.drops(), net.b.peer_number_of("RX_PACKETS")
    for datagram in real:
        wrong = DATA.ljust(size, b"\1")
        send_raw(net, wrong + wrong + datagram, segment=size)
    assert until(lambda: net.b.peer_number_of("RX_PACKETS") >= packets + len(real)), (
        size, drops_by(net.b, before))
    changed = drops_by(net.b, before)
    assert changed == {"AUTHENTICATION": 2 * len(real)}, (size, changed)


@test
def random_datagrams(net: Topology) -> None:
    """Of all lengths and beginnings, alone and joined: every one is counted, none passes."""
    net.add_peers()
    net.add_keys()
    seed = int(os.environ.get("ADIT_TEST_SEED") or random.SystemRandom().randrange(10**9))
    print(f"  seed {seed}", flush=True)
    numbers = random.Random(seed)
    before, packets = net.b.drops(), net.b.peer_number_of("RX_PACKETS")
    sent = 0
    for _ in range(300):
        starts = (KIND, DATA, KIND + bytes(8), b"\1\0\0\0", b"\2\1\0\0", b"\4\2\0\0" + INDEX,
                  b"\4\0\0\0", b"\3\0\0\1", numbers.randbytes(16))
        size = numbers.randrange(1, 1400)
        count = min(numbers.choice((1, 1, 2, 7)), 60000 // size)
        parts = [numbers.choice(starts).ljust(size, numbers.randbytes(1))[:size]
                 for _ in range(count)]
        last = numbers.randrange(1, size + 1)
        send_raw(net, b"".join(parts)[: (count - 1) * size + last],
                 segment=size if count > 1 else 0)
        sent += count
    assert until(lambda: sum(drops_by(net.b, before).values()) == sent), (
        sent, drops_by(net.b, before))
    assert net.b.peer_number_of("RX_PACKETS") == packets
    send_raw(net, initiation(net.b.mac1_key))
    assert net.b.genl.event(C["ADIT_CMD_EVENT_HANDSHAKE"])
    assert ping(net.a, net.b.inner())
