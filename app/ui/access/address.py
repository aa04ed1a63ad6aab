"""Find the address a guest connects from, as far as it can be trusted."""

from __future__ import annotations

import ipaddress
from typing import Any

from starlette.datastructures import Headers


def find_address(scope: Any, behind_tunnel: bool) -> str:
    """Return the address that limits are counted by; "" if none is told, so that all such guests count as one.

    Behind the tunnel every connection comes from frpc on this machine. Gradio's server, frps, appends the address that
    connected to it to X-Forwarded-For (Go's ReverseProxy does), so the last one cannot be forged; all before it is what
    the guest sent. Where another proxy stands before frps, the last one is that proxy's, and all guests behind it
    share one allowance. Without a tunnel the header proves nothing, and whoever connected counts.
    """
    told = Headers(scope=scope).getlist("x-forwarded-for") if behind_tunnel else []
    connected = (scope.get("client") or ("",))[0]
    return simplify(told[-1].rpartition(",")[2] if told else connected)


def simplify(address: str) -> str:
    """Reduce an IPv6 address to the network of its site, all of which one person may have; return "" for anything but an
    address."""
    try:
        found = ipaddress.ip_address(address.strip().strip("[]").partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 48), strict=False).network_address)
