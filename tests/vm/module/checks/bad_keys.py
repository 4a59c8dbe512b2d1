"""Keys that are refused: each attribute missing, of a wrong type, length and range; keys and
indices that were used before; keys for somebody else."""

from __future__ import annotations

import errno

from adit_genl import (
    C, attribute, key, key_parts, nest, peer, peer_id, random_key, u8, u32, u64,
)
from topology import Topology

from .refusals import INVALID, refused, state, wrong_forms
from .support import expect, ping, test

FORMS = {
    "PEER_ID": "u64", "PEER_PUBLIC_KEY": "key", "SLOT": "u8", "SUITE": "u8", "LOCAL_INDEX": "u32",
    "REMOTE_INDEX": "u32", "SEND": "key", "RECEIVE": "key", "REKEY_AFTER": "u64",
    "REJECT_AFTER": "u64", "REKEY_AFTER_MESSAGES": "u64", "REJECT_AFTER_MESSAGES": "u64",
}
RANGES = {
    "PEER_ID": (u64, (0,)),
    "SLOT": (u8, (2, 255)),
    "SUITE": (u8, (3, 255)),
    "REKEY_AFTER": (u64, (0, 1 << 63, (1 << 64) - 1)),
    "REJECT_AFTER": (u64, (0, 1 << 63, (1 << 64) - 1)),
    "REKEY_AFTER_MESSAGES": (u64, (0,)),
    "REJECT_AFTER_MESSAGES": (u64, (0,)),
}


@test
def bad_input_of_keys(net: Topology) -> None:
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    good = key_parts(1, net.b.public, 5, 6, random_key(), random_key())

    def refuse(part: str, change: bytes, errors: tuple[int, ...] = INVALID) -> None:
        content = nest(C["ADIT_A_KEY"], *(good | {part: change}).values())
        refused(net.a, "NEW_KEY", content, name=f"ADIT_A_KEY_{part}", errors=errors)

    for part, form in FORMS.items():
        kind = f"ADIT_A_KEY_{part}"
        refuse(part, b"")
        for _, wrong in wrong_forms(kind, form):
            refuse(part, wrong)
    for part, (pack, values) in RANGES.items():
        for value in values:
            refuse(part, pack(C[f"ADIT_A_KEY_{part}"], value))
    refuse("PEER_ID", u64(C["ADIT_A_KEY_PEER_ID"], 99), (errno.ENOENT,))
    refuse("PEER_PUBLIC_KEY", attribute(C["ADIT_A_KEY_PEER_PUBLIC_KEY"], random_key()),
           (errno.EKEYREJECTED,))
    # An index in use: of this peer's session.
    refuse("LOCAL_INDEX", u32(C["ADIT_A_KEY_LOCAL_INDEX"], 2), (errno.EEXIST,))
    refused(net.a, "NEW_KEY", name="ADIT_A_KEY", errors=(errno.EINVAL,))
    for _, wrong in wrong_forms("ADIT_A_KEY", "nest"):
        refused(net.a, "NEW_KEY", wrong, name="ADIT_A_KEY", errors=INVALID)
    # For the id of another peer, whose public key it is not.
    other = random_key()
    expect(net.a.request("SET_PEER", peer(2, other)), 0)
    other_id = good | {"PEER_ID": u64(C["ADIT_A_KEY_PEER_ID"], 2)}
    refused(net.a, "NEW_KEY", nest(C["ADIT_A_KEY"], *other_id.values()),
            name="ADIT_A_KEY_PEER_PUBLIC_KEY", errors=(errno.EKEYREJECTED,))
    # The tunnel works as before, and the good one is still good.
    assert ping(net.a, net.b.inner())
    expect(net.a.request("NEW_KEY", nest(C["ADIT_A_KEY"], *good.values())), 0)
    # The index of one peer's session is not for another's.
    second = key_parts(2, other, 5, 6, random_key(), random_key())
    refused(net.a, "NEW_KEY", nest(C["ADIT_A_KEY"], *second.values()),
            name="ADIT_A_KEY_LOCAL_INDEX", errors=(errno.EEXIST,))


@test
def a_key_is_installed_once(net: Topology) -> None:
    net.add_peers()
    send, receive = random_key(), random_key()
    expect(net.a.request("NEW_KEY", key(1, net.b.public, 5, 6, send, receive)), 0)
    for one, two in ((send, receive), (receive, send), (send, random_key()),
                     (random_key(), receive)):
        refused(net.a, "NEW_KEY", key(1, net.b.public, 7, 8, one, two), name="ADIT_A_KEY_SEND",
                errors=(errno.EEXIST,))
    # Not after it was deleted, nor after 15 others.
    expect(net.a.request("DEL_KEYS", peer_id(1)), 0)
    for index in range(15):
        fresh = key(1, net.b.public, 100 + index, 6, random_key(), random_key())
        expect(net.a.request("NEW_KEY", fresh), 0)
    refused(net.a, "NEW_KEY", key(1, net.b.public, 7, 8, send, receive), name="ADIT_A_KEY_SEND",
            errors=(errno.EEXIST,))
    assert len(state(net.a)[1]) == 1
