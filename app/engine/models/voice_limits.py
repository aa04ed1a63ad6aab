"""The limits of a voice: bytes, frames, sounds, speeds. Read from a model's folder; no torch, so the window can use them
too."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from app.base.regular_file import is_inside
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.config_facts import read_config, refuse_fact

NONVERBALS = frozenset({
    "laughs", "clears throat", "sighs", "gasps", "coughs", "singing", "sings", "mumbles", "beep", "groans", "sniffs", "claps",
    "screams", "inhales", "exhales", "applause", "burps", "humming", "sneezes", "chuckle", "whistles",
})  # fmt: skip
"""The sounds in round brackets that Dia has learned."""
RATES: Final = (1.0, 1000.0)
"""Frames a second."""
LONGEST_LEAST_S: Final = 0.5
"""The least that the longest run of a voice may last; a script is split into such parts."""
BYTES_LEAST: Final = 64
"""The least of text at once: a tag, the closing one and some words, twice."""


@dataclass(frozen=True, slots=True)
class VoiceLimits:
    """Defaults are those of Dia-1.6B; a model's folder may override them."""

    name: str = "Dia"
    bytes_most: int = 1024
    """Bytes of text the encoder takes at once, including the voice prompt's; of a voice that reads sounds, about as many."""
    rows_most: int = 3072
    delay: int = 15
    rate: int = 44100
    frame_rate: float = 44100 / 512
    part_least_s: float = 5.0
    """Shorter text often comes out as noise."""
    part_aim_s: float = 14.0
    part_most_s: float = 20.0
    """More text at once is spoken too fast."""
    bytes_per_s: float = 14.5
    nonverbals: frozenset[str] = NONVERBALS
    carries: bool = True
    """Whether it continues the voices of its prompt. If not, each tag is a fixed voice."""
    clip_most_s: float = 15.0
    """The most of a voice clip that it follows; the rest is cut."""
    letters: Path | None = None
    """What it learned of reading, for a voice that reads sounds and not letters."""
    ready: dict[str, str] = field(default_factory=dict, hash=False)
    """The clips of voices that it learned by name, each by its `clip_key`, mapped to the sign that names it after a speaker's tag."""
    usual: tuple[str, ...] = ()
    """The signs of the voices that its speakers have where none is named."""
    signs_per_s_most: float = math.inf
    """Sounds a second that nobody speaks, for a voice that reads sounds: a part does not end before that pace allows."""
    signs_per_s: float | None = None
    """Sounds, blanks and marks a second, measured, for a voice that reads sounds: a closer estimate than bytes."""
    silence_s: float = 0.0
    """What a part has beside its text."""
    outgrown: float = 2.2
    """A part that takes so many times its forecast is no longer its text; math.inf: it may last as long as it likes. Dia's lengths were not
    measured: it may laugh, or wait."""
    edition: str = ""
    """Of the weights that come with Hearth: a part saved under another one is spoken anew."""
    own_voices: frozenset[str] | None = None
    """Clips it can follow: only those spoken by these models; None: any."""
    settings: dict[str, float] = field(default_factory=dict, hash=False)
    """Recommended: guidance, temperature, top_p, cfg_filter."""

    @property
    def seconds_most(self) -> float:
        """Length of the longest run of the decoder."""
        return (self.rows_most - self.delay - 1) / self.frame_rate

    @property
    def heard_most_s(self) -> float:
        """The most of a voice clip that is used: half of a run is for the part."""
        return min(self.clip_most_s, self.seconds_most / 2)


def clip_key(clip: Path | str) -> str:
    """Return what tells a ready voice's clip wherever Hearth is installed: the end of its path."""
    return "/".join(Path(clip).parts[-3:])


DIA = VoiceLimits(settings={"guidance": 3.0, "temperature": 1.8, "top_p": 0.95, "cfg_filter": 45})


