"""The main machine's side of pairing: a small TLS server that listens only while a code is valid, and lets one machine in."""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from app.base.home_address import find_home_address
from app.base.sentence import Sentence, say
from app.machines.joining import certificates
from app.machines.joining.channel import NONCE_BYTES, PATIENCE_S, Broken, Channel, digest_transcript, is_proof, prove
from app.machines.joining.code import Code, digest_secret, draw_secret
from app.machines.joining.register import Machine, Register, clean_name
from app.machines.joining.versions import find_difference, parse_versions, read_versions

VALID_S: Final = 600.0
WRONG_MOST: Final = 20
"""The code ends after so many wrong secrets: a person needs two or three tries, and 20 of 2 ** 80 find nothing."""
WRONG_S: Final = 0.5
"""The answer to a wrong secret is held back so long."""
AT_ONCE, EACH_AT_ONCE = 16, 4
"""So many conversations may go on at the same time, and so many with one address; others are sent away, and may try again."""
HELLO_S: Final = 3.0
"""A stranger says its first word within this; who does not would take the place of others."""
TICK_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class PairingState:
    code: Code | None = None
    """None: it is used, over or withdrawn."""
    until_s: float = 0.0
    """The code ends at this time by the clock."""
    joined: Machine | None = None
    said: Sentence | None = None
    """It says what became of it, or why a machine was refused."""


class Pairing:
    """One code: listens from `open` until a machine has joined, the time is over, or `close`."""

    def __init__(
        self,
        folder: Path,
        register: Register,
        name: str,
        port: int,
        *,
        host: str = "",
        shown_host: str = "",
        valid_s: float = VALID_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`port`: where helpers find the main machine afterwards. `host`: what to listen on; empty: everywhere."""
        self._folder, self._register, self._name, self._port = folder, register, name, port
        self._host, self._shown_host, self._valid_s, self._clock = host, shown_host, valid_s, clock
        self._lock, self._counting, self._talking = threading.Lock(), threading.Lock(), Counter[str]()
        """The last counts conversations by address."""
        self._wrong = 0
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self.state = PairingState()

    def open(self) -> Code:
        """Listen, and return the code."""
        identity = certificates.make_main(self._folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(identity.certificate, identity.key)
        six = not self._host and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if six or ":" in self._host else socket.AF_INET
        listener = socket.create_server((self._host, 0), family=family, dualstack_ipv6=six)
        listener.settimeout(TICK_S)
        code = Code(self._shown_host or self._host or find_home_address() or "127.0.0.1", listener.getsockname()[1], draw_secret())
        self.state = PairingState(code, self._clock() + self._valid_s)
        self._thread = threading.Thread(target=self._listen, args=(listener, context), name="pairing", daemon=True)
        self._thread.start()
        return code

    def close(self) -> None:
        """Withdraw the code and stop listening."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        self._end()

    def _listen(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        with listener:
            while not self._closing.is_set() and self.state.code is not None:
                if self._clock() >= self.state.until_s:
                    self._end(say("machines.code-over", "The code was not used within ten minutes and is no longer valid. Make a new one."))
                    return
                with contextlib.suppress(TimeoutError, OSError):
                    connection, peer = listener.accept()
                    if self._begin(peer[0]):
                        threading.Thread(target=self._serve, args=(connection, peer[0], context), daemon=True).start()
                    else:
                        connection.close()

    def _begin(self, address: str) -> bool:
        with self._counting:
            free = self._talking[address] < EACH_AT_ONCE and self._talking.total() < AT_ONCE
            self._talking[address] += free
            return free

    def _serve(self, connection: socket.socket, address: str, context: ssl.SSLContext) -> None:
        """A timeout of a TLS connection counts from the beginning of its handshake, or of a message: a byte now and then prolongs none."""
        try:
            ends_s = time.monotonic() + HELLO_S
            connection.settimeout(HELLO_S)
            with contextlib.suppress(Broken, OSError, ValueError), connection, context.wrap_socket(connection, server_side=True) as talking:
                channel = Channel(talking, ends_s)
                hello = channel.receive()
                channel.ends_s = time.monotonic() + PATIENCE_S
                channel.send(self._talk(channel, hello))
        finally:
            with self._counting:
                self._talking -= Counter([address])

    def _talk(self, channel: Channel, hello: dict[str, Any]) -> dict[str, Any]:
        """Hold the conversation from its first word up to its last answer, which is returned."""
        identity, versions = certificates.identity_in(self._folder), read_versions()
        authority = identity.authority.read_text()
        nonce = secrets.token_hex(NONCE_BYTES)
        channel.send({"nonce": nonce, "authority": authority, "name": self._name, "versions": versions, "port": self._port})
        asked = channel.receive()
        request = str(asked.get("request"))
        seen = (ssl.PEM_cert_to_DER_cert(identity.certificate.read_text()), *channel.said[:2], request.encode())
        with self._lock:
            code = self.state.code
            if code is None or self._clock() >= self.state.until_s:
                return {"refused": "over"}
            key = digest_secret(code.secret)
            if not is_proof(key, "helper", digest_transcript(seen), asked.get("proof")):
                return self._refuse_guess()
            theirs = parse_versions(hello.get("versions"))
            if difference := find_difference(versions, theirs):
                self.state = replace(self.state, said=_name_refused(clean_name(hello.get("name")), difference))
                return {"refused": "versions"}
            id_, certificate = certificates.sign_request(self._folder, request)
            joined = self._register.add(id_, hello.get("name"))
            self.state = PairingState(joined=joined, said=say("machines.joined", "{name} can now help.", name=joined.name))
        return {"certificate": certificate, "proof": prove(key, "main", digest_transcript((*seen, certificate.encode())))}

    def _refuse_guess(self) -> dict[str, Any]:
        self._wrong += 1
        if self._wrong >= WRONG_MOST:
            self.state = PairingState(
                said=say(
                    "machines.guessed",
                    "A wrong code was tried {count} {count:time|times}, so it is no longer valid. Make a new one.",
                    count=self._wrong,
                )
            )
        time.sleep(WRONG_S)  # under the lock: guesses wait for each other
        return {"refused": "secret"}

    def _end(self, said: Sentence | None = None) -> None:
        with self._lock:
            if self.state.code is not None:
                self.state = PairingState(said=said)


def _name_refused(name: str, difference: Sentence) -> Sentence:
    return say("machines.refused", "{name} could not join. {reason}", name=name, reason=difference)
