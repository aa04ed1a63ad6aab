"""The quickest natural voice: forecast from what this computer multiplies, for the first download."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine.models.catalog import BY_ID, CATALOG
from app.engine.models.quick_voice import forecast_realtime, measure_weights_per_s, rank_natural
from app.engine.models.voice_limits import read_limits
from app.ui.tabs.welcome import choose_voices, word_languages, word_pace

REFERENCE = 2.5e9
"""One core of the computer of docs/speed.md multiplies so many weights a second."""


def test_the_forecast_is_near_what_was_measured_and_follows_the_computer() -> None:
    assert forecast_realtime("phonon-31m", REFERENCE) == pytest.approx(2.6, rel=0.25), "docs/speed.md: Phonon in float32"
    assert forecast_realtime("pocket-tts", REFERENCE) < forecast_realtime("phonon-31m", REFERENCE)
    assert forecast_realtime("dia-1.6b", 2 * REFERENCE) == pytest.approx(2 * forecast_realtime("dia-1.6b", REFERENCE))


def test_the_quickest_is_offered_with_what_the_forecast_says() -> None:
    for weights_per_s, words in ((REFERENCE, "faster than you listen"), (REFERENCE / 10, "for a minute of speech")):
        id_, realtime = rank_natural(weights_per_s)[0]
        assert id_ == "phonon-31m" and words in str(word_pace(realtime))


def test_the_first_voice_offered_speaks_the_readers_language_where_one_does() -> None:
    """A Chinese reader was offered a voice that reads English only, and nothing said so."""
    assert [*choose_voices(REFERENCE, "zh")] == ["vibevoice-1.5b", "phonon-31m"]
    for without in ("en", "de", "ja"):
        assert choose_voices(REFERENCE, without) == {"phonon-31m": forecast_realtime("phonon-31m", REFERENCE), "dia-1.6b": None}
    said = {(id_, code): str(word_languages(BY_ID[id_], code)) for id_ in ("phonon-31m", "vibevoice-1.5b") for code in ("zh", "de")}
    assert said["vibevoice-1.5b", "zh"] == "Speaks English, Chinese."
    assert said["phonon-31m", "zh"] == "Speaks English, but not Chinese."
    assert said["phonon-31m", "de"].endswith("None of the natural voices that Hearth can download speaks German yet.")
    assert [str(word_languages(BY_ID[id_], "de", again=True)) for id_ in ("phonon-31m", "dia-1.6b")] == ["Speaks English."] * 2


def test_the_catalog_says_the_languages_that_a_folder_says_later(tmp_path: Path) -> None:
    for model in (each for each in CATALOG if each.kind == "speech"):
        assert read_limits(tmp_path, family=model.family).languages == model.languages, model.id


def test_this_computer_is_measured_and_every_voice_is_one_of_the_catalogs() -> None:
    assert 1e7 < measure_weights_per_s() < 1e12
    natural = [model for model in CATALOG if model.kind == "speech" and not model.starter]
    assert natural and all(forecast_realtime(model.id, REFERENCE) > 0 for model in natural)
