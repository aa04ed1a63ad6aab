"""What Speak, Paint and the Shelf ask for: what a script and a prompt are read as, books, help, voices, LoRAs, styles, creations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from app.ui.page.view_types.live import Level, MadeView, UnknownView


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
    settings: list[str]
    """Whoever speaks has these of those that are set by hand."""
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


class RevoicedChapterView(TypedDict):
    place: int
    fresh: int
    """So many of its parts are spoken anew."""
    parts: int


class RevoicedView(TypedDict):
    """The spoken chapters in which somebody has another voice by now."""

    chapters: list[RevoicedChapterView]
    takes_s: float | None


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


class PronunciationView(TypedDict):
    """A word, and how it is said."""

    word: str
    spoken: str


class PronunciationsView(TypedDict):
    """The pronunciations that are used everywhere, as far as they are shown."""

    rows: list[PronunciationView]
    found: int
    all: int


class LoraView(TypedDict):
    name: str
    title: str
    kind: str
    word: str
    places: str
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


class DescribedView(TypedDict):
    words: str
    """It says in English what a picture shows."""


class OwnerOnlyView(TypedDict):
    """What of a creation the owner alone is told; guests get it empty, of their own creations too."""

    title: str
    speed: str
    highest: int
    maker: str
    named: str
    tags: Sequence[str]
    albums: Sequence[int]


class CreationView(MadeView, OwnerOnlyView):
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
    ordered: bool


class KeptPartsView(TypedDict):
    scripts: int
    bytes: int
    most_bytes: int


class PickedView(TypedDict):
    """A creation that is selected without being on the page."""

    id: int
    kind: str


class FoundView(TypedDict):
    creations: list[PickedView]


class ShelfView(TypedDict):
    creations: list[CreationView]
    more: bool
    count: int
    """So many are found, on all pages together."""
    at_once: int
    """So many can be exported or changed with one request."""
    models: list[NamedModelView]
    albums: list[AlbumView]
    tags: Sequence[str]
    kept: NotRequired[KeptPartsView]
    """Only the owner gets it, as the next one."""
    before: NotRequired[str | None]
    """This project was open before another was opened; empty: none with a name was."""
