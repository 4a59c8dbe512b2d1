"""ECN across the tunnel as RFC 6040 wants it, and DSCP that stays inside."""

from __future__ import annotations

import socket

from topology import Topology, run_in

from .support import Wire, test, udp_socket, until

NAMES = ("not-ect", "ect1", "ect0", "ce")
DSCP = 0xB8  # expedited forwarding
DROPPED = None
# RFC 6040, figure 4, by the inner field and then the outer one: what is passed on.
DECAPSULATED = {
    0: (0, 0, 0, DROPPED),
    1: (1, 1, 1, 3),
    2: (2, 1, 2, 3),
    3: (3, 3, 3, 3),
}


@test
def ecn_is_carried_and_dscp_is_hidden(net: Topology) -> None:
    for outer6 in (False, True):
        net.add_peers(v6=outer6)
        net.add_keys(first_index=200 if outer6 else 100)
        for inner6 in (False, True):
            with Wire("mod-b") as wire:
                for ecn in range(4):
                    assert exchange(net, inner6, DSCP | ecn) == DSCP | ecn
                    # Only the two bits of ECN are seen outside.
                    seen = {outer.tos for outer in wire.drain() if len(outer.payload) > 32}
                    assert seen == {ecn}, (outer6, inner6, ecn, seen)


@test
def congestion_outside_is_told_inside(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    for outer in range(4):
        rules = f"""
          table ip bits {{
            chain in {{
              type filter hook prerouting priority -400
              udp dport 51820 ip ecn set {NAMES[outer]}
            }}
          }}
        """
        run_in("mod-b", "nft", "-f", "-", input=rules, check=True)
        for v6 in (False, True):
            for inner in range(4):
                wanted = DECAPSULATED[inner][outer]
                before = net.b.drops()["CONGESTION"]
                got = exchange(net, v6, DSCP | inner, wanted is not DROPPED)
                assert got == (None if wanted is DROPPED else DSCP | wanted), (inner, outer, got)
                assert net.b.drops()["CONGESTION"] - before == (wanted is DROPPED)
        run_in("mod-b", "nft", "delete", "table", "ip", "bits", check=True)


def exchange(net: Topology, v6: bool, tos: int, arrives: bool = True) -> int | None:
    """Sends a datagram with this traffic class inside; the one that arrives with it, if any."""
    level, option, get = (
        (socket.IPPROTO_IPV6, socket.IPV6_TCLASS, socket.IPV6_RECVTCLASS) if v6
        else (socket.IPPROTO_IP, socket.IP_TOS, 13)
    )
    with udp_socket("mod-b", v6) as receiver, udp_socket("mod-a", v6) as sender:
        receiver.bind((net.b.inner(v6), 7003))
        receiver.setsockopt(level, get, 1)
        sender.setsockopt(level, option, tos)
        packets = net.b.peer_number_of("RX_PACKETS")
        sender.sendto(b"marked", (net.b.inner(v6), 7003))
        if not arrives:
            assert until(lambda: net.b.peer_number_of("RX_PACKETS") > packets)
            receiver.settimeout(0.1)
        try:
            _, ancillary, _, _ = receiver.recvmsg(100, 100)
        except TimeoutError:
            return None
        return ancillary[0][2][0]
