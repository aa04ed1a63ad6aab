"""Define SpeechRequest and PictureRequest: complete and in range once constructed, else a Trouble names the fault."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self, TypeVar, get_args

from app.base.sentence import Sentence, Value, say, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.quicker import Quicker
from app.engine.jobs.settings import ENLARGERS, HIRES_STRENGTH, PACE, PICTURES, SPEECH, STARTER_ENLARGER, VOLUME, check_settings, weight_of

SCRIPT_MOST, PROMPT_MOST = 1_000_000, 20_000
"""Nobody writes so many characters: they are hours of speech, or more words than a picture can follow."""
LATER: Final[Mapping[str, Any]] = {
    "cast": (), "pronunciations": (), "enlarger": "", "hires": False, "hires_strength": HIRES_STRENGTH,
    "guide": None, "control": "", "guide_as": "", "guide_strength": 1.0, "guide_from": 0.0, "guide_to": 1.0,
    "masked_only": False, "masked_padding": 32, "mask_blur": 4,
    "reference": None, "adapter": "", "reference_strength": 0.6,
}  # fmt: skip
"""Earlier versions did not store these settings."""
NAME_MOST, CAST_MOST = 40, 50
"""A speaker's name has at most so many letters, and a cast so many names."""
VOICES_FOLDER: Final = "voices"
"""Ready and saved voices lie in a folder of this name, each named after itself."""
UPDATE = say("owner.update", "Or update Hearth.")
FORMATS = tuple(SPEECH["format"].choices)
PROMPT = say_to_all("setting.prompt", "prompt")
KindName = Literal["speech", "picture"]


def _require_text(name: Sentence, text: str, most: int) -> None:
    """Require valid text of a limited length: files from elsewhere may contain anything, and half a surrogate pair
    cannot be written to a file."""
    if not isinstance(text, str) or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Trouble(say_to_all("request.not-text", "The {name} contains invalid characters. Please retype it.", name=name))
    if len(text) > most:
        raise Trouble(
            say_to_all(
                "request.long",
                "The {name} has {count} {count:character|characters}; the limit is {most}. Please shorten it.",
                name=name,
                count=len(text),
                most=most,
            )
        )


def _require_texts(*values: object) -> None:
    """Raise TypeError for anything else, which only files and databases from elsewhere hold; `from_json` words it."""
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"a text, not: {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class VoicePrompt:
    """A clip and the exact words spoken in it."""

    path: str
    transcript: str

    def __post_init__(self) -> None:
        _require_texts(self.path, self.transcript)


