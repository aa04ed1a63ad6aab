"""A trained recogniser hears flite: its words, and when they are said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from app.compat.attention.seam import applied
from app.compat.machine.hardware import probe
from app.compat.planning.decide import decide
from app.engine.hearing.ears import ear
from app.engine.hearing.heard import Meant, Word
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from tests.support import trained_ears

pytestmark = pytest.mark.slow
trained_whisper = trained_ears.trained_whisper
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
        ((_, words, meant),) = listens.hear(np.concatenate(pieces), 16_000, " ".join(SENTENCES))
    assert seam.calls
    both: tuple[Sequence[Word | Meant], ...] = (words, meant)
    for found in both:
        assert [word.text.strip(".,").lower() for word in found] == " ".join(SENTENCES).lower().replace(".", "").split()
        sentence = iter(found)
        for text, (begin_s, end_s) in zip(SENTENCES, starts_s, strict=True):
            own = [next(sentence) for _ in text.split()]
            assert own[0].begin_s == pytest.approx(begin_s, abs=NEAR_S) and own[-1].end_s == pytest.approx(end_s, abs=NEAR_S)
    assert np.mean([word.likely for word in meant]) > np.log(0.5)
