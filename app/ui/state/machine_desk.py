"""What the owner forced and what it leads to: plans for this machine or a pretended one, forecasts, the way back from what was learned."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass, field

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.machine.chunk_curve import Curve, read_curve
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES, find_machine, machine, name_given
from app.compat.machine.verdicts import Subject, Verdict, forget, load
from app.compat.planning.fallbacks import choices
from app.compat.planning.types import Choice, Chunk, Plan
from app.engine.keeper.keeper import Keeper
from app.engine.models import catalog
from app.engine.models.chosen import keep_known_fields, parse_choice
from app.engine.models.fit import Offer, make_offer
from app.engine.models.model import Model
from app.engine.models.planned import explain_stand_in, make_plan
from app.ui.state.person import OWNER, Person
from app.ui.state.settings import Settings


@dataclass(frozen=True, slots=True)
class MachineDesk:
    """The owner's choice, and the plans that follow from it."""

    keeper: Keeper
    settings: Settings
    choosing: threading.Lock = field(default_factory=threading.Lock)
    """The choice is written under this lock, so that keeper and settings always agree on the chunk size."""

    def read_choice(self, person: Person) -> Choice:
        """Read what the owner forced on the Machine tab; a guest gets the automatic choice."""
        return parse_choice(self.settings.get("choice")) if person.owner else Choice()

    def set_chunk(self, chunk: Chunk) -> None:
        """Set the chunk size for running and later jobs, and save it. Raise Trouble and change nothing if it cannot be saved."""
        with self.choosing:
            self.settings.change("choice", {}, lambda saved: {**keep_known_fields(saved), "chunk": chunk})
            self.keeper.set_chunk(chunk)

    def keep_choice(self, choice: Choice) -> None:
        """Save a choice, beside the chunk size."""
        forced = {name: value for name, value in dataclasses.asdict(choice).items() if value is not None}
        with self.choosing:
            self.settings.change("choice", {}, lambda _: {**forced, "chunk": self.keeper.chunk})

    def find_hardware(self, pretended: str = "") -> Hardware | None:
        return machine(pretended) if self.is_elsewhere(pretended) else self.keeper.state.hardware

    def is_elsewhere(self, pretended: str) -> bool:
        """Tell whether another machine is looked at than the one the engine runs on, or pretends to."""
        if not pretended or pretended == name_given(self.keeper.pretended):
            return False
        now = self.keeper.state.hardware
        return now is None or now.pretended != pretended

    def list_pretended(self) -> dict[str, str]:
        """Return the names of the machines to look at, by their keys: those of the list, after the one whose file is in force."""
        names = [each.name for each in MACHINES.values()]
        named = {key: each.name if names.count(each.name) == 1 else f"{each.name} ({key})" for key, each in MACHINES.items()}
        given = name_given(self.keeper.pretended)
        return {given: f"{find_machine(self.keeper.pretended).name} ({given})"} | named if given else named

    def plan(self, model: str, choice: Choice, pretended: str = "") -> Plan:
        """Return the running job's plan if it is for this model and choice, else the plan of the next job."""
        if not self.is_elsewhere(pretended) and choice == self.read_choice(OWNER) and (running := self.find_running_plan(model)):
            return running
        return self.plan_next(model, choice, pretended)

    def plan_next(self, model: str, choice: Choice, pretended: str = "") -> Plan:
        """Plan the next job of this model, whatever runs now."""
        hardware = self.find_hardware(pretended)
        if hardware is None:
            raise Trouble(say("machine.unknown-yet", "The engine is still starting. This machine's details will appear in a moment."))
        found, home = catalog.find(model), self.keeper.home
        return make_plan(
            home, hardware, found, choice, load(home.verdicts, hardware), chunk=self.keeper.chunk, itself=self.is_elsewhere(pretended)
        )

    def find_running_plan(self, model: str) -> Plan | None:
        """Return the running job's plan after its last fallback, if it runs this model."""
        job = self.keeper.state.job
        progress = self.keeper.get_progress(job) if job else None
        return progress.plan if progress is not None and progress.model == model else None

    def explain_running(self, model: str, shown: Plan) -> Sentence | None:
        """Say that the plan shown is the running job's, if the owner's next job would get another.

        The score budget follows free memory and does not make another plan.
        """
        if shown is not self.find_running_plan(model):
            return None
        try:
            following = self.plan_next(model, self.read_choice(OWNER))
        except Trouble:
            following = None
        if following is not None and choices(dataclasses.replace(following, budget_bytes=shown.budget_bytes)) == choices(shown):
            return None
        return say("machine.runs-now", "This is the plan of the running job.")

    def explain_stand_in(self, model: str, own: Plan, pretended: str) -> Sentence | None:
        """Say where this computer, standing in for a pretended machine, would run the model in another way."""
        if not self.is_elsewhere(pretended):
            return None
        home, hardware = self.keeper.home, machine(pretended)
        choice, verdicts = self.read_choice(OWNER), load(home.verdicts, hardware)
        here = make_plan(home, hardware, catalog.find(model), choice, verdicts, chunk=self.keeper.chunk)
        return explain_stand_in(hardware, own, here)

    def offer(self, model: Model) -> Offer:
        """Forecast the next job of this model here, with the owner's choice; the running job's plan is for the Machine tab."""
        return make_offer(self.keeper.home, model, self.keeper.read_setup(self.read_choice(OWNER)))

    def load_verdicts(self) -> dict[Subject, Verdict]:
        """Load this machine's verdicts from disk, where the engine writes them."""
        hardware = self.keeper.state.hardware
        return load(self.keeper.home.verdicts, hardware) if hardware else {}

    def read_curve(self, model: str) -> Curve | None:
        """Read what Tune measured for the machine that the engine plans for."""
        hardware = self.keeper.state.hardware
        return read_curve(self.keeper.home, model, hardware.pretended) if hardware else None

    def forget(self, model: str) -> None:
        """Forget what failed runs of this model taught, so that the next one starts with the original settings."""
        if self.keeper.state.hardware is not None:
            forget(self.keeper.home.verdicts, self.keeper.state.hardware, model)
