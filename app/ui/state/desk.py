"""What every tab shares: the keeper, the settings, the language, and whose work is whose."""

from __future__ import annotations

import dataclasses
import random
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import Verdict, forget, load
from app.compat.planning.fallbacks import choices
from app.compat.planning.types import Choice, Chunk, Plan
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import SEED_LIMIT, PictureRequest, Request, SpeechRequest
from app.engine.jobs.shelf import Creation
from app.engine.jobs.tasks import Errand
from app.engine.models import catalog
from app.engine.models.catalog import CATALOG
from app.engine.models.chosen import choice_of, known_choice
from app.engine.models.downloads import Downloads
from app.engine.models.fit import Offer, offer
from app.engine.models.model import Model
from app.engine.models.on_disk import best, located
from app.engine.models.planned import planned, stands_in
from app.engine.process.keeper import Keeper
from app.engine.text import script, voices
from app.engine.text.voice_limits import DIA, Limits, limits_of
from app.sentence import Sentence, Trouble, say
from app.ui.page import views
from app.ui.state import retry_smaller
from app.ui.state.person import OWNER, Person
from app.ui.state.settings import Settings
from app.ui.state.visitor_limits import allowance, allowed, model_for, turn

GRID_MOST: Final = 36
QUEUE_MOST: Final = 200
PARTS_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Grid:
    """Pictures over two settings: `jobs` row by row."""

    across: str
    columns: tuple[str, ...]
    down: str
    rows: tuple[str, ...]
    jobs: tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Desk:
    """One for the whole window."""

    keeper: Keeper
    settings: Settings
    latest: dict[tuple[str, str], str] = field(default_factory=dict)
    """The job each person sees in a tab: (person, kind) -> job. A tab that opens later picks it up."""
    grids: dict[str, Grid] = field(default_factory=dict)
    """The last grid of each person."""
    errand_job: str = ""
    errand_kind: str = ""
    counter: threading.Lock = field(default_factory=threading.Lock)
    """So that many who ask at once are counted one after the other."""
    choosing: threading.Lock = field(default_factory=threading.Lock)
    """Held while the choice is written: what the keeper has and what the settings say is always one chunk size."""
    leaving: threading.Event = field(default_factory=threading.Event)
    """Set where this process is to end, so that start.py can repair what it runs on."""
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of each script that was shown lately."""
    downloads: Downloads = field(init=False)

    def __post_init__(self) -> None:
        self.keeper.set_chunk(choice_of(self.settings.get("choice")).chunk)
        self.downloads = Downloads(self.keeper.home)
        self.downloads.recall(self.models())

    def begin(self, request: Request, person: Person, choice: Choice | None = None) -> str:
        """Into the queue; every tab of this person shows it from now on."""
        with self.counter:
            if not person.owner:
                limits, models = allowance(self.settings.get("visitors", {})), self.owners_models()
                request, choice = allowed(request, person, self.keeper, limits, models), None
            elif len(self.keeper.journal.waiting()) >= QUEUE_MOST:
                raise Trouble(say("queue.full", "The queue is full ({most} jobs). Clear it, or wait for some jobs to finish.", most=QUEUE_MOST))  # fmt: skip
            try:
                job = self.keeper.submit(request, choice or self.choice(person), person.name)
            except Trouble as trouble:
                raise Trouble(trouble.sentence, *trouble.objections, cure=self.cure(trouble.cure)) from trouble
        self.latest[person.name, kind_of(request)] = job.id
        return job.id

    def turn(self, person: Person) -> None:
        """A Trouble where a visitor may ask for nothing at the moment."""
        if not person.owner:
            turn(person, self.keeper, allowance(self.settings.get("visitors", {})))

    def owners_models(self) -> dict[str, str]:
        """What the owner works with: visitors do, too."""
        return {
            kind: self.settings.get(tab, {}).get("model", "")
            for kind, tab in (("speech", "speak"), ("picture", "paint"))
        }

    def begin_grid(
        self, request: PictureRequest, across: tuple[str, list[Any]], down: tuple[str, list[Any]], person: Person
    ) -> None:
        """Every pair of values as a job of its own, all with one seed, so that only what was asked for differs."""
        if len(across[1]) * len(down[1]) > GRID_MOST:
            raise Trouble(say("grid.large", "The grid would have {count} pictures; {most} is the limit. Enter fewer values.", count=len(across[1]) * len(down[1]), most=GRID_MOST))  # fmt: skip
        seeded = dataclasses.replace(
            request, seed=random.randrange(SEED_LIMIT) if request.seed is None else request.seed
        )
        requests = [[dataclasses.replace(seeded, **{across[0]: x, down[0]: y}) for x in across[1]] for y in down[1]]
        jobs = [[self.begin(each, person) for each in row] for row in requests]
        self.grids[person.name] = Grid(
            across[0], tuple(map(str, across[1])), down[0], tuple(map(str, down[1])), tuple(map(tuple, jobs))
        )

    def current(self, kind: str, person: Person) -> str:
        """What a tab shows and Stop stops: this person's job that runs, else the one that comes next, else the last that was asked for."""
        running = self.keeper.journal.known(self.keeper.state.job) if self.keeper.state.job else None
        for job in (*([running] if running else []), *self.keeper.journal.waiting()):
            if job.owner == person.name and kind_of(job.request) == kind:
                return job.id
        return self.latest.get((person.name, kind), "")

    def stop(self, kind: str, person: Person) -> None:
        """With a picture of a grid, those of the grid that wait."""
        job = self.current(kind, person)
        grid = self.grids.get(person.name)
        cells = [each for row in grid.jobs for each in row] if grid else []
        for each in reversed(cells) if job in cells else [job]:
            if each:
                self.keeper.stop(each)

    def again(self, index: int, person: Person) -> str:
        """One part of the last script anew; the others stay as they are."""
        job = self.current("speech", person)
        parts = self.keeper.progress(job).parts if job else ()
        request = self.keeper.journal.job(job).request if job else None
        if not isinstance(request, SpeechRequest) or index not in range(len(parts)) or len(parts) < parts[0].total:
            raise Trouble(say("speak.nothing-again", "There is no finished part to redo. Speak the script first."))
        keep = tuple(part.path for part in parts)
        return self.begin(dataclasses.replace(request, only_parts=(index,), keep=keep, seed=None), person)

    def smaller(self, kind: str, person: Person) -> tuple[Request, Sentence]:
        """What failed last, with less; and what was changed."""
        job = self.current(kind, person)
        request = self.keeper.journal.job(job).request if job else None
        lesser: Request
        if isinstance(request, PictureRequest):
            lesser, words = retry_smaller.picture(
                request, catalog.find(request.model or best(self.keeper.home, "picture").id)
            )
        elif isinstance(request, SpeechRequest):
            lesser, words = retry_smaller.speech(request, self.limits(request.model)[1])
        else:
            raise Trouble(say("smaller.nothing", "There is no job to retry with smaller settings."))
        self.begin(lesser, person)
        return lesser, words

    def meant(self, kind: str, model: str | None, person: Person) -> str:
        """Whose words are asked about: what is chosen, else what was chosen last; visitors have what they would get."""
        if not person.owner:
            return model_for(kind, self.keeper, self.owners_models())
        return self.owners_models()[kind] if model is None else model

    def limits(self, model: str) -> tuple[Model | None, Limits]:
        """The voice that is meant, and what it can take."""
        try:
            chosen = catalog.find(model) if model else best(self.keeper.home, "speech")
        except Trouble:
            return None, DIA
        try:
            found = located(self.keeper.home, chosen)
            return chosen, limits_of(found.folder, found.companions.get("codec")) if found else DIA
        except Trouble:  # the run says it
            return chosen, DIA

    def parts_of(self, job: str, request: SpeechRequest) -> tuple[str, ...]:
        """A script as its own voice parts it; read once a job, for the page asks every second."""
        if job not in self.parts:
            if len(self.parts) >= PARTS_KEPT:
                self.parts.clear()
            limits = self.limits(request.model)[1]
            self.parts[job] = tuple(part.text for part in script.check(request.text, limits).parts)
        return self.parts[job]

    def progress(self, kind: str, person: Person) -> Progress | None:
        job = self.current(kind, person)
        return self.keeper.progress(job) if job else None

    def creation(self, id_: int, person: Person) -> Creation:
        """The owner may have any, a visitor only what is theirs; to anybody else it is as if it were not there."""
        kept = self.keeper.shelf.get(id_)
        if not person.owner and kept.owner != person.name:
            raise Trouble(say("shelf.not-yours", "You have no creation number {id}.", id=id_))
        return kept

    def models(self) -> list[Model]:
        """The catalog's and those that the owner added."""
        added = []
        for path in self.settings.get("models", []):
            try:
                added.append(catalog.find(path))
            except Trouble:
                continue  # It was moved or unplugged; the Models tab says so.
        return [*CATALOG, *added]

    def upload_folder(self) -> Path:
        folder = self.keeper.home.scratch / "uploads" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def owns(self, job: str, person: Person) -> bool:
        """Whether this person made it; the owner may see everything."""
        known = self.keeper.journal.known(job)
        return known is not None and (person.owner or known.owner == person.name)

    def queue_view(self, person: Person) -> list[views.View]:
        """What waits, in its order; a visitor sees only what is theirs."""
        waiting = self.keeper.journal.waiting()
        return [
            {"id": job.id, "place": place + 1, "text": views.title_of(job.request), "kind": kind_of(job.request)}
            for place, job in enumerate(waiting)
            if person.owner or job.owner == person.name
        ]

    def queue_acts(self, person: Person) -> dict[str, Callable[[str], None]]:
        acts: dict[str, Callable[[str], None]] = {"remove": self.keeper.stop}
        if person.owner:
            acts |= {"up": self._up, "go-on": self.go_on, "let-go": self.keeper.let_go}
        return acts

    def _up(self, job: str) -> None:
        order = [each.id for each in self.keeper.journal.waiting()]
        if job in order and (place := order.index(job)):
            self.keeper.journal.move(job, before=order[place - 1])

    def go_on(self, job: str) -> None:
        """An interrupted job, shown in its tab again."""
        known = self.keeper.journal.job(job)
        self.keeper.go_on(job)
        self.latest[known.owner, kind_of(known.request)] = job

    def keep_voice(self, creation: int, name: str) -> None:
        kept = self.creation(creation, OWNER)
        voices.keep(self.keeper.home, name, kept.path, kept.text, DIA, kept.model)

    def waits(self, job: str) -> bool:
        return self.keeper.journal.job(job).state == "queued"

    def place(self, job: str) -> int:
        """In the queue, from 1; 0 where it does not wait."""
        waiting = [each.id for each in self.keeper.journal.waiting()]
        return waiting.index(job) + 1 if job in waiting else 0

    def choice(self, person: Person) -> Choice:
        """What the owner forced on the Machine tab; a visitor takes what is decided."""
        kept = choice_of(self.settings.get("choice")) if person.owner else Choice()
        return dataclasses.replace(kept, chunk=self.keeper.chunk)

    def set_chunk(self, chunk: Chunk) -> None:
        """From now on, also in the middle of a run; still so after a restart. Trouble where it could not be written: then nothing changes."""
        with self.choosing:
            self._write_choice(lambda kept: {**known_choice(kept), "chunk": chunk})
            self.keeper.set_chunk(chunk)

    def cure(self, cure: str) -> str:
        """Another model is used if it is here, else it is to be got first."""
        deed, _, model = cure.partition(":")
        there = deed != "use" or located(self.keeper.home, catalog.BY_ID[model])
        return cure if there else f"get:{model}"

    def keep_choice(self, choice: Choice) -> None:
        """All of it but the chunk, which is the keeper's: a slider that is moved meanwhile counts."""
        forced = {name: value for name, value in dataclasses.asdict(choice).items() if value is not None}
        with self.choosing:
            self._write_choice(lambda _: {**forced, "chunk": self.keeper.chunk})

    def _write_choice(self, how: Callable[[Any], Any]) -> None:
        try:
            self.settings.change("choice", {}, how)
        except OSError as fault:
            raise Trouble(say("choice.not-kept", "The settings could not be saved ({fault}), so nothing changed. Fix this, then choose again.", fault=fault.strerror or str(fault))) from fault  # fmt: skip

    def errand(self, errand: Errand) -> None:
        """One at a time: while the last waits or runs, it is what is shown."""
        if not self.on_errand():
            self.errand_job, self.errand_kind = self.keeper.errand(errand), type(errand).__name__

    def on_errand(self) -> bool:
        return bool(self.errand_job) and self.keeper.progress(self.errand_job).end is None

    def stop_errand(self) -> None:
        if self.on_errand():
            self.keeper.stop(self.errand_job)

    def hardware(self, pretended: str = "") -> Hardware | None:
        return machine(pretended) if self.elsewhere(pretended) else self.keeper.state.hardware

    def elsewhere(self, pretended: str) -> bool:
        """Whether another machine is looked at than the one that the engine works on, or pretends to."""
        now = self.keeper.state.hardware
        return bool(pretended) and (now is None or now.pretended != pretended)

    def plan(self, model: str, choice: Choice, pretended: str = "") -> Plan:
        """That of the job that runs with this model, where this is what the owner has chosen; else the one that the next job would get."""
        if not self.elsewhere(pretended) and choice == self.choice(OWNER) and (running := self.running_plan(model)):
            return running
        return self.next_plan(model, choice, pretended)

    def next_plan(self, model: str, choice: Choice, pretended: str = "") -> Plan:
        """Whatever runs now."""
        hardware = self.hardware(pretended)
        if hardware is None:
            raise Trouble(
                say(
                    "machine.unknown-yet",
                    "The engine is still starting. This machine's details will appear in a moment.",
                )
            )
        found, home = catalog.find(model), self.keeper.home
        return planned(home, hardware, found, choice, load(home.verdicts, hardware), itself=self.elsewhere(pretended))

    def runs_now(self, model: str, shown: Plan) -> Sentence | None:
        """What to say beside the plan of a job that runs, a visitor's perhaps, if the owner's next job would get another. The budget of
        scores follows free memory, and is no other plan."""
        if shown is not self.running_plan(model):
            return None
        try:
            following = self.next_plan(model, self.choice(OWNER))
        except Trouble:
            following = None
        if following is not None and choices(dataclasses.replace(following, budget_bytes=shown.budget_bytes)) == choices(shown):
            return None
        return say("machine.runs-now", "This is the plan of the running job.")

    def stands_in(self, model: str, own: Plan, pretended: str) -> Sentence | None:
        """Where another machine is looked at: what to say if this computer, in its place, would run the model in another way."""
        if not self.elsewhere(pretended):
            return None
        home, hardware = self.keeper.home, machine(pretended)
        here = planned(home, hardware, catalog.find(model), self.choice(OWNER), load(home.verdicts, hardware))
        return stands_in(hardware, own, here)

    def forget(self, model: str) -> None:
        """What runs of this model broke of here: the next one begins as the first did."""
        if self.keeper.state.hardware is not None:
            forget(self.keeper.home.verdicts, self.keeper.state.hardware, model)

    def offer(self, model: Model) -> Offer:
        """What it would mean to get this model, for this machine as it is now and with what the owner chose. About the next job, never about
        the one that runs: its plan is Machine's to show."""
        return offer(self.keeper.home, model, self.hardware(), self.choice(OWNER), self.verdicts())

    def running_plan(self, model: str) -> Plan | None:
        """That of the job that runs with this model, as it stands after each rung."""
        job = self.keeper.state.job
        progress = self.keeper.progress(job) if job else None
        return progress.plan if progress is not None and progress.model == model else None

    def verdicts(self) -> dict[str, Verdict]:
        """As they stand on disk now: the engine writes them."""
        hardware = self.keeper.state.hardware
        return load(self.keeper.home.verdicts, hardware) if hardware else {}

    def title(self, model: str) -> str:
        try:
            return catalog.find(model).title if model else ""
        except Trouble:
            return Path(model).name


def kind_of(request: Request) -> str:
    return "speech" if isinstance(request, SpeechRequest) else "picture"
