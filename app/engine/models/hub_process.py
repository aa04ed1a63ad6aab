"""What the hub's process does: fetch a model, look whether there is a connection, check an access token. Started by hub_child.py alone."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from app.base.duration import word_duration
from app.base.proxies import refuse_socks
from app.base.sentence import Sentence, Value, say
from app.base.trouble import NeedsKey, NotThere, Trouble
from app.engine.models import hub, hub_faults, hub_token
from app.engine.models.hub import Listing
from app.engine.models.hub_child import Act, Ended, Found, HaltedError, Received, Tell, Waits, word_fault
from app.engine.models.model import Source
from app.engine.models.on_disk import count_bytes_here

WAIT_MOST_S: Final = 120.0
"""If the hub asks for a longer wait, the download stops until the user resumes it."""
WRONG_MOST: Final = 2
TELL_EVERY_S: Final = 0.1
"""Blocks arrive more often than anyone looks."""
T = TypeVar("T")


def serve(tell: Tell, halted: threading.Event, act: Act, given: tuple[Any, ...]) -> None:
    """Do what was asked for, and say how it ended."""
    without = None
    try:
        if act != "token":
            refuse_socks()
        match act:
            case "download":
                without = Transfer(tell, halted, *given).run()
            case "line":
                check_line(*given)
            case "token":
                hub_token.store(*given)
    except Trouble as trouble:
        tell(Ended(trouble.sentence, trouble.cure))
    else:
        tell(Ended(without=without))


def check_line(models: Path, endpoint: str | None) -> None:
    """Raise what keeps every download from coming now: no connection to the hub, or offline mode."""
    fault = hub.find_line_fault(endpoint)
    if fault is None:
        return
    if hub_faults.has_no_line(fault):
        raise Trouble(word_no_line(endpoint))
    trouble = hub_faults.explain_fault(fault, "", models, endpoint)
    if trouble is not None:
        raise trouble


def word_no_line(endpoint: str | None) -> Sentence:
    return say(
        "download.no-line",
        "There is no connection to {host}. The download continues by itself once there is one.",
        host=hub_faults.name_host(endpoint),
    )


class Transfer:
    """One download: list, fetch, link; retried for as long as bytes arrive."""

    def __init__(
        self,
        tell: Tell,
        halted: threading.Event,
        models: Path,
        title: Value,
        sources: Sequence[Source],
        optional: Sequence[Source],
        endpoint: str | None,
        waits_s: Sequence[float],
        line_wait_s: float | None,
    ) -> None:
        """`optional`: those of the sources that the model goes on without. `waits_s`: between attempts without new bytes; any received block starts
        the list again. `line_wait_s`: without a connection, look for one so often until it is there; None: fail after `waits_s`."""
        self._tell, self._halted, self._models, self._title, self._sources = tell, halted, models, title, sources
        self._endpoint, self._waits_s, self._line_wait_s = endpoint, tuple(waits_s), line_wait_s
        self._optional, self._gone = optional, dict[str, Sentence]()
        self._received, self._told, self._told_s = 0, 0, 0.0

    def run(self) -> Sentence | None:
        """Fetch it; return what did not come and is not needed."""
        try:
            self._fetch()
        except (HaltedError, Trouble):
            raise
        except Exception as fault:
            traceback.print_exc()
            raise Trouble(word_fault(self._title, type(fault).__name__), cure="report") from fault
        if not self._gone:
            return None
        return say(
            "download.without",
            "{model} works without {repos}, which could not be downloaded. {why}",
            model=self._title,
            repos=tuple(self._gone),
            why=next(iter(self._gone.values())),
        )

    def _fetch(self) -> None:
        listed = [self._unless_gone(source, lambda source=source: self._list(source)) for source in self._sources]  # type: ignore[misc]
        found = [each for each in listed if each is not None]
        blobs = tuple(dict.fromkeys((each.source.repo, file.etag, file.size_bytes) for each in found for file in each.files))
        self._tell(Found(blobs))
        hub.require_room(self._models, sum(size - count_bytes_here(self._models, repo, etag) for repo, etag, size in blobs))
        fetched = [self._unless_gone(each.source, lambda each=each: self._fetch_files(each)) for each in found]  # type: ignore[misc]
        for whole in fetched:
            if whole is not None:
                hub.link_snapshot(self._models, whole)

    def _unless_gone(self, source: Source, act: Callable[[], T]) -> T | None:
        """Go on without what the model does not need, where the hub has it no longer or asks for a token: it does so for what is gone, too."""
        try:
            return act()
        except (NotThere, NeedsKey) as gone:
            if source not in self._optional:
                raise
            self._gone[source.repo] = gone.sentence
            return None

    def _list(self, source: Source) -> Listing:
        return self._retry(source.repo, lambda: hub.list_files(source, self._endpoint))

    def _fetch_files(self, found: Listing) -> Listing:
        for file in found.files:
            self._retry(
                found.source.repo,
                lambda file=file: hub.fetch(self._models, found, file, self._count_bytes, self._endpoint),  # type: ignore[misc]
            )
        return found

    def _count_bytes(self, size_bytes: int) -> None:
        if self._halted.is_set():
            raise HaltedError
        self._received += size_bytes
        now_s = time.monotonic()
        if now_s - self._told_s > TELL_EVERY_S and self._received > self._told:
            self._tell(Received(self._received - self._told))
            self._told, self._told_s = self._received, now_s

    def _retry(self, repo: str, act: Callable[[], T]) -> T:
        """Retry after interruptions for as long as bytes arrive; a wait is reported and can be ended."""
        waits, wrong = list(self._waits_s), 0
        while True:
            before = self._received
            try:
                result = act()
                self._tell(Waits(None))
                return result
            except (HaltedError, Trouble):
                raise
            except Exception as fault:
                trouble = hub_faults.explain_fault(fault, repo, self._models, self._endpoint)
                if trouble is None:
                    raise
                wrong += isinstance(fault, hub_faults.WrongBytesError)
                if self._received > before and not isinstance(fault, hub_faults.WrongBytesError):
                    waits = list(self._waits_s)
                if self._line_wait_s is not None and hub_faults.has_no_line(fault):
                    self._wait(self._line_wait_s, word_no_line(self._endpoint))
                    continue
                asked_s = hub_faults.read_wait_s(fault)
                if not hub_faults.is_temporary(fault) or not waits or wrong >= WRONG_MOST or asked_s > WAIT_MOST_S:
                    raise trouble from fault
                wait_s = max(waits.pop(0), asked_s)
                busy = say(
                    "download.waits", "The connection was lost or Hugging Face is busy; retrying in {time}.", time=word_duration(wait_s)
                )
                self._wait(wait_s, busy)

    def _wait(self, seconds: float, sentence: Sentence) -> None:
        self._tell(Waits(sentence))
        if self._halted.wait(seconds):
            raise HaltedError from None
