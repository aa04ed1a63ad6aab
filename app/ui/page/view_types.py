"""What the server sends to the page, as types. views.d.ts says the same to scripts: tests/ui/page/test_view_types.py keeps both alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class TagView(TypedDict):
    """Where a speaker that a script names otherwise gets a tag."""

    begin: int
    end: int
    near: list[str]
    name: str
    length: int


class ProblemView(TypedDict):
    kind: Level | Literal["note"]
    text: str
    cure: str
    tags: NotRequired[list[TagView]]
    captions: NotRequired[list[str]]


class TurnView(TypedDict):
    speaker: int
    name: str
    text: str
    said: str
    """The voice says this in its place, where that is something else."""


class ActorView(TypedDict):
    name: str
    speaker: int
    voice: str


class LineView(TypedDict):
    """A line of the script in the field: the part that says it, or -1 and its words."""

    part: int
    pause: float
    text: NotRequired[str]


class DraftView(TypedDict):
    job: str
    state: Literal["same", "changed", "other"]
    lines: list[LineView]
    fresh: int
    """So many parts are to be spoken."""


class PromptView(TypedDict):
    """A checked prompt."""

    problems: list[ProblemView]
    marks: list[UnknownView]


class ScriptView(PromptView):
    """A checked script."""

    turns: list[TurnView]
    level: Literal["right", "careful", "wrong"]
    about: str
    eta_s: float | None
    nonverbals: list[str]
    tags: list[str]
    transcript: bool
    imitates: bool
    model: str
    cast: list[ActorView]
    changed: str
    draft: DraftView | None
    said: int


class ChapterView(TypedDict):
    title: str
    seconds: float
    letters: int
    ticked: bool
    state: Literal["", "waits", "now", "done", "cut"]
    creation: int
    """Its newest result; 0 where there is none."""


class NameView(TypedDict):
    """Who seems to speak in a book."""

    name: str
    count: int
    voiced: bool


class BookView(TypedDict, total=False):
    """The open book; nothing where none is open."""

    title: str
    author: str
    note: str
    most: int
    chapters: list[ChapterView]
    names: list[NameView]
    voiced_most: int
    invents: bool
    """The model makes a voice up for each chapter where none is chosen."""


class HelpLineView(TypedDict):
    term: NotRequired[str]
    text: str


class TopicView(TypedDict):
    id: str
    title: str
    lines: list[HelpLineView]


class TopicsView(TypedDict):
    topics: list[TopicView]


class SentenceView(TypedDict):
    begin: float
    end: float
    text: str
    words: list[tuple[str, float, float]]


class AlongView(TypedDict):
    """When each sentence of a creation is said."""

    sentences: list[SentenceView]


class VoiceView(TypedDict):
    """A voice to choose."""

    name: str
    formerly: NotRequired[Sequence[str]]


class VoiceGroupView(TypedDict):
    id: str
    title: str
    voices: list[VoiceView]


class VoicesView(TypedDict):
    models: list[VoiceGroupView]


class ShelfVoiceView(TypedDict):
    """A voice on the shelf of voices."""

    name: str
    kept: bool
    words: list[str]
    """They say how it sounds."""
    about: str
    heard: bool
    """True: its file is a sound."""


class ShelfGroupView(TypedDict):
    id: str
    title: str
    voices: list[ShelfVoiceView]


class AuditionView(TypedDict):
    """A new voice that a seed made, of the model named."""

    id: int
    name: str
    of: str


class ShelfVoicesView(TypedDict):
    models: list[ShelfGroupView]
    able: list[str]
    """These models make new voices."""
    seeds: int
    """So many are made at once."""
    auditions: list[AuditionView]


class SaidView(TypedDict):
    word: str
    spoken: str


class SaysView(TypedDict):
    """The pronunciations that are used everywhere, as far as they are shown."""

    rows: list[SaidView]
    found: int
    all: int


class LoraView(TypedDict):
    name: str
    title: str
    kind: str
    word: str
    family: str
    misfit: str
    triggers: Sequence[str]
    tags: Sequence[str]
    weight: float
    picture: str


class LorasView(TypedDict):
    loras: list[LoraView]
    more: int
    unread: int
    folder: str
    folders: Sequence[str]


class StyleView(TypedDict):
    name: str
    prompt: str
    negative: str


class StylesView(TypedDict):
    styles: list[StyleView]


class EnlargerView(TypedDict):
    name: str
    title: str


class EnlargersView(TypedDict):
    enlargers: list[EnlargerView]


class ToldView(TypedDict):
    """What a guest is not told of their own creations."""

    title: str
    speed: str
    highest: int
    maker: str
    named: str
    tags: Sequence[str]
    albums: Sequence[int]


class CreationView(MadeView, ToldView):
    id: int
    kind: str
    text: str
    name: str
    url: str
    gone: bool
    favourite: bool
    binned: bool
    seconds: float
    created_s: float
    machine: str
    whole: bool
    condition: str
    subtitles: bool
    parts: bool
    peaks: Sequence[float]
    earlier: int
    """So many takes of the same lie behind it."""


class NamedModelView(TypedDict):
    id: str
    title: str


class AlbumView(TypedDict):
    id: int
    name: str
    count: int
    kept: bool


class KeptPartsView(TypedDict):
    scripts: int
    bytes: int
    most_bytes: int


class ShelfView(TypedDict):
    creations: list[CreationView]
    more: bool
    models: list[NamedModelView]
    albums: list[AlbumView]
    tags: Sequence[str]
    kept: NotRequired[KeptPartsView]
    """Only the owner gets it, as the next one."""
    before: NotRequired[str | None]
    """This project was open before another was opened; empty: none with a name was."""


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
    extras: list[ExtraView]


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


Answers = TypedDict(
    "Answers",
    {
        "hearth/words": dict[str, str],
        "hearth/help": TopicsView,
        "hearth/live": Live,
        "hearth/drafts": dict[str, str | list[str]],
        "hearth/along/{id}": AlongView,
        "hearth/notify": PhoneView,
        "hearth/cast": VoicesView,
        "hearth/voices": ShelfVoicesView,
        "hearth/says": SaysView,
        "hearth/book": BookView,
        "hearth/window": WindowView,
        "hearth/greeting": GreetingView,
        "hearth/shelf": ShelfView,
        "hearth/enlarge": EnlargersView,
        "hearth/models": ModelsView,
        "hearth/loras": LorasView,
        "hearth/styles": StylesView,
        "hearth/downloads": DownloadsView,
        "hearth/offer": OfferView,
        "hearth/found": FoundView,
        "hearth/machine": MachineView | None,
        "hearth/upkeep": UpkeepView,
        "hearth/disk": DiskView,
        "hearth/share": ShareView,
    },
)
"""The routes that send something to be shown answer so."""
