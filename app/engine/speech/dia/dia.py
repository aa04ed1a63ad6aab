"""Hold the loaded parts of a Dia voice in one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.compat.planning.types import Row
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.dia.codec import Codec


@dataclass(frozen=True, slots=True)
class Dia:
    model: Any
    device: str
    tokenizer: Any
    codec: Codec
    limits: VoiceLimits
    name: str
    row: Row
