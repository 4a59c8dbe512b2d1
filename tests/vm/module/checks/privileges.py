"""Who may use the family: CAP_NET_ADMIN in the user namespace that owns the network namespace."""

from __future__ import annotations

import ctypes
import errno
import os
import traceback
from collections.abc import Callable

from adit_genl import C, Genl, device
from topology import Topology

from .refusals import state
from .support import test, write

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


def in_a_child(body: Callable[[], None]) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def unshare(flags: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def all_refused(genl: Genl, index: int) -> None:
    for name, number in C.items():
        if not name.startswith("ADIT_CMD_") or "EVENT" in name or name.endswith(("UNSPEC", "MAX")):
            continue
        answer = genl.request(number, device(index), dump=name == "ADIT_CMD_GET_PEER")
        assert answer.error == errno.EPERM, (name, answer)
    answer = genl.request(C["ADIT_CMD_GET_DEVICE"], dump=True)
    assert answer.error == errno.EPERM, answer
    try:
        genl.join()
    except PermissionError:
        return
    raise AssertionError("joined the group")


@test
def the_unprivileged_are_refused(net: Topology) -> None:
    """Another user; root of a user namespace that does not own the network namespace; both also
    with a socket that was opened while there were privileges."""
    net.add_peers()
    before = state(net.a)
    index = net.a.index

    def another_user(opened_before: bool) -> None:
        genl = Genl("mod-a") if opened_before else None
        if not opened_before:
            enter("mod-a")
        os.setgid(65534)
        os.setuid(65534)
        all_refused(genl or Genl(), index)

    def root_of_nothing(opened_before: bool) -> None:
        genl = Genl("mod-a") if opened_before else None
        if not opened_before:
            enter("mod-a")
        unshare(CLONE_NEWUSER)
        all_refused(genl or Genl(), index)

    for body in (another_user, root_of_nothing):
        for opened_before in (False, True):
            in_a_child(lambda: body(opened_before))
    assert state(net.a) == before


def enter(netns: str) -> None:
    with open(f"/run/netns/{netns}") as file:
        assert ctypes.CDLL(None).setns(file.fileno(), CLONE_NEWNET) == 0


@test
def the_owner_of_a_namespace_may_all_in_it(net: Topology) -> None:
    """Root of a user namespace, in a network namespace of its own, and nowhere else."""

    def owner() -> None:
        unshare(CLONE_NEWUSER | CLONE_NEWNET)
        # Root there, so that programs that it starts keep its capabilities.
        write("/proc/self/uid_map", "0 0 1")
        assert os.system("ip link add own0 type adit && ip link set own0 up") == 0
        genl = Genl()
        answer = genl.request(C["ADIT_CMD_GET_DEVICE"], dump=True)
        assert answer.error == 0 and len(answer.messages) == 1, answer
        # The devices of others are not even seen.
        answer = genl.request(C["ADIT_CMD_GET_DEVICE"], device(9999))
        assert answer.error == errno.ENODEV, answer

    in_a_child(owner)
