"""What changes by itself: all that `hearth/live` answers, from the strip and the queue to the parts of a script and the machines that help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, Required

from typing_extensions import TypedDict

Kind = Literal["speech", "picture"]
"""A job is of one of these kinds, and the state has a field for each."""


Level = Literal["right", "careful", "wrong", ""]
"""The empty one is neither good nor bad."""


class FinishedView(TypedDict):
    kind: Literal["finished"]
    elapsed_s: float
    made: int


class StoppedView(TypedDict):
    kind: Literal["stopped"]


class FailedView(TypedDict):
    kind: Literal["failed"]
    text: str
    cure: str
    code: str


EndView = FinishedView | StoppedView | FailedView


class RemarkView(TypedDict):
    kind: str
    text: str


class MemoryView(TypedDict):
    """Memory in bytes; None: not known."""

    now: int
    highest: int
    limit: int
    swap: int
    process: int
    device: int | None
    allocated: int | None


class StripMemoryView(MemoryView):
    stands_in: bool
    total: int


class StripView(TypedDict):
    job: str
    model: str
    doing: str
    rate: str
    eta_s: float | None
    memory: StripMemoryView | None
    machine: str
    precision: str
    attention: str
    chunk: str
    plan: str
    of_guest: NotRequired[bool]
    guest_name: NotRequired[str]
    guest: NotRequired[bool]


class BlockerView(TypedDict):
    """What keeps all jobs from running."""

    text: str
    cure: str


class ChartPointView(MemoryView):
    rate: float
    unit: str
    marks: list[str]


class ChunkView(TypedDict):
    size: int | Literal["auto"]
    step: int
    sizes: Sequence[int]


class CheckedView(TypedDict):
    done: int
    total: int


class NoticeView(TypedDict):
    id: str
    text: str


class QueueView(TypedDict):
    id: str
    text: str
    kind: Kind
    facts: str
    place: NotRequired[int]
    """The job that runs has none."""


class UnknownView(TypedDict):
    """A piece of a text that a model does not know, as a browser counts letters."""

    begin: int
    end: int
    near: list[str]


class PlaceView(TypedDict):
    """Where a recogniser heard something else, by the word of the line."""

    place: int
    text: str


class TakeView(TypedDict):
    text: str
    seconds: float
    url: str
    peaks: Sequence[float]


class PartView(TypedDict):
    """A part of a script, or a picture of a batch: what it says, and how far it is."""

    index: int
    text: str
    pause: float
    pace: float
    state: Literal["done", "now", "waits"]
    seconds: NotRequired[float]
    whole: NotRequired[bool]
    doubt: NotRequired[Literal["", "long", "short"]]
    url: NotRequired[str]
    peaks: NotRequired[Sequence[float]]
    marks: NotRequired[list[PlaceView] | None]
    pieces: NotRequired[list[str]]
    takes: NotRequired[list[TakeView]]


class JobView(TypedDict):
    """What the cards of all kinds of jobs show."""

    job: str
    share: float
    said: list[RemarkView]
    end: EndView | None
    doing: str


class ResultView(TypedDict):
    url: str
    id: int
    name: str


class SoundView(ResultView):
    peaks: Sequence[float]
    seconds: float
    subtitles: bool
    words: bool


class ListeningView(TypedDict):
    state: Literal["mending", "hearing", ""]
    share: float
    trouble: str


class BookPlaceView(TypedDict, total=False):
    """Which chapter of a book a job is, and what is left of all; nothing for a job that is no chapter."""

    chapter: int
    chapters: int
    left_s: float | None


class PartsView(JobView):
    parts: list[PartView]


class SpeechView(PartsView):
    before: bool
    pace: float
    cast: list[str]
    place: int
    results: list[SoundView]
    listening: ListeningView
    book: BookPlaceView
    taken: str


class MadeView(TypedDict, total=False):
    """What a picture's own file says of it; nothing where it cannot be read."""

    seed: int | None
    width: int
    height: int


class PictureResultView(ResultView, MadeView):
    text: str


class PaintedView(TypedDict):
    index: int
    url: str


class CanvasView(JobView):
    parts: list[PaintedView]
    preview: str
    guide: str
    rate: str


class PictureView(CanvasView):
    place: int
    results: list[PictureResultView]
    listed: list[PictureResultView]
    left: list[str]


class CellView(TypedDict):
    result: PictureResultView | None
    failed: bool
    preview: str


class GridView(TypedDict):
    across: str
    columns: Sequence[str]
    down: str
    rows: Sequence[str]
    cells: list[CellView]
    stopped: list[str]
    latest: bool


class InterruptedView(TypedDict):
    jobs: list[str]
    text: str
    kept: bool


class MeasuringView(TypedDict):
    kind: str
    done: int
    total: int
    share: float
    eta_s: float | None
    said: list[RemarkView]
    end: EndView | None


class EnlargingView(TypedDict):
    id: int
    share: float


class PauseView(TypedDict):
    reason: str
    asks: str
    when: Literal["any", "away", "hours"]
    begin: str
    end: str
    plugged: bool


class MainView(TypedDict):
    """A machine nearby that takes a code."""

    name: str
    address: str


class NearbyView(TypedDict):
    seen: bool
    lend: list[str]
    mains: list[MainView]


class CodeView(TypedDict):
    text: str
    qr: str
    left_s: float


class HelperView(TypedDict):
    id: str
    name: str
    online: bool
    resting: bool
    cluster: str
    level: Level
    doing: str
    facts: list[str]
    done: int
    why: str


class UsingView(TypedDict):
    code: CodeView | None
    said: str
    machines: list[HelperView]


class LendingView(TypedDict):
    main: str
    doing: str
    paused: bool
    removed: bool
    fetches: bool
    lacked: str
    done: int


class LackView(TypedDict):
    """How to add the extra that several machines need."""

    command: str
    adds: bool


class BothSidesView(TypedDict):
    """The machines that help this one, and the one that this one helps."""

    starting: bool
    said: str
    nearby: NearbyView
    using: UsingView | None
    lending: LendingView | None


MachinesView = LackView | BothSidesView


class JobsView(TypedDict, total=False):
    """A person's jobs as their tabs draw them."""

    speech: SpeechView
    picture: PictureView


class Live(JobsView, total=False):
    """What hearth/live answers. A guest's has only the strip, the queue and jobs: scripts know an owner by its charts."""

    strip: Required[StripView]
    queue: list[QueueView]
    making: QueueView | None
    """The job that runs is told as the queue shows it."""
    grid: GridView
    standing: BlockerView | None
    charts: list[ChartPointView]
    chunk: ChunkView
    checked: CheckedView
    notices: list[NoticeView]
    interrupted: InterruptedView | None
    measuring: MeasuringView
    enlarging: list[EnlargingView]
    machines: MachinesView
    pause: PauseView
