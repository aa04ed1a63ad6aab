"""The schema of the settings file: what each field of the window's settings may hold."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, TypeAdapter
from typing_extensions import TypedDict

from app.engine.jobs.quicker import Quicker
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.models.chosen import ChoiceValues


def _range(low: float, high: float) -> Any:
    return Field(ge=low, le=high, allow_inf_nan=False)


def _require_utf8(text: str) -> str:
    text.encode()  # half a surrogate pair can neither be shown nor written
    return text


Words = Annotated[str, AfterValidator(_require_utf8)]


class SpeakValues(TypedDict, total=False):
    seed: Annotated[float, _range(0, SEED_LIMIT - 1)] | None
    voice: Words
    model: Words
    speed: Annotated[float, _range(0.5, 2)]
    format: Literal["wav", "flac", "mp3", "ogg", "opus"]
    own: bool
    guidance: Annotated[float, _range(1, 10)]
    temperature: Annotated[float, _range(0, 5)]
    top_p: Annotated[float, _range(0.01, 1)]
    cfg_filter: Annotated[float, _range(1, 1024)]
    loudness: Annotated[float, _range(-60, 0)]
    carry: bool


class PaintValues(TypedDict, total=False):
    model: Words
    width: Annotated[float, _range(64, 4096)] | None
    height: Annotated[float, _range(64, 4096)] | None
    steps: Annotated[float, _range(1, 200)] | None
    guidance: Annotated[float, _range(0, 50)] | None
    scheduler: Words
    batch: Annotated[float, _range(1, 16)]
    upscale: Annotated[float, _range(1, 4)]
    strength: Annotated[float, _range(0.01, 1)]
    quicker: Quicker


class Presets(TypedDict, total=False):
    speak: dict[str, SpeakValues]
    paint: dict[str, PaintValues]


class WindowValues(TypedDict, total=False):
    """Where Hearth's own window stood, as app/window/geometry.py has it, and the page's colour."""

    x: int | None
    y: int | None
    width: Annotated[int, _range(1, 100_000)]
    height: Annotated[int, _range(1, 100_000)]
    maximized: bool
    ground: Annotated[str, Field(pattern=r"^#[0-9a-f]{6}$")]


class MachinesValues(TypedDict, total=False):
    uses: bool
    """Others help this one."""
    lends: bool
    """This one helps another."""
    paused: bool
    """Its help."""
    fetches: bool
    """This one fetches the models that the other uses."""
    seen: bool
    """This one says in its network that it would lend."""


Axis = Literal["steps", "guidance", "seed", "scheduler", "strength", "prompt", "quicker"]
"""What a side of a grid may vary, as `paint_form.AXES` names it."""


class GridValues(TypedDict):
    """The owner's last grid: `jobs_desk.Grid`."""

    across: Axis
    columns: list[Words]
    down: Axis
    rows: list[Words]
    jobs: list[list[Words]]


class SettingsValues(TypedDict, total=False):
    choice: ChoiceValues
    visitors: dict[str, Annotated[float, Field(allow_inf_nan=False)]]
    """The guests' limits: `guest_limits.SAVED`."""
    models: list[Words]
    machines: MachinesValues
    """`other_machines.SAVED`."""
    speak: SpeakValues
    paint: PaintValues
    presets: Presets
    grid: GridValues
    drafts: dict[str, Words]
    greeted: bool
    window: WindowValues


SETTINGS: Final[TypeAdapter[SettingsValues]] = TypeAdapter(SettingsValues)
