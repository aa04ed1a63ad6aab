"""Convert a finished sound to another format and keep its settings; an MP3 may have a cover."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import soxr

from app.base.foreign_formats import open_sound
from app.engine.jobs.creation import Creation
from app.engine.jobs.settings import SPEECH
from app.engine.speech.sound import sound
from app.engine.speech.sound.audiobook import draw_cover
from app.engine.speech.sound.id3 import change_tag


def recode(kept: Creation, wanted: str, folder: Path, title: str = "", chapter: sound.Chapter | None = None) -> Path:
    """Return the sound in this format, with a title that players show, and of which book it is; the same file if it already has it."""
    SPEECH["format"].check(wanted)
    if kept.path.suffix == f".{wanted}":
        return kept.path
    _, rate = sound.read(kept.path, most_s=0.1)  # a Trouble for what is gone, or no sound
    target_rate = sound.choose_rate(wanted, rate)
    settings = {**kept.settings, "format": wanted}
    told = settings | {sound.CUES: (sound.read_tag(kept.path) or {}).get(sound.CUES, [])}
    settings = told if sound.has_room_for(told, wanted) else settings
    target = folder / f"{kept.path.stem}.{wanted}"
    with (
        open_sound(kept.path) as source,
        sound.replacing_or_explaining(target) as unfinished,
        sound.open_writer(unfinished, wanted, target_rate, settings, title, chapter) as file,
    ):
        resampler = soxr.ResampleStream(rate, target_rate, 1, dtype="float32")
        for block in source.blocks(sound.BLOCK_FRAMES, dtype="float32", always_2d=True):  # one of hours must not lie in the window's memory
            sound.write_samples(file, resampler.resample_chunk(block.mean(axis=1)))
        sound.write_samples(file, resampler.resample_chunk(np.zeros(0, np.float32), last=True))
    if wanted == "wav":
        sound.tag_wav(target, settings, title)
    return target


def add_cover(path: Path, picture: bytes, title: str = "") -> None:
    """Put a title into an MP3, and a picture as its cover; one that cannot be read is left out."""
    cover, _ = draw_cover(picture)
    with sound.replacing_or_explaining(path) as unfinished:
        shutil.copyfile(path, unfinished)
        change_tag(unfinished, title, cover)