def read_limits(folder: Path, codec: Path | None = None) -> VoiceLimits:
    """Read the limits from config.json, the codec's config.json and, for a starter voice, starter.json. Raise a Trouble if they are damaged."""
    try:
        return _build_limits(folder, codec)
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as fault:
        raise Trouble(
            say(
                "limits.strange",
                "The settings of the voice in {path} are damaged ({fault}). Download it again.",
                path=str(folder),
                fault=f"{type(fault).__name__}: {fault}",
            ),
            cure="get:dia-1.6b",
        ) from fault


def _build_limits(folder: Path, codec: Path | None) -> VoiceLimits:
    sound_folder = folder / "codec" if (folder / "codec").is_dir() else codec or folder
    config, sound, starter = _read(folder, "config.json"), _read(sound_folder, "config.json"), _read(folder, "starter.json")
    rate = int(sound.get("sampling_rate", DIA.rate))
    hop = math.prod(sound.get("downsampling_ratios", (2, 4, 8, 8)))
    rows_most = int(config.get("decoder_config", {}).get("max_position_embeddings", DIA.rows_most))
    delay = max(config.get("delay_pattern", (DIA.delay,)))
    if not RATES[0] <= rate / hop <= RATES[1]:
        raise refuse_fact(sound_folder, "config.json", "sampling_rate", rate)
    if (rows_most - delay - 1) * hop / rate < LONGEST_LEAST_S:
        raise refuse_fact(folder, "config.json", "max_position_embeddings", rows_most)
    most_s = (rows_most - delay - 1) * hop / rate
    most_s = min(most_s, float(starter.get("longest_s", most_s)))
    shared = most_s if starter else most_s / 2  # half is reserved for the previous part as voice prompt
    bytes_most = int(config.get("encoder_config", {}).get("max_position_embeddings", DIA.bytes_most))
    if bytes_most < BYTES_LEAST:
        raise refuse_fact(folder, "config.json", "max_position_embeddings", bytes_most)
    return VoiceLimits(
        name=str(starter.get("name", DIA.name)),
        bytes_most=bytes_most,
        rows_most=rows_most,
        delay=delay,
        rate=rate,
        frame_rate=rate / hop,
        part_least_s=float(starter.get("part_least_s", 0.0)) if starter else DIA.part_least_s,
        part_aim_s=min(float(starter.get("part_aim_s", DIA.part_aim_s)), 0.8 * shared),
        part_most_s=min(float(starter.get("part_most_s", DIA.part_most_s)), shared),
        bytes_per_s=float(starter.get("bytes_per_s", DIA.bytes_per_s)),
        nonverbals=frozenset(starter.get("nonverbals", ())) if starter else NONVERBALS,
        carries=not starter,
        clip_most_s=float(starter.get("clip_most_s", DIA.clip_most_s)),
        letters=_find_letters(folder, starter["letters"]) if starter.get("letters") else None,
        ready={clip_key(folder / clip): str(sign) for clip, sign in starter.get("ready", {}).items()},
        usual=tuple(starter.get("usual", ())),
        signs_per_s_most=float(starter.get("signs_per_s_most", math.inf)),
        signs_per_s=float(starter["signs_per_s"]) if "signs_per_s" in starter else None,
        silence_s=float(starter.get("silence_s", DIA.silence_s)),
        outgrown=float(starter.get("outgrown", DIA.outgrown)),
        edition=str(starter.get("edition", "")),
        own_voices=frozenset(starter.get("own_voices", ())) if starter else None,
        settings=DIA.settings | read_recommended(starter.get("generation", {})),
    )


def read_recommended(generation: dict[str, Any]) -> dict[str, float]:
    """Translate the names of generate() to those of a request. Without sampling the temperature is 0."""
    names = {"guidance_scale": "guidance", "temperature": "temperature", "top_p": "top_p", "top_k": "cfg_filter"}
    found = {name: float(generation[theirs]) for theirs, name in names.items() if theirs in generation}
    return found if generation.get("do_sample", True) else {**found, "temperature": 0.0}


def _find_letters(folder: Path, name: str) -> Path:
    if not is_inside(folder / name, folder):
        raise refuse_fact(folder, "starter.json", "letters", name)
    return folder / name


def _read(folder: Path, name: str) -> dict[str, Any]:
    return read_config(folder, name) if os.path.lexists(folder / name) else {}
