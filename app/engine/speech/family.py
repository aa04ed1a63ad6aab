"""What a family of voices is to whoever speaks with it: a loaded voice, its codec, and a part while it is made. Knows no family.

A package has these three, a module `facts`, and a row in app/engine/models/voice_families.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from app.base.sentence import Sentence
from app.compat.planning.types import Plan
from app.engine.jobs.request import SpeechRequest
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.sound.sound import Samples
from app.engine.speech.sound.spoken_parts import Codes
from app.engine.speech.text.turns import ScriptPart, Turn

if TYPE_CHECKING:
    from torch import Tensor


class Codec(Protocol):
    """Sound to codes and back. Codes are a tensor (frames, channels) of whatever the family's model makes."""

    device: str
    """It computes there; elsewhere than the voice, it does so beside the loop, in a thread of its own."""
    rate: int
    hop: int
    """A frame has so many samples."""
    frame_rate: float
    overlap: int
    """So many frames after one have to be known to decode it exactly."""

    def encode(self, sound: Samples) -> Tensor: ...

    def decode(self, codes: Tensor, first: int = 0, last: int | None = None) -> Samples:
        """Decode frames `first` to before `last`, so that pieces joined are exactly the whole."""


@dataclass(frozen=True, slots=True)
class VoiceContext:
    """Sound that comes before a part, and what is said in it."""

    codes: Tensor
    turns: tuple[Turn, ...]

    @property
    def speakers(self) -> frozenset[int]:
        return frozenset(turn.speaker for turn in self.turns)


@dataclass(frozen=True, slots=True)
class PartTask:
    """What one part is made from."""

    index: int
    part: ScriptPart
    context: VoiceContext | None
    settings: Any
    """They are the voice's own, from `choose_settings`."""
    seed: int
    asked_s: float | None
    """Who asks for a length wants it: nothing is begun anew."""
    named: tuple[str, ...]
    """Where the model knows voices by name, those of the speakers have these signs."""
    key: str
    """All of this is hashed into it: a part saved under another key is made again."""


class Making(Protocol):
    """One part while it is made: each step makes a row of what the model predicts, and rows become frames of sound."""

    @property
    def made(self) -> int:
        """Rows so far, one for each step."""

    @property
    def frames(self) -> int:
        """Frames so far that are final."""

    @property
    def done(self) -> bool: ...

    @property
    def cut_off(self) -> bool:
        """Whether it ended only because of its limit."""

    def step(self) -> None: ...

    def get_codes(self, first: int, last: int) -> Tensor:
        """Return a copy of the codes of frames `first` to before `last`."""

    def save(self, frames_sent: int) -> dict[str, Any]:
        """Return what going on with exactly the same frames takes, as JSON: `rows`, one value for each row; `given`, the frames already sent
        as sound; and whatever else. No rows: it cannot be gone on with."""


class Voice(Protocol):
    """A loaded voice."""

    @property
    def name(self) -> str:
        """What parts are kept under."""

    @property
    def limits(self) -> VoiceLimits: ...

    @property
    def device(self) -> str: ...

    @property
    def codec(self) -> Codec: ...

    @property
    def notes(self) -> tuple[Sentence, ...]:
        """What was unusual about its files."""

    def choose_settings(self, request: SpeechRequest) -> Any:
        """Return the settings that it makes a part with: the request's, its own where that has none. Their words tell takes apart."""

    def begin(self, task: PartTask, seed: int, most_s: float, saved: dict[str, Any] | None) -> Making:
        """Begin a part of at most so many seconds, or go on with a `saved` one; that may come from another machine and hold anything: what
        cannot be one of this part begins anew."""

    def is_code(self, codes: Codes) -> bool:
        """Tell whether stored codes are such as this model makes for sound."""

    def adapt(self, plan: Plan) -> Voice:
        """Return it as it runs under another plan that leaves the weights where they are."""
