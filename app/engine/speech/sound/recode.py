"""Convert a finished sound to another format and keep its settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soxr

from app.base.foreign_formats import open_sound
from app.engine.jobs.creation import Creation
from app.engine.jobs.settings import SPEECH
from app.engine.speech.sound import sound


def recode(kept: Creation, wanted: str, folder: Path, title: str = "") -> Path:
    """Return the sound in this format, with a title that players show; the same file if it already has it."""
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
        sound.replacing(target) as unfinished,
        sound.open_writer(unfinished, wanted, target_rate, settings, title) as file,
    ):
        resampler = soxr.ResampleStream(rate, target_rate, 1, dtype="float32")
        for block in source.blocks(sound.BLOCK_FRAMES, dtype="float32", always_2d=True):  # one of hours must not lie in the window's memory
            sound.write_samples(file, resampler.resample_chunk(block.mean(axis=1)))
        sound.write_samples(file, resampler.resample_chunk(np.zeros(0, np.float32), last=True))
    if wanted == "wav":
        sound.tag_wav(target, settings, title)
    return target
