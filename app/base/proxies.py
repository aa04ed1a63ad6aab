"""A SOCKS proxy of the environment: Python's clients need a library for it that Hearth does not bring, and stumble while they are imported."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final

from app.base.sentence import say
from app.base.trouble import Trouble

NAMES: Final = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
NOTED: Final = "HEARTH_SOCKS"
"""It tells children the name of the variable that was set aside; never its value, which may hold a password."""


def set_socks_aside() -> None:
    """Take SOCKS proxies out of the environment of this process and its children: what Hearth sends to itself needs none."""
    if find_spec("socksio") is not None:
        return
    for name in (*NAMES, *map(str.lower, NAMES)):
        if os.environ.get(name, "").lower().startswith("socks"):
            del os.environ[name]
            os.environ[NOTED] = name


def refuse_socks() -> None:
    """Raise a Trouble where only a SOCKS proxy leads to the hub."""
    name = os.environ.get(NOTED)
    if name and not any(os.environ.get(each) or os.environ.get(each.lower()) for each in NAMES[:2]):
        raise Trouble(
            say(
                "proxy.socks",
                "{name} names a SOCKS proxy, which Hearth cannot download through. Set HTTPS_PROXY to the proxy's HTTP address (Clash and V2Ray have one, "
                "such as http://127.0.0.1:7890), and start Hearth again.",
                name=name,
            )
        )
