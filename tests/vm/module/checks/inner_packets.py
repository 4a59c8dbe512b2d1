"""What a peer that has the keys sends: packets that are none, or not its own, wrong checksums, and
datagrams in memory that may change. Datagrams are encrypted here, by the kernel's crypto API."""

from __future__ import annotations

import os
import socket
import struct
import tempfile

from adit_genl import key, namespace, random_key
from topology import PORT, Host, Topology

from .bad_datagrams import drops_by
from .support import expect, send_raw, test, udp_socket, until

SUITE = 1
INDEX = 77  # of B's session
NOWHERE = ("10.9.0.77", "fd09::77")


class Peer:
    """A's end of a session with B. Raises OSError where the kernel lends no ciphers."""

    def __init__(self, net: Topology) -> None:
        self.net = net
        self.counter = 0
        secret = random_key()
        self.cipher = socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
        self.cipher.bind(("aead", "gcm(aes)"))
        self.cipher.setsockopt(socket.SOL_ALG, socket.ALG_SET_KEY, secret)
        self.cipher.setsockopt(socket.SOL_ALG, socket.ALG_SET_AEAD_AUTHSIZE, None, 16)
        net.add_peers()
        wish = key(1, net.a.public, INDEX, 78, random_key(), secret, suite=SUITE)
        expect(net.b.request("NEW_KEY", wish), 0)

    def datagram(self, text: bytes) -> bytes:
        counter = struct.pack("<Q", self.counter)
        self.counter += 1
        operation, _ = self.cipher.accept()
        with operation:
            operation.sendmsg_afalg([text], op=socket.ALG_OP_ENCRYPT, iv=bytes(4) + counter,
                                    assoclen=0)
            sealed = operation.recv(len(text) + 16)
        return bytes((4, SUITE, 0, 0)) + struct.pack("<I", INDEX) + counter + sealed

    def send(self, *texts: bytes) -> None:
        """As one super-packet, if there are several, which are of one length."""
        datagrams = [self.datagram(text) for text in texts]
        send_raw(self.net, b"".join(datagrams),
                 segment=len(datagrams[0]) if len(datagrams) > 1 else 0)


def peer_of(net: Topology) -> Peer | None:
    try:
        return Peer(net)
    except OSError as error:
        print(f"  not run: the kernel lends no ciphers ({error})", flush=True)
        return None


