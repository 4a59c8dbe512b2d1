"""Checks of adit.ko by subject. Each module registers its own with support.test."""

from . import (  # noqa: F401
    traffic,
    long_super_packets,
    keys,
    endpoints,
    address_translation,
    handshakes,
    allowed_ips,
    routing,
    errors_to_senders,
    congestion,
    many,
    lifetimes,
    cycles,
    load,
    helpers,
    bad_keys,
    bad_peers,
    bad_devices,
    bad_datagrams,
    inner_packets,
    privileges,
    fuzz,
    suspend,
    unload,
)
from .support import CHECKS, Entry

__all__ = ["CHECKS", "Entry"]
