"""What is heard for the window and for programs: which recogniser, the tasks that hear, and what they found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from app.base.duration import word_duration
from app.base.paths import Home
from app.base.sentence import say, say_to_all
from app.base.trouble import Trouble
from app.engine.hearing import heard
from app.engine.hearing.clip_choice import Clip, choose_clip
from app.engine.hearing.heard import Heard, Word
from app.engine.hearing.word_places import split_words
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import END, Failed, Finished, Stopped
from app.engine.jobs.parts import HEARD
from app.engine.jobs.tasks import Hear, TimedSentence
from app.engine.keeper.keeper import Keeper
from app.engine.models.catalog import BY_ID
from app.engine.models.model import Model
from app.engine.models.on_disk import locate
from app.engine.models.recognisers import BEST, OF_MANY_LANGUAGES, OFFERED, can_hear
from app.engine.speech.sound.sound import make_readable, read, write
from app.engine.speech.text import subtitles
from app.engine.speech.text.likely_language import name_language
from app.engine.speech.text.subtitles import Cue

CLIP_HEARD_S: Final = 300.0
"""Only so much of a recording is heard to find a voice in it: of hours, hearing all would take hours, and gigabytes of memory."""


@dataclass(slots=True)
class HearingDesk:
    keeper: Keeper
    parts_task: str = ""
    """The latest task that hears the parts of a script has this name."""

    def begin(self, sounds: Sequence[Path], texts: Sequence[str] = (), languages: Sequence[str] = ()) -> str:
        """Queue a task that hears these sounds, ahead of the jobs that wait; raise a Trouble that offers a recogniser where there is none that
        hears these languages."""
        stores, model = tuple(str(name_store(each)) for each in sounds), require_recogniser(self.keeper.home, languages)
        return self.keeper.start_task(Hear(model.id, tuple(map(str, sounds)), stores, tuple(texts), tuple(languages)))

    def begin_words(self, sound: Path, sentences: Sequence[Cue], store: Path, languages: Iterable[str] = ()) -> str:
        """Queue a task that finds when each word of a result is said, which was spoken in these languages."""
        timed, spoken = tuple(TimedSentence(each.begin_s, each.end_s, each.text) for each in sentences), tuple(dict.fromkeys(languages))
        model = require_recogniser(self.keeper.home, spoken)
        told = spoken[0] if len(spoken) == 1 else ""  # of several the recogniser finds out, stretch by stretch
        return self.keeper.start_task(Hear(model.id, (str(sound),), (str(store),), languages=(told,), sentences=(timed,)))

    def place_words(self, sound: Path, store: Path, language: str = "") -> list[Cue]:
        """Find when each word of a result is said, and wait for it."""
        task = self.begin_words(sound, subtitles.read_cues(sound), store, (language,))
        require_heard(self._wait(task), store)
        return find_cues(sound, store)

    def name_words(self, creation: Creation) -> Path:
        """Return where the times of a result's words are stored, in its job's folder."""
        return self.keeper.folder(creation.job) / f"words-{creation.id}{HEARD}"

    def hear(self, sound: Path, language: str = "") -> Heard:
        """Hear one sound and wait for it. `language`: what is said in it is in that, where it is known."""
        sound = make_readable(sound)
        return require_heard(self._wait(self.begin([sound], languages=[language])), name_store(sound))

    def _wait(self, task: str) -> Finished | Stopped | Failed | None:
        return next((event for event in self.keeper.follow(task) if isinstance(event, END)), None)

    def choose_clip(self, sound: Path, folder: Path) -> Clip:
        """Hear a recording, of a long one the beginning; choose what becomes a voice, and write that into a folder as clip.wav."""
        samples, rate = read(sound, most_s=CLIP_HEARD_S + 1)
        long, samples = len(samples) > CLIP_HEARD_S * rate, samples[: round(CLIP_HEARD_S * rate)]
        write(folder / "heard.wav", samples, rate)
        heard = self.hear(folder / "heard.wav")
        clip = choose_clip(heard.words, samples, rate)
        if clip is None:
            raise nobody_speaks()
        write(folder / "clip.wav", samples[int(clip.begin_s * rate) : int(clip.end_s * rate)], rate)
        if long:
            told = say_to_all("clip.beginning", "Of this long recording the first {time} were heard.", time=word_duration(CLIP_HEARD_S))
            clip = replace(clip, notes=(told, *clip.notes))
        return clip

    def give_way(self) -> None:
        """End what hears the parts of a script, which may take long, because somebody's job waits. What it heard is kept."""
        if self.parts_task and self.keeper.get_progress(self.parts_task).end is None:
            self.keeper.stop(self.parts_task)


def nobody_speaks() -> Trouble:
    return Trouble(say_to_all("clip.nobody", "Nobody is heard speaking in this recording. Choose another one."))


def require_recogniser(home: Home, languages: Iterable[str] = ()) -> Model:
    """Return the best installed one that hears these languages; raise a Trouble that offers one where there is none."""
    installed = [each for each in BEST if locate(home, BY_ID[each]) is not None]
    best = next((each for each in installed if all(can_hear(each, language) for language in languages)), None)
    if best is not None:
        return BY_ID[best]
    strange = next((each for each in languages if not can_hear(OFFERED, each)), "")
    offered = OF_MANY_LANGUAGES if strange else OFFERED
    advice = say("owner.recogniser", "Download one in Models: {model} is enough.", model=BY_ID[offered].words)
    if installed:
        sentence = say_to_all(
            "hearing.other-language",
            "This was spoken in {language}, and the recogniser that is here hears English only. {advice}",
            language=name_language(strange),
            advice=advice,
        )
    else:
        sentence = say_to_all(
            "hearing.none", "To hear what is said, Hearth needs a recogniser, and there is none yet. {advice}", advice=advice
        )
    raise Trouble(sentence, cure=f"get:{offered}", field="language" if installed else "")


def find_cues(result: Path, store: Path) -> list[Cue]:
    """Return when each sentence of a result is said, and each of its words where that is known."""
    cues = subtitles.read_cues(result)
    words = split_words([TimedSentence(each.begin_s, each.end_s, each.text) for each in cues], _read_words(store))
    known = [tuple(Cue(word.begin_s, word.end_s, word.text) for word in each) for each in words] or [()] * len(cues)
    return [replace(cue, words=each) for cue, each in zip(cues, known, strict=True)]


def _read_words(store: Path) -> tuple[Word, ...]:
    found = heard.find(store)
    return found.words if found is not None else ()


def name_store(sound: Path) -> Path:
    return sound.with_suffix(HEARD)


def require_heard(end: Finished | Stopped | Failed | None, store: Path) -> Heard:
    if isinstance(end, Failed):
        raise end.trouble
    found = heard.find(store)
    if found is None:
        raise Trouble(say_to_all("hearing.stopped", "Hearing was stopped before its end. Try again."))
    return found
