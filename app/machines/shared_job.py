"""One job at other machines: the pieces that can be made apart, its pictures and the parts of a script that hang on no part before, else all
of it; given to idle machines, and what they make put into the job's folder."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from app.base.paths import Home
from app.base.sentence import Sentence
from app.engine.jobs.events import Event, Finished, Note, PartDone, Preview
from app.engine.jobs.journal import Job
from app.engine.jobs.parts import Parts, drop_begun
from app.engine.jobs.request import Request
from app.engine.jobs.seed import draw_seed, seed_of_part
from app.engine.keeper.keeper import Keeper
from app.engine.kinds import parts_of
from app.engine.speech.sound.arrived import PART_MOST_S
from app.machines.helping_machine import HelpingMachine
from app.machines.hub import Hub, TaskEnd
from app.machines.outlook import Asking, Outlook, expect_seconds, explain, is_endless
from app.machines.tasks import begun
from app.machines.tasks.portable import pack


@dataclass(frozen=True, slots=True)
class Pieces:
    """The engine takes one from the job's folder if it was made of what it would make it of itself."""

    parts: Parts
    seed: int
    places: tuple[int, ...]
    whole: bool = False
    """True: all of it is one piece, as a script whose parts carry the voice on."""

    @property
    def request(self) -> Request:
        return self.parts.request

    @property
    def complete(self) -> bool:
        """Whether these are all parts of the job."""
        return len(self.places) == len(self.parts.planned)

    def name(self, place: int) -> str:
        return "all" if self.whole else str(place)

    def is_made(self, folder: Path, place: int) -> bool:
        """Tell whether a piece is in the job's folder. A whole job leaves it with its end."""
        return not self.whole and self.parts.files.is_made(folder, place)

    def list_begun(self, folder: Path, place: int) -> dict[str, Path]:
        """Return the files from which a machine would go on with a piece, by their names there."""
        if self.whole:
            return {file.name: file for file in begun.list_begun(self.request, folder)}
        files = self.parts.files
        return {files.name_begun(self.parts.kind.place_alone(place)): folder / files.name_begun(place)}

    def find_begun(self, place: int, name: str) -> str:
        """Return what a file that a machine sends of an unfinished piece is called in the job's folder; "" if it is none."""
        if self.whole:
            return name if begun.is_name(name, len(self.parts.planned)) else ""
        files = self.parts.files
        return files.name_begun(place) if name == files.name_begun(self.parts.kind.place_alone(place)) else ""

    def ask_for(self, place: int) -> Request:
        """Return the request for one piece: the same seed and model as if this machine made it."""
        asked: Request = self.request if self.whole else self.parts.kind.ask_alone(self.request, place, self.seed)
        return asked

    def accept(self, place: int, files: Mapping[str, Path]) -> dict[str, Path] | None:
        """Return what a machine made under the names that it has here; None if it is not what was asked for."""
        kind, made = self.parts.kind, self.parts.files
        if self.whole:
            longest_s = sum(PART_MOST_S + part.seconds for part in self.parts.planned)
            return {**files} if kind.is_result(self.request, [*files.values()], longest_s) else None
        names = made.name_made(kind.place_alone(place))
        if not set(names) <= files.keys():
            return None
        paths = [files[name] for name in names]
        right = kind.is_part(paths, self.parts.planned[place].words, seed_of_part(self.seed, place))
        return dict(zip(made.name_made(place), paths, strict=True)) if right else None

    def tell(self, place: int, path: Path) -> PartDone:
        total, words = len(self.parts.planned), self.parts.planned[place].words
        made = self.parts.kind.read_part(self.request, path, place, total)
        return made or PartDone(place, total, str(path), words, seed_of_part(self.seed, place))


def find_pieces(home: Home, request: Request, folder: Path) -> Pieces | None:
    """Return what other machines can make of a job whose seed is drawn, apart; None if nothing."""
    if request.stays_here:
        return None
    found = all_of(home, request, folder)
    planned = found.parts.planned
    places = tuple(place for place, part in enumerate(planned) if not part.chained)
    return replace(found, places=places, whole=False) if places and (len(planned) > 1 or request.is_piece) else None


