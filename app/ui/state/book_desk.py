"""The book that the owner has open: its chapters, those that are ticked, who speaks in it, and what of it is spoken. Its words are in memory alone: what
is begun of it is jobs like any other, which are found again by a chapter's words; title, author, cover and order are kept for its audiobook."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, Literal

from app.base import atomic_write, notices
from app.base.sentence import say
from app.base.trouble import BadRequest, Trouble
from app.engine.jobs.creation import Creation
from app.engine.jobs.request import Actor, SpeechRequest
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.jobs.shelf import Search
from app.engine.keeper.own_inputs import require_own
from app.engine.keeper.project_file import BookRecord
from app.engine.speech.book.book import Book, Chapter
from app.engine.speech.book.read_book import read_book
from app.engine.speech.kind import as_script
from app.engine.speech.sound.audiobook import draw_cover
from app.engine.speech.text.cast_script import keep_used, list_actors
from app.engine.speech.text.cast_tags import NARRATOR
from app.engine.speech.text.said_by import count_quotes, drop_tags, tag_chapter
from app.engine.speech.text.script import parse_script
from app.engine.speech.text.turns import ScriptPart
from app.engine.speech.text.voices import settle_voices
from app.ui.state.jobs_desk import EndedScript, JobsDesk
from app.ui.state.person import OWNER

CHAPTERS_MOST: Final = 200
"""No more are begun at once: each is a job, and the queue takes a few more."""
NAMES_MOST: Final = 40
"""So many names are offered a voice, those that speak most."""
VOICED_MOST: Final = 12
"""So many get one at first: who hardly speaks is read by the narrator unless ticked."""
SAVED: Final = "spoken_chapters"
"""The key of the settings that keeps which job spoke a chapter, by its words."""
SAVED_MOST: Final = 2_000
BOOKS: Final = "spoken_books"
"""The key of the settings that keeps of what was spoken what its audiobook says, the last begun at the end."""
BOOKS_MOST: Final = 40
State = Literal["", "waits", "now", "done", "cut"]
_STATES: Final[Mapping[str, State]] = {"queued": "waits", "running": "now", "stopped": "cut", "interrupted": "cut", "failed": "cut"}


@dataclass(frozen=True, slots=True)
class Spoken:
    """How far a chapter is. `creation`: its newest result on the shelf, 0 if there is none."""

    state: State = ""
    creation: int = 0


@dataclass(frozen=True, slots=True)
class Revoiced:
    """A spoken chapter that sounds otherwise with other voices: what is begun of it, the script that it takes parts over from, and what is spoken anew."""

    place: int
    request: SpeechRequest
    spoken: EndedScript | None
    fresh: tuple[ScriptPart, ...]
    parts: int
    """It has so many."""


@dataclass(slots=True)
class BookDesk:
    jobs: JobsDesk
    book: Book | None = None
    ticked: tuple[int, ...] = ()
    """Chapters' places count from 0."""
    speakers: Mapping[str, int] = field(default_factory=dict)
    """These seem to speak, with the number of their quotes."""
    same: Mapping[str, str] = field(default_factory=dict)
    """Which full names short ones stand for."""
    voiced: tuple[str, ...] = ()
    """A person gave these voices of their own; the narrator reads the rest."""
    lasts_s: dict[str, list[float]] = field(default_factory=dict)
    """By model: each chapter takes so long by forecast."""
    compared: tuple[SpeechRequest, tuple[str, ...], dict[tuple[str, int], Revoiced | None]] | None = None
    """The voices that were asked about last, and what they change, by chapter's job and newest result: to compare a script takes long."""

    def open(self, file: IO[bytes], name: str) -> None:
        self.book = read_book(file, name)
        found, self.same = count_quotes(each.text for each in self.book.chapters)
        self.speakers, self.lasts_s, self.compared = dict([*found.items()][:NAMES_MOST]), {}, None
        spoken = self.list_spoken()
        left = tuple(place for place, each in enumerate(spoken) if each.state in ("", "cut"))
        self.ticked = left or tuple(range(len(spoken)))
        self.voiced = self._find_voiced()

    def close(self) -> None:
        self.book, self.ticked, self.speakers, self.same, self.voiced, self.compared = None, (), {}, {}, (), None

    def tick(self, places: Sequence[int]) -> None:
        chapters = self.book.chapters if self.book else ()
        self.ticked = tuple(sorted({place for place in places if 0 <= place < len(chapters)}))

    def give_voices(self, names: Collection[str]) -> None:
        """Give these names voices of their own, of those that were found."""
        self.voiced = tuple(name for name in self.speakers if name in names)

    def measure(self, model: str) -> list[float]:
        """Return how many seconds of speech each chapter is in a model's voice."""
        if model not in self.lasts_s:
            limits = self.jobs.find_limits(model)
            self.lasts_s[model] = [parse_script(each.script, limits).seconds_estimate for each in (self.book.chapters if self.book else ())]
        return self.lasts_s[model]

    def list_spoken(self) -> list[Spoken]:
        """Tell of each chapter how far it is, wherever it was begun."""
        return [*self._iterate_spoken()]

    def _iterate_spoken(self) -> Iterator[Spoken]:
        return map(self._find_spoken, self._list_jobs())

    def list_scripts(self) -> list[str]:
        """Return the scripts of the ticked chapters."""
        if self.book is None or not self.ticked:
            raise BadRequest(say("book.none", "No chapter is ticked. Tick those to be spoken."))
        return [self._write_script(self.book.chapters[place]) for place in self.ticked]

    def list_cast(self, model: str, cast: tuple[Actor, ...]) -> tuple[Actor, ...]:
        """Return who speaks in the book, the narrator first, as chosen so far; nobody where all of it has one voice."""
        return list_actors((NARRATOR, *self.voiced), model, cast) if self.voiced else ()

    def begin(self, asked: SpeechRequest) -> None:
        """Queue the ticked chapters, a job each, spoken as `asked` says: with one seed, and each name with one voice in all of them."""
        scripts = self.list_scripts()
        if len(scripts) > CHAPTERS_MOST:
            raise BadRequest(
                say(
                    "book.many", "At most {most} chapters can be begun at once. Untick some, and speak them afterwards.", most=CHAPTERS_MOST
                )
            )
        if self.voiced:
            asked = self._settle(asked)
        kept = [self._keep_edits(job, text, self._find_ended(job)) for job, text in zip(self._list_ticked_jobs(), scripts, strict=True)]
        wanted = [text if edited is None else edited for edited, text in zip(kept, scripts, strict=True)]
        self._begin_together(self._plan(asked, wanted))
        self._tell_lost([place for place, edited in zip(self.ticked, kept, strict=True) if edited is None])

    def list_revoiced(self, asked: SpeechRequest) -> list[Revoiced]:
        """Return which spoken chapters sound otherwise with these voices, as many as are begun at once: of each the lines of whoever has another one, with
        the settings that the others were spoken with."""
        asked = self._settle(asked) if self.voiced else asked
        voices = SpeechRequest("?", self.jobs.models.resolve("speech", asked.model, OWNER), asked.voice, cast=asked.cast)
        compared, found = self.compared, list[Revoiced]()
        if compared is None or compared[:2] != (voices, self.voiced):
            self.compared = compared = voices, self.voiced, {}
        known = compared[2]
        for place, (job, so_far) in enumerate(zip(self._list_jobs(), self._iterate_spoken(), strict=True)):
            key = job, so_far.creation
            if so_far.state == "done" and key not in known and self.book:
                known[key] = self._compare_voices(place, job, self.book.chapters[place], voices)
            if so_far.state == "done" and (one := known.get(key)) is not None:
                found.append(one if one.place == place else dataclasses.replace(one, place=place))
            if len(found) == CHAPTERS_MOST:
                break
        return found

    def _compare_voices(self, place: int, job: str, chapter: Chapter, voices: SpeechRequest) -> Revoiced | None:
        spoken = self._find_ended(job)
        if spoken is None or self._has_voices(spoken.request, chapter, voices):
            return None
        text = self._keep_edits(job, self._write_script(chapter), spoken)
        if text is None:  # nobody knows whose lines are whose
            return None
        before = _strip(spoken.request)
        wanted = keep_used(dataclasses.replace(before, model=voices.model, text=text, voice=voices.voice, cast=voices.cast))
        if wanted == before:
            return None
        taken = self.jobs.take_over(spoken, wanted, OWNER)
        if taken is not None and not taken.only_parts:
            return None
        request = taken or wanted
        split = self.jobs.parse(request).parts
        fresh = tuple(split[each] for each in request.choose_parts(len(split)))
        return Revoiced(place, request, spoken if taken is not None else None, fresh, len(split))

    def _has_voices(self, before: SpeechRequest, chapter: Chapter, voices: SpeechRequest) -> bool:
        """Tell without reading the script whether a chapter was spoken with these voices: whoever is not named in it says nothing there."""
        words = f"{before.text}\n{chapter.script}".casefold()

        def is_named(name: str) -> bool:
            return any(
                word in words for each in (name, *self.same) if self.same.get(each, name) == name for word in each.casefold().split()
            )

        cast = tuple(each for each in voices.cast if each in before.cast or is_named(each.name))
        return (before.model, before.voice, before.cast) == (voices.model, voices.voice, cast)

    def speak_revoiced(self, asked: SpeechRequest) -> None:
        """Queue what these voices change in spoken chapters."""
        self.compared = None  # what else the lines hang on, such as how a word is spoken, may have changed since
        plan = [(each.place, each.request, each.spoken) for each in self.list_revoiced(asked)]
        if not plan:
            raise BadRequest(say("book.same-voices", "All spoken chapters have these voices already."))
        for _, request, _ in plan:
            require_own(self.jobs.keeper.home, request)
        self._begin_together(plan)

    def _begin_together(self, plan: Sequence[tuple[int, SpeechRequest, EndedScript | None]]) -> None:
        """Queue these chapters, and keep which job speaks each."""
        places, requests, sources = zip(*plan, strict=True)
        begun = self.jobs.begin_together(requests, OWNER, sources)
        if self.book:
            self._remember(dict(zip((key_of(self.book.chapters[place]) for place in places), begun, strict=True)))
            kept = {**self._list_places(), **dict(zip(begun, places, strict=True))}
            words = _hash(" ".join(map(key_of, self.book.chapters)))
            self.keep_record(BookRecord(self.book.title, self.book.author, words, self.book.cover, kept))

    def _plan(self, asked: SpeechRequest, scripts: Sequence[str]) -> list[tuple[int, SpeechRequest, EndedScript | None]]:
        """Return what is begun of which chapters, and the script from which each takes parts over. Where one got another voice, their lines alone are
        spoken anew, and a chapter without any stays as it is; what has not changed at all is spoken once more as a whole."""
        seeded = asked if asked.seed is not None else dataclasses.replace(asked, seed=random.randrange(SEED_LIMIT))
        model = self.jobs.models.resolve("speech", asked.model, OWNER)
        found = list[tuple[int, SpeechRequest, EndedScript | None, SpeechRequest | None]]()
        for place, job, text in zip(self.ticked, self._list_ticked_jobs(), scripts, strict=True):
            spoken = self._find_ended(job)
            wanted = keep_used(dataclasses.replace(asked, model=model, text=text))
            taken = self.jobs.take_over(spoken, wanted, OWNER) if spoken is not None else None
            found.append((place, keep_used(dataclasses.replace(seeded, text=text)), spoken, taken))
        revoiced = any(spoken and taken and _count(taken) < sum(part.whole for part in spoken.parts) for _, _, spoken, taken in found)
        plan = list[tuple[int, SpeechRequest, EndedScript | None]]()
        for place, whole, spoken, taken in found:
            if taken is None or not (taken.only_parts or revoiced):
                plan.append((place, whole, None))
            elif taken.only_parts or spoken is None or _strip(taken) != _strip(spoken.request):
                require_own(self.jobs.keeper.home, taken)
                plan.append((place, taken, spoken))
        return plan

    def _find_ended(self, job: str) -> EndedScript | None:
        """Return the newest of a chapter that was spoken."""
        made = self.jobs.keeper.shelf.find_newest(self._find_origin(job)) if job else None
        return self.jobs.read_ended_script(made.job if made is not None else job)

    def _keep_edits(self, job: str, text: str, spoken: EndedScript | None) -> str | None:
        """Return a chapter's script, `text` as the book gives it now, with the lines that were edited since it was begun. None where somebody gave lines to
        others by hand, and not to those who have voices now: nobody chose how they would sound."""
        known = self.jobs.keeper.journal.find(job) if job and spoken is None else None
        begun = spoken.request if spoken is not None else as_script(known.request) if known is not None else None
        if begun is None:
            return text
        names = (NARRATOR, *self.speakers)
        (words, before), (_, now) = drop_tags(begun.text, names), drop_tags(text, names)
        if before == now:
            return begun.text
        guessed = before <= {*names} and self._tag(words, before) == begun.text
        return self._tag(words, self.voiced) if guessed else None

    def _tell_lost(self, places: Sequence[int]) -> None:
        chapters = self.book.chapters if self.book and places else ()
        if chapters:
            notices.tell(
                say(
                    "book.edits-lost",
                    "What you changed in {chapters} does not fit who has a voice now, so the book's own words are spoken there. "
                    "What was spoken before stays on the Shelf.",
                    chapters=tuple(chapters[place].title or chapters[place].text[:60] for place in places),
                )
            )

    def find_book(self, spoken: Sequence[Creation]) -> tuple[Book | None, dict[int, int]]:
        """Return the book whose chapters all of these are, without its words where it is not open any more, and by number where in it each stands."""
        jobs = {each.id: self.jobs.keeper.shelf.find_origin(each.job) for each in spoken}
        for read, places in self._list_books() if jobs else ():
            if {*jobs.values()} <= places.keys():
                return read(), {id_: places[job] for id_, job in jobs.items()}
        return None, {}

    def empty_bin(self) -> int:
        """Delete the bin for good, and forget the books whose last chapter was in it; return how many creations stay."""
        binned = self._list_binned()
        stayed = self.jobs.empty_bin()
        left = self._list_binned()

        def is_gone(jobs: Collection[str]) -> bool:
            return not binned.isdisjoint(jobs) and not any(job in left or self._may_come_back(job) for job in jobs)

        if any(is_gone(each["jobs"]) for each in self.jobs.settings.get(BOOKS, [])):
            with contextlib.suppress(Trouble, OSError):  # then they stay until later ones take their places
                self._change_books(lambda books: [each for each in books if not is_gone(each["jobs"])])
        return stayed

    def _list_binned(self) -> set[str]:
        """List the jobs that first spoke what lies in the bin."""
        shelf = self.jobs.keeper.shelf
        return {shelf.find_origin(each.job) for each in shelf.find(Search(binned=True, most=-1))}

    def _may_come_back(self, job: str) -> bool:
        """Tell whether a chapter has a result, or may still get one."""
        keeper = self.jobs.keeper
        known = keeper.journal.find(job)
        return (
            keeper.shelf.find_newest(job) is not None
            or keeper.has_parts(job)
            or (known is not None and known.state in ("queued", "running", "interrupted"))
        )

    def _settle(self, asked: SpeechRequest) -> SpeechRequest:
        """Return what is asked for with a voice for each name, so that it does not hang on who else speaks in a chapter."""
        model = self.jobs.models.resolve("speech", asked.model, OWNER)
        actors = list_actors((NARRATOR, *self.voiced), model, asked.cast, asked.voice)
        settled = settle_voices(actors, self.jobs.find_limits, lambda id_: self.jobs.models.list_voices(id_, OWNER))
        return dataclasses.replace(asked, model=model, cast=settled, voice=None)

    def _write_script(self, chapter: Chapter) -> str:
        """Return a chapter with tags, also where the narrator speaks alone; one that has tags already as it is."""
        return self._tag(chapter.script, self.voiced)

    def _tag(self, words: str, names: Collection[str]) -> str:
        return tag_chapter(words, names, self.same, self.speakers) if names else words

    def _list_ticked_jobs(self) -> list[str]:
        jobs = [*self._list_jobs()]
        return [jobs[place] for place in self.ticked]

    def _list_jobs(self) -> Iterator[str]:
        """Yield which job spoke each chapter, or is to; empty where none did."""
        saved = self.jobs.settings.get(SAVED, {})
        for each in self.book.chapters if self.book else ():
            yield saved.get(key_of(each), "")

    def _find_origin(self, job: str) -> str:
        """Return the job that spoke a chapter first, also of one that takes parts over and has made nothing yet."""
        known = self.jobs.keeper.journal.find(job)
        source = next((Path(path).parent.name for path in known.request.keep if path), "") if known is not None else ""
        return self.jobs.keeper.shelf.find_origin(source or job)

    def _find_spoken(self, job: str) -> Spoken:
        known = self.jobs.keeper.journal.find(job) if job else None
        if known is None:
            return Spoken()
        made = self.jobs.keeper.shelf.find_newest(self._find_origin(job))
        if known.state == "finished":
            return Spoken("done", made.id) if made is not None else Spoken()
        return Spoken(_STATES[known.state], made.id if made is not None else 0)

    def _find_voiced(self) -> tuple[str, ...]:
        """Return who had a voice where this book was spoken before."""
        for job in filter(None, self._list_jobs()):
            known = self.jobs.keeper.journal.find(job)
            if known is not None and known.request.cast:
                return tuple(name for name in self.speakers if name in {each.name for each in known.request.cast})
        return ()

    def _remember(self, begun: Mapping[str, str]) -> None:
        def add(saved: dict[str, str]) -> dict[str, str]:
            others = {key: job for key, job in saved.items() if key not in begun}
            return dict([*others.items(), *begun.items()][-SAVED_MOST:])

        with contextlib.suppress(Trouble):  # then only a book that is opened again does not know of it
            self.jobs.settings.change(SAVED, {}, add)

    def find_records(self, jobs: Collection[str]) -> list[BookRecord]:
        """Return what is kept of the books of which these jobs spoke chapters."""
        return [
            BookRecord(each["title"], each["author"], each["words"], self._read_kept(each).cover, each["jobs"])
            for each in self.jobs.settings.get(BOOKS, [])
            if not each["jobs"].keys().isdisjoint(jobs)
        ]

    def keep_record(self, book: BookRecord, brought: bool = False) -> None:
        """Keep what a book's audiobook says, and which job spoke the chapter in which place, for when it is not open any more. One that a project
        brought takes the place of none."""
        cover, _ = draw_cover(book.cover)
        folder, name = self.jobs.keeper.home.covers, hashlib.sha256(cover).hexdigest() if cover else ""
        told = {"title": book.title, "author": book.author, "cover": name, "words": book.words}

        def add(books: list[dict[str, Any]]) -> list[dict[str, Any]]:
            others = [each for each in books if not told.items() <= each.items()]
            before: dict[str, int] = next((each["jobs"] for each in books if each not in others), {})
            now = {**told, "jobs": dict([*{**before, **book.places}.items()][-SAVED_MOST:])}
            return ([now, *others] if brought and not before else [*others, now])[-BOOKS_MOST:]

        with contextlib.suppress(Trouble, OSError):  # then its audiobook can only be saved while it is open
            if cover:
                with atomic_write.replacing(folder / name) as unfinished:
                    unfinished.write_bytes(cover)
            self._change_books(add, name)

    def _change_books(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], fresh: str = "") -> None:
        """Change which books are kept, and delete the covers of those that are not. `fresh`: the cover of one that is to be."""
        gone = set[str]()

        def exchange(books: list[dict[str, Any]]) -> list[dict[str, Any]]:
            kept = change(books)
            gone.update({fresh, *(each["cover"] for each in books)} - {each["cover"] for each in kept} - {""})
            return kept

        self.jobs.settings.change(BOOKS, [], exchange)
        for each in gone:
            (self.jobs.keeper.home.covers / each).unlink(missing_ok=True)

    def _list_books(self) -> Iterator[tuple[Callable[[], Book], Mapping[str, int]]]:
        """Yield how to read the open book, then those that were spoken, the last first; with each the places of its chapters by the jobs that spoke
        them."""
        if (book := self.book) is not None:
            yield lambda: book, self._list_places()
        for kept in reversed(self.jobs.settings.get(BOOKS, [])):
            yield partial(self._read_kept, kept), kept["jobs"]

    def _read_kept(self, kept: Mapping[str, str]) -> Book:
        cover = b""
        if kept["cover"]:
            with contextlib.suppress(OSError):
                cover = (self.jobs.keeper.home.covers / kept["cover"]).read_bytes()
        return Book((), kept["title"], kept["author"], cover=cover)

    def _list_places(self) -> dict[str, int]:
        return {self._find_origin(job): place for place, job in enumerate(self._list_jobs()) if job}


def _count(taken: SpeechRequest) -> int:
    return sum(map(bool, taken.keep))


def _strip(request: SpeechRequest) -> SpeechRequest:
    return dataclasses.replace(request, keep=(), only_parts=())


def key_of(chapter: Chapter) -> str:
    return _hash(chapter.script)


def _hash(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:32]
