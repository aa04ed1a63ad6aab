"""What Models and Machine ask for: models and their downloads, plans, curves, the self-test, updates, the disk, sharing, the window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from app.ui.page.view_types.live import Level


class FitView(TypedDict):
    level: Level
    word: str
    sentence: str
    cures: list[str]


class ModelView(TypedDict):
    id: str
    title: str
    away: str
    kind: str
    facts: list[str]
    licence: str
    starter: bool
    local: bool
    path: str
    lacks: bool
    here: bool
    bytes: int
    download: int
    gate: str
    fit: FitView | None


class MissingView(TypedDict):
    path: str
    trouble: str


class ModelsView(TypedDict):
    models: list[ModelView]
    missing: list[MissingView]
    token: bool
    folder: str
    free: int


class OfferView(TypedDict):
    title: str
    bytes: int
    because: str
    licence: str
    seconds: float
    measured: bool
    trouble: str


class DownloadView(TypedDict):
    model: str
    state: Literal["queued", "running", "paused", "failed", "done"]
    word: str
    done_bytes: int
    total_bytes: int
    rate: float
    eta_s: float | None
    sentence: str
    cure: str


class DownloadsView(TypedDict):
    downloads: list[DownloadView]


class ToolView(TypedDict):
    root: str
    words: str
    models: int


class FoundFileView(TypedDict):
    path: str
    title: str
    bytes: int
    facts: str
    trouble: str
    usable: bool
    here: bool


class FoundView(TypedDict):
    """What other programs have on this computer."""

    allowed: bool
    looked: bool
    reading: bool
    tools: list[ToolView]
    files: list[FoundFileView]
    left: int
    more: int


class OfferedModelView(ModelView):
    seconds: float
    pace: str
    speaks: str


class GreetingView(TypedDict):
    greeted: bool
    machine: str
    models: list[OfferedModelView]
    offered: Sequence[str]


class ObjectionView(TypedDict):
    text: str
    source: str
    link: str


class RejectedView(TypedDict):
    option: str
    objections: list[ObjectionView]


class ChoiceView(TypedDict):
    """A row of the plan."""

    field: str
    what: str
    choice: str
    because: str
    source: str
    link: str
    rejected: list[RejectedView]
    first: bool


class PlanView(TypedDict):
    rows: list[ChoiceView]
    warnings: list[str]
    retired: list[str]


class CurvePointView(TypedDict):
    chunk: int
    bytes: int
    seconds: float | None


class CurveView(TypedDict):
    points: list[CurvePointView]
    chunk: int | None
    at: int | None
    runs: str
    knee: int | None
    budget: int | None
    note: str


class VerdictView(TypedDict):
    subject: str
    passed: bool
    error: float | None
    ms: float
    words: str


class SelfTestView(TypedDict):
    parts: list[VerdictView]
    paths: list[VerdictView]
    rows: list[VerdictView]
    right: int
    total: int


class MachineView(TypedDict):
    """The Machine tab: a plan, or the trouble that keeps from one."""

    words: str
    pretended: str
    facts: list[str]
    selftest: SelfTestView
    other: str
    simulated: str
    trouble: NotRequired[str]
    plan: NotRequired[PlanView]
    note: NotRequired[str]
    learned: NotRequired[list[str]]
    curve: NotRequired[CurveView]


class PhoneView(TypedDict):
    address: str
    kind: str
    titles: bool


class NewerView(TypedDict):
    version: str
    notes: str
    bytes: int


class ExtraView(TypedDict):
    name: str
    title: str
    why: str
    bytes: int
    licence: str
    here: bool
    command: str


class AssistantsView(TypedDict):
    wanted: bool
    """From the next start on they may speak and paint."""
    address: str
    """They find Hearth there; empty while they are not let in."""
    fixed: str
    """Why that cannot be switched here."""


class UpkeepView(TypedDict):
    version: str
    fixed: str
    looks: bool | None
    place: str
    looking: bool
    told: str
    newer: NewerView | None
    work: list[str]
    failed: str
    ready: str
    environment: int
    undo: bool
    back: bool
    extras: list[ExtraView]
    assistants: AssistantsView


class UseView(TypedDict):
    """What takes room on the disk."""

    name: str
    title: str
    why: str
    bytes: int
    used_s: float | None
    unused: bool
    target: str
    away: str
    movable: bool
    deletes: bool


class DoubleView(TypedDict):
    kept: str
    paths: list[str]
    bytes: int
    ours: bool


class MovingView(TypedDict):
    title: str
    done: int
    total: int


class DiskView(TypedDict):
    known: bool
    looking: bool
    comparing: bool
    folder: str
    free: int
    uses: list[UseView]
    doubles: list[DoubleView]
    places: list[str]
    moving: MovingView | None
    told: str
    failed: bool


class GuestView(TypedDict):
    id: str
    name: str
    since_s: float
    seen_s: float


class ShareView(TypedDict):
    """The owner's panel: an open share has an address and guests, a closed one what can be chosen."""

    open: bool
    limits: Mapping[str, int]
    hours: NotRequired[Sequence[float]]
    ways: NotRequired[Sequence[Literal["home", "link"]]]
    address: NotRequired[str]
    qr: NotRequired[str]
    left_s: NotRequired[float]
    lost: NotRequired[str]
    at_home: NotRequired[bool]
    advice: NotRequired[str]
    guests: NotRequired[list[GuestView]]
    password: NotRequired[str]
    """It is sent the first time only."""


class WindowView(TypedDict):
    """What runs or waits when a window is closed."""

    text: str
