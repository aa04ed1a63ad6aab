"""Load a recogniser from a local folder, and hear sounds with it: stretch by stretch, word by word."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from tokenizers import Tokenizer

from app.base.bounded_json import read_json
from app.base.foreign_formats import open_sound
from app.base.paths import Home
from app.base.sentence import Sentence
from app.compat.machine import meter
from app.compat.planning.types import Plan
from app.engine.hearing.alignment import Said, tighten
from app.engine.hearing.ears import encoder_decoder
from app.engine.hearing.heard import Heard, Meant, Word, store
from app.engine.hearing.word_places import fit, gather, is_said, list_shown
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Step, Stopped
from app.engine.jobs.tasks import Hear, TimedSentence
from app.engine.models import model_folder
from app.engine.models.loading.loaded import same_placement
from app.engine.models.loading.voice_parts import device_for, explaining, load_part, split_plan
from app.engine.models.model import Model
from app.engine.models.on_disk import Located
from app.engine.models.tokenizer_facts import judge_tokenizer
from app.engine.speech.sound.sound import Samples, find_spoken_span, measure_seconds, read, resample

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam

RATE: Final = 16_000
"""All of them hear sound of this rate."""
AROUND_S: Final = 0.2
"""So much of the sound before and after sentences is heard, too: they begin and end a little apart from where they were said to."""
MOST_S: Final = 28.0
"""Whisper hears 30 s; words at its very end are lost."""
EARLIEST: Final = 0.5
"""From this share of MOST_S on, a stretch ends in the quietest place."""
HOP_S: Final = 0.02
PAUSE_S: Final = 0.3
"""What is quiet for as long counts as a pause; a quiet place alone may be within a word."""


class Listener(Protocol):
    """A loaded family of recognisers."""

    def hear(self, samples: Samples, text: str, language: str) -> tuple[list[Word], list[Meant], str]:
        """Return the words in a stretch of sound of less than half a minute, and those of a text that is meant to be said in it, each with how
        likely it is there; none of these where there is no text, nobody speaks, or it is too long; and the language that was heard, empty where nobody
        speaks. `language`: the text's; empty: not known."""

    def place(self, samples: Samples, words: list[str], language: str) -> list[Word]:
        """Return when each of these words is said in such a stretch; none where nobody speaks, or it is too long."""