def all_of(home: Home, request: Request, folder: Path) -> Pieces:
    """Return all of such a job as one piece."""
    seed = draw_seed(request, folder)
    return Pieces(parts_of(home, replace(request, seed=seed), folder), seed, (0,), whole=True)


FAILURES_MOST: Final = 3
"""So many of one job's pieces may fail, or as many as it has; then this machine makes the rest itself, and says what is wrong."""
NOTES_MOST: Final = 32
AHEAD: Final = 1
"""So many pieces lie ready at a machine which makes another one."""
Where = Literal["here", "away", "back"]
"""The engine here runs a job, only other machines do, or it was put back into the queue half done, as the engine has nothing else to do."""
_NUMBERS: Final = Counter[str]()
"""It counts the tasks so far, by job: a piece that is given anew is another task. The first one is named alike after a restart, and the
same helper goes on."""


@dataclass(slots=True)
class _Given:
    """One piece at a machine. A second one lies ready there: it needs no way when the first is done, nor while its files travel."""

    place: int
    machine: str
    """The engine here has no name."""
    began_s: float | None = None
    """None: it lies ready."""
    foreseen_s: float | None = None
    """It was to take so long when it was begun."""


class SharedJob:
    """Any thread may call."""

    def __init__(
        self,
        keeper: Keeper,
        hub: Hub,
        asking: Asking,
        job: Job,
        *,
        pieces: Pieces,
        model: str,
        here: Outlook,
        ended: Callable[[], None],
        unable: set[str],
        where: Where = "here",
    ) -> None:
        """`model`: its name for other machines. `here`: what this machine says of a piece. `ended` is called after each task, as its
        machine is idle then. `unable`: machines that failed at the job; they get no piece, and those that fail at one are added."""
        self.job, self.pieces, self.model, self.failures, self.unable = job, pieces, model, 0, unable
        self.where, self.here, self.since_s = where, here, time.monotonic()
        self.faults = 0
        """This computer could not read or write so many files."""
        self.named: list[str] | None = None
        """These machines were named to whoever waits; None: nobody is, as the job is not too large for this computer."""
        self.delivered = False
        """True: the job was delivered as a whole, with its end."""
        self._dropped = False
        self._keeper, self._hub, self._asking, self._ended = keeper, hub, asking, ended
        self._folder = keeper.folder(job.id)
        self._lock = threading.RLock()
        self._away: dict[str, _Given] = {}
        """Other machines make these, by task."""
        self._own: _Given | None = None
        """The engine here makes this one."""
        self._noted = set[Sentence]()

    @property
    def failed(self) -> bool:
        """Whether other machines get no more of it."""
        return self.failures + self.faults >= min(FAILURES_MOST, len(self.pieces.places))

    @property
    def busy(self) -> set[str]:
        """The machines that are at it."""
        with self._lock:
            return {each.machine for each in self._away.values()}

    @property
    def missing(self) -> list[int]:
        return [place for place in self.pieces.places if not self._is_there(place)]

    def give_away(self, machines: Sequence[HelpingMachine], taken: Collection[str], here: bool, joins: bool) -> None:
        """Give pieces to idle machines, the best first. `machines`: those that have the model. `taken`: machines that have other work.
        `here`: whether the engine here is at the job. `joins`: let idle machines make what somebody is at, as no job waits for them."""
        chosen = self._asking.choose(self.job.id, self._ask_for(self.pieces.places[0]), machines)
        with self._lock:
            missing, able = self.missing, {each.id for each in machines}
            wanted = {*missing}
            for task, away in [*self._away.items()]:
                if away.place not in wanted or away.machine not in able:
                    self._take_back(task)
            for task in self._list_ahead():
                if here and self._away[task].place == missing[0]:
                    self._take_back(task)
            self._refuse_endless()
            if self.failed or self._dropped:
                return
            elsewhere = {*taken, *self.unable, *self.busy}
            idle = [each.id for each in chosen if not each.tasks and each.id not in elsewhere]
            making = self._list_making(missing[0] if here and missing else None)
            free = choose_free(missing, self._list_given(), len(idle), here)
            joined = choose_joined(missing, making, [self._expect(each) for each in idle[len(free) :]]) if joins else []
            for chosen_place, machine in zip([*free, *joined], idle, strict=False):
                if chosen_place is not None:
                    self._send(chosen_place, machine)
            alone = [machine for machine, pieces in Counter(each.machine for each in self._away.values()).items() if pieces <= AHEAD]
            able_alone = [machine for machine in alone if machine not in self.unable]
            for place, machine in zip(choose_free(missing, self._list_given(), len(able_alone), here), able_alone, strict=False):
                self._send(place, machine)

    def drop(self) -> None:
        """Take everything back, for good."""
        with self._lock:
            self._dropped = True
            for task in [*self._away]:
                self._take_back(task)

    def _list_given(self) -> set[int]:
        return {each.place for each in self._away.values()}

    def _list_ahead(self) -> list[str]:
        """Return the tasks that lie ready at a machine which makes another first."""
        first = {each.machine: task for task, each in reversed(self._away.items())}
        return [task for task, each in self._away.items() if first[each.machine] != task]

    def _list_making(self, here: int | None) -> list[Making]:
        """Return what machines have. `here`: what the engine here is at."""
        now_s, ready = time.monotonic(), {*self._list_ahead()}
        for task, each in self._away.items():
            if task not in ready and each.began_s is None:
                each.began_s, each.foreseen_s = now_s, self._expect(each.machine)
        if here is None or self._own is None or self._own.place != here:
            self._own = _Given(here, "", now_s, expect_seconds(self.here)) if here is not None else None
        if here is not None:
            self.here = replace(self.here, loaded=True)  # from its first piece on
        given = [*self._away.values(), *([self._own] if self._own is not None else [])]
        return [Making(each.place, each.foreseen_s, now_s - each.began_s if each.began_s is not None else 0.0) for each in given]

    def _expect(self, machine: str) -> float | None:
        """Return how long a machine takes for a piece, by what it says."""
        return expect_seconds(self._asking.find(self.job.id, machine))

    def _is_there(self, place: int) -> bool:
        return self.delivered or self.pieces.is_made(self._folder, place)

    def _ask_for(self, place: int) -> Request:
        return self.pieces.ask_for(place).with_model(self.model)

    def _send(self, place: int, machine: str) -> None:
        try:
            so_far = self.pieces.list_begun(self._folder, place)
            aside = begun.set_aside(so_far, self._keeper.home.scratch / "machines" / "begun")
            portable = pack(self._ask_for(place), aside)
        except OSError:  # a file to start from is gone; the engine says so
            self.faults = FAILURES_MOST
            return
        _NUMBERS[self.job.id] += 1
        task = f"{self.job.id}-{self.pieces.name(place)}-{_NUMBERS[self.job.id]}"
        self._away[task] = _Given(place, machine)
        why = explain(self._asking.find(self.job.id, machine))
        self._hub.submit(task, portable, machine, self._hear, self._take, why=why, begun=lambda name, path: self._hold(task, name, path))

    def _take_back(self, task: str) -> None:
        del self._away[task]
        self._hub.stop(task)

    def _hear(self, machine: str, event: Event) -> None:
        """Show what a machine says on its way as the job's own progress, while the engine here is not at it: all of it where the job has one
        piece, of whoever was first given that; else previews, and each note once. The window's list of machines shows the rest."""
        with self._lock:
            first = next((each.machine for each in self._away.values()), "")
            shown = isinstance(event, Preview) or (len(self.pieces.places) == 1 and machine == first)
            if isinstance(event, Note):
                shown = event.sentence not in self._noted and len(self._noted) < NOTES_MOST
                self._noted |= {event.sentence} if shown else set()
        if shown:
            self._keeper.tell_lent_out(self.job.id, event)

    def _hold(self, task: str, name: str, path: Path) -> None:
        """Put what a machine has made of its piece so far into the job's folder, where whoever takes the piece over goes on with it."""
        with self._lock, contextlib.suppress(OSError):  # the disk is full, or the job has just ended
            away = self._away.get(task)
            here = self.pieces.find_begun(away.place, name) if away is not None else ""
            if away is not None and here and not self._is_there(away.place):
                begun.keep(path, self._folder / here)

    def _take(self, end: TaskEnd) -> None:
        """Put a piece into the job's folder, unless it is there by now, or was taken back and may be at another machine."""
        with self._lock:
            away = self._away.pop(end.id, None)
            if away is not None:
                self._keep(away.place, end)
        self._ended()

    def _refuse_endless(self) -> None:
        for task, each in [*self._away.items()]:
            gone_s = time.monotonic() - each.began_s if each.began_s is not None else 0.0
            if task in self._away and is_endless(each.foreseen_s, gone_s):
                self._hub.judged.refuse_endless(each.machine, gone_s)
                self._give_no_more(each.machine)

    def _give_no_more(self, machine: str) -> None:
        """Take everything back from a machine that failed at a piece."""
        self.failures += 1
        self.unable.add(machine)
        for task in [task for task, each in self._away.items() if each.machine == machine]:
            self._take_back(task)

    def _keep(self, place: int, end: TaskEnd) -> None:
        files = self.pieces.accept(place, end.files) if isinstance(end.event, Finished) else None
        if files is None or not isinstance(end.event, Finished):
            self._hub.judged.refuse(end.machine, end.event)
            self._give_no_more(end.machine)
            return
        self._hub.judged.accept(end.machine)
        if self.pieces.whole:
            self.delivered = True
            self._keeper.end_lent_out(self.job.id, end.event, files, self._hub.name(end.machine))
            return
        try:
            part = self.pieces.tell(place, next(iter(files.values())))
            self._keeper.take_over(self.job.id, part, files, self._hub.name(end.machine))
            for path in self.pieces.list_begun(self._folder, place).values():
                drop_begun(path)
        except OSError:  # the disk is full, or the job has just ended; the engine says so
            self.faults += 1


