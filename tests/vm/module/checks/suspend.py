"""Keys do not outlive suspend: the sleeping machine may be copied."""

from __future__ import annotations

from pathlib import Path

from adit_genl import C
from topology import Topology

from .support import no_answer, ping, test, until, write

POWER = Path("/sys/power")


@test
def suspend_wipes_all_keys(net: Topology) -> None:
    """A rehearsal that ends before devices are stopped (Documentation/power/
    basic-pm-debugging.rst): all that is told of a suspend is told."""
    if not (POWER / "pm_test").exists():
        print("  this kernel cannot rehearse suspend (CONFIG_PM_DEBUG)", flush=True)
        return
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())
    delay = Path("/sys/module/suspend/parameters/pm_test_delay")
    if delay.exists():
        delay.write_text("0")
    write(str(POWER / "pm_test"), "freezer")
    try:
        write(str(POWER / "state"), "freeze")
    finally:
        write(str(POWER / "pm_test"), "none")
    for host in net.hosts:
        assert host.genl is not None
        assert host.genl.event(C["ADIT_CMD_EVENT_KEYS_EXPIRED"]), host.name
        assert C["ADIT_A_PEER_SUITE"] not in host.peer()
    assert no_answer(net.a, net.b.inner())
    net.add_keys(first_index=50)
    assert until(lambda: ping(net.a, net.b.inner(), count=1))
