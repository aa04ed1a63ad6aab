"""The quickest natural voice: forecast from what this computer multiplies, for the first download."""

from __future__ import annotations

import pytest

from app.engine.models.catalog import CATALOG
from app.engine.models.quick_voice import find_quickest, forecast_realtime, measure_weights_per_s
from app.ui.tabs.welcome import word_pace

REFERENCE = 2.5e9
"""One core of the computer of docs/speed.md multiplies so many weights a second."""


def test_the_forecast_is_near_what_was_measured_and_follows_the_computer() -> None:
    assert forecast_realtime("phonon-31m", REFERENCE) == pytest.approx(2.6, rel=0.25), "docs/speed.md: Phonon in float32"
    assert forecast_realtime("pocket-tts", REFERENCE) < forecast_realtime("phonon-31m", REFERENCE)
    assert forecast_realtime("dia-1.6b", 2 * REFERENCE) == pytest.approx(2 * forecast_realtime("dia-1.6b", REFERENCE))


def test_the_quickest_is_offered_with_what_the_forecast_says() -> None:
    for weights_per_s, words in ((REFERENCE, "faster than you listen"), (REFERENCE / 10, "for a minute of speech")):
        id_, realtime = find_quickest(weights_per_s)
        assert id_ == "phonon-31m" and words in str(word_pace(realtime))


def test_this_computer_is_measured_and_every_voice_is_one_of_the_catalogs() -> None:
    assert 1e7 < measure_weights_per_s() < 1e12
    natural = [model for model in CATALOG if model.kind == "speech" and not model.starter]
    assert natural and all(forecast_realtime(model.id, REFERENCE) > 0 for model in natural)
