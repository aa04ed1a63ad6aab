"""The settings of a request, a row each: their check, fields, presets, saved values and options all go by these rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.quicker import QUICKER
from app.engine.jobs.schedulers import NAMES

SEED_LIMIT: Final = 2**32
HIRES_STRENGTH: Final = 0.35
"""So much of an enlarged picture is painted anew, where nothing else is asked for: more changes what it shows."""
HIRES_TIMES: Final = 1.5
"""So many times as large hires makes a picture, where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    """It stands in the saved settings and presets, in its field's id and its option."""
    said: Sentence
    """Sentences call it this."""
    label: Sentence | None = None
    """Its field on the page has this name; None says that it has none."""
    info: Sentence | None = None
    asked: str = ""
    """Its field of the request is called so, where that has another name."""
    range: tuple[float, float] | None = None
    """A request may ask for a number within; None: it is no number."""
    whole: bool = False
    multiple: int = 1
    open_value: float | None = None
    """This number leaves it to Hearth, as leaving it out does: other programs' people type it."""
    slider: tuple[float, float, float] | None = None
    """It holds from, to and step; None says that its number is typed, or left out."""
    by_hand: float | None = None
    """Its slider stands here at first, if it counts only while sampling is set by hand."""
    choices: Mapping[Any, Sentence | str] = dataclasses.field(default_factory=dict)
    open: bool = False
    """Others than the choices may be asked for."""
    kept: Literal["everywhere", "own presets", "settings", "nowhere"] = "everywhere"
    """It is in the settings and all presets; "own presets": it is not in those that come with Hearth; "settings": it is in the settings alone."""
    option: Sentence | None = None
    """The command's help says this of it; None says that it has no option."""

    @property
    def field(self) -> str:
        """Its field of the request."""
        return self.asked or self.name

    def check(self, value: Any, optional: bool = False) -> None:
        """Raise Trouble if no request may ask for this. `optional`: None leaves it to the model."""
        if value is None and optional:
            return
        said: dict[str, Any] = {"name": self.said, "value": str(value)}
        choices = tuple(self.choices) or (True, False)
        if self.range is not None:
            low, high = self.range
            is_number = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
            said |= {name: f"{end:g}" if isinstance(end, float) else end for name, end in (("low", low), ("high", high))}
            if self.whole and not is_number:
                raise Trouble(say_to_all("request.whole", "{name} is {value}; it must be a whole number from {low} to {high}.", **said))
            if not is_number or not low <= value <= high:
                raise Trouble(say_to_all("request.range", "{name} is {value}; it must be a number from {low} to {high}.", **said))
            if self.multiple > 1 and value % self.multiple:
                said |= {"multiple": self.multiple, "near": max(int(low), round(value / self.multiple) * self.multiple)}
                raise Trouble(say_to_all("request.multiple", "{name} is {value}; it must be a multiple of {multiple}. Try {near}.", **said))
        elif not self.open and value not in choices:
            raise Trouble(
                say_to_all("request.choice", "{name} is {value}; it must be one of {choices}.", **said, choices=tuple(map(str, choices)))
            )

    def show(self, value: Any) -> Any:
        """Return what its field shows of a request's value."""
        return value if value is not None else "" if self.choices else self.by_hand


Rows = Mapping[str, Setting]


def _by_name(*rows: Setting) -> Rows:
    return {each.name: each for each in rows}


_SEED: Final = say_to_all("setting.seed", "seed")
_CARRY: Final = say_to_all("speak.carry", "Keep the same voice in every part")
_SEEDS: Final[dict[str, Any]] = {
    "range": (0, SEED_LIMIT - 1),
    "whole": True,
    "open_value": -1,
    "option": say("usage.seed", "the same seed gives the same result; -1 a new one"),
}
_SIDES: Final[dict[str, Any]] = {"range": (64, 4096), "whole": True, "multiple": 8}

