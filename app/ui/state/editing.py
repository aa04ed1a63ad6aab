"""Editing after speaking: a line's words, its place and its pauses changed in the script, earlier takes chosen again, and all of it taken back. The
script is the truth: each deed returns it, and what is left to speak comes of comparing it with what was spoken."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.request import Actor, SpeechRequest
from app.engine.jobs.seed import draw_seed
from app.engine.keeper.own_inputs import require_own
from app.engine.speech.kind import as_script
from app.engine.speech.sound.takes import Takes, read_takes
from app.engine.speech.text import script_edits
from app.engine.speech.text.pronunciations import Rows
from app.engine.speech.text.script import require_no_fault
from app.engine.speech.text.script_edits import Place
from app.ui.state.jobs_desk import Compared, EndedScript, JobsDesk
from app.ui.state.person import Person

PAUSE_MOST_S: Final = 30.0
Deed = Callable[[str, Sequence[Place]], str]
"""It changes a script, by where its parts stand."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What is asked for: of a part of the script as it stands in the field."""

    text: str
    cast: tuple[Actor, ...] = ()
    part: int = 0
    words: str = ""
    seconds: float | None = None
    take: int = 0
    says: Rows = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A part's words as they stand in the script, and the pauses around it, as written or as the layout makes them."""

    words: str
    pause_before_s: float
    pause_after_s: float


@dataclass(frozen=True, slots=True)
class Script:
    """What the fields hold after a deed."""

    text: str
    part: int = 0
    request: SpeechRequest | None = None
    """It is set only where the cast comes back too."""