class Ear:
    """A loaded recogniser; one task at a time."""

    def __init__(self, listener: Listener, plan: Plan, notes: tuple[Sentence, ...], name: str) -> None:
        self.notes, self._listener, self._plan, self._name = notes, listener, plan, name

    def run(self, task: Hear, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Hear each sound, and store what is heard as soon as it is; the last event is Finished or Stopped."""
        began_s, done_s = time.monotonic(), 0.0
        lasts_s = [measure_seconds(Path(path)) for path in task.sounds]
        total_s, nothing = sum(lasts_s), [""] * len(lasts_s)
        known, texts, languages = task.sentences or ((),) * len(lasts_s), task.texts or nothing, task.languages or nothing
        for path, text, language, sentences, target, seconds in zip(
            task.sounds, texts, languages, known, task.stores, lasts_s, strict=True
        ):
            words, meant, spoken = list[Word](), list[Meant](), Counter[str]()
            looked = self.place(Path(path), sentences, language) if sentences else self.hear(*read(Path(path)), text, language)
            for reached_s, more, told, found in looked:
                words, meant = words + more, meant + told
                spoken[found] += len(more)
                elapsed_s = time.monotonic() - began_s
                speed = (done_s + reached_s) / elapsed_s
                left_s = max(0.0, total_s - done_s - reached_s)
                yield Step(math.floor(done_s + reached_s), math.ceil(total_s), speed, "seconds", left_s / speed, meter.read())
                if control.stopped:
                    yield Stopped((), elapsed_s)
                    return
            done_s += seconds
            ((most, _),) = spoken.most_common(1) or [("", 0)]
            store(Heard(tuple(words), tuple(meant), seconds, self._name, language, most), Path(target))
        elapsed_s = time.monotonic() - began_s
        yield Finished(task.stores, elapsed_s, done_s / max(elapsed_s, 1e-6), "seconds", meter.read().highest_bytes, done_s)

    def hear(self, samples: Samples, rate: int, text: str = "", language: str = "") -> Iterator[tuple[float, list[Word], list[Meant], str]]:
        """Yield for each stretch how many seconds are heard, its words, where all is one stretch those of a text that is meant, and the language."""
        heard = resample(samples, rate, RATE)
        pieces = cut_pieces(heard, RATE)
        for begin, end in pieces:
            piece, after_s = heard[begin:end], begin / RATE
            words, meant, spoken = self._listener.hear(piece, text if len(pieces) == 1 else "", language)
            yield end / RATE, _move(tighten(words, piece, RATE), after_s), _move(tighten(meant, piece, RATE), after_s), spoken

    def place(self, path: Path, sentences: Sequence[TimedSentence], language: str) -> Iterator[tuple[float, list[Word], list[Meant], str]]:
        """Yield how many seconds are looked at, and the words of the sentences in them. As much of the sound is in memory as is looked at."""
        with open_sound(path) as sound:
            for some in gather(sentences):
                begin = min(sound.frames, round(max(0.0, some[0].begin_s - AROUND_S) * sound.samplerate))
                end = min(sound.frames, round((some[-1].end_s + AROUND_S) * sound.samplerate))
                placed: list[Word] = []
                if end - begin <= MOST_S * sound.samplerate:
                    sound.seek(begin)
                    samples = sound.read(end - begin, dtype="float32", always_2d=True).mean(axis=1)
                    piece = resample(samples, sound.samplerate, RATE)
                    said = [word for each in some for word in list_shown(each.text) if is_said(word)]
                    placed = _move(tighten(self._listener.place(piece, said, language), piece, RATE), begin / sound.samplerate)
                yield end / sound.samplerate, fit(some, placed), [], language

    def adapt(self, plan: Plan) -> bool:
        """Tell whether the weights need not be loaded again."""
        return same_placement(self._plan, plan)

    def close(self) -> None:
        del self._listener


def _move(words: list[Said], after_s: float) -> list[Said]:
    return [replace(each, begin_s=each.begin_s + after_s, end_s=each.end_s + after_s) for each in words]


def cut_pieces(samples: Samples, rate: int) -> list[tuple[int, int]]:
    """Cut a long sound in its pauses; return begin and end of each stretch with sound in it."""
    hop = round(HOP_S * rate)
    powers = (np.pad(samples, (0, -len(samples) % hop)).reshape(-1, hop).astype(np.float64) ** 2).mean(axis=1)
    width = round(PAUSE_S / HOP_S)
    smooth = np.convolve(powers, np.ones(width) / width, "same")
    most, begun, spans = round(MOST_S / HOP_S), 0, list[tuple[int, int]]()
    while len(powers) - begun > most:
        first = begun + round(EARLIEST * most)
        end = first + int(np.argmin(smooth[first : begun + most]))
        spans.append((begun * hop, end * hop))
        begun = end
    spans.append((begun * hop, len(samples)))
    heard = ((begin, find_spoken_span(samples[begin:end], rate)) for begin, end in spans)
    return [(begin + first, begin + last) for begin, (first, last) in heard if last]


def load_found(found: Located, model: Model, plan: Plan, home: Home) -> Ear:
    return load(found.folder, plan, model.id)


def load(folder: Path, plan: Plan, name: str) -> Ear:
    """Load the recogniser in `folder`, of one of the families of `encoder_decoder`."""
    model_folder.check_part(folder, folder)
    judge_tokenizer(folder)
    how, _ = split_plan(plan)
    family = encoder_decoder.FAMILIES[read_json(folder / "config.json")["model_type"]]
    notes: list[Sentence] = []
    model: Any = load_part(family.model, folder, plan, how, notes)
    with explaining(folder):
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        listener = encoder_decoder.EncoderDecoder(family, model, tokenizer, folder, device_for(plan, how))
    return Ear(listener, plan, tuple(notes), name)
