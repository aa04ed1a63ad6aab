"""Tell the owner's phone that the work is done, through an address of their own: ntfy's or a webhook's. Nothing is sent until one is set."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx

from app.base import notices
from app.base.languages import system_language, templates
from app.base.sentence import Sentence, join_sentences, say
from app.base.trouble import Trouble
from app.engine.jobs.events import Event, Failed, Finished
from app.engine.jobs.owners import OWNER
from app.ui.state.settings_schema import PhoneKind, PhoneValues

if TYPE_CHECKING:
    from app.engine.keeper.keeper import Keeper
    from app.ui.state.settings import Settings

SAVED: Final = "phone"
LONG_S: Final = 60.0
"""Shorter work is waited for at the screen."""
WAIT_S: Final = 10.0
ADDRESS_MOST: Final = 500
TITLES_MOST, TITLE_LETTERS = 3, 80
_log = logging.getLogger("hearth")


def check_address(address: str) -> str:
    """Return an address that can be sent to; raise a Trouble for another."""
    try:
        parts = urlsplit(address)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits or len(address) > ADDRESS_MOST or not address.isprintable() or " " in address:
        raise Trouble(
            say("notify.no-address", "This is no web address. Enter one that begins with https://, such as that of a topic of ntfy.")
        )
    return address


def mask(address: str) -> str:
    """Show of an address no more than where it leads: whoever knows the rest can write to the phone."""
    return f"{urlsplit(address).scheme}://{urlsplit(address).hostname}/…" if address else ""


def send(address: str, kind: PhoneKind, words: str) -> None:
    """Send a message; of the answer only the status is looked at, and no other address is followed. Raise a Trouble that names the host alone."""
    body: dict[str, object] = {"json": {"title": "Hearth", "text": words, "content": words}}
    if kind == "ntfy":
        body = {"content": words.encode(), "headers": {"Title": "Hearth"}}
    host = str(urlsplit(address).hostname)
    try:
        with httpx.stream("POST", address, timeout=WAIT_S, follow_redirects=False, **body) as answer:  # type: ignore[arg-type]
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as fault:
        raise Trouble(
            say(
                "notify.not-reached",
                "Your phone was not told: {host} cannot be reached ({fault}). Check the address and the network.",
                host=host,
                fault=type(fault).__name__,
            )
        ) from fault
    if status >= 300:
        raise Trouble(
            say("notify.refused", "Your phone was not told: {host} answered {status}. Check the address.", host=host, status=status)
        )


@dataclass(slots=True)
class Notifying:
    """Hears of the ends of jobs, and tells once all that was asked for is done. `look` is called again and again, by one thread."""

    keeper: Keeper
    settings: Settings
    clock: Callable[[], float] = time.monotonic
    _ended: queue.SimpleQueue[tuple[str, Event]] = field(default_factory=queue.SimpleQueue)
    _begun_s: float | None = None

    def listen(self) -> None:
        """Hear of ends from now on."""
        self.keeper.board.on_end = lambda job, end: self._ended.put((job, end))

    @property
    def phone(self) -> PhoneValues:
        found: PhoneValues = self.settings.get(SAVED, {})
        return found

    def keep(self, address: str, kind: PhoneKind, titles: bool) -> None:
        """Save where to send to. Without an address the one that is kept stays."""
        kept = check_address(address.strip()) if address.strip() else check_address(self.phone.get("address", ""))
        self.settings.put({SAVED: {"address": kept, "kind": kind, "titles": titles}})

    def forget(self) -> None:
        self.settings.put({SAVED: {}})

    def try_it(self) -> None:
        """Send a message now; raise a Trouble if it does not arrive."""
        address = check_address(self.phone.get("address", ""))
        send(address, self.phone.get("kind", "ntfy"), _word(say("notify.test", "This is how Hearth tells you that it is done.")))

    def look(self) -> None:
        """Tell the phone if long work has just ended."""
        if self.keeper.journal.has_live():
            self._begun_s = self.clock() if self._begun_s is None else self._begun_s
            return
        lasted_s = self.clock() - self._begun_s if self._begun_s is not None else 0.0
        self._begun_s, ended = None, self._take_ended()
        address = self.phone.get("address")
        if ended and address and lasted_s >= LONG_S:
            words = self.word_ends(ended)
            threading.Thread(target=self._send, args=(address, self.phone.get("kind", "ntfy"), words), daemon=True).start()

    def _take_ended(self) -> list[tuple[str, Event]]:
        """Return the owner's jobs that ended by themselves since the last look."""
        ended = list[tuple[str, Event]]()
        while not self._ended.empty():
            job, end = self._ended.get()
            known = self.keeper.journal.find(job)
            if known is not None and known.owner == OWNER and isinstance(end, Finished | Failed):
                ended.append((job, end))
        return ended

    def word_ends(self, ended: list[tuple[str, Event]]) -> str:
        """Say how many jobs are done and how many failed; what they were only where that is wished."""
        failed = sum(isinstance(end, Failed) for _, end in ended)
        done = len(ended) - failed
        told = [
            *([say("notify.done", "{count} {count:job is|jobs are} done.", count=done)] if done else []),
            *([say("notify.failed", "{count} {count:job|jobs} failed.", count=failed)] if failed else []),
        ]
        lines = [join_sentences(map(_word, told))]
        if self.phone.get("titles"):
            jobs = (self.keeper.journal.find(job) for job, _ in ended[:TITLES_MOST])
            lines += [" ".join(each.request.words.split())[:TITLE_LETTERS] for each in jobs if each is not None]
        return "\n".join(lines)

    def _send(self, address: str, kind: PhoneKind, words: str) -> None:
        try:
            send(address, kind, words)
        except Trouble as trouble:
            _log.warning("%s", trouble)
            notices.tell(trouble.sentence)


def _word(sentence: Sentence) -> str:
    return sentence.translate(templates(system_language()))