def name_voice(path: str) -> str:
    """Return the name of a voice that comes with Hearth or is saved; empty for any other recording."""
    saved = path.replace("\\", "/").split("/")
    return saved[-1].rpartition(".")[0].capitalize() if saved[-2:-1] == [VOICES_FOLDER] else ""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who speaks under a name of the script, and how."""

    name: str
    """The script has it: a name, or S1, S2 for a numbered speaker."""
    voice: VoicePrompt | None = None
    """None: it is one that the model has, or makes up."""
    model: str = ""
    """Empty: it is the request's."""
    volume_db: float = 0.0
    pace: float = 1.0
    """It multiplies the request's speed."""

    def __post_init__(self) -> None:
        _require_texts(self.name, self.model)
        if not 0 < len(self.name.strip()) <= NAME_MOST or not self.name.isprintable() or set(self.name) & set("[]:\n"):
            raise Trouble(
                say_to_all(
                    "cast.name",
                    "{name} cannot be the name of a speaker. Use up to {most} letters, without brackets and colons.",
                    name=self.name[:NAME_MOST],
                    most=NAME_MOST,
                )
            )
        for row, value in ((VOLUME, self.volume_db), (PACE, self.pace)):
            row.check(value)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        voice = values.get("voice")
        return cls(**{**values, "voice": VoicePrompt(**voice) if voice else None})


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    kind: ClassVar[Literal["speech"]] = "speech"
    batch: ClassVar[int] = 1
    size: ClassVar[tuple[None, None]] = (None, None)
    larger: ClassVar[int] = 1
    loras: ClassVar[tuple[Lora, ...]] = ()
    written: ClassVar[tuple[str, ...]] = ()
    guide: ClassVar[None] = None
    control: ClassVar[str] = ""
    reference: ClassVar[None] = None
    adapter: ClassVar[str] = ""
    text: str
    model: str = ""
    """It is a catalog id or a local folder; empty: it is the best installed model, which `submit` names."""
    voice: VoicePrompt | None = None
    seed: int | None = None
    """None: draw one and report it in the result."""
    guidance: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    cfg_filter: int | None = None
    """For each of these, None stands for the model's own recommendation."""
    max_frames: int | None = None
    carry_voice: bool = True
    """Each part continues the voices of the one before."""
    speed: float = 1.0
    loudness_lufs: float | None = -18.0
    tail_s: float = 0.3
    format: str = "wav"
    only_parts: tuple[int, ...] = ()
    """Speak these parts only (0-based). With `keep` the others are taken over; without, empty means all."""
    keep: tuple[str, ...] = ()
    """Each part has an earlier take's sound here; empty: it has none."""
    cast: tuple[Actor, ...] = ()
    """Names in the script have these voices; whoever is not named here gets one by itself."""
    pronunciations: tuple[tuple[str, str], ...] = ()
    """These words of the script are said differently; each comes with how it is spelt to be spoken."""

    def __post_init__(self) -> None:
        _require_texts(self.model, *self.keep, *(each for row in self.pronunciations for each in row))
        if any(isinstance(each, bool) or not isinstance(each, int) or each < 0 for each in self.only_parts):
            raise TypeError("only_parts")
        _require_text(say_to_all("setting.script", "script"), self.text, SCRIPT_MOST)
        if not self.text.strip():
            raise Trouble(say_to_all("request.no-text", "The script is empty. Write a line such as: [S1] Hello there."))
        check_settings(self, SPEECH)
        names = [each.name.casefold() for each in self.cast]
        if len(names) > CAST_MOST:
            raise Trouble(
                say_to_all(
                    "cast.many",
                    "The cast has {count} {count:name|names}; the limit is {most}. Leave some out.",
                    count=len(names),
                    most=CAST_MOST,
                )
            )
        if twice := next((each.name for each in self.cast if names.count(each.name.casefold()) > 1), ""):
            raise Trouble(say_to_all("cast.twice", "{name} is in the cast twice. Give each name one voice.", name=twice))

    @property
    def words(self) -> str:
        """What it says or shows."""
        return self.text

    @property
    def facts(self) -> tuple[Value, ...]:
        """These tell it apart from another that says the same: who speaks."""
        return (", ".join(actor.name for actor in self.cast) or name_voice(self.voice.path if self.voice is not None else ""),)

    @property
    def prompts(self) -> tuple[VoicePrompt, ...]:
        """The clips of all of its voices."""
        return tuple(each for each in (self.voice, *(actor.voice for actor in self.cast)) if each is not None)

    @property
    def files(self) -> tuple[str, ...]:
        """The sounds or pictures that it starts from."""
        return tuple(each.path for each in self.prompts)

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        voice = values.get("voice")
        lists = {name: tuple(values.get(name, ())) for name in ("only_parts", "keep")}
        lists["pronunciations"] = tuple((word, spoken) for word, spoken in values.get("pronunciations", ()))
        cast = tuple(Actor.read(each) for each in values.get("cast", ()))
        return cls(**{**values, **lists, "voice": VoicePrompt(**voice) if voice else None, "cast": cast})

    @property
    def is_piece(self) -> bool:
        """Whether it asks for single parts."""
        return bool(self.only_parts)

    @property
    def stays_here(self) -> bool:
        """Whether no other computer can do it: the other parts, which it goes with, are here, or its cast has several models."""
        return bool(self.keep or self.only_parts or {each.model for each in self.cast} - {"", self.model})

    def with_model(self, name: str) -> Self:
        """Return it with another name of its model."""
        cast = tuple(dataclasses.replace(each, model=name if each.model == self.model else each.model) for each in self.cast)
        return dataclasses.replace(self, model=name, cast=cast)

    def with_files(self, put: Callable[[str], str]) -> Self:
        """Return it with other paths of the same files."""

        def moved(voice: VoicePrompt | None) -> VoicePrompt | None:
            return voice and VoicePrompt(put(voice.path), voice.transcript)

        cast = tuple(dataclasses.replace(each, voice=moved(each.voice)) for each in self.cast)
        return dataclasses.replace(self, voice=moved(self.voice), cast=cast)

    def one_piece(self) -> SpeechRequest:
        """Return what one machine gets at a time, as far as is known before it is split."""
        return self

    def with_size(self, width: int, height: int) -> Self:
        return self

    def without_files(self) -> SpeechRequest:
        return dataclasses.replace(self, voice=None, keep=(), cast=tuple(dataclasses.replace(each, voice=None) for each in self.cast))

    def what_weighs(self) -> SpeechRequest:
        """Return only what its memory hangs on."""
        return SpeechRequest("?", self.model)

    def choose_parts(self, total: int) -> tuple[int, ...]:
        """Return the indices of the parts to speak, of a script of so many."""
        return tuple(sorted(set(self.only_parts))) or (() if self.keep else tuple(range(total)))

    def with_left_out(self) -> SpeechRequest | None:
        """Return the request that also speaks the parts which this one neither speaks nor takes over; None if there are none."""
        wanted = {*self.only_parts, *(index for index, path in enumerate(self.keep) if not path)}
        return dataclasses.replace(self, only_parts=tuple(sorted(wanted))) if len(wanted) > len(set(self.only_parts)) else None


