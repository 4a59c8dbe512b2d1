"""Random messages to the family. ADIT_TEST_FUZZ: how many (2000; 30000 with --full);
ADIT_TEST_SEED: which."""

from __future__ import annotations

import os
import random
import struct
import time

from adit_genl import C, Genl, attribute, device, nest
from topology import Topology

from .support import full_run, test


def random_attributes(numbers: random.Random, depth: int = 0) -> bytes:
    parts = []
    for _ in range(numbers.randrange(6)):
        kind = numbers.randrange(20) | numbers.choice((0, 0, 0x8000, 0x4000))
        if depth < 3 and numbers.random() < 0.5:
            content = random_attributes(numbers, depth + 1)
        else:
            length = numbers.choice((0, 1, 2, 4, 4, 8, 8, 16, 32, 32, 64, 148, 256, 300))
            content = numbers.randbytes(length)
        part = attribute(kind, content)
        if numbers.random() < 0.02:
            part = part[: numbers.randrange(len(part) + 1)]
        if numbers.random() < 0.02:
            part = struct.pack("H", numbers.randrange(65536)) + part[2:]
        parts.append(part)
    return b"".join(parts)


@test
def fuzz(net: Topology) -> None:
    seed = int(os.environ.get("ADIT_TEST_SEED") or time.time_ns() % 10**9)
    rounds = int(os.environ.get("ADIT_TEST_FUZZ") or (30000 if full_run() else 2000))
    print(f"  seed {seed}, {rounds} messages", flush=True)
    numbers = random.Random(seed)
    net.add_peers()
    net.add_keys()
    assert net.a.genl is not None
    commands = [n for k, n in C.items() if k.startswith("ADIT_CMD_") and k != "ADIT_CMD_MAX"]
    wraps = [C["ADIT_A_DEVICE"], C["ADIT_A_PEER"], C["ADIT_A_KEY"], C["ADIT_A_ENDPOINT"]]
    for _ in range(rounds):
        content = random_attributes(numbers)
        if numbers.random() < 0.6:
            content = nest(numbers.choice(wraps), content)
        if numbers.random() < 0.9:
            content = device(net.a.index) + content
        command = numbers.choice(commands)
        dump = command == C["ADIT_CMD_GET_PEER"] and numbers.random() < 0.9
        net.a.genl.request(command, content, dump=dump)
        net.a.genl.events.clear()
    # It is still the device that it was, if it was not given away.
    other = Genl("mod-a")
    assert other.request(C["ADIT_CMD_GET_DEVICE"], device(net.a.index)).error == 0
    other.close()
