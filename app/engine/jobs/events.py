"""Define the events of a run as plain values: they cross processes; command line, window and tests fold over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.base.sentence import Sentence
from app.base.trouble import ENDS, Trouble
from app.compat.machine.meter import Reading
from app.compat.planning.types import Ran


@dataclass(frozen=True, slots=True)
class Loading:
    """A model is being loaded."""

    model: str
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Unloaded:
    model: str
    sentence: Sentence
    freed_bytes: int


@dataclass(frozen=True, slots=True)
class Step:
    """Progress after one step. `unit` is what `rate` counts per second: "frames" or "steps"."""

    done: int
    total: int
    rate: float
    unit: str
    eta_s: float | None
    memory: Reading
    realtime: float | None = None
    """So many seconds of sound are made per second; None: it is a picture."""
    part: int = 0
    parts: int = 1
    at_once: int = 1
    """It was a step of so many parts, from `part` on: small pictures are painted together."""
    ran: Ran | None = None
    """The largest attention call since the previous step ran this way."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A small file that shows the unfinished picture."""

    step: int
    path: str


@dataclass(frozen=True, slots=True)
class Sound:
    """The next piece of sound of a part: a short WAV that continues the previous one."""

    part: int
    path: str
    start_s: float
    seconds: float
    attempt: int = 0
    """The pieces of a later attempt take the place of those before."""


Doubt = Literal["", "long", "short"]
"""A part's length lets doubt that it ends with its text ("long"), or that all of it is spoken ("short")."""


@dataclass(frozen=True, slots=True)
class PartDone:
    """A finished part, a stretch of a script or one picture of a batch: saved on disk, so a crash does not lose it."""

    index: int
    total: int
    path: str
    text: str
    seed: int
    seconds: float = 0.0
    whole: bool = True
    """False: Stop cut the speech off."""
    doubt: Doubt = ""


RESTART = "restart"
"""A job whose engine died falls back to this: another engine runs it."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """A fallback was applied after an error and the run continues. `learned` is stored for this machine."""

    fallback: str
    sentence: Sentence
    learned: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A message without effect on the run: a prompt was trimmed, a setting is ignored."""

    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Finished:
    """All done; the files contain their settings."""

    files: tuple[str, ...]
    elapsed_s: float
    rate: float
    unit: str
    highest_bytes: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """Stopped by the user; what was finished is saved as valid files."""

    files: tuple[str, ...]
    elapsed_s: float
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failed:
    """What was asked, what prevents it, what to do; `cure` names the button. Finished files remain."""

    sentence: Sentence
    objections: tuple[Sentence, ...] = ()
    cure: str = ""
    files: tuple[str, ...] = ()
    seconds: float = 0.0
    code: str = Trouble.code
    """The Trouble's class has this code; one that is not known here is a plain Trouble."""

    @classmethod
    def of(cls, trouble: Trouble, files: tuple[str, ...] = ()) -> Failed:
        return cls(trouble.sentence, trouble.objections, trouble.cure, files, code=trouble.code)

    @property
    def trouble(self) -> Trouble:
        return ENDS.get(self.code, Trouble)(self.sentence, *self.objections, cure=self.cure)


Event = Loading | Unloaded | Step | Preview | Sound | PartDone | Adjusted | Note | Finished | Stopped | Failed
END = (Finished, Stopped, Failed)
