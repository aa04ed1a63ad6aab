"""The limits of a voice: bytes, frames, sounds, speeds. Its family reads them from its folder; no torch, so the window can use them too."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.config_facts import read_config
from app.engine.models.voice_families import FAMILIES, GET

NONVERBALS = frozenset({
    "laughs", "clears throat", "sighs", "gasps", "coughs", "singing", "sings", "mumbles", "beep", "groans", "sniffs", "claps",
    "screams", "inhales", "exhales", "applause", "burps", "humming", "sneezes", "chuckle", "whistles",
})  # fmt: skip
"""Dia has learned these sounds, which stand in round brackets."""
RATES: Final = (1.0, 1000.0)
"""A voice makes between so many and so many frames a second."""
LONGEST_LEAST_S: Final = 0.5
"""No voice's longest run may be shorter; a script is split into such parts."""
BYTES_LEAST: Final = 64
"""A voice takes at least so many bytes of text at once: a tag, the closing one and some words, twice."""
PART_BYTES: Final = (8, 1024)
"""A part has this much text, at least and at most. Less is no word; with more, as with a script in thousands of parts, a look at each press of a key
takes too long."""


@dataclass(frozen=True, slots=True)
class VoiceLimits:
    """Defaults are those of Dia-1.6B; a model's folder may override them."""

    name: str = "Dia"
    speakers: int = 2
    """It knows so many tags, from [S1] on."""
    speakers_a_part: int = 2
    """More are spoken one part after another."""
    languages: tuple[str, ...] = ("en",)
    figures: str = ""
    """It is given figures and abbreviations in the words of this language; empty: as they are written."""
    bytes_most: int = 1024
    """The encoder takes so many bytes of text at once, including the voice prompt's; a voice that reads sounds takes about as many."""
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
    """It continues the voices of its prompt. If not, each tag is a fixed voice."""
    clip_most_s: float = 15.0
    """It follows at most so much of a voice clip; the rest is cut."""
    letters: Path | None = None
    """A voice that reads sounds and not letters keeps here what it learned of reading."""
    ready: dict[str, str] = field(default_factory=dict, hash=False)
    """It learned the clips of these voices by name: each clip's `clip_key` is mapped to the sign that names it after a speaker's tag."""
    brought: dict[str, Path] = field(default_factory=dict, hash=False)
    """The files of these voices lie with the model, by name; `ready` has them too."""
    usual: tuple[str, ...] = ()
    """Its speakers have the voices of these signs where none is named."""
    signs_per_s_most: float = math.inf
    """Nobody speaks so many sounds a second: a part of a voice that reads sounds does not end before that pace allows."""
    signs_per_s: float | None = None
    """So many sounds, blanks and marks were measured in a second, for a voice that reads sounds: a closer estimate than bytes."""
    silence_s: float = 0.0
    """A part has this much beside its text."""
    outgrown: float = 2.2
    """A part that takes so many times its forecast is no longer its text; math.inf: it may last as long as it likes. Dia's lengths were not
    measured: it may laugh, or wait."""
    edition: str = ""
    """The weights that come with Hearth have this edition: a part saved under another one is spoken anew."""
    imitates: bool = True
    """True: it follows clips."""
    needs_transcript: bool = True
    """True: it must be told what is said in a clip."""
    own_voices: frozenset[str] | None = None
    """It can follow clips spoken by these models only; None: by any."""
    settings: dict[str, float] = field(default_factory=dict, hash=False)
    """These are recommended: guidance, temperature, top_p, cfg_filter; only those that it has."""

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(f"[S{speaker}]" for speaker in range(1, self.speakers + 1))

    def speaks(self, language: str) -> bool:
        return language in map(name_main, self.languages)

    @property
    def seconds_most(self) -> float:
        """Length of the longest run of the decoder."""
        return (self.rows_most - self.delay - 1) / self.frame_rate

    def time_rows(self, rows: int) -> float:
        """Return how long so many rows of the decoder last, without the delay and the two that end a part; half a frame more, so that a voice
        that counts whole frames finds the same number."""
        return max(0.0, rows - self.delay - 1.5) / self.frame_rate

    @property
    def heard_most_s(self) -> float:
        """The most of a voice clip that is used: half of a run is for the part."""
        return min(self.clip_most_s, self.seconds_most / 2)


def name_main(language: str) -> str:
    """Return a language's code without its country: de-AT is German."""
    return language.lower().replace("_", "-").partition("-")[0]


def clip_key(clip: Path | str) -> str:
    """Return what tells a ready voice's clip wherever Hearth is installed: the end of its path; of a voice that lies with a model, which may be in
    any folder, its file's name."""
    return "/".join(Path(clip).parts[-1 if str(clip).endswith(".safetensors") else -3 :])


DIA = VoiceLimits(settings={"guidance": 3.0, "temperature": 1.8, "top_p": 0.95, "cfg_filter": 45})


def read_limits(folder: Path, beside: Mapping[str, Path] | None = None, family: str = "") -> VoiceLimits:
    """Read the limits as the folder's family does; as the first does where it names none. Raise a Trouble if they are damaged. `beside`: its
    companions, by name. `family`: its name, where that is known."""
    try:
        if not family and os.path.lexists(folder / "config.json"):
            family = str(read_config(folder, "config.json").get("model_type"))
        row = FAMILIES.get(family) or next(iter(FAMILIES.values()))
        found: VoiceLimits = row.facts.read_limits(folder, beside or {})
        least, most = ((each_s - found.silence_s) * found.bytes_per_s for each_s in (found.part_aim_s, found.part_most_s))
        if min(least, most) < PART_BYTES[0] or most > PART_BYTES[1]:
            raise ValueError(f"parts of {least:.0f} to {most:.0f} letters")
        if len(found.usual) not in (0, found.speakers):
            raise ValueError(f"{len(found.usual)} usual voices for {found.speakers} speakers")
        return found
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as fault:
        raise Trouble(
            say(
                "limits.strange",
                "The settings of the voice in {path} are damaged ({fault}). Download it again.",
                path=str(folder),
                fault=f"{type(fault).__name__}: {fault}",
            ),
            cure=GET,
        ) from fault