SPEECH: Final = _by_name(
    Setting("seed", _SEED, say("speak.seed", "Seed"), say("speak.seed-info", "Leave empty for a new seed each time."), kept="settings", **_SEEDS),
    Setting("guidance", say_to_all("setting.guidance", "guidance"), say("speak.guidance", "Guidance"),
            say("speak.guidance-info", "Higher values follow the text more closely."), range=(1.0, 10.0), slider=(1.0, 5.0, 0.1), by_hand=3.0,
            kept="own presets", option=say("usage.speak-guidance", "how closely the speech follows the script")),
    Setting("temperature", say_to_all("setting.temperature", "temperature"), say("speak.temperature", "Temperature"),
            range=(0.0, 5.0), slider=(0.0, 2.5, 0.05), by_hand=1.8, kept="own presets",
            option=say("usage.speak-temperature", "how varied the speech is")),
    Setting("top_p", say_to_all("setting.top-p", "top p"), say("speak.top-p", "Top p"), range=(0.01, 1.0), slider=(0.7, 1.0, 0.01), by_hand=0.95,
            kept="own presets", option=say("usage.speak-top-p", "how unlikely a sound may be chosen, 0 to 1")),
    Setting("cfg_filter", say_to_all("setting.cfg-filter", "guidance filter"), say("speak.cfg-filter", "Guidance filter"),
            range=(1, 1024), whole=True, slider=(15, 100, 1), by_hand=45, kept="own presets"),
    Setting("speed", say_to_all("setting.speed", "speed"), say("speak.speed", "Speed"), say("speak.speed-info", "The pitch does not change."),
            range=(0.5, 2.0), slider=(0.5, 2.0, 0.05), option=say("usage.speak-speed", "speaking speed at the same pitch; 1.0 is normal")),
    Setting("format", say_to_all("setting.format", "file format"), say("speak.format", "File format"), kept="own presets",
            choices={each: each for each in ("wav", "flac", "mp3", "ogg", "opus")},
            option=say("usage.speak-format", "by default taken from the output's name, else wav")),
    Setting("loudness", say_to_all("setting.loudness", "loudness"), say("speak.loudness", "Loudness (LUFS)"), asked="loudness_lufs",
            range=(-60.0, 0.0), slider=(-30, -10, 1)),
    Setting("carry", _CARRY, _CARRY, asked="carry_voice"),
    Setting("tail_s", say_to_all("setting.tail", "silence at the end"), range=(0.0, 10.0)),
    Setting("max_frames", say_to_all("setting.length", "length"), range=(17, 3072), whole=True),
)  # fmt: skip

STARTER_ENLARGER: Final = "starter"
ENLARGERS: Final[Mapping[str, Sentence]] = {
    STARTER_ENLARGER: say("enlarger.starter", "Hearth's own"), "": say("enlarger.lanczos", "Plain (Lanczos)"),
}  # fmt: skip
"""Every Hearth has these."""

ADAPTERS: Final[Mapping[str, Sentence]] = {"": say("guide.no-control", "none")}
CONTROLS: Final[Mapping[str, Sentence]] = {"": say("guide.no-control", "none")}
GUIDES: Final[Mapping[str, Sentence]] = {
    "": say("guide.as-it-is", "Use it as it is"), "edges": say("guide.edges", "Find its edges"),
    "depth": say("guide.depth", "Find its depth"), "pose": say("guide.pose", "Find the poses of its people"),
}  # fmt: skip
"""One of these is made of a picture before it guides another."""

