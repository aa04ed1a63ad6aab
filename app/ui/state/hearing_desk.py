"""What is heard for the window and for programs: which recogniser, the tasks that hear, and what they found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.base.sentence import say, say_to_all
from app.base.trouble import Trouble
from app.engine.hearing import heard
from app.engine.hearing.clip_choice import Clip, choose_clip
from app.engine.hearing.heard import Heard
from app.engine.jobs.events import END, Failed, Finished, Stopped
from app.engine.jobs.parts import HEARD
from app.engine.jobs.tasks import Hear
from app.engine.keeper.keeper import Keeper
from app.engine.models.catalog import BY_ID
from app.engine.models.model import Model
from app.engine.models.on_disk import locate
from app.engine.models.recognisers import BEST, OFFERED
from app.engine.speech.sound.sound import read, write


@dataclass(slots=True)
class HearingDesk:
    keeper: Keeper
    parts_task: str = ""
    """The latest that hears the parts of a script."""

    def find_recogniser(self) -> Model | None:
        """Return the best installed one."""
        return next((BY_ID[each] for each in BEST if locate(self.keeper.home, BY_ID[each]) is not None), None)

    def begin(self, sounds: Sequence[Path], texts: Sequence[str] = ()) -> str:
        """Queue a task that hears these sounds, ahead of the jobs that wait; raise a Trouble that offers a recogniser where there is none."""
        model = self.find_recogniser()
        if model is None:
            advice = say("owner.recogniser", "Download one in Models: {model} is enough.", model=BY_ID[OFFERED].words)
            raise Trouble(
                say_to_all(
                    "hearing.none", "To hear what is said, Hearth needs a recogniser, and there is none yet. {advice}", advice=advice
                ),
                cure=f"get:{OFFERED}",
            )
        stores = tuple(str(name_store(each)) for each in sounds)
        return self.keeper.start_task(Hear(model.id, tuple(map(str, sounds)), stores, tuple(texts)))

    def hear(self, sound: Path) -> Heard:
        """Hear one sound and wait for it."""
        task = self.begin([sound])
        end = next((event for event in self.keeper.follow(task) if isinstance(event, END)), None)
        return require_heard(end, sound)

    def choose_clip(self, sound: Path, folder: Path) -> Clip:
        """Hear a recording; choose what becomes a voice, and write that into a folder as clip.wav."""
        heard = self.hear(sound)
        samples, rate = read(sound)
        clip = choose_clip(heard.words, samples, rate)
        if clip is None:
            raise Trouble(say_to_all("clip.nobody", "Nobody is heard speaking in this recording. Choose another one."))
        write(folder / "clip.wav", samples[int(clip.begin_s * rate) : int(clip.end_s * rate)], rate)
        return clip

    def give_way(self) -> None:
        """End what hears the parts of a script, which may take long, because somebody's job waits. What it heard is kept."""
        if self.parts_task and self.keeper.get_progress(self.parts_task).end is None:
            self.keeper.stop(self.parts_task)


def name_store(sound: Path) -> Path:
    return sound.with_suffix(HEARD)


def require_heard(end: Finished | Stopped | Failed | None, sound: Path) -> Heard:
    if isinstance(end, Failed):
        raise end.trouble
    found = heard.find(name_store(sound))
    if found is None:
        raise Trouble(say_to_all("hearing.stopped", "Hearing was stopped before its end. Try again."))
    return found
