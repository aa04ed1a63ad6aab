"""Hearths in the same network, by multicast DNS: a hint where to connect to, which anybody can forge, so nothing is believed but by TLS and codes."""

from __future__ import annotations

import ipaddress
import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.base.home_address import find_home_address
from app.machines.joining.code import PORT_MOST
from app.machines.joining.register import clean_name

TYPE: Final = "_hearth._tcp.local."
SEEN_MOST: Final = 64
HOSTS_MOST: Final = 4
ANSWER_MS: Final = 1500
LOOKED_S: Final = 1.0
"""It looks so often whether there is something else to announce."""
AGAIN_S: Final = 30.0
Kind = Literal["main", "lends"]
_ID: Final = re.compile(r"[0-9a-f]{32}")
_log = logging.getLogger("hearth.machines")


@dataclass(frozen=True, slots=True)
class Announcement:
    """What this Hearth says to the whole network: its name, what it is for, and where; no secret."""

    kind: Kind
    name: str
    id: str = ""
    """A main machine's authority has this id."""
    port: int = 0
    """Its helpers find it there."""
    pairing_port: int = 0
    """A code is taken there now; 0 stands for nowhere."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What another Hearth says, or somebody in its name."""

    announced: Announcement
    hosts: tuple[str, ...]


class Nearby:
    """Announces this Hearth, if it has something to say, and lists the others. Any thread may call; without a network it sees nobody."""

    def __init__(self, describe: Callable[[], Announcement] | None = None, interfaces: list[str] | None = None) -> None:
        """`describe`: what to announce; it is asked again and again. `interfaces`: their addresses; None: that of the home network."""
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._seen: dict[str, Seen] = {}
        self._label = secrets.token_hex(8)
        self._thread = threading.Thread(target=self._run, args=(describe, interfaces), name="nearby", daemon=True)
        self._thread.start()

    def list_seen(self, kind: Kind) -> list[Seen]:
        with self._lock:
            return [each for each in self._seen.values() if each.announced.kind == kind]

    def find(self, id_: str) -> list[tuple[str, int]]:
        """Return where a main machine with this authority says that it is."""
        return [(host, each.announced.port) for each in self.list_seen("main") if each.announced.id == id_ for host in each.hosts]

    def close(self) -> None:
        """Take the announcement back."""
        self._closing.set()
        self._thread.join()

    def _run(self, describe: Callable[[], Announcement] | None, interfaces: list[str] | None) -> None:
        """Begin anew whenever this machine has another address, and after a while where the network takes no multicast."""
        while not self._closing.is_set():
            try:
                self._serve(describe, interfaces)
            except Exception as fault:  # whatever zeroconf meets: the code can be typed all the same
                _log.warning("nothing is announced or seen in this network: %s", fault)
                self._closing.wait(AGAIN_S)
            with self._lock:
                self._seen.clear()

    def _serve(self, describe: Callable[[], Announcement] | None, interfaces: list[str] | None) -> None:
        from zeroconf import InterfaceChoice, IPVersion, ServiceBrowser, Zeroconf

        told: Announcement | None = None
        address, wait_s = find_home_address(), 0.0
        home = [address] if address else InterfaceChoice.Default
        with Zeroconf(interfaces=interfaces or home, ip_version=IPVersion.V4Only) as zeroconf:
            ServiceBrowser(zeroconf, TYPE, handlers=[self._hear])
            while not self._closing.wait(wait_s) and find_home_address() == address:
                now = describe() if describe is not None else None
                if now is not None and now != told:
                    (zeroconf.register_service if told is None else zeroconf.update_service)(self._word(now, address))
                told, wait_s = now, LOOKED_S

    def _word(self, told: Announcement, address: str) -> Any:
        from zeroconf import ServiceInfo

        values = {"kind": told.kind, "name": told.name, "id": told.id, "pairing": str(told.pairing_port)}
        return ServiceInfo(
            TYPE,
            f"{self._label}.{TYPE}",
            port=told.port,
            properties=values,
            server=f"hearth-{self._label}.local.",
            parsed_addresses=[address or "127.0.0.1"],
        )

    def _hear(self, zeroconf: Any, service_type: str, name: str, state_change: Any) -> None:
        """Called in a thread of zeroconf's for each announcement that comes, changes or goes."""
        if name == f"{self._label}.{TYPE}":
            return
        seen = None
        if state_change.name != "Removed":
            try:
                found = zeroconf.get_service_info(service_type, name, ANSWER_MS)
                seen = read_announcement(found.properties, found.port, found.parsed_scoped_addresses()) if found is not None else None
            except Exception as fault:  # whatever was in the message
                _log.info("an announcement: %s", fault)
        with self._lock:
            if seen is None:
                self._seen.pop(name, None)
            elif name in self._seen or len(self._seen) < SEEN_MOST:
                self._seen[name] = seen


def read_announcement(properties: Mapping[bytes, bytes | None], port: object, addresses: Iterable[str]) -> Seen | None:
    """Return what an announcement says; None if it is none of Hearth's, or names nothing in this network."""
    values = {key.decode("utf-8", "replace"): (value or b"").decode("utf-8", "replace") for key, value in properties.items()}
    hosts = tuple(each for each in addresses if is_near(each))[:HOSTS_MOST]
    kind, id_, pairing = values.get("kind"), values.get("id", ""), values.get("pairing", "")
    pairing_port = int(pairing) if pairing.isascii() and pairing.isdecimal() and len(pairing) <= 5 else 0
    if not isinstance(port, int) or not 0 <= port <= PORT_MOST or pairing_port > PORT_MOST:
        return None
    name = clean_name(values.get("name", ""))
    if kind == "lends":
        return Seen(Announcement("lends", name), ())
    if kind == "main" and _ID.fullmatch(id_) and port and hosts:
        return Seen(Announcement("main", name, id_, port, pairing_port), hosts)
    return None


def is_near(address: str) -> bool:
    """Tell whether an address can be one of this network's: nobody in it can send this machine out into the world, or to itself."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (
        found.version == 4
        and (found.is_private or found.is_link_local)
        and not (found.is_loopback or found.is_unspecified or found.is_multicast or found.is_reserved)
    )
