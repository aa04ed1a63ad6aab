"""A kept voice as one file that every player plays: a WAV with its name, its words and what is said of it inside. Foreign ones are judged hard."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, NotRequired

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from app.base.path_checks import size_bytes
from app.base.paths import Home
from app.base.sentence import say
from app.base.stored_json import is_right
from app.base.trouble import BadRequest, Trouble
from app.engine.models.voice_limits import DIA, VoiceLimits, clip_key
from app.engine.speech.sound import sound
from app.engine.speech.text.voices import NAME_MOST, Voice, keep_voice, list_ready_voices, list_voices, read_note

FORMAT: Final = 1
FILE_BYTES: Final = 16 << 20
SECONDS: Final = (1.0, 60.0)
SUFFIX: Final = ".voice.wav"


class VoiceTag(TypedDict):
    hearth_voice: Annotated[int, Field(ge=1)]
    name: Annotated[str, Field(min_length=1, max_length=NAME_MOST)]
    transcript: Annotated[str, Field(max_length=4000)]
    about: NotRequired[Annotated[str, Field(max_length=400)]]
    spoken_by: NotRequired[Annotated[str, Field(max_length=200)] | None]
    known: NotRequired[Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=4)]]


TAG: Final = TypeAdapter(VoiceTag)


def export_voice(voice: Voice, target: Path) -> None:
    """Write a voice as one file."""
    clip = Path(voice.prompt.path)
    noted = read_note(clip)
    tag: dict[str, Any] = {
        "hearth_voice": FORMAT, "name": voice.name, "transcript": voice.prompt.transcript, "about": voice.about, "spoken_by": voice.spoken_by,
        "known": list(noted.get("known", ())),
    }  # fmt: skip
    with sound.replacing_or_explaining(target) as unfinished:
        shutil.copyfile(clip, unfinished)
        sound.tag_wav(unfinished, tag)


def import_voice(home: Home, file: Path, called: str = "") -> Voice:
    """Keep the voice of a file from elsewhere, under its name or one beside it. Nothing of the file is kept but its sound, made anew, and what its tag
    says; raise a Trouble for what is no such file. `called`: its name where it comes from."""
    tag = _read_checked(file, called or file.name)
    ready = {clip_key(each.prompt.path) for each in list_ready_voices()}
    known = tuple(each for each in tag.get("known", ()) if each in ready)
    limits: VoiceLimits = replace(DIA, needs_transcript=False)
    return keep_voice(
        home,
        _find_name(home, tag["name"]),
        file,
        tag["transcript"],
        limits,
        spoken_by=tag.get("spoken_by") or "",
        known=known,
        about=" ".join(tag.get("about", "").split()),
    )


def check_voice(file: Path, called: str) -> str:
    """Return the name of the voice in a file from elsewhere; raise a Trouble for what is no such file."""
    return _read_checked(file, called)["name"]


def _read_checked(file: Path, called: str) -> VoiceTag:
    tag = _read_tag(file, called)
    try:
        samples, rate = sound.read(file, most_s=SECONDS[1])
    except Trouble as fault:
        raise _refuse(called) from fault
    if not SECONDS[0] <= len(samples) / rate or not math.isfinite(float(abs(samples).max(initial=0.0))):
        raise _refuse(called)
    return tag


def _read_tag(file: Path, called: str) -> VoiceTag:
    """Read what a voice's file says of itself."""
    try:
        fits = 0 < size_bytes(file) <= FILE_BYTES and file.read_bytes()[:4] == b"RIFF"
        tag: Any = sound.read_tag(file) if fits else None
    except (OSError, RuntimeError, ValueError):
        tag = None
    if not is_right(TAG, tag) or tag["hearth_voice"] > FORMAT or not tag["name"].strip() or not tag["name"].isprintable():
        raise _refuse(called)
    kept: VoiceTag = tag
    return kept


def _refuse(called: str) -> BadRequest:
    return BadRequest(
        say(
            "voice.no-file",
            "{file} is no voice that Hearth exported, or it is damaged. For any other recording, use: Create a voice from a recording.",
            file=called,
        )
    )


def _find_name(home: Home, wanted: str) -> str:
    """Return a name that no voice has yet."""
    taken = {each.name.casefold() for each in (*list_voices(home), *list_ready_voices())}
    names = (wanted, *(f"{wanted[: NAME_MOST - 4].rstrip()} {number}" for number in range(2, 1000)))
    return next((each for each in names if each.casefold() not in taken), wanted)
