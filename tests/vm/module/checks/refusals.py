"""How a refused request is judged: the error, a text or a place that names the attribute, and
nothing changed."""

from __future__ import annotations

import errno
import struct
from typing import Any

from adit_genl import C, attribute, attributes, u8, u16, u32, u64
from topology import Host

# What changes by itself: counters, which a keepalive can move between two looks.
PASSING_DEVICE = ("DROPS", "COUNTERS")
PASSING_PEER = ("DROPS", "RX_BYTES", "TX_BYTES", "RX_PACKETS", "TX_PACKETS", "LAST_RECEIVE")


def state(host: Host) -> tuple[dict[int, bytes], list[dict[int, bytes]]]:
    """All that the module tells of a device and its peers, but for the counters of drops."""
    device = host.device()
    for name in PASSING_DEVICE:
        device.pop(C[f"ADIT_A_DEVICE_{name}"])
    answer = host.request("GET_PEER", dump=True)
    assert answer.error == 0, answer
    peers = [attributes(message[C["ADIT_A_PEER"]]) for message in answer.messages]
    for peer in peers:
        for name in PASSING_PEER:
            peer.pop(C[f"ADIT_A_PEER_{name}"], None)
    return device, peers


def refused(
    host: Host, command: str, *payload: bytes, name: str, errors: tuple[int, ...] = (), **named: Any
) -> None:
    """`name`: of the attribute at fault, which the text or the offset has to tell."""
    before = state(host)
    answer = host.request(command, *payload, **named)
    sent = host.genl.sent if host.genl else b""
    told = answer.text
    assert answer.error and told, f"{command} {name}: accepted, or without a text: {answer}"
    assert not errors or answer.error in errors, f"{command} {name}: {answer}"
    if answer.offset is not None:
        kind = struct.unpack_from("HH", sent, answer.offset)[1] & 0x3FFF
        assert kind == C[name] or name in told, f"{name} ({C[name]}): points at {kind}: {answer}"
    else:
        assert name in told, f"{name}: the text does not name it: {answer}"
    assert state(host) == before, f"{command} {name}: something changed, {answer}"


def wrong_forms(name: str, form: str) -> list[tuple[str, bytes]]:
    """Every wrong type and length of an attribute whose right form is u8, u16, u32, u64, a key, a
    nest, text, or bytes up to a length."""
    kind = C[name]
    nested = kind | 0x8000
    lengths = {
        "u8": (0, 2, 4, 64),
        "u16": (0, 1, 3, 4, 64),
        "u32": (0, 1, 2, 3, 5, 8, 64),
        "u64": (0, 1, 4, 7, 9, 16, 64),
        "key": (0, 1, 31, 33, 64, 300),
        # Parts of a nest that do not hold an attribute's head, or end within one.
        "nest": (1, 3),
    }
    shown = nested if form == "nest" else kind
    forms = [(f"{length} bytes", attribute(shown, bytes(length))) for length in lengths[form]]
    if form == "nest":
        forms.append(("not marked as a nest", attribute(kind, bytes(8))))
        cut = attribute(nested, struct.pack("HH", 64, 1) + bytes(4))
        forms.append(("a part that is cut off", cut))
    elif form != "key":
        forms.append(("marked as a nest", {"u8": u8, "u16": u16, "u32": u32, "u64": u64}[form](
            nested, 1)))
    return forms


INVALID = (errno.EINVAL, errno.ERANGE)
