"""Convert a finished sound to another format and keep its settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from app.engine.jobs.creation import Creation
from app.engine.jobs.settings import SPEECH
from app.engine.speech.sound import sound


def recode(kept: Creation, wanted: str, folder: Path, title: str = "") -> Path:
    """Return the sound in this format, with a title that players show; the same file if it already has it."""
    SPEECH["format"].check(wanted)
    if kept.path.suffix == f".{wanted}":
        return kept.path
    samples, rate = sound.read(kept.path)
    target_rate = sound.choose_rate(wanted, rate)
    settings = {**kept.settings, "format": wanted}
    told = settings | {sound.CUES: (sound.read_tag(kept.path) or {}).get(sound.CUES, [])}
    settings = told if sound.has_room_for(told, wanted) else settings
    target = folder / f"{kept.path.stem}.{wanted}"
    with sound.replacing(target) as unfinished, sound.open_writer(unfinished, wanted, target_rate, settings, title) as file:
        file.write(np.clip(sound.resample(samples, rate, target_rate), -1, 1))
    if wanted == "wav":
        sound.tag_wav(target, settings, title)
    return target
