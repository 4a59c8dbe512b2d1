"""Which kernel modules the guest gets: those named here and all that they depend on."""

from __future__ import annotations

import fnmatch
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .errors import Unavailable, VmError

# Paths below lib/modules/RELEASE/kernel, as fnmatch patterns: an asterisk also spans slashes.
WANTED = (
    "arch/x86/crypto/*",
    "crypto/*",
    "drivers/char/virtio_console.ko",
    "drivers/net/dummy.ko",
    "drivers/net/ifb.ko",
    "drivers/net/tun.ko",
    "drivers/net/veth.ko",
    "drivers/net/virtio_net.ko",
    "drivers/net/vrf.ko",
    "drivers/net/vxlan/*",
    "drivers/net/wireguard/*",
    "drivers/virtio/virtio_pci*.ko",
    "lib/*",
    "net/bridge/*",
    "net/ipv4/*",
    "net/ipv6/*",
    "net/key/*",
    "net/netfilter/*",
    "net/packet/*",
    "net/sched/*",
    "net/xfrm/*",
)
UNWANTED = (
    *("*/ipvs/*", "*/ipset/*", "*/xt_[!ct]*", "*/ip_tables.ko", "*/ip6_tables.ko", "*/iptable_*"),
    *("*/ip6table_*", "*/ipt_*", "*/ip6t_*", "*/arp*table*", "*/ebt*", "*/br_netfilter.ko"),
    *("*test*", "lib/raid6/*", "lib/zstd/*", "crypto/async_tx/*", "*/ila/*", "*/tcp_[!b]*"),
    *("crypto/*fish*", "crypto/cast*", "crypto/camellia*", "crypto/serpent*", "arch/*/cast*"),
    *("arch/*fish*", "arch/*camellia*", "arch/*serpent*", "arch/*aria*", "arch/*sm[34]*"),
)

Dependencies = dict[str, list[str]]


def parse_dependencies(text: str) -> Dependencies:
    """modules.dep: each module's path, and the paths of all that must be loaded before it."""
    result = {}
    for line in text.splitlines():
        path, colon, rest = line.partition(":")
        if colon:
            result[path] = rest.split()
    return result


def closure(dependencies: Dependencies, roots: Iterable[str]) -> list[str]:
    """The roots and all that they need, sorted; KeyError for a path that does not exist."""
    found: set[str] = set()
    rest = list(roots)
    while rest:
        path = rest.pop()
        if path not in found:
            found.add(path)
            rest += dependencies[path]
    return sorted(found)


def matches(path: str) -> bool:
    """Whether the guest gets this module, as a path below lib/modules/RELEASE."""
    inner = path.removeprefix("kernel/")
    return any(fnmatch.fnmatchcase(inner, pattern) for pattern in WANTED) and not any(
        fnmatch.fnmatchcase(inner, pattern) for pattern in UNWANTED
    )


def wanted(dependencies: Dependencies) -> list[str]:
    return closure(dependencies, filter(matches, dependencies))


def depmod(base: Path, release: str) -> None:
    """Writes the indices that modprobe reads into base/lib/modules/RELEASE."""
    try:
        done = subprocess.run(
            ["/sbin/depmod", "-b", str(base), release],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except FileNotFoundError:
        raise Unavailable("depmod is missing: apt-get install kmod") from None
    if done.returncode != 0:
        raise VmError(f"depmod failed: {done.stderr.strip()}")


def release_of(module: Path) -> str:
    """The kernel release that a .ko file was built for."""
    match = re.search(rb"\0vermagic=(\S+) ", module.read_bytes())
    if match is None:
        raise VmError(f"{module} is no kernel module: it has no vermagic")
    return match[1].decode()
