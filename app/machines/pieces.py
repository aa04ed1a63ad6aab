"""The pieces of a job that machines can make apart: its pictures, and the parts of a script that hang on no part before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.base.paths import Home
from app.base.trouble import Trouble
from app.engine.jobs.events import PartDone
from app.engine.jobs.request import SEED_LIMIT, PictureRequest, Request, SpeechRequest
from app.engine.jobs.seed import draw_seed
from app.engine.models.on_disk import find_limits
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.sound import spoken_parts
from app.engine.speech.text import script, voices
from app.engine.speech.text.turns import ScriptPart
from app.machines.results import is_picture, is_spoken
from app.machines.tasks import begun


@dataclass(frozen=True, slots=True)
class Pictures:
    """Of a batch, or the only one."""

    request: PictureRequest
    seed: int

    @property
    def places(self) -> Sequence[int]:
        return range(self.request.batch)

    @property
    def complete(self) -> bool:
        """Whether these are all pieces of the job."""
        return True

    def name_files(self, place: int) -> tuple[str, ...]:
        """Return the files of a piece in the job's folder, the one to show first."""
        return (f"picture-{place}.png",)

    def name_begun(self, place: int) -> tuple[str, str]:
        """Return what the file from which a piece goes on is called, at the machine that makes it and in the job's folder."""
        return begun.name_latent(0), begun.name_latent(place)

    def ask_for(self, place: int) -> PictureRequest:
        """Return the request for one picture: the same seed and model as if this machine painted it."""
        return replace(self.request, batch=1, seed=(self.seed + place) % SEED_LIMIT)

    def take(self, place: int, files: Mapping[str, Path]) -> dict[str, Path] | None:
        """Return what a machine made under the names that it has here; None if it is not what was asked for."""
        made = [*files.values()]
        return {self.name_files(place)[0]: made[0]} if len(made) == 1 and is_picture(made[0]) else None

    def tell(self, place: int, path: Path) -> PartDone:
        return PartDone(place, self.request.batch, str(path), self.request.prompt, self.ask_for(place).seed or 0)


@dataclass(frozen=True, slots=True)
class Parts:
    """Of a script. The engine takes a part from the job's folder if it was made of what it would make it of itself."""

    request: SpeechRequest
    seed: int
    parts: tuple[ScriptPart, ...]
    places: tuple[int, ...]
    """Of those that hang on no other."""

    @property
    def complete(self) -> bool:
        return len(self.places) == len(self.parts)

    def name_files(self, place: int) -> tuple[str, ...]:
        sound = spoken_parts.sound_path(Path(), place)
        return sound.name, sound.with_suffix(".json").name

    def name_begun(self, place: int) -> tuple[str, str]:
        return spoken_parts.name_unfinished(place), spoken_parts.name_unfinished(place)

    def ask_for(self, place: int) -> SpeechRequest:
        return replace(self.request, only_parts=(place,), seed=self.seed, format="wav")

    def take(self, place: int, files: Mapping[str, Path]) -> dict[str, Path] | None:
        names = self.name_files(place)
        if not set(names) <= files.keys() or not is_spoken(files[names[0]], self.parts[place].text, (self.seed + place) % SEED_LIMIT):
            return None
        return {name: files[name] for name in names}

    def tell(self, place: int, path: Path) -> PartDone:
        take = spoken_parts.find(path)
        seconds, doubt = (take.seconds, take.doubt) if take is not None else (0.0, "")
        return PartDone(place, len(self.parts), str(path), self.parts[place].text, (self.seed + place) % SEED_LIMIT, seconds, doubt=doubt)


Pieces = Pictures | Parts


def find_pieces(home: Home, request: Request, folder: Path) -> Pieces | None:
    """Return what other machines can make of a job whose seed is drawn; None if nothing."""
    if isinstance(request, PictureRequest):
        return Pictures(request, draw_seed(request, folder))
    if request.keep or request.only_parts:
        return None
    limits = find_limits(home, request.model)
    parts = script.parse_script(request.text, limits).parts
    places = find_free(parts, request, limits)
    return Parts(request, draw_seed(request, folder), parts, places) if len(parts) > 1 and places else None


def is_drawn(request: Request, folder: Path) -> bool:
    """Tell whether a running job's seed is there: the engine draws it, so that both do not draw at once."""
    return request.seed is not None or (folder / "seed").is_file()


def find_free(parts: Sequence[ScriptPart], request: SpeechRequest, limits: VoiceLimits) -> tuple[int, ...]:
    """Return the parts whose voice hangs on no part before: all of them, or those whose speakers are all in the clip."""
    if not (request.carry_voice and limits.carries):
        return tuple(range(len(parts)))
    if request.voice is None:
        return ()
    try:
        turns = voices.parse_transcript(request.voice, limits)
    except (Trouble, OSError):  # the engine says so
        return ()
    speakers = frozenset(turn.speaker for turn in turns)
    return tuple(place for place, part in enumerate(parts) if part.speakers <= speakers)
