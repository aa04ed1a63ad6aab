"""Listening back: the parts of the last script heard against their text, and those that went wrong spoken again, the better take kept."""

from __future__ import annotations

import dataclasses
import functools
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.hearing import heard
from app.engine.hearing.compare import Mark, mark
from app.engine.hearing.spelling import spell
from app.engine.jobs.events import END, Failed, Finished, PartDone
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.text.likely_language import choose_language
from app.engine.speech.text.subtitles import read_cues, strip_tags
from app.ui.state.hearing_desk import HearingDesk, name_store
from app.ui.state.jobs_desk import EndedScript, JobsDesk
from app.ui.state.person import Person

TRIES: Final = 3
"""A part is spoken again at most so often."""
_log = logging.getLogger(__name__)


class _Left(Trouble):
    """The person went on to another script."""


@dataclass(slots=True)
class Listening:
    """`tasks`: the task that hears a job's parts. `mending`: the persons whose parts are spoken again, each with what ends that. `failed`:
    why the marked parts of a job could not be."""

    hearing: HearingDesk
    jobs: JobsDesk
    tasks: dict[str, str] = field(default_factory=dict)
    mending: dict[str, threading.Event] = field(default_factory=dict)
    failed: dict[str, Trouble] = field(default_factory=dict)

    def listen(self, person: Person) -> str:
        """Hear those parts of the last script that were not heard yet; return the task, empty where there is nothing to hear."""
        return self._listen(self._require_ended(person))

    def _listen(self, spoken: EndedScript) -> str:
        self.failed.pop(spoken.job, None)
        fresh = [part for part in spoken.parts if part.whole and find_marks(Path(part.path)) is None]
        if not fresh:
            return ""
        self.hearing.give_way()
        languages = self._list_languages(spoken.request, fresh)
        task = self.hearing.begin([Path(part.path) for part in fresh], [strip_tags(part.text) for part in fresh], languages)
        self.hearing.parts_task = self.tasks[spoken.job] = task
        return task

    def _list_languages(self, request: SpeechRequest, parts: Sequence[PartDone]) -> list[str]:
        """Return in which language each part was spoken, as its voice speaks it."""
        split = self.jobs.parse(request).parts
        models = [split[part.index].model or request.model if part.index < len(split) else request.model for part in parts]
        spoken = {model: self.jobs.find_limits(model).languages for model in models}
        return [choose_language(part.text, spoken[model]) for part, model in zip(parts, models, strict=True)]

    def place_words(self, person: Person) -> None:
        """Find when each word of the last script's result is said."""
        spoken = self._require_ended(person)
        results = self.hearing.keeper.shelf.list_of_job(spoken.job)
        cues = read_cues(results[-1].path) if results else []
        if not cues:
            raise Trouble(
                say_to_all("listening.no-sentences", "This result does not say when its sentences are said. Speak the script again.")
            )
        self.failed.pop(spoken.job, None)
        self.hearing.give_way()
        languages = self._list_languages(spoken.request, spoken.parts)
        task = self.hearing.begin_words(results[-1].path, cues, self.hearing.name_words(results[-1]), languages)
        self.hearing.parts_task = self.tasks[spoken.job] = task

    def stop(self, person: Person) -> None:
        if person.name in self.mending:
            self.mending[person.name].set()
        spoken = self.jobs.find_ended_script(person)
        if spoken is not None and spoken.job in self.tasks:
            self.hearing.keeper.stop(self.tasks[spoken.job])

    def mend(self, person: Person) -> None:
        """Speak the marked parts again with other seeds, hear them, and keep the better take of each; in the background, TRIES times at most."""
        spoken = self._require_ended(person)
        if not list_wrong(spoken.parts):
            raise Trouble(say_to_all("listening.nothing", "No part is marked. Listen to the parts first."))
        if person.name not in self.mending:
            self.failed.pop(spoken.job, None)
            self.mending[person.name] = threading.Event()
            threading.Thread(target=self._mend, args=(spoken, person), name="mending", daemon=True).start()

    def _mend(self, spoken: EndedScript, person: Person) -> None:
        whole = spoken.job
        try:
            for _ in range(TRIES):
                again = self._try_again(self._require_shown(whole, person), person)
                if not again or self.mending[person.name].is_set():
                    return
                whole = again
        except _Left as trouble:
            self.failed[whole] = trouble
        except Trouble as trouble:
            _log.warning("%s", trouble)
            self.jobs.show_script(whole, person)  # and not the one that failed
            self.failed[whole] = trouble
        finally:
            del self.mending[person.name]

    def _try_again(self, spoken: EndedScript, person: Person) -> str:
        """Speak the marked parts once more; return the job that has the better takes, empty where nothing is left to do."""
        wrong = list_wrong(spoken.parts)
        if not wrong:
            return ""
        job = self.jobs.redo_parts(spoken, [part.index for part in wrong], person)
        if not self._wait(job):
            return ""
        task = self._listen(self._require_shown(job, person))
        if task and not self._wait(task):
            return ""
        now = self._require_shown(job, person)
        before = {part.index: part for part in wrong}
        worse = {part.index for part in now.parts if part.index in before and count_wrong(part) >= count_wrong(before[part.index])}
        if worse:
            keep = tuple(before[part.index].path if part.index in worse else part.path for part in now.parts)
            job = self.jobs.begin_from(now, dataclasses.replace(now.request, only_parts=(), keep=keep), person)
            self._wait(job)
        return job

    def _require_shown(self, job: str, person: Person) -> EndedScript:
        """Return a job's script while it is the one that is shown: a part's number means another line in any other."""
        spoken = self.jobs.find_ended_script(person)
        if spoken is None or spoken.job != job:
            raise _Left(
                say_to_all(
                    "listening.left",
                    "Another script was spoken or opened meanwhile, so the marked parts of this one are not spoken again any further.",
                )
            )
        return spoken

    def _wait(self, job: str) -> bool:
        """Wait for the end of a job or task; tell whether it was finished. Raise why it failed."""
        end = next((event for event in self.hearing.keeper.follow(job) if isinstance(event, END)), None)
        if isinstance(end, Failed):
            raise end.trouble
        return isinstance(end, Finished)

    def find_trouble(self, job: str) -> Trouble | None:
        """Return what ended the hearing of a job's parts, or their being spoken again; None if nothing did."""
        end = self.hearing.keeper.get_progress(self.tasks[job]).end if job in self.tasks else None
        return self.failed.get(job) or (end.trouble if isinstance(end, Failed) else None)

    def _require_ended(self, person: Person) -> EndedScript:
        spoken = self.jobs.find_ended_script(person)
        if spoken is None:
            raise Trouble(say_to_all("listening.no-parts", "There are no finished parts to listen to. Speak the script first."))
        return spoken


ACTIONS: Final[dict[str, Callable[[Listening, Person], object]]] = {
    "listen": Listening.listen, "mend": Listening.mend, "words": Listening.place_words, "stop": Listening.stop,
}  # fmt: skip


def list_wrong(parts: Sequence[PartDone]) -> list[PartDone]:
    return [part for part in parts if count_wrong(part)]


def count_wrong(part: PartDone) -> int:
    """Count the words of a part that went wrong, as far as it was heard."""
    return sum(max(1, each.last - each.first) for each in find_marks(Path(part.path)) or ())


def find_marks(sound: Path) -> tuple[Mark, ...] | None:
    """Return what went wrong in a part; None if this take was not heard yet."""
    try:
        taken_ns, heard_ns = sound.stat().st_mtime_ns, name_store(sound).stat().st_mtime_ns
    except OSError:
        return None
    return _read_marks(str(name_store(sound)), heard_ns) if heard_ns >= taken_ns else None


@functools.lru_cache(maxsize=10_000)
def _read_marks(path: str, _changed_ns: int) -> tuple[Mark, ...] | None:
    found = heard.find(Path(path))
    return None if found is None else tuple(mark(found.meant, found.text, spell, found.language or "en"))