@dataclass(frozen=True, slots=True)
class Editing:
    jobs: JobsDesk

    def read_line(self, edit: Edit, person: Person) -> Line:
        now, places = self._find(edit, person)
        place, parts = places[edit.part], now.parsed.parts
        after_s = parts[edit.part + 1].pause_before_s if edit.part + 1 < len(parts) else now.parsed.pause_after_s
        return Line(edit.text[place.begin : place.end], parts[edit.part].pause_before_s, after_s)

    def change_words(self, edit: Edit, person: Person) -> Script:
        """Write other words in a part's place; none take it out of the script."""
        now, places = self._find(edit, person)
        if not edit.words.strip() and len(places) == 1:
            raise Trouble(say_to_all("edit.last", "This is the only part of the script. Write other words in its place."))

        def deed(text: str, at: Sequence[Place]) -> str:
            return script_edits.change_words(text, at, edit.part, edit.words)

        return Script(self._choose(edit, person, self._list_ways(edit, now, deed, (edit.part, edit.part + 1))), edit.part)

    def move(self, edit: Edit, person: Person, later: bool) -> Script:
        now, places = self._find(edit, person)
        second, known = edit.part + later, [each.name for each in edit.cast]
        if not 0 < second < len(places):
            raise Trouble(say_to_all("edit.end", "This part cannot be moved any further."))

        def deed(text: str, at: Sequence[Place]) -> str:
            return script_edits.move_part(text, at, now.parsed.parts, second, known)

        text = self._choose(edit, person, self._list_ways(edit, now, deed, (second - 1, second, second + 1)))
        return Script(text, second if later else second - 1)

    def set_pause(self, edit: Edit, person: Person) -> Script:
        """Set the pause before a part; of a part more than there are, after the last one."""
        after = dataclasses.replace(edit, part=max(0, edit.part - 1))  # the last pause stands after the last part
        _, places = self._find(after, person)
        seconds = None if edit.seconds is None else min(max(edit.seconds, 0.0), PAUSE_MOST_S)
        text = script_edits.set_pause(edit.text, places, edit.part, seconds, [each.name for each in edit.cast])
        return Script(text, min(edit.part, len(places) - 1))

    def speak(self, edit: Edit, person: Person) -> Script:
        """Speak what has changed; what is spoken already is joined anew."""
        self.jobs.speak_changed(edit.text, person, edit.cast, edit.says)
        return Script(edit.text, edit.part)

    def choose_take(self, edit: Edit, person: Person) -> Script:
        """Put an earlier take in a part's place, with the words that it was spoken from; the take that was there is kept in its turn."""
        now = self._compare(edit, person)
        if not now.same:
            raise Trouble(say_to_all("edit.pending", "The script has changed. Speak only what changed first, or undo it."))
        takes = self.read_takes(now.spoken.job).parts.get(edit.part, ())
        if edit.take >= len(takes):
            raise Trouble(say_to_all("edit.no-take", "This take is not there any more."))
        take, current = takes[edit.take], {part.index: part for part in now.spoken.parts}
        wanted = [current[place].text if place in current else part.text for place, part in enumerate(now.parsed.parts)]
        same, wanted[edit.part] = wanted[edit.part] == take.text, take.text

        def deed(text: str, at: Sequence[Place]) -> str:
            return text if same else script_edits.change_words(text, at, edit.part, take.words)

        for text in self._list_ways(edit, now, deed, (edit.part, edit.part + 1)):
            rows = self.jobs.choose_rows(text, edit.says, person, edit.cast)
            request = dataclasses.replace(now.spoken.request, text=text, cast=edit.cast, only_parts=(), pronunciations=rows)
            if [part.text for part in self.jobs.parse(request).parts] == wanted:
                paths = [current[place].path if place in current else "" for place in range(len(wanted))]
                paths[edit.part] = str(take.path)
                seed = draw_seed(now.spoken.request, self.jobs.keeper.folder(now.spoken.job))
                request = dataclasses.replace(request, keep=tuple(paths), seed=seed)
                require_own(self.jobs.keeper.home, request)
                self.jobs.begin_from(now.spoken, request, person)
                return Script(text, edit.part)
        raise Trouble(say_to_all("edit.take-unfit", "This take does not fit the script any more: it would be split in another place."))

    def go_back(self, person: Person) -> Script:
        """Show the script as it was before, with its parts, its takes and its result; end what is spoken of this one."""
        job = self.jobs.find_current("speech", person)
        before = self.find_before(job)
        if not before:
            raise Trouble(say_to_all("edit.nothing-back", "There is nothing to undo."))
        if self.jobs.keeper.get_progress(job).end is None:
            self.jobs.keeper.stop(job)
            threading.Thread(target=self._bin_at_end, args=(job,), name="undo", daemon=True).start()
        else:
            self._bin_results(job)
        self.jobs.show_script(before, person)
        request = as_script(self.jobs.keeper.journal.get(before).request)
        return Script(request.text if request is not None else "", 0, request)

    def _bin_at_end(self, job: str) -> None:
        """Wait until a job that was stopped has kept what it had."""
        deque(self.jobs.keeper.follow(job), maxlen=0)
        self._bin_results(job)

    def _bin_results(self, job: str) -> None:
        """Put what a job made into the bin, but for what somebody marked: the shelf and a book have the script's newest result, which is that before."""
        made = [each for each in self.jobs.keeper.shelf.list_of_job(job) if not (each.binned or each.favourite)]
        marks = self.jobs.keeper.gallery.read_marks(made)
        with contextlib.suppress(Trouble, OSError):  # a disk that is away: they stay
            for each in made:
                if each.id not in marks:
                    self.jobs.keeper.shelf.delete(each.id)

    def read_script(self, person: Person) -> Script:
        """Return the script whose parts are shown."""
        spoken = self._require_ended(person)
        return Script(spoken.request.text, 0, spoken.request)

    def find_before(self, job: str) -> str:
        """Return the job that a script was before it was edited, if its parts are still there."""
        before = self.read_takes(job).before if job else ""
        return before if before and self.jobs.keeper.has_parts(before) else ""

    def read_takes(self, job: str) -> Takes:
        return read_takes(self.jobs.keeper.folder(job))

    def _find(self, edit: Edit, person: Person) -> tuple[Compared, list[Place]]:
        now = self._compare(edit, person)
        places = self._list_places(edit.text, edit, now)
        if edit.part >= len(places):
            raise Trouble(say_to_all("edit.no-line", "The script has no such part any more. Look at the list again."))
        return now, places

    def _compare(self, edit: Edit, person: Person) -> Compared:
        """Compare the script with the last one that was spoken, of which it has to hold something."""
        spoken = self._require_ended(person)
        now = self.jobs.compare_script(edit.text, person, edit.cast, edit.says)
        if now is None or not (now.same or now.wanted is not None):
            if now is not None:
                require_no_fault(now.parsed)
            raise Trouble(
                say_to_all(
                    "edit.other",
                    "The script in the field is another one than these {parts} {parts:part|parts} are of. Put theirs back first.",
                    parts=len(spoken.parts),
                )
            )
        return now

    def _require_ended(self, person: Person) -> EndedScript:
        spoken = self.jobs.find_ended_script(person)
        if spoken is None:
            raise Trouble(say_to_all("edit.not-yet", "Parts can be edited when the script has been spoken, or was stopped."))
        return spoken

    def _list_places(self, text: str, edit: Edit, now: Compared) -> list[Place]:
        return script_edits.find_places(text, now.parsed.parts, [each.name for each in edit.cast])

    def _list_ways(self, edit: Edit, now: Compared, deed: Deed, borders: Iterable[int]) -> Iterator[str]:
        """Yield the script after a deed; then again with pauses written at these borders, as long as they are, which hold the parts on both sides."""
        yield deed(edit.text, self._list_places(edit.text, edit, now))
        pinned, known, parts = edit.text, [each.name for each in edit.cast], now.parsed.parts
        for border in borders:
            places = self._list_places(pinned, edit, now)
            if 0 < border < len(parts) and not script_edits.has_pause(pinned, places, border):
                pinned = script_edits.set_pause(pinned, places, border, parts[border].pause_before_s, known)
        yield deed(pinned, self._list_places(pinned, edit, now))

    def _choose(self, edit: Edit, person: Person, ways: Iterable[str]) -> str:
        """Return the first of the ways that leaves the least to speak."""
        found = [(text, self._measure_fresh(edit, person, text)) for text in ways]
        return min(found, key=lambda each: each[1])[0]

    def _measure_fresh(self, edit: Edit, person: Person, text: str) -> int:
        """Return how many seconds of a script are still to be spoken."""
        compared = self.jobs.compare_script(text, person, edit.cast, edit.says)
        if compared is None:
            return 0
        parts = require_no_fault(compared.parsed).parts
        fresh = compared.wanted.only_parts if compared.wanted is not None else () if compared.same else range(len(parts))
        return round(sum(parts[place].seconds for place in fresh))
