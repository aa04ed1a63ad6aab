"""Find the address by which phones and computers of the same network reach this machine, in digits: names are rarely found."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Final

import psutil

from app.sentence import Trouble, say

NOT_AT_HOME: Final = re.compile(
    r"(?i)lo\d*$|loopback|docker|br-|veth|virbr|vmnet|vboxnet|virtualbox|vmware|vethernet|utun|tun|tap|wg|tailscale|zt|ppp|awdl|llw|bridge"
)
"""How the names of interfaces begin that lead to this machine's own virtual ones, or away from home."""
ELSEWHERE: Final = "192.0.2.1"
"""An address of nobody: asking for the way there sends nothing."""


def find_home_address() -> str:
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    known = {
        name: [each.address for each in addresses if each.family == socket.AF_INET]
        for name, addresses in psutil.net_if_addrs().items()
        if name in up
    }
    found = choose_home_address(known, find_way_out())
    if not found:
        raise Trouble(
            say(
                "share.no-network", "This machine is in no network at home. Connect it to your Wi-Fi or router, then create the link again."
            )
        )
    return found


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
