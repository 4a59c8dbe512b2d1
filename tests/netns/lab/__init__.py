"""A small laboratory of network namespaces: machines, cables, daemons, traffic, clean-up."""

from . import ends
from .dns import NameServer
from .ends import LEFT, LEFT6, PORT, RIGHT, RIGHT6, Product, Side, specs
from .network import ROOT, Interrupted, Lab, Namespace, build_dir, install_signal_handlers, link, tool
from .process import (
    Completed,
    LabError,
    Process,
    cpu_seconds,
    listening,
    resident_kib,
    run,
    wait_until,
)
from .scenario import add, expect, main, progress, scenario
from .state import difference, require_same, snapshot
from .topology import Crossroads, Home, Pair, Relay, Relayed, crossroads, home, pair, relayed
from .traffic import (
    Iperf,
    IperfServer,
    WebServer,
    answers,
    fetch_sha256,
    iperf,
    iperf_argv,
    iperf_result,
    ping,
)
from .tunnel import (
    Adit,
    KeyPair,
    PeerSpec,
    PeerState,
    Tunnel,
    TunnelSpec,
    WireGuardGo,
    adit,
    alive,
    connected,
    key_pair,
    preshared_key,
)

__all__ = [name for name in dir() if not name.startswith("_")]
