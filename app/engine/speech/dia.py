"""Hold the loaded parts of a Dia voice in one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.compat.planning.types import Row
from app.engine.speech.codec import Codec
from app.engine.text.voice_limits import VoiceLimits


@dataclass(frozen=True, slots=True)
class Dia:
    model: Any
    device: str
    tokenizer: Any
    codec: Codec
    limits: VoiceLimits
    name: str
    row: Row