@dataclass(frozen=True, slots=True)
class Lora:
    path: str
    weight: float = 1.0
    word: str = ""
    """This word of the prompt stands for it: it is an embedding. Empty: it is a LoRA."""

    def __post_init__(self) -> None:
        _require_texts(self.path, self.word)


@dataclass(frozen=True, slots=True)
class PictureRequest:
    kind: ClassVar[Literal["picture"]] = "picture"
    voice: ClassVar[None] = None
    cast: ClassVar[tuple[Actor, ...]] = ()
    prompts: ClassVar[tuple[VoicePrompt, ...]] = ()
    only_parts: ClassVar[tuple[int, ...]] = ()
    keep: ClassVar[tuple[str, ...]] = ()
    """A batch takes nothing over."""
    prompt: str
    model: str = ""
    negative: str = ""
    width: int | None = None
    height: int | None = None
    steps: int | None = None
    guidance: float | None = None
    scheduler: str | None = None
    """For each of these, None stands for the model's own recommendation."""
    seed: int | None = None
    batch: int = 1
    image: str | None = None
    """Painting starts from this picture."""
    mask: str | None = None
    """The picture is repainted where the mask is white."""
    strength: float = 0.6
    loras: tuple[Lora, ...] = ()
    upscale: float = 1
    """It is saved so many times as large."""
    enlarger: str = STARTER_ENLARGER
    """This network enlarges it: the starter's, or one of the owner's by name or path; empty: a formula does."""
    hires: bool = False
    """Paint over what was enlarged, which adds detail."""
    hires_strength: float = HIRES_STRENGTH
    """So much of it is painted anew."""
    preview_every: int = 2
    """A preview comes after every so many steps; 0: none comes."""
    quicker: Quicker = "off"
    """Steps reuse this much of earlier ones, at some loss."""
    guide: str | None = None
    """This picture guides where things are."""
    control: str = ""
    """The control model of this name or path does it."""
    guide_as: str = ""
    """The guide's "edges", "depth" or "pose" are found first; empty: it is a map already."""
    guide_strength: float = 1.0
    guide_from: float = 0.0
    guide_to: float = 1.0
    """Between these shares of the steps it guides."""
    masked_only: bool = False
    """Paint only the part around the mask, at the size asked for, and put it back: the picture keeps its own size."""
    masked_padding: int = 32
    """So much of the picture around the mask belongs to that part, in its pixels."""
    mask_blur: int = 4
    """The soft edge inside the mask is this wide, in pixels of the finished picture."""
    reference: str | None = None
    """It is painted like this picture."""
    adapter: str = ""
    """The IP-Adapter of this name or path does it."""
    reference_strength: float = 0.6

    def __post_init__(self) -> None:
        files = (self.scheduler, self.image, self.mask, self.guide, self.reference)
        _require_texts(self.model, self.enlarger, self.control, self.adapter, *(each for each in files if each is not None))
        _require_text(PROMPT, self.prompt, PROMPT_MOST)
        _require_text(say_to_all("setting.negative", "negative prompt"), self.negative, PROMPT_MOST)
        if not self.prompt.strip():
            raise Trouble(say_to_all("request.no-prompt", "The prompt is empty. Describe the picture you want."))
        check_settings(self, PICTURES)
        for each in self.loras:
            weight_of(each.path).check(each.weight)
        if self.mask is not None and self.image is None:
            raise Trouble(
                say_to_all("request.mask-alone", "There is a mask but no picture to repaint. Add the picture, or remove the mask.")
            )
        if self.guide and not self.control:
            raise Trouble(
                say_to_all(
                    "request.guide-alone", "There is a guide but no control model to read it. Choose a control model, or remove the guide."
                )
            )
        if self.reference and not self.adapter:
            raise Trouble(
                say_to_all(
                    "request.reference-alone",
                    "There is a reference picture but no IP-Adapter to read it. Choose an IP-Adapter, or remove the picture.",
                )
            )
        if self.guide and self.guide_from >= self.guide_to:
            raise Trouble(
                say_to_all(
                    "request.guide-span",
                    "The guide is to count from {begin} to {end} of the steps, which are none. Choose an end after the begin.",
                    begin=self.guide_from,
                    end=self.guide_to,
                )
            )

    @property
    def words(self) -> str:
        """What it says or shows."""
        return self.prompt

    @property
    def facts(self) -> tuple[Value, ...]:
        """These tell it apart from another that shows the same: size, seed and number."""
        size = f"{self.width} x {self.height}" if self.width and self.height else ""
        seed = say("queue.seed", "seed {seed}", seed=self.seed) if self.seed is not None else ""
        return (size, seed, say("queue.pictures", "{n} {n:picture|pictures}", n=self.batch) if self.batch > 1 else "")

    @property
    def files(self) -> tuple[str, ...]:
        """The sounds or pictures that it starts from."""
        return tuple(each for each in (self.image, self.mask, self.guide, self.reference) if each)

    @property
    def written(self) -> tuple[str, ...]:
        """Files that were written for it alone."""
        return self.files

    @property
    def size(self) -> tuple[int | None, int | None]:
        return self.width, self.height

    @property
    def larger(self) -> float:
        """How many times as large it is painted over; 1: it is not."""
        return self.upscale if self.hires and not self.mask else 1

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """Parse the output of `to_json`, where the formula that enlarges stands for nothing."""
        formula = {"enlarger": LATER["enlarger"]} if values.get("upscale", 1) != 1 else {}
        return cls(**{**formula, **values, "loras": tuple(Lora(**each) for each in values.get("loras", ()))})

    @property
    def is_piece(self) -> bool:
        """Whether it asks for a single part."""
        return self.batch == 1

    @property
    def stays_here(self) -> bool:
        """Whether no other computer can do it: enlargers, control models and IP-Adapters of the owner's are here alone, and a picture that keeps its own size
        may be larger than any that is taken from others."""
        return (
            bool(self.guide or self.reference)
            or (self.masked_only and bool(self.mask))
            or (self.upscale > 1 and self.enlarger not in ENLARGERS)
        )

    def with_model(self, name: str) -> Self:
        """Return it with another name of its model."""
        return dataclasses.replace(self, model=name)

    def with_files(self, put: Callable[[str], str]) -> Self:
        """Return it with other paths of the same files."""
        image, mask, guide, reference = (path and put(path) for path in (self.image, self.mask, self.guide, self.reference))
        return dataclasses.replace(self, image=image, mask=mask, guide=guide, reference=reference)

    def one_piece(self) -> PictureRequest:
        """Return what one machine gets at a time."""
        return dataclasses.replace(self, batch=1)

    def with_size(self, width: int, height: int) -> Self:
        return dataclasses.replace(self, width=width, height=height)

    def without_files(self) -> PictureRequest:
        return dataclasses.replace(self, image="", mask="", loras=(), enlarger="", guide=None, control="", reference=None, adapter="")

    def what_weighs(self) -> PictureRequest:
        """Return only what its memory hangs on."""
        guide, control = ("?", self.control) if self.guide else (None, "")
        reference, adapter = ("?", self.adapter) if self.reference else (None, "")
        return dataclasses.replace(
            self.without_files(), prompt="?", negative="", seed=None, guide=guide, control=control, reference=reference, adapter=adapter
        )

    def choose_parts(self, total: int) -> tuple[int, ...]:
        """Return the indices of the pictures to paint, of so many."""
        return tuple(range(total))

    def with_left_out(self) -> None:
        """A batch leaves nothing out."""


