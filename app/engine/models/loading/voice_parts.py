"""Load the parts of a voice from its folder as the plan says, with a sentence for what cannot be loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.planning.types import Plan, Precision
from app.engine.models import model_folder, safetensors
from app.engine.models.loading import from_pretrained
from app.engine.models.voice_families import GET, check_type


def split_plan(plan: Plan) -> tuple[Precision, Precision]:
    """Return how the speech model and how its codec run."""
    speech = plan.of("speech") or Precision("model", "speech", plan.dtype, plan.dtype, plan.device)
    return speech, plan.of("codec") or Precision("codec", "codec", "float32", "float32", plan.device)


def device_for(plan: Plan, how: Precision) -> str:
    """Return the device; on a pretended machine everything is on the CPU."""
    return "cpu" if plan.runs_on == "cpu" else how.device


def find_codec(folder: Path, beside: Mapping[str, Path], kind: str) -> Path:
    """Return where a voice's codec lies, in the folder itself or beside it; raise a Trouble if there is none of this type."""
    own = folder / "codec"
    sound = own if own.is_dir() else beside.get("codec")
    if sound is None:
        raise Trouble(
            say(
                "speech.no-codec",
                "The voice in {folder} has no codec, so it cannot make sound. Put the codec into {folder}/codec, or download the voice again.",
                folder=str(folder),
            ),
            cure=GET,
        )
    model_folder.check_part(sound, folder if sound == own else sound)
    check_type(sound, kind)
    return sound


def load_part(kind: Any, folder: Path, plan: Plan, how: Precision, notes: list[Sentence]) -> Any:
    """Load a part, of this class in transformers, onto its device; add notes about its files."""
    for path in safetensors.list_weights(folder):
        safetensors.read_header(path)
    with explaining(folder):
        model, found = from_pretrained.load(kind, folder, plan, how.role)
    notes += found
    return model.requires_grad_(False)


@contextmanager
def explaining(folder: Path) -> Iterator[None]:
    """Raise a Trouble for what the libraries raise for files that they cannot make sense of."""
    try:
        yield
    except (OSError, SafetensorError, ValueError, KeyError, IndexError, RuntimeError, AttributeError, TypeError) as fault:
        if isinstance(fault, torch.OutOfMemoryError) or "memory" in str(fault):
            raise
        raise Trouble(
            say(
                "speech.broken",
                "{folder} cannot be loaded ({fault}). Its files may be incomplete; download it again.",
                folder=str(folder),
                fault=(str(fault).splitlines() or [type(fault).__name__])[0],
            ),
            cure=GET,
        ) from fault
