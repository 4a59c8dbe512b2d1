"""The module goes while links are up, claimed, and full of packets."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

from adit_genl import C
from topology import Topology

from .support import background, ping, test_last, until


@test_last
def unload_under_traffic(net: Topology) -> None:
    """`rmmod` is refused, or takes all links along; afterwards the module can be loaded again."""
    if not Path("/sys/module/adit/refcnt").exists():
        print("  this kernel does not unload modules", flush=True)
        return
    for _ in range(3):
        net.add_peers()
        net.add_keys()
        floods = [background(host.name, "ping", "-f", "-s", "1300", "-w", "60",
                             net.other(host).inner()) for host in net.hosts]
        floods.append(background("mod-b", "iperf3", "-s", "-1"))
        floods.append(background("mod-a", "iperf3", "-c", net.b.inner(), "-t", "30", "-P", "4"))
        assert until(lambda: net.b.peer_number_of("RX_PACKETS") > 300, 30)
        done = subprocess.run(["rmmod", "adit"], capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            gone(net)
        else:
            assert ping(net.a, net.b.inner()), "refused, and broken"
        print(f"  rmmod under traffic: {'clean' if done.returncode == 0 else 'refused'}",
              flush=True)
        for flood in floods:
            flood.kill()
            flood.wait()
        net.close()
        if done.returncode:
            subprocess.run(["rmmod", "adit"], check=True, timeout=60)
        subprocess.run(["modprobe", "adit"], check=True, timeout=60)
        net.__init__()  # type: ignore[misc]
    net.add_peers()
    net.add_keys()
    assert ping(net.a, net.b.inner())


def gone(net: Topology) -> None:
    for host in net.hosts:
        links = subprocess.run(["ip", "-n", host.name, "link"], capture_output=True, text=True)
        assert "adit0" not in links.stdout, links.stdout
    # The family is gone for a socket that had claimed the device, too.
    assert net.a.genl is not None
    answer = net.a.genl.request(C["ADIT_CMD_GET_DEVICE"])
    assert answer.error in (errno.ENOENT, errno.EOPNOTSUPP, errno.EINVAL), answer
    assert not Path("/sys/module/adit").exists()
