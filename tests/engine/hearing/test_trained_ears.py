"""A trained recogniser hears flite: its words, and when they are said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from app.compat.attention.seam import applied
from app.compat.machine.hardware import probe
from app.compat.planning.decide import decide
from app.engine.hearing import heard
from app.engine.hearing.ears import ear
from app.engine.hearing.heard import Meant, Word
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished
from app.engine.jobs.tasks import Hear, TimedSentence
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.speech.sound import sound
from tests.support import trained_ears

pytestmark = pytest.mark.slow
trained_whisper = trained_ears.trained_whisper
WORD_S, FAR_S = 0.1, 0.3
"""The beginnings of words may be so far off: half of them, and nearly all."""
SENTENCES = ("The captain counted the lamps.", "Nobody asked for bread or cheese.", "It was a long winter.")
STILL_S = 0.7
NEAR_S = 0.2


def test_words_and_their_times(trained_whisper: Path, tmp_path: Path) -> None:
    pieces, starts_s, at_s = [np.zeros(0, np.float32)], [], 0.0
    for text in SENTENCES:
        said = trained_ears.say(text, tmp_path)
        starts_s.append((at_s, at_s + len(said) / 16_000))
        pieces += [said, np.zeros(int(STILL_S * 16_000), np.float32)]
        at_s += len(said) / 16_000 + STILL_S
    plan = decide(probe(), describe_need(BY_ID["whisper-tiny-en"]))
    listens = ear.load(trained_whisper, plan, "whisper-tiny-en")
    with applied(plan) as seam:
        ((_, words, meant, _),) = listens.hear(np.concatenate(pieces), 16_000, " ".join(SENTENCES))
    assert seam.calls
    both: tuple[Sequence[Word | Meant], ...] = (words, meant)
    for found in both:
        assert [word.text.strip(".,").lower() for word in found] == " ".join(SENTENCES).lower().replace(".", "").split()
        sentence = iter(found)
        for text, (begin_s, end_s) in zip(SENTENCES, starts_s, strict=True):
            own = [next(sentence) for _ in text.split()]
            assert own[0].begin_s == pytest.approx(begin_s, abs=NEAR_S) and own[-1].end_s == pytest.approx(end_s, abs=NEAR_S)
    assert np.mean([word.likely for word in meant]) > np.log(0.5)


def test_words_of_known_sentences_are_placed_where_flite_says_them(trained_whisper: Path, tmp_path: Path) -> None:
    texts = ("The captain opened the letter and laughed.", "My sister walked down to the harbour long after midnight.",
             "The second trial was smaller than everybody had expected.", "The doctor waited at the station with both hands in his pockets.") * 3  # fmt: skip
    pieces, sentences, begins_s, at_s = list[np.ndarray](), list[TimedSentence](), list[float](), 0.0
    for text in texts:
        begins_s += [at_s + begin_s for begin_s in trained_ears.find_begins(text)]
        pieces.append(trained_ears.say_whole(text, tmp_path))
        sentences.append(TimedSentence(at_s, at_s + len(pieces[-1]) / 16_000, text))
        at_s = sentences[-1].end_s
    sound.write(tmp_path / "whole.wav", np.concatenate(pieces), 16_000)
    plan = decide(probe(), describe_need(BY_ID["whisper-tiny-en"]))
    task = Hear("whisper-tiny-en", (str(tmp_path / "whole.wav"),), (str(tmp_path / "heard"),), sentences=(tuple(sentences),))
    with applied(plan) as seam:
        *_, end = ear.load(trained_whisper, plan, "whisper-tiny-en").run(task, Control(), seam, tmp_path)
    found = heard.find(tmp_path / "heard")
    assert isinstance(end, Finished) and found is not None and [word.text for word in found.words] == " ".join(texts).split()
    off_s = np.abs(np.array([word.begin_s for word in found.words]) - np.array(begins_s))
    print(f"\nwords begin {1000 * np.median(off_s):.0f} ms off, {1000 * np.percentile(off_s, 95):.0f} ms at the 95th of a hundred")
    assert np.median(off_s) < WORD_S and np.percentile(off_s, 95) < FAR_S
