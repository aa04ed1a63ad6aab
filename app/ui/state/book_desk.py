"""The book that the owner has open: its chapters, and those that are ticked. In memory alone: what is begun of it is jobs like any other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Final

from app.base.sentence import say
from app.base.trouble import BadRequest
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.book.book import Book
from app.engine.speech.book.read_book import read_book
from app.engine.speech.text.cast_script import keep_used
from app.ui.state.jobs_desk import JobsDesk
from app.ui.state.person import OWNER

CHAPTERS_MOST: Final = 200
"""No more are begun at once: each is a job, and the queue takes a few more."""


@dataclass(slots=True)
class BookDesk:
    jobs: JobsDesk
    book: Book | None = None
    ticked: tuple[int, ...] = ()
    """Chapters' places count from 0."""

    def open(self, file: IO[bytes], name: str) -> None:
        self.book = read_book(file, name)
        self.ticked = tuple(range(len(self.book.chapters)))

    def close(self) -> None:
        self.book, self.ticked = None, ()

    def tick(self, places: Sequence[int]) -> None:
        chapters = self.book.chapters if self.book else ()
        self.ticked = tuple(sorted({place for place in places if 0 <= place < len(chapters)}))

    def list_scripts(self) -> list[str]:
        """Return the scripts of the ticked chapters."""
        if self.book is None or not self.ticked:
            raise BadRequest(say("book.none", "No chapter is ticked. Tick those to be spoken."))
        return [self.book.chapters[place].script for place in self.ticked]

    def begin(self, asked: SpeechRequest) -> None:
        """Queue the ticked chapters, a job each, spoken as `asked` says."""
        scripts = self.list_scripts()
        if len(scripts) > CHAPTERS_MOST:
            raise BadRequest(
                say(
                    "book.many", "At most {most} chapters can be begun at once. Untick some, and speak them afterwards.", most=CHAPTERS_MOST
                )
            )
        self.jobs.begin_together([keep_used(dataclasses.replace(asked, text=text)) for text in scripts], OWNER)