PICTURES: Final = _by_name(
    Setting("width", say_to_all("setting.width", "width"), say("paint.width", "Width"), say("paint.own-size", "Leave empty to use the size above."),
            **_SIDES),
    Setting("height", say_to_all("setting.height", "height"), say("paint.height", "Height"), **_SIDES),
    Setting("steps", say_to_all("setting.steps", "steps"), say("paint.steps", "Steps"),
            say("paint.own", "Leave empty for the model's recommended value."), range=(1, 200), whole=True,
            option=say("usage.paint-steps", "how many denoising steps")),
    Setting("guidance", say_to_all("setting.guidance", "guidance"), say("paint.guidance", "Guidance"), range=(0.0, 50.0),
            option=say("usage.paint-guidance", "how closely the picture follows the prompt")),
    Setting("scheduler", say_to_all("setting.scheduler", "scheduler"), say("paint.scheduler", "Scheduler"), open=True,
            choices={"": say("paint.automatic", "automatic"), **{name: name for name in NAMES}},
            option=say("usage.paint-scheduler", "by default the one recommended for the model")),
    Setting("seed", _SEED, say("paint.seed", "Seed"), kept="nowhere", **_SEEDS),
    Setting("batch", say_to_all("setting.batch", "number of pictures"), say("paint.batch", "Pictures"), range=(1, 16), whole=True, slider=(1, 8, 1),
            option=say("usage.paint-batch", "how many pictures; the seed goes up by 1 for each")),
    Setting("upscale", say_to_all("setting.upscale", "upscale"), say("paint.upscale", "Upscale"),
            say("paint.upscale-how", "How many times as large; 1 leaves it as it is."), range=(1, 4), slider=(1, 4, 0.25),
            option=say("usage.paint-upscale", "how many times as large the picture is saved, 1 to 4")),
    Setting("enlarger", say_to_all("setting.enlarger", "enlarger"), say("paint.enlarger", "Enlarger"),
            say("paint.enlarger-how", "What Upscale enlarges by."), choices=ENLARGERS, open=True,
            option=say("usage.paint-enlarger", "by which network --upscale enlarges; Hearth's own without it")),
    Setting("hires", say_to_all("setting.hires", "added detail"), say("paint.hires", "Hires: paint small, enlarge, paint over"),
            say("paint.hires-how", "A larger picture with more detail. It takes longer."),
            option=say("usage.paint-hires", "paint small, enlarge (1.5 times without --upscale) and paint over, which adds detail")),
    Setting("hires_strength", say_to_all("setting.hires-strength", "strength of the added detail"),
            say("paint.hires-strength", "How much detail to add"), say("paint.hires-strength-how", "Above 0.5 it changes what the picture shows."),
            range=(0.01, 1.0), slider=(0.05, 1.0, 0.05),
            option=say("usage.paint-hires-strength", "how much --hires paints anew, 0.01 to 1; 0.35 without it")),
    Setting("strength", say_to_all("setting.strength", "strength"), say("paint.strength", "How much to change"),
            range=(0.01, 1.0), slider=(0.05, 1.0, 0.05), option=say("usage.paint-strength", "how much to change the start picture, 0.01 to 1")),
    Setting("masked_only", say_to_all("setting.masked-only", "masked part alone"),
            say("paint.masked-only", "Paint only the masked part, at full size"),
            say("paint.masked-only-how", "It is painted at the size above and put back; the picture keeps its own size."), kept="own presets",
            option=say("usage.paint-masked-only", "paint only the part around the mask, at --size, and put it back; the picture keeps its own size")),
    Setting("masked_padding", say_to_all("setting.masked-padding", "surroundings of the mask"),
            say("paint.masked-padding", "Around the mask (pixels)"), range=(0, 512), whole=True, slider=(0, 256, 4),
            kept="own presets", option=say("usage.paint-masked-padding", "how many pixels around the mask --masked-only paints from")),
    Setting("mask_blur", say_to_all("setting.mask-blur", "soft edge of the mask"), say("paint.mask-blur", "Soft edge (pixels)"),
            range=(0, 64), whole=True, slider=(0, 64, 1), kept="own presets",
            option=say("usage.paint-mask-blur", "how many pixels wide the mask's soft edge is, inside of it")),
    Setting("quicker", say_to_all("setting.quicker", "quicker"), say("paint.quicker", "Quicker"),
            say("paint.quicker-how", "Steps reuse earlier ones: less time, slightly different pictures."),
            choices=dict(zip(QUICKER, (say("quicker.off", "Off"), say("quicker.little", "A little"), say("quicker.much", "Much")), strict=True)),
            option=say("usage.paint-quicker", "reuse work between steps, at some loss (docs/speed-pictures.md)")),
    Setting("control", say_to_all("setting.control", "control model"), say("guide.control", "Control model"),
            say("guide.control-how", "A ControlNet for the chosen model's family."), choices=CONTROLS, open=True, kept="nowhere",
            option=say("usage.paint-control", "the control model (ControlNet) by which --guide guides: its file or folder, or its name")),
    Setting("guide_as", say_to_all("setting.guide-as", "use of the guide"), say("guide.as", "What to do with the picture"),
            say("guide.as-how", "Edges, depth or poses, as the control model was made for, are found in an ordinary picture; a finished map is used as it is."),
            choices=GUIDES, kept="own presets",
            option=say("usage.paint-guide-as", "what is made of the guide first: its edges, its depth, its people's poses; nothing without it")),
    Setting("guide_strength", say_to_all("setting.guide-strength", "strength of the guide"), say("guide.strength", "How strongly it guides"),
            range=(0.0, 2.0), slider=(0.0, 2.0, 0.05), kept="own presets",
            option=say("usage.paint-guide-strength", "how strongly the guide counts, 0 to 2; 1 without it")),
    Setting("guide_from", say_to_all("setting.guide-from", "begin of the guide"), say("guide.from", "Guides from (0 is the first step)"),
            range=(0.0, 1.0), slider=(0.0, 1.0, 0.05), kept="own presets",
            option=say("usage.paint-guide-from", "from which share of the steps on the guide counts, 0 to 1")),
    Setting("guide_to", say_to_all("setting.guide-to", "end of the guide"), say("guide.to", "Guides to (1 is the last step)"),
            range=(0.0, 1.0), slider=(0.0, 1.0, 0.05), kept="own presets",
            option=say("usage.paint-guide-to", "up to which share of the steps the guide counts, 0 to 1")),
    Setting("adapter", say_to_all("setting.adapter", "IP-Adapter"), say("reference.adapter", "IP-Adapter"),
            say("reference.adapter-how", "One for the chosen model's family."), choices=ADAPTERS, open=True, kept="nowhere",
            option=say("usage.paint-adapter", "the IP-Adapter by which --reference is followed: its file, or its name")),
    Setting("reference_strength", say_to_all("setting.reference-strength", "strength of the reference"),
            say("reference.strength", "How much alike"), range=(0.0, 1.5), slider=(0.0, 1.0, 0.05), kept="own presets",
            option=say("usage.paint-reference-strength", "how much the picture becomes like the reference, 0 to 1.5; 0.6 without it")),
    Setting("preview_every", say_to_all("setting.preview", "steps between previews"), range=(0, 100), whole=True),
)  # fmt: skip

VOLUME: Final = Setting("volume", say_to_all("setting.volume", "volume"), range=(-24.0, 12.0))
"""One speaker is this much louder than the others, in decibels."""
PACE: Final = Setting("pace", say_to_all("setting.pace", "pace"), range=(0.5, 2.0))


def weight_of(path: str) -> Setting:
    """Return the row of a LoRA's weight."""
    return Setting("weight", say_to_all("setting.lora-weight", "weight of {path}", path=path), range=(-5.0, 5.0))


def check_settings(request: Any, rows: Rows) -> None:
    """Raise Trouble for the first setting of a request that is not as its row says."""
    optional = {each.name for each in dataclasses.fields(request) if "None" in str(each.type)}
    for each in rows.values():
        each.check(getattr(request, each.field), each.field in optional)


def list_defaults(request: type[Any], rows: Rows) -> dict[str, Any]:
    """Return what a request asks for where nothing is said, by the names of its settings."""
    defaults = {each.name: each.default for each in dataclasses.fields(request)}
    return {each.name: defaults[each.field] for each in rows.values()}