Request = SpeechRequest | PictureRequest
REQUESTS: Final[Mapping[KindName, type[Request]]] = {each.kind: each for each in (SpeechRequest, PictureRequest)}
Asked = TypeVar("Asked", bound=SpeechRequest | PictureRequest)
"""A request of one kind stays of that kind."""


def to_json(request: Request) -> dict[str, Any]:
    """Serialise with the kind of request, for files, journal and clipboard. What came later and is not used is left out: an earlier Hearth reads
    it, and what it stored still counts as the same."""
    values = {"kind": request.kind, **dataclasses.asdict(request)}
    for lora in values.get("loras", ()):
        if not lora["word"]:
            del lora["word"]
    if values.get("upscale") in (1, 2, 3, 4):
        values["upscale"] = int(values["upscale"])
    return {name: value for name, value in values.items() if name not in LATER or value != LATER[name]}


def from_json(values: dict[str, Any]) -> Request:
    """Parse and check the output of to_json; unknown fields of a newer Hearth raise a Trouble, so that none is dropped
    silently."""
    known = dict(values)
    kind = known.pop("kind", None)
    try:
        if kind in get_args(KindName):
            return REQUESTS[kind].read(known)
    except TypeError as fault:
        raise Trouble(
            say_to_all(
                "request.unreadable",
                "These settings cannot be read ({fault}); they may come from another version of Hearth. Choose other settings. {advice}",
                fault=str(fault),
                advice=UPDATE,
            )
        ) from fault
    raise Trouble(
        say_to_all(
            "request.kind", "Hearth does not know settings of the kind {kind}. Choose another file. {advice}", kind=str(kind), advice=UPDATE
        )
    )
