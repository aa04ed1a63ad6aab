"""What happens while a request runs, as plain values: they cross processes, and command line, window and tests fold over them."""

from __future__ import annotations

from dataclasses import dataclass

from app.compat.machine.meter import Reading
from app.compat.planning.types import AUTO, Chunk, Ran
from app.sentence import Sentence


@dataclass(frozen=True, slots=True)
class Loading:
    """A model is on its way into memory."""

    model: str
    sentence: Sentence
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class Unloaded:
    model: str
    sentence: Sentence
    freed_bytes: int


@dataclass(frozen=True, slots=True)
class Step:
    """One beat of progress. `unit` is what `rate` counts a second: "frames" or "steps"."""

    done: int
    total: int
    rate: float
    unit: str
    eta_s: float | None
    memory: Reading
    realtime: float | None = None
    """Seconds of sound made in one second; None for pictures."""
    part: int = 0
    parts: int = 1
    ran: Ran | None = None
    """How the largest call of attention went since the step before."""
    asked: Chunk = AUTO
    """The chunk size that was asked for."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What the picture looks like so far, a small file."""

    step: int
    path: str


@dataclass(frozen=True, slots=True)
class Sound:
    """The next piece of sound of a part, as it renders: a short WAV that continues the one before."""

    part: int
    path: str
    start_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class PartDone:
    """A finished part: a speech turn group, or one picture of a batch. On disk, whole; a crash does not lose it."""

    index: int
    total: int
    path: str
    text: str
    seed: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Adjusted:
    """A rung of the ladder was taken: what went wrong, what was changed, and the run goes on. `learned` is kept for this machine."""

    rung: str
    sentence: Sentence
    learned: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A word that changes nothing: a prompt was trimmed, a setting does not matter here."""

    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Finished:
    """All done; the files carry their own settings."""

    files: tuple[str, ...]
    elapsed_s: float
    rate: float
    unit: str
    highest_bytes: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """Stopped by a person; what is there is kept as valid files."""

    files: tuple[str, ...]
    elapsed_s: float
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failed:
    """What was asked, what stands in the way, what to do; `cure` names the button. Files that were finished stay."""

    sentence: Sentence
    objections: tuple[Sentence, ...] = ()
    cure: str = ""
    files: tuple[str, ...] = ()
    seconds: float = 0.0


Event = Loading | Unloaded | Step | Preview | Sound | PartDone | Adjusted | Note | Finished | Stopped | Failed
END = (Finished, Stopped, Failed)