OVERDUE: Final = 1.25
"""After so many times what was foreseen, a piece is no longer waited for alone: half of them take longer than the median of earlier
ones."""


@dataclass(frozen=True, slots=True)
class Making:
    """A piece that a machine, or the engine here, is at; or that lies ready there, of which nobody knows when it is begun."""

    place: int
    foreseen_s: float | None
    """It counts loading too, and is None where that is not known."""
    gone_s: float


def choose_free(missing: Sequence[int], given: Collection[int], count: int, here: bool = True) -> list[int]:
    """Choose so many pieces that no machine has: from the back, as the engine here goes from the front. `missing`: in order. `given`: what other
    machines have. `here`: whether the engine here is at the first."""
    return [place for place in reversed(missing[here:]) if place not in given][: max(0, count)]


def choose_joined(missing: Sequence[int], making: Iterable[Making], needed_s: Sequence[float | None]) -> list[int | None]:
    """Choose what idle machines make that somebody is at already, so that nobody waits for a slow machine at the end of a job: where fewest
    are at it, and only where a machine would be done first. `needed_s`: how long each idle machine takes, with loading, the best first."""
    at_it, left_s = Counter[int](), dict[int, float]()
    for each in making:
        at_it[each.place] += 1
        left_s[each.place] = min(left_s.get(each.place, math.inf), find_left_s(each))
    free, chosen = sorted((place for place in missing if at_it[place]), key=lambda place: (at_it[place], -place)), list[int | None]()
    for needed in needed_s:
        place = next((place for place in free if needed is None or needed < left_s[place]), None)
        if place is not None:
            free.remove(place)
        chosen.append(place)
    return chosen


def find_left_s(other: Making) -> float:
    """Return how soon a machine that begins now has to be done to be first; it may join in anyway where nobody knows how long the other one
    takes, and where that is overdue."""
    if other.foreseen_s is None or other.gone_s > OVERDUE * other.foreseen_s:
        return math.inf
    return other.foreseen_s - other.gone_s
