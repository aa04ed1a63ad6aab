"""Whose work is whose: jobs and grids begun, shown, stopped, redone and moved in the queue, each for the person who asked."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Final

from app.base.sentence import Sentence, fill, say, say_to_all, set_apart
from app.base.trouble import QueueFull, Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import PartDone, Stopped
from app.engine.jobs.journal import Job
from app.engine.jobs.owners import household_of, is_guest
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import Actor, PictureRequest, Request, SpeechRequest
from app.engine.jobs.seed import draw_seed
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.jobs.shelf import Search
from app.engine.keeper.keeper import Keeper
from app.engine.keeper.own_inputs import require_own
from app.engine.kinds import kind_of
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.kind import as_script, list_takes, match_takes
from app.engine.speech.sound.takes import carry_takes, read_takes
from app.engine.speech.text.cast_script import parse_request
from app.engine.speech.text.pronunciations import Rows, choose_rows
from app.engine.speech.text.script import ParsedScript
from app.engine.speech.text.script_edits import find_places
from app.engine.speech.text.turns import ScriptPart
from app.ui.page import views
from app.ui.page.translate import Language, text
from app.ui.page.view_types.live import QueueView
from app.ui.state.guest_files import GuestFiles
from app.ui.state.guest_limits import SAVED, check_turn, grant_request, read_allowance
from app.ui.state.hearing_desk import HearingDesk
from app.ui.state.machine_desk import MachineDesk
from app.ui.state.measuring_desk import MeasuringDesk
from app.ui.state.models_desk import ModelsDesk
from app.ui.state.person import OWNER, Person
from app.ui.state.settings import Settings

GRID_MOST: Final = 36
LIST_MOST: Final = 100
QUEUE_MOST: Final = 240
PROGRAMS_MOST: Final = 200
"""With more waiting jobs, other programs are refused: the rest of the queue is the page's."""
GRID_SAVED: Final = "grid"
"""The settings keep the owner's last grid under this key."""
SAME_LEAST: Final = 0.2
"""A script goes on from another one if so much of the shorter one's letters stays: two chapters share a "said Anna", too."""
HEARD_IN_PARTS: Final = ("guidance", "temperature", "top_p", "cfg_filter", "max_frames", "carry_voice")
"""A part sounds otherwise with another value of these settings; the others come in as parts are joined."""
CHAPTERS_SAVED: Final = "chapters"
"""The chapters that were begun together last are kept under this one."""
LISTED_SAVED: Final = "listed"
"""The jobs of the owner's last list of prompts are kept under this one."""
SPLIT_SCRIPTS_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Grid:
    """Pictures over two settings: `jobs` row by row."""

    across: str
    columns: tuple[str, ...]
    down: str
    rows: tuple[str, ...]
    jobs: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Chapters:
    """Those of a book that were begun together: a job each, and how many seconds of speech it makes."""

    jobs: tuple[str, ...] = ()
    seconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class EndedScript:
    job: str
    request: SpeechRequest
    parts: tuple[PartDone, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A script beside the last one that was spoken."""

    spoken: EndedScript
    parsed: ParsedScript
    wanted: SpeechRequest | None = None
    """It speaks only what has changed; it is None if nothing has, or no part fits."""
    same: bool = False


NO_CHAPTERS: Final = Chapters()


@dataclass(slots=True)
class JobsDesk:
    """The jobs of everybody who uses the window."""

    keeper: Keeper
    settings: Settings
    models: ModelsDesk
    machine: MachineDesk
    measuring: MeasuringDesk
    hearing: HearingDesk
    latest: dict[tuple[str, str], str] = field(default_factory=dict)
    """Each tab shows this job, by person and kind; a tab opened later picks it up."""
    by_programs: set[str] = field(default_factory=set)
    """Programs asked for these of them."""
    grids: dict[str, Grid] = field(default_factory=dict)
    chapters: Chapters = NO_CHAPTERS
    """The owner alone has chapters: those begun last."""
    listed: tuple[str, ...] = ()
    """The owner's last list of prompts made these jobs."""
    guest_files: GuestFiles = field(init=False)
    beginning: threading.Lock = field(default_factory=threading.Lock)
    """A job is checked and queued under this lock, so that limits hold for requests that arrive at once."""
    split_scripts: dict[str, tuple[ScriptPart, ...]] = field(default_factory=dict)
    """The parts of scripts shown lately are kept by job."""
    find_nickname: Callable[[str], str] = lambda owner: ""
    """It tells what a guest is called by, who owns a job; "" for one who gave no name or has left. The share brings it."""

    def __post_init__(self) -> None:
        cut = {job.id for job in self.keeper.interrupted}
        if (saved := self.settings.get(GRID_SAVED)) and (grid := read_grid(saved)) and cut.intersection(chain(*grid.jobs)):
            self.grids[OWNER.name] = grid
        if saved := self.settings.get(CHAPTERS_SAVED):
            self.chapters = Chapters(tuple(saved["jobs"]), tuple(saved["seconds"]))
        self.listed = tuple(self.settings.get(LISTED_SAVED, ()))
        if self.listed and (left := self.list_left(self.listed[0])) and self._is_newest(left[0]):
            self.latest[OWNER.name, "picture"] = left[0]
        if last := self.keeper.find_last_script():
            self.latest[OWNER.name, "speech"] = last
        self.guest_files = GuestFiles(self.keeper.home.scratch / "uploads", self.keeper.describe_to_come)

    def begin(self, request: Request, person: Person, choice: Choice | None = None, by_program: bool = False) -> str:
        """Queue a job; every tab of this person shows it from now on, a program's only while it runs, unless it takes no other's place."""
        with self.beginning:
            if person.owner:
                self.check_turn(person, by_program)
            else:
                request, choice = self._grant(request, person), None
            try:
                job = self.keeper.submit(request, choice or self.machine.read_choice(person), person.name)
            except Trouble as trouble:
                (told := copy(trouble)).cure = self.models.resolve_cure(trouble.cure)
                raise told from trouble
        self.measuring.give_way()
        self.hearing.give_way()
        before = self.latest.get(shown := (person.name, request.kind), "")
        if not (by_program and before) or before in self.by_programs:
            self.latest[shown] = job.id
            self.by_programs = self.by_programs - {before} | ({job.id} if by_program else set())
        return job.id

    def _grant(self, request: Request, person: Person) -> Request:
        """Check a guest's request, and count the pictures written for it; delete them if it is refused."""
        limits, chosen = read_allowance(self.settings.get(SAVED, {})), self.models.chosen_by_owner()
        files = [*map(Path, request.written)]
        try:
            granted = grant_request(request, person, self.keeper, limits, chosen)
            self.guest_files.add(household_of(person.name), files)
        except Trouble:
            self.guest_files.discard_unknown(files)
            raise
        if granted.keep:
            granted = dataclasses.replace(granted, model=request.model)  # that of the parts which it takes over
        return granted

    def check_turn(self, person: Person, by_program: bool = False, jobs: int = 1) -> None:
        """Raise Trouble if this person may not queue so many jobs now."""
        if not person.owner:
            check_turn(person, self.keeper, read_allowance(self.settings.get(SAVED, {})))
        elif self.keeper.journal.count_waiting() + jobs > (most := PROGRAMS_MOST if by_program else QUEUE_MOST):
            raise QueueFull(
                say("queue.full", "The queue is full ({most} {most:job|jobs}). Clear it, or wait for some jobs to finish.", most=most)
            )

    def begin_grid(self, request: PictureRequest, across: tuple[str, list[Any]], down: tuple[str, list[Any]], person: Person) -> None:
        """Queue one job for each pair of values, all with one seed, so that only these two settings differ."""
        (column, xs), (row, ys) = across, down
        if (count := len(xs) * len(ys)) > GRID_MOST:
            raise Trouble(
                say(
                    "grid.large",
                    "The grid would have {count} {count:picture|pictures}; {most} is the limit. Enter fewer values.",
                    count=count,
                    most=GRID_MOST,
                )
            )
        self.check_turn(person, jobs=count)
        seed = random.randrange(SEED_LIMIT) if request.seed is None else request.seed
        seeded = dataclasses.replace(request, seed=seed)
        jobs = tuple(tuple(self.begin(dataclasses.replace(seeded, **{column: x, row: y}), person) for x in xs) for y in ys)
        self.grids[person.name] = grid = Grid(column, tuple(map(str, xs)), row, tuple(map(str, ys)), jobs)
        if person.owner:
            with contextlib.suppress(Trouble):  # then only a restart forgets it
                self.settings.put({GRID_SAVED: dataclasses.asdict(grid)})

    def begin_together(
        self, requests: Sequence[SpeechRequest], person: Person, sources: Sequence[EndedScript | None] = ()
    ) -> tuple[str, ...]:
        """Queue jobs that are stopped together, all of them or none; return them. `sources`: the script from which each takes parts over."""
        more = say_to_all("book.taken-back", "No chapter was begun: those that were queued already are taken out again.")
        begun = self._begin_all(requests, person, more, sources)
        self._keep_chapters([(job, self._estimate_fresh(each)) for job, each in zip(begun, requests, strict=True)])
        self.latest[person.name, "speech"] = begun[0]
        return begun

    def _estimate_fresh(self, request: SpeechRequest) -> float:
        """Estimate how many seconds of speech are made for a script."""
        parsed = self.parse(request)
        if not request.keep:
            return parsed.estimate_seconds(request.speed)
        return sum(parsed.parts[place].seconds for place in request.choose_parts(len(parsed.parts))) / request.speed

    def _keep_chapters(self, rows: Sequence[tuple[str, float]]) -> None:
        self.chapters = Chapters(tuple(job for job, _ in rows), tuple(seconds for _, seconds in rows))
        with contextlib.suppress(Trouble):  # then only a restart forgets it
            self.settings.put({CHAPTERS_SAVED: dataclasses.asdict(self.chapters)})

    def begin_list(self, requests: Sequence[PictureRequest], person: Person) -> None:
        """Queue a job for each prompt of a list, all of them or none; they are stopped together."""
        if not 0 < len(requests) <= LIST_MOST:
            raise Trouble(
                say(
                    "list.long",
                    "A list of prompts has 1 to {most} {most:line|lines}, and this one has {count}. Paint a part of it.",
                    most=LIST_MOST,
                    count=len(requests),
                )
            )
        more = say("list.taken-back", "No picture of the list was begun: those that were queued already are taken out again.")
        self._keep_listed(self._begin_all(requests, person, more))

    def _keep_listed(self, jobs: Sequence[str]) -> None:
        self.listed = tuple(jobs)
        with contextlib.suppress(Trouble):  # then only a restart forgets it
            self.settings.put({LISTED_SAVED: [*jobs]})

    def _is_newest(self, job: str) -> bool:
        """Tell whether the owner made no picture after this job was begun, but for those of its list."""
        made, known = self.keeper.shelf.find(Search(kind="picture", owner=OWNER.name, most=1)), self.keeper.journal.find(job)
        return known is not None and all(each.job in self.listed or each.created_s < known.created_s for each in made)

    def list_left(self, job: str) -> list[str]:
        """List the pictures of this job's list of prompts that were stopped before any of them was made."""
        progress = {each: self.keeper.get_progress(each) for each in self.listed} if job in self.listed else {}
        return [each for each, made in progress.items() if isinstance(made.end, Stopped) and not made.parts]

    def _begin_all(
        self, requests: Sequence[Request], person: Person, more: Sentence, sources: Sequence[EndedScript | None] = ()
    ) -> tuple[str, ...]:
        """Queue all of them or none; `more`: what a refusal says of the others."""
        self.check_turn(person, jobs=len(requests))
        begun: list[str] = []
        try:
            for each, source in zip_longest(requests, sources):
                taken = as_script(each) if source is not None else None
                begun.append(self.begin_from(source, taken, person) if source and taken else self.begin(each, person))
        except Trouble as trouble:
            for job in reversed(begun):
                self.keeper.stop(job)
            (told := copy(trouble)).objections = (*trouble.objections, more)
            raise told from trouble
        return tuple(begun)

    def estimate_left(self, job: str) -> tuple[int, int, float | None] | None:
        """Return which chapter a job is, from 1, of how many, and how many seconds are left for all of them, None until that is known;
        None for a job that is no chapter."""
        if job not in self.chapters.jobs or len(self.chapters.jobs) < 2:
            return None
        waiting, step = {each.id for each in self.keeper.journal.list_waiting()}, self.keeper.get_progress(job).step
        to_come_s = sum(
            seconds for each, seconds in zip(*dataclasses.astuple(self.chapters), strict=True) if each in waiting and each != job
        )
        left_s = step.eta_s + to_come_s / step.realtime if step is not None and step.eta_s is not None and step.realtime else None
        return self.chapters.jobs.index(job) + 1, len(self.chapters.jobs), left_s

    def find_current(self, kind: str, person: Person) -> str:
        """Return the job a tab shows and Stop stops: this person's running job, here before elsewhere, else the next one, else the last
        begun."""
        running = filter(None, map(self.keeper.journal.find, self.keeper.running))
        for job in (*running, *self.keeper.journal.list_waiting()):
            if job.owner == person.name and job.request.kind == kind:
                return job.id
        latest = self.latest.get((person.name, kind), "")
        return latest if latest and self.keeper.journal.find(latest) else ""

    def find_progress(self, kind: str, person: Person) -> Progress | None:
        job = self.find_current(kind, person)
        return self.keeper.get_progress(job) if job else None

    def stop(self, kind: str, person: Person) -> None:
        """Stop the current job, and show it; if it was begun together with others, as those of a grid, all of them."""
        if job := self.find_current(kind, person):
            for each in reversed(self.find_group(job, person)):
                self.keeper.stop(each)
            self.latest[person.name, kind] = job

    def find_group(self, job: str, person: Person) -> Sequence[str]:
        """Return the jobs that were begun together with this one, as those of a grid, in their order; else it alone."""
        grid = self.grids.get(person.name)
        groups = ([*chain(*grid.jobs)] if grid else [], self.chapters.jobs, self.listed)
        return next((group for group in groups if job in group), [job])

    def redo_part(self, index: int, person: Person, job: str = "") -> str:
        """Speak one part of the last script again. `job`: the page shows the parts of this one; of any other that number would be another line."""
        spoken = self.find_ended_script(person)
        if job and spoken is not None and spoken.job != job:
            raise Trouble(
                say_to_all("parts.other", "Another script was spoken or opened meanwhile, so no part was redone. Look at the list again.")
            )
        return self.redo_parts(spoken, [index], person)

    def redo_parts(self, spoken: EndedScript | None, places: Collection[int], person: Person) -> str:
        """Speak some parts of a script again, and whole what a stop cut off; the other parts are kept."""
        if spoken is None or not {part.index for part in spoken.parts}.issuperset(places):
            raise Trouble(say_to_all("speak.nothing-again", "There is no finished part to redo. Speak the script first."))
        require_own(self.keeper.home, spoken.request)
        takes = {part.index: part.path for part in spoken.parts}  # what is not there is spoken where the script is gone on with
        keep = tuple(takes.get(place, "") for place in range(spoken.parts[0].total))
        fresh = sorted({*places, *(part.index for part in spoken.parts if not part.whole)})
        return self.begin_from(spoken, dataclasses.replace(spoken.request, only_parts=tuple(fresh), keep=keep, seed=None), person)

    def begin_from(self, spoken: EndedScript, wanted: SpeechRequest, person: Person) -> str:
        """Queue a job that takes parts over from a script that has ended; with them go the takes that it has not."""
        job = self.begin(wanted, person)
        words = self.read_part_words(spoken)
        fresh = {*wanted.only_parts, *(place for place, path in enumerate(wanted.keep) if not path)}
        spoken_words = [(part, words[part.index] if part.index < len(words) else "") for part in spoken.parts]
        earlier = read_takes(self.keeper.folder(spoken.job))
        carry_takes(self.keeper.folder(job), spoken.job, earlier, spoken_words, wanted.keep, fresh)
        return job

    def read_part_words(self, spoken: EndedScript) -> list[str]:
        """Return the words of each part as they stand in its script."""
        text, known = spoken.request.text, [each.name for each in spoken.request.cast]
        return [text[place.begin : place.end] for place in find_places(text, self.parse(spoken.request).parts, known)]

    def speak_changed(self, text: str, person: Person, cast: tuple[Actor, ...] = (), says: Rows = ()) -> str:
        """Speak only what the last script's parts do not say already; take over the others."""
        compared = self.compare_script(text, person, cast, says)
        if compared is None or compared.wanted is None:
            raise Trouble(say_to_all("parts.none-fits", "No part of this script is spoken already. Speak the whole script."))
        require_own(self.keeper.home, compared.wanted)
        return self.begin_from(compared.spoken, compared.wanted, person)

    def match_script(self, text: str, person: Person, cast: tuple[Actor, ...] = ()) -> SpeechRequest | None:
        """Return the request that takes over what the last script's parts say; None if nothing can be, or nothing has changed."""
        compared = self.compare_script(text, person, cast)
        return compared.wanted if compared is not None else None

    def choose_rows(self, text: str, says: Rows, person: Person, cast: tuple[Actor, ...] = ()) -> Rows:
        """Return how this person's script says words differently: its own, and to the owner those that are said so everywhere."""
        known = [each.name for each in cast]
        return choose_rows(self.keeper.home, text, says, known) if person.owner else says

    def compare_script(self, text: str, person: Person, cast: tuple[Actor, ...] = (), says: Rows = ()) -> Compared | None:
        """Compare a script with the last one that was spoken, in the voices that this cast has and with the settings that it was spoken with. Without
        a cast, a voice known by name hangs on who speaks first."""
        spoken = self.find_ended_script(person)
        if spoken is None:
            return None
        rows = self.choose_rows(text, says, person, cast)
        wanted = dataclasses.replace(
            spoken.request, text=text if text.strip() else "?", cast=cast, only_parts=(), keep=(), pronunciations=rows
        )
        before, now = self.parse(spoken.request), self.parse(wanted)
        earlier, takes = list_takes(before, spoken.request, self.find_limits), list_takes(now, wanted, self.find_limits)
        if now.fatal or not before.parts or not now.parts:
            return Compared(spoken, now)
        if now.parts == before.parts and earlier == takes:
            return Compared(spoken, now, same=True)
        if not now.actors and now.parts[0].turns[0].speaker != before.parts[0].turns[0].speaker:
            return Compared(spoken, now)
        keep = match_takes(spoken.parts, earlier, takes)
        kept = sum(len(part.text) for part, path in zip(now.parts, keep, strict=True) if path)
        if kept < SAME_LEAST * min(sum(len(part.text) for part in each.parts) for each in (before, now)):
            return Compared(spoken, now)
        seed = draw_seed(spoken.request, self.keeper.folder(spoken.job))
        fresh = tuple(place for place, path in enumerate(keep) if not path)
        return Compared(spoken, now, dataclasses.replace(wanted, seed=seed, only_parts=fresh, keep=keep))

    def take_over(self, spoken: EndedScript, wanted: SpeechRequest, person: Person) -> SpeechRequest | None:
        """Return a request that takes over what was spoken already as it wants it, and speaks the rest; None where nothing was."""
        seed = draw_seed(spoken.request, self.keeper.folder(spoken.job))
        if wanted.seed not in (None, seed) or any(getattr(spoken.request, name) != getattr(wanted, name) for name in HEARD_IN_PARTS):
            return None
        rows = self.choose_rows(wanted.text, wanted.pronunciations, person, wanted.cast)
        wanted = dataclasses.replace(wanted, seed=seed, pronunciations=rows)
        before, now = (list_takes(self.parse(each), each, self.find_limits) for each in (spoken.request, wanted))
        keep = match_takes(spoken.parts, before, now)
        fresh = tuple(place for place, path in enumerate(keep) if not path)
        return dataclasses.replace(wanted, only_parts=fresh, keep=keep) if any(keep) else None

    def find_ended_script(self, person: Person) -> EndedScript | None:
        """Find the last script of this person with its parts, once it has ended."""
        return self.read_ended_script(self.find_current("speech", person))

    def read_ended_script(self, job: str) -> EndedScript | None:
        """Read a script with its parts, once it has ended. Where an earlier version stored no model, it is the one that spoke it."""
        progress, known = (self.keeper.get_progress(job), self.keeper.journal.find(job)) if job else (Progress(), None)
        request = as_script(known.request) if known is not None else None
        if progress.end is None or not progress.parts or request is None:
            return None
        return EndedScript(job, dataclasses.replace(request, model=request.model or progress.model), progress.parts)

    def open_parts(self, creation: int, person: Person) -> None:
        """Show the parts of an earlier script, as if it had just ended."""
        job = self.find_creation(creation, person).job
        if not self.keeper.has_parts(job):
            raise Trouble(
                say_to_all(
                    "parts.gone",
                    "The parts of creation {id} are not kept any more. Reuse its settings and speak the script again.",
                    id=creation,
                )
            )
        shown = self.find_progress("speech", person)
        if shown is not None and shown.end is None:
            raise Trouble(say_to_all("parts.busy", "A script of yours is still being spoken. Open these parts when it has ended."))
        self.show_script(job, person)

    def show_script(self, job: str, person: Person) -> None:
        """Show a script that has ended, wherever nothing of this person's is spoken."""
        self.latest[person.name, "speech"] = job

    def empty_bin(self) -> int:
        """Delete the bin for good; return how many stay. What is gone is shown no longer."""
        stayed, gone = self.keeper.empty_bin()
        for shown in [key for key, job in self.latest.items() if job in gone]:
            del self.latest[shown]
        return stayed

    def retry_smaller(self, kind: str, person: Person) -> tuple[Request, Sentence]:
        """Queue the last job again with smaller settings; return them and what was changed."""
        job = self.find_current(kind, person)
        request = self.keeper.journal.get(job).request if job else None
        if request is None:
            raise Trouble(say_to_all("smaller.nothing", "There is no job to retry with smaller settings."))
        smaller, change = kind_of(request).shrink(self.keeper.home, request)
        require_own(self.keeper.home, smaller)
        self.begin(smaller, person)
        return smaller, change

    def split_script(self, job: str, request: Request) -> tuple[ScriptPart, ...]:
        """Split a script into its voice's parts; cached, as the page asks every second."""
        if job not in self.split_scripts:
            if len(self.split_scripts) >= SPLIT_SCRIPTS_KEPT:
                self.split_scripts.clear()
            asked = as_script(request)
            self.split_scripts[job] = self.parse(asked).parts if asked is not None else ()
        return self.split_scripts[job]

    def list_speakers(self, job: str, request: Request) -> list[str]:
        """List the names of a script's speakers by their numbers; none where it has no cast."""
        turns = sorted({(turn.speaker, turn.name) for part in self.split_script(job, request) for turn in part.turns if turn.name})
        return [next((name for number, name in turns if number == place), "") for place in range(1, turns[-1][0] + 1)] if turns else []

    def parse(self, request: SpeechRequest) -> ParsedScript:
        """Split a request's script as its voices speak it."""
        return parse_request(request, self.find_limits)

    def find_limits(self, model: str) -> VoiceLimits:
        return self.models.read_limits(model)[1]

    def owns(self, job: str, person: Person) -> bool:
        """Tell whether this person may see a job: its maker and the owner may."""
        known = self.keeper.journal.find(job)
        return known is not None and (person.owner or known.owner == person.name)

    def find_creation(self, id_: int, person: Person) -> Creation:
        """Return a creation; to a guest, others' creations do not exist."""
        creation = self.keeper.shelf.get(id_)
        if not person.owner and creation.owner != person.name:
            raise Trouble(say_to_all("shelf.not-yours", "You have no creation number {id}.", id=id_))
        return creation

    def made(self, id_: int, person: Person) -> bool:
        """Tell whether this person made a creation that is there."""
        try:
            return self.keeper.shelf.get(id_).owner == person.name
        except Trouble:
            return False

    def find_moved(self, job: str, name: str) -> Path | None:
        """Find on the shelf what lay in a job's folder under this name, for a page that was told of it a moment ago."""
        parts = [Path(part.path).name for part in self.keeper.get_progress(job).parts]
        made = self.keeper.shelf.list_of_job(job)
        return made[parts.index(name)].path if name in parts and len(made) >= len(parts) else None

    def list_queue(self, person: Person, spoken: Language) -> list[QueueView]:
        """List the waiting jobs in order; a guest sees only their own."""
        waiting = self.keeper.journal.list_waiting()
        return [
            {**self._draw(job, person, spoken), "place": place + 1}
            for place, job in enumerate(waiting)
            if person.owner or job.owner == person.name
        ]

    def find_running(self, person: Person, spoken: Language) -> QueueView | None:
        """Return what is being made, as the queue shows it above those that wait; a guest sees only their own."""
        job = self.keeper.journal.find(running) if (running := self.keeper.state.job) else None
        return self._draw(job, person, spoken) if job is not None and (person.owner or job.owner == person.name) else None

    def _draw(self, job: Job, person: Person, spoken: Language) -> QueueView:
        return views.queue_view(job, person.owner, spoken, self.word_maker(job.owner, spoken) if person.owner else "")

    def word_maker(self, owner: str, spoken: Language) -> str:
        """Say for the owner which guest makes it or made it; "" for what is the owner's own."""
        if not is_guest(owner):
            return ""
        if name := self.find_nickname(owner):
            return fill(text("guest.by", "by {name}", spoken), {"name": set_apart(name)})
        return text("shelf.guest", "by a guest", spoken)

    def queue_actions(self, person: Person) -> dict[str, Callable[[str], None]]:
        """Return what this person may do with a job of theirs, by the names the page uses."""
        actions: dict[str, Callable[[str], None]] = {"remove": self.remove}
        if person.owner:
            actions |= {"stop": self.keeper.stop, "up": self.keeper.journal.move_up, "go-on": self.resume, "let-go": self.let_go}
        return actions

    def remove(self, job: str) -> None:
        """Take a waiting job out of the queue; raise Trouble if it has begun since the page last heard of it."""
        if not self.keeper.withdraw(job) and self.keeper.journal.get(job).state == "running":
            raise Trouble(say_to_all("queue.begun", "The job began before it could be removed, and runs on. To end it, press Stop."))
        if job in self.chapters.jobs:  # Resume brings back what was stopped, and no chapter that was taken out
            self._keep_chapters([each for each in zip(*dataclasses.astuple(self.chapters), strict=True) if each[0] != job])
        self._take_off_list(job)

    def let_go(self, job: str) -> None:
        """Give up an interrupted job."""
        self.keeper.discard(job)
        self._take_off_list(job)

    def _take_off_list(self, job: str) -> None:
        """What is left of a list is what was stopped with it, and nothing that was taken out; its tab goes on showing it."""
        if job in self.listed:
            self._keep_listed([each for each in self.listed if each != job])
            if self.listed and self.latest.get(shown := (OWNER.name, "picture")) == job:
                self.latest[shown] = self.listed[-1]

    def resume(self, job: str) -> None:
        """Resume an interrupted or stopped job and show it in its tab again; with a chapter those that were stopped with it."""
        known = self.keeper.journal.get(job)
        for each in self.chapters.jobs if job in self.chapters.jobs else (job,):
            if each == job or ((other := self.keeper.journal.find(each)) is not None and other.state == "stopped" == known.state):
                self.keeper.resume(each)
        self.measuring.give_way()
        self.hearing.give_way()
        self.latest[known.owner, known.request.kind] = job

    def is_waiting(self, job: str) -> bool:
        known = self.keeper.journal.find(job)
        return known is not None and known.state == "queued"

    def queue_position(self, job: str) -> int:
        """Return a job's place in the queue from 1; 0 if it does not wait."""
        waiting = [each.id for each in self.keeper.journal.list_waiting()]
        return waiting.index(job) + 1 if job in waiting else 0


def read_grid(saved: Mapping[str, Any]) -> Grid | None:
    """Read a saved grid; None if its cells do not fit its sides."""
    grid = Grid(saved["across"], tuple(saved["columns"]), saved["down"], tuple(saved["rows"]), tuple(tuple(row) for row in saved["jobs"]))
    fits = len(grid.jobs) == len(grid.rows) and all(len(row) == len(grid.columns) for row in grid.jobs)
    return grid if fits else None
