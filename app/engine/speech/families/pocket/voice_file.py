"""Read the file of a voice that comes with a model: what it says it was made for has to be this model, and its frames have to be numbers."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models import safetensors
from app.engine.speech.families.pocket.voices_brought import SIDEWAYS, find_frames


def read_voice(file: Path, width: int, made_for: Collection[str]) -> Tensor:
    """Return the frames of a voice (frames, width). `made_for`: what the model takes, by the names that voices have for it; empty: any."""
    header = safetensors.read_whole_header(file)
    maker = header.words.get("model_ext")
    if maker is not None and made_for and maker not in made_for:
        raise _refuse(file)
    found = find_frames(header.entries, width)
    if found is None:
        raise _refuse(file)
    with safe_open(file, "pt") as opened:
        frames: Tensor = opened.get_tensor(found[0]).float().flatten(0, -2)
    if not bool(frames.isfinite().all()):
        raise _refuse(file)
    return frames.T.contiguous() if found[0] == SIDEWAYS else frames


def _refuse(file: Path) -> Trouble:
    return Trouble(
        say(
            "pocket.other-voice",
            "The voice in {file} was made for another model, or is damaged. Choose another voice, or download the model again.",
            file=str(file),
        )
    )