def sum16(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(source: str, target: str, protocol: int, payload: bytes, length: int | None = None,
         first: int = 0x45) -> bytes:
    total = 20 + len(payload) if length is None else length
    ends = socket.inet_aton(source) + socket.inet_aton(target)
    head = struct.pack("!BBHHHBB", first, 0, total, 1, 0x4000, 64, protocol)
    return head + struct.pack("!H", sum16(head + bytes(2) + ends)) + ends + payload


def ipv6(source: str, target: str, payload: bytes, length: int | None = None) -> bytes:
    total = len(payload) if length is None else length
    ends = b"".join(socket.inet_pton(socket.AF_INET6, end) for end in (source, target))
    return struct.pack("!IHBB", 6 << 28, total, 17, 64) + ends + payload


def tcp(net: Topology, sequence: int, payload: bytes, error: int = 0, words: int = 5) -> bytes:
    """A segment to a port where nobody listens."""
    source, target = net.a.inner(), net.b.inner()
    head = struct.pack("!HHIIBBH", 7000, 9, sequence, 1, words << 4, 0x10, 1000)
    pseudo = (socket.inet_aton(source) + socket.inet_aton(target)
              + struct.pack("!HH", 6, 20 + len(payload)))
    check = sum16(pseudo + head + bytes(4) + payload) ^ error
    return ipv4(source, target, 6, head + struct.pack("!HH", check, 0) + payload)


def wrong_packets(net: Topology) -> list[tuple[str, bytes]]:
    a4, b4, a6, b6 = net.a.inner(), net.b.inner(), net.a.inner(True), net.b.inner(True)
    body = bytes(100)
    return [
        ("NOT_IP", b"\x10" + bytes(63)),
        ("NOT_IP", b"\x55" + ipv4(a4, b4, 17, body)[1:]),
        ("NOT_IP", b"\xf0" * 64),
        ("NOT_IP", b"\x45"),
        ("NOT_IP", ipv4(a4, b4, 17, b"")[:19]),
        ("NOT_IP", ipv4(a4, b4, 17, body, first=0x44)),
        ("NOT_IP", ipv4(a4, b4, 17, body, length=19)),
        ("NOT_IP", ipv4(a4, b4, 17, body, length=23, first=0x46)),
        ("NOT_IP", ipv4(a4, b4, 17, body, length=121)),
        ("NOT_IP", ipv4(a4, b4, 17, body, length=65535)),
        ("NOT_IP", b"\x60" + bytes(38)),
        ("NOT_IP", ipv6(a6, b6, body, length=101)),
        ("NOT_IP", ipv6(a6, b6, body, length=65535)),
        ("SOURCE_NOT_ALLOWED", ipv4(NOWHERE[0], b4, 17, body)),
        ("SOURCE_NOT_ALLOWED", ipv4("0.0.0.0", b4, 17, body)),
        ("SOURCE_NOT_ALLOWED", ipv6(NOWHERE[1], b6, body)),
    ]


@test
def a_peer_cannot_send_what_is_no_packet(net: Topology) -> None:
    """Lengths that lie, other versions, sources of others: each is dropped under its reason, though
    the datagram is authentic. Padding behind a packet is cut off."""
    peer = peer_of(net)
    if peer is None:
        return
    for name, text in wrong_packets(net):
        before, packets = net.b.drops(), net.b.peer_number_of("RX_PACKETS")
        peer.send(text)
        assert until(lambda: drops_by(net.b, before) == {name: 1}), (
            name, text[:8], drops_by(net.b, before))
        assert net.b.peer_number_of("RX_PACKETS") == packets + 1
    with udp_socket("mod-b") as receiver:
        receiver.bind((net.b.inner(), 7001))
        udp = struct.pack("!HHHH", 7000, 7001, 8 + 5, 0) + b"hello"
        peer.send(ipv4(net.a.inner(), net.b.inner(), 17, udp) + bytes(15))
        assert receiver.recv(100) == b"hello"


@test
def a_wrong_checksum_stays_in_its_packet(net: Topology) -> None:
    """Segments of TCP are joined only when their sums are right; else the stack sees each."""
    peer = peer_of(net)
    if peer is None:
        return

    def joined(*texts: bytes) -> int:
        before, packets = net.b.counters(), net.b.peer_number_of("RX_PACKETS")
        peer.send(*texts)
        assert until(lambda: net.b.peer_number_of("RX_PACKETS") == packets + len(texts))
        return net.b.counters()["RX_INNER_SUPER"] - before["RX_INNER_SUPER"]

    half = bytes(range(256)) * 4
    assert joined(tcp(net, 1, half), tcp(net, 1025, half)) == 1
    for error in (1, 0x8000):
        assert joined(tcp(net, 1, half, error), tcp(net, 1025, half, error)) == 0
        assert joined(tcp(net, 1, half), tcp(net, 1025, half, error), tcp(net, 2049, half)) == 0
    # Headers longer than the packet, and shorter than any.
    for words in (15, 4, 0):
        tiny = bytes(8)
        assert joined(tcp(net, 1, tiny, words=words), tcp(net, 9, tiny, words=words)) == 0


@test
def datagrams_out_of_a_file_arrive(net: Topology) -> None:
    """A program of this machine sends pages of a file, which it could change meanwhile."""
    peer = peer_of(net)
    if peer is None:
        return
    text = ipv4(net.a.inner(), net.b.inner(), 17,
                struct.pack("!HHHH", 7000, 7001, 8 + 1200, 0) + bytes(1200))
    with tempfile.TemporaryFile(dir="/tmp") as file, udp_socket("mod-a") as sender, \
            udp_socket("mod-b") as receiver:
        receiver.bind((net.b.inner(), 7001))
        sender.connect((net.b.wire(), PORT))
        datagrams = [peer.datagram(text) for _ in range(3)]
        file.write(b"".join(datagrams))
        file.flush()
        for number, datagram in enumerate(datagrams):
            size = len(datagram)
            assert os.sendfile(sender.fileno(), file.fileno(), number * size, size) == size
            assert receiver.recv(2000) == bytes(1200)
        # The same once more: replays, whatever they hold by now.
        before = net.b.drops()
        os.sendfile(sender.fileno(), file.fileno(), 0, len(datagrams[0]))
        assert until(lambda: drops_by(net.b, before) == {"REPLAY": 1}), drops_by(net.b, before)


def statistics(host: Host) -> dict[str, int]:
    names = ("rx_packets", "rx_bytes", "rx_errors", "tx_packets", "tx_bytes", "tx_errors")
    with namespace(host.name), open("/proc/thread-self/net/dev") as file:
        line = next(line for line in file if line.strip().startswith("adit0:"))
    values = [int(word) for word in line.split(":")[1].split()]
    return dict(zip(names, (values[1], values[0], values[2], values[9], values[8], values[10]),
                    strict=True))


@test
def the_link_counts_inner_packets(net: Topology) -> None:
    """As `ip -s link` shows them: without our headers and padding; what was refused as errors."""
    peer = peer_of(net)
    if peer is None:
        return
    before = statistics(net.b)
    texts = [ipv4(net.a.inner(), net.b.inner(), 17,
                  struct.pack("!HHHH", 7000, 9, 8 + size, 0) + bytes(size))
             for size in (0, 1, 100, 1000)]
    for text in texts:
        peer.send(text + bytes(-len(text) % 16))
    peer.send(b"\xf0" * 64)
    assert until(lambda: net.b.drops()["NOT_IP"] == 1)
    after = statistics(net.b)
    assert after["rx_packets"] - before["rx_packets"] == len(texts), (before, after)
    assert after["rx_bytes"] - before["rx_bytes"] == sum(map(len, texts)), (before, after)
    assert after["rx_errors"] - before["rx_errors"] == 1, (before, after)
    # The stack answers some of them; B's peer takes what it sends.
    assert after["tx_errors"] == before["tx_errors"], (before, after)
