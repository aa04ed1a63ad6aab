"""The schema of the settings file: what each field of the window's settings may hold."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, TypeAdapter
from typing_extensions import TypedDict

from app.engine.jobs.settings import PICTURES, SPEECH, Rows, Setting
from app.engine.models.chosen import ChoiceValues


def _range(low: float, high: float) -> Any:
    return Field(ge=low, le=high, allow_inf_nan=False)


def _require_utf8(text: str) -> str:
    text.encode()  # half a surrogate pair can neither be shown nor written
    return text


Words = Annotated[str, AfterValidator(_require_utf8)]


def find_type(setting: Setting) -> Any:
    """Return the type of what its field holds."""
    if setting.range is not None:
        number = Annotated[float, _range(*setting.range)]
        return number if setting.slider or setting.choices else number | None
    if setting.choices:
        return Words if setting.open else Literal[tuple(setting.choices)]
    return bool


def list_types(rows: Rows) -> dict[str, Any]:
    return {name: find_type(each) for name, each in rows.items() if each.label and each.kept != "nowhere"}


_SPEAK: Final = {**list_types(SPEECH), **dict.fromkeys(("model", "voice", "cast", "says"), Words), "own": bool}
SpeakValues = TypedDict("SpeakValues", _SPEAK, total=False)  # type: ignore[misc]
PaintValues = TypedDict("PaintValues", {**list_types(PICTURES), "model": Words}, total=False)  # type: ignore[misc]


class Presets(TypedDict, total=False):
    speak: dict[str, SpeakValues]
    paint: dict[str, PaintValues]


class StyleValues(TypedDict):
    prompt: Words
    negative: Words


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
    """True: others help this one."""
    lends: bool
    """True: this one helps another."""
    paused: bool
    """True: its help rests."""
    fetches: bool
    """True: this one fetches the models that the other uses."""
    seen: bool
    """True: this one says in its network that it would lend."""


Axis = Literal["steps", "guidance", "seed", "scheduler", "strength", "prompt", "quicker"]
"""A side of a grid may vary this, as `paint_form.AXES` names it."""


class GridValues(TypedDict):
    """The owner's last grid: `jobs_desk.Grid`."""

    across: Axis
    columns: list[Words]
    down: Axis
    rows: list[Words]
    jobs: list[list[Words]]


class ChaptersValues(TypedDict):
    """The owner's last chapters: `jobs_desk.Chapters`."""

    jobs: list[Words]
    seconds: list[Annotated[float, Field(ge=0, allow_inf_nan=False)]]


class BookValues(TypedDict):
    """A book that was spoken: `book_desk.BOOKS`."""

    title: Words
    author: Words
    cover: Annotated[str, Field(pattern=r"^[0-9a-f]*$")]
    """Its file in the folder of covers is named so; empty: it has none."""
    words: Words
    """A hash of its chapters."""
    jobs: dict[str, Annotated[int, Field(ge=0)]]
    """The job that spoke a chapter leads to the chapter's place."""


class BeforeValues(TypedDict, total=False):
    """What Speak and Paint held before a project was opened: `albums.exchange_work`."""

    kept: Words
    """What is kept belongs to this project; empty: to none."""
    now: Words
    """The project that was opened has this name."""
    drafts: dict[str, Words]
    speak: SpeakValues
    paint: PaintValues


_Minute = Annotated[int, Field(ge=0, lt=1440)]


class PauseValues(TypedDict, total=False):
    """When jobs run: `pausing.find_reason`."""

    held: bool
    until_s: Annotated[float, _range(0, 1e11)] | None
    hours: tuple[_Minute, _Minute] | None
    """Jobs run between these minutes of the day."""
    away: bool
    plugged: bool


class UpdatesValues(TypedDict, total=False):
    """Of the look for newer versions: `upkeep.SAVED`."""

    looks: bool
    """True: the owner allows a look once a day. Without it, nobody has been asked."""
    at: Annotated[float, Field(allow_inf_nan=False)]
    version: Words
    """The last look found it; empty stands for nothing newer."""
    notes: Words
    bytes: int


PhoneKind = Literal["ntfy", "webhook"]


class PhoneValues(TypedDict, total=False):
    """Whom to tell that the work is done: `notifying.Notifying`."""

    address: Annotated[Words, Field(max_length=500)]
    kind: PhoneKind
    titles: bool
    """True: the first words of what was asked for are sent along."""


class GuestsValues(TypedDict, total=False):
    """Who comes again: `kept_guests.KeptGuests`."""

    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    names: dict[str, Words]


class SettingsValues(TypedDict, total=False):
    choice: ChoiceValues
    visitors: dict[str, Annotated[float, Field(allow_inf_nan=False)]]
    """The guests' limits are kept here, as `guest_limits.SAVED` says."""
    guests: GuestsValues
    models: list[Words]
    finds: bool
    """True: models of other programs may be looked for."""
    loras: list[Words]
    """LoRAs may lie in these folders beside Hearth's own."""
    machines: MachinesValues
    """What is switched on is kept here, as `other_machines.SAVED` says."""
    speak: SpeakValues
    paint: PaintValues
    styles: dict[str, StyleValues]
    presets: Presets
    grid: GridValues
    chapters: ChaptersValues
    listed: list[Words]
    """The jobs of the owner's last list of prompts are kept here, as `jobs_desk.LISTED_SAVED` says."""
    spoken_chapters: dict[str, Words]
    spoken_books: list[BookValues]
    drafts: dict[str, Words | list[Words]]
    before: BeforeValues
    greeted: bool
    pause: PauseValues
    updates: UpdatesValues
    assistants: bool
    """True: assistants (MCP) are let in at the next start."""
    phone: PhoneValues
    chime: bool
    """True: the owner wants to be told when a job is done, also without a page: `notifying.CHIME`."""
    window: WindowValues


SETTINGS: Final[TypeAdapter[SettingsValues]] = TypeAdapter(SettingsValues)
