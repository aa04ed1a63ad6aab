"""Find the address by which phones and computers of the same network reach this machine, in digits: names are rarely found."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Final

import psutil

NOT_AT_HOME: Final = re.compile(
    r"(?i)lo\d*$|loopback|docker|br-|veth|virbr|vmnet|vboxnet|virtualbox|vmware|vethernet|utun|tun|tap|wg|tailscale|zt|ppp|awdl|llw|bridge"
)
"""Interfaces whose names begin so lead to this machine's own virtual ones, or away from home."""
ELSEWHERE: Final = "192.0.2.1"
"""The address is nobody's: asking for the way there sends nothing."""


def find_home_address() -> str:
    """Return this machine's address in its own network; "" where it is in none."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    known = {
        name: [each.address for each in addresses if each.family == socket.AF_INET]
        for name, addresses in psutil.net_if_addrs().items()
        if name in up
    }
    return choose_home_address(known, find_way_out())


def choose_home_address(known: Mapping[str, Iterable[str]], way_out: str) -> str:
    """Choose from the addresses by interface: the one that also leads outside, if it is one of them; "" for none."""
    at_home = [
        address for name, addresses in sorted(known.items()) if not NOT_AT_HOME.match(name) for address in addresses if is_at_home(address)
    ]
    return way_out if way_out in at_home else (at_home or [""])[0]


def is_at_home(address: str) -> bool:
    found = ipaddress.ip_address(address)
    return found.is_private and not found.is_loopback and not found.is_link_local


def find_way_out() -> str:
    """Return the address that this machine sends from; "" without a way."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect((ELSEWHERE, 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])
