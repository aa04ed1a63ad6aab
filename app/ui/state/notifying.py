"""Tell the owner that the work is done: their phone, through an address of their own (ntfy's or a webhook's) once one is set, and the system where no page
is there to do so."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx

from app.base import notices
from app.base.languages import system_language, templates
from app.base.sentence import Sentence, join_sentences, say
from app.base.system_notice import show_notice
from app.base.trouble import Trouble
from app.engine.jobs.events import Event, Failed, Finished
from app.engine.jobs.owners import OWNER
from app.ui.state.settings_schema import PhoneKind, PhoneValues

if TYPE_CHECKING:
    from app.engine.keeper.keeper import Keeper
    from app.ui.state.settings import Settings

SAVED: Final = "phone"
CHIME: Final = "chime"
"""The settings hold under it whether the owner wants to hear that it is done: the pages chime, and without a page the system tells."""
LOOKS_S: Final = 90.0
"""A page asks how things are oftener than this, also one in a background tab, which browsers let ask once a minute."""
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
    pages: dict[str, float] = field(default_factory=dict)
    """Each page of the owner's was last there then."""
    _telling: list[threading.Thread] = field(default_factory=list)

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

    def let_chime(self, wanted: bool) -> None:
        self.settings.put({CHIME: wanted})

    def note_page(self, page: str = "") -> None:
        """Know that this page of the owner's is there, which tells by itself what ends."""
        now_s = self.clock()
        self.pages = {each: asked_s for each, asked_s in self.pages.items() if now_s - asked_s <= LOOKS_S} | {page: now_s}

    def note_left(self, page: str = "") -> None:
        """Know that this page of the owner's was closed; with "" that one of them was, and if another is there, it asks again soon."""
        self.pages = {each: asked_s for each, asked_s in self.pages.items() if page and each != page}

    @property
    def has_page(self) -> bool:
        return any(self.clock() - asked_s <= LOOKS_S for asked_s in self.pages.values())

    def look(self) -> None:
        """If work has just ended: tell the system where no page does, and the phone if it was long."""
        if self.keeper.journal.has_live():
            self._begun_s = self.clock() if self._begun_s is None else self._begun_s
        else:
            self.tell_ends()

    def tell_ends(self) -> None:
        """Tell what has ended since the last time; the last of it before Hearth ends, also where other work waits for the next start."""
        lasted_s = self.clock() - self._begun_s if self._begun_s is not None else 0.0
        self._begun_s, ended = None, self._take_ended()
        if not ended:
            return
        if self.settings.get(CHIME) and not self.has_page:
            self._tell(show_notice, self.count_ends(ended), find_picture(ended))
        address = self.phone.get("address")
        if address and lasted_s >= LONG_S:
            self._tell(self._send, address, self.phone.get("kind", "ntfy"), self.word_ends(ended))

    def _tell(self, how: Callable[..., object], *told: object) -> None:
        thread = threading.Thread(target=how, args=told, name="tell that it is done", daemon=True)
        self._telling = [*filter(threading.Thread.is_alive, self._telling), thread]
        thread.start()

    def close(self, end_s: float) -> None:
        """See off what is being told, until then at most."""
        for each in self._telling:
            each.join(max(0.0, end_s - time.monotonic()))

    def _take_ended(self) -> list[tuple[str, Event]]:
        """Return the owner's jobs that ended by themselves since the last look."""
        ended = list[tuple[str, Event]]()
        while not self._ended.empty():
            job, end = self._ended.get()
            known = self.keeper.journal.find(job)
            if known is not None and known.owner == OWNER and isinstance(end, Finished | Failed):
                ended.append((job, end))
        return ended

    def count_ends(self, ended: list[tuple[str, Event]]) -> str:
        """Say how many jobs are done and how many failed."""
        failed = sum(isinstance(end, Failed) for _, end in ended)
        done = len(ended) - failed
        told = [
            *([say("notify.done", "{count} {count:job is|jobs are} done.", count=done)] if done else []),
            *([say("notify.failed", "{count} {count:job|jobs} failed.", count=failed)] if failed else []),
        ]
        return join_sentences(map(_word, told))

    def word_ends(self, ended: list[tuple[str, Event]]) -> str:
        """Say of the ends what the phone is told; what the jobs were only where that is wished."""
        lines = [self.count_ends(ended)]
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


def find_picture(ended: list[tuple[str, Event]]) -> Path | None:
    """Return the last picture that was made."""
    made = [Path(file) for _, end in ended if isinstance(end, Finished) for file in end.files if file.endswith(".png")]
    return made[-1] if made else None


def _word(sentence: Sentence) -> str:
    return sentence.translate(templates(system_language()))
