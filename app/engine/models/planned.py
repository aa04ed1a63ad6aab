"""Plan a model: the single way, for the engine and for all pages that show what it would do. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdict, Verdicts
from app.compat.planning.decide import decide
from app.compat.planning.fallbacks import choices
from app.compat.planning.plan_words import word_chunk
from app.compat.planning.types import AUTO, Choice, Chunk, Need, Plan, Reason
from app.engine.jobs.request import Request
from app.engine.models.adapters import require_fit
from app.engine.models.controls import read_control
from app.engine.models.lora_facts import count_parameters
from app.engine.models.model import ConfigNeeds, Model, add_loras, add_to_denoiser, describe_need
from app.engine.models.on_disk import read_needs
from app.engine.models.picture_readers import count_reading_bytes
from app.engine.models.pretended_device import list_impossible

NOTHING_SEEN: Final = MappingProxyType[Subject, Verdict]({})


@dataclass(frozen=True, slots=True)
class Setup:
    """What a plan is made by, beside model and request."""

    home: Home
    hardware: Hardware
    """The hardware is taken as it is now; memory that Hearth itself holds and would release counts as free."""
    choice: Choice = Choice()  # noqa: RUF009 - frozen
    chunk: Chunk = AUTO
    verdicts: Verdicts = field(default_factory=dict)
    yields: bool = False
    """The plan is for a guest, as in `make_plan`."""

    def plan(self, model: Model, request: Request | None = None) -> Plan:
        return make_plan(self.home, self.hardware, model, self.choice, self.verdicts, request, chunk=self.chunk, yields=self.yields)


def make_plan(
    home: Home,
    hardware: Hardware,
    model: Model | None = None,
    choice: Choice = Choice(),  # noqa: B008 - frozen
    verdicts: Verdicts = NOTHING_SEEN,
    request: Request | None = None,
    *,
    chunk: Chunk = AUTO,
    itself: bool = False,
    yields: bool = False,
) -> Plan:
    """Plan how the engine would run this model now; without a model, any attention. `itself`: show a pretended
    machine's own plan, not the one this computer can run in its place. `yields`: for a guest, whose job must not fail
    because of the owner's chunk size: one that cannot run gives way to automatic."""
    need = find_need(home, hardware, model, request, itself=itself)
    try:
        return decide(hardware, need, choice, verdicts, chunk=chunk)
    except Trouble as trouble:
        if not yields or chunk == AUTO:
            raise
        return note_refused_chunk(decide(hardware, need, choice, verdicts), chunk, trouble)


def note_refused_chunk(plan: Plan, chunk: Chunk, trouble: Trouble) -> Plan:
    """Add to the plan's chunk reason that the chunk size asked for cannot run, wherever the plan is shown."""
    why = trouble.objections[0] if trouble.field == "chunk_q" and trouble.objections else trouble.sentence
    said = Reason("chunk_q", chunk_differs(chunk, plan.chunk_q, why), "this machine", str(chunk))
    return replace(plan, because=tuple(said if each.field == "chunk_q" else each for each in plan.because))


def chunk_differs(chunk: Chunk, chunk_q: Chunk, why: Sentence) -> Sentence:
    return say(
        "chunk_q.differs", "You asked for {asked}, but {chunk} is used: {why}", asked=word_chunk(chunk), chunk=word_chunk(chunk_q), why=why
    )


def find_need(home: Home, hardware: Hardware, model: Model | None, request: Request | None = None, *, itself: bool = False) -> Need:
    """Describe what the model needs for this request, or for its makers' recommendation."""
    if model is None:
        return Need()
    width, height = request.size if request else (None, None)
    larger = request.larger if request else 1
    need = describe_need(model, width=width, height=height, guidance=request.guidance if request else None, larger=larger)
    need = add_config_needs(need, read_needs(home, model))
    if request and request.guide:
        control = read_control(Path(request.control))
        need = add_to_denoiser(need, control.parameters)
        handed = control.count_handed(need.batch * need.queries)
        need = replace(need, handed=handed, reading_bytes=count_reading_bytes(request.guide_as))
    if request and request.reference:
        adapter, encoder = require_fit(home, Path(request.adapter), model)
        need = add_to_denoiser(need, adapter.parameters)
        need = replace(need, reading_bytes=max(need.reading_bytes, encoder.reading_bytes))
    if request and request.loras:
        need = add_loras(need, sum(count_parameters(Path(each.path)) for each in request.loras if not each.word))
    return need if itself else replace(need, impossible=(*need.impossible, *list_impossible(hardware, model, home)))


def add_config_needs(need: Need, asked: ConfigNeeds) -> Need:
    """Add the attention and packing that config.json asks for, so that the plan says why it is rejected."""
    return replace(need, attention=asked.attention or need.attention, published="awq" if asked.awq else need.published)


def explain_stand_in(hardware: Hardware, own: Plan, here: Plan) -> Sentence | None:
    """Explain a pretended machine's own plan where this computer would run another in its place."""
    if choices(own) == choices(here):
        return None
    if here.quantised == "none":
        return say(
            "planned.whole",
            "This is the plan for a real {machine}. This computer cannot make {own} weights; "
            "with --pretend {name} it uses the full weights instead.",
            machine=hardware.name,
            own=own.quantised,
            name=hardware.pretended,
        )
    return say(
        "planned.other",
        "This is the plan for a real {machine}. This computer cannot make {own} weights; with --pretend {name} it uses {here} instead.",
        machine=hardware.name,
        own=own.quantised,
        here=here.quantised,
        name=hardware.pretended,
    )
