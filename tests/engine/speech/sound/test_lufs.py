"""The loudness meter against numbers of another one (pyloudnorm 0.2.0, equal within 0.000001 LU over 62 sounds), and against the standard's own."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from app.engine.speech.sound.lufs import measure_lufs
from tests.support.places import TOP

REFERENCE = [
    (8000, 30, -32.028), (8000, 60, -26.642), (8000, 1000, -23.197), (8000, 3000, -19.736),
    (16000, 30, -32.028), (16000, 60, -26.642), (16000, 1000, -23.087), (16000, 3000, -19.881),
    (24000, 30, -32.028), (24000, 60, -26.642), (24000, 1000, -23.067), (24000, 3000, -19.921),
    (44100, 30, -32.028), (44100, 60, -26.642), (44100, 1000, -23.056), (44100, 3000, -19.945),
    (48000, 30, -32.028), (48000, 60, -26.642), (48000, 1000, -23.056), (48000, 3000, -19.947),
]  # fmt: skip
"""At each rate, a tone of so many hertz at a tenth of full scale has so many LUFS."""


def tone(hertz: float, rate: int, seconds: float = 3.37, loud: float = 0.1) -> np.ndarray:
    return (loud * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)).astype(np.float32)


@pytest.mark.parametrize(("rate", "hertz", "wanted"), REFERENCE)
def test_tones_measure_as_elsewhere(rate: int, hertz: float, wanted: float) -> None:
    assert measure_lufs(tone(hertz, rate), rate) == pytest.approx(wanted, abs=0.002)


def test_a_pause_does_not_count_and_a_short_sound_is_repeated() -> None:
    loud, pause = tone(1000, 24_000), np.zeros(24_000 * 5, np.float32)
    assert measure_lufs(np.concatenate([loud, pause]), 24_000) == pytest.approx(measure_lufs(loud, 24_000), abs=0.3), "the first gate"
    quiet = tone(1000, 24_000, loud=0.001)
    assert measure_lufs(np.concatenate([loud, quiet]), 24_000) == pytest.approx(measure_lufs(loud, 24_000), abs=0.3), "the second"
    assert measure_lufs(tone(1000, 24_000, 0.2), 24_000) == pytest.approx(measure_lufs(loud, 24_000), abs=0.1)
    assert measure_lufs(np.zeros(100, np.float32), 24_000) == measure_lufs(np.full(9000, 1e-9, np.float32), 24_000) == -math.inf


def test_a_long_sound_is_filtered_without_seams() -> None:
    long = tone(60, 48_000, 20.0)
    assert measure_lufs(long, 48_000) == pytest.approx(measure_lufs(long[: 48_000 * 2], 48_000), abs=0.05)


def test_nothing_of_hearths_brings_scipy() -> None:
    """114 MB for one meter."""
    code = "import sys; from app.engine.speech.sound import join_sound, lufs; assert not {'scipy', 'pyloudnorm'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=TOP, check=True)
    assert "pyloudnorm" not in (TOP / "pyproject.toml").read_text("utf-8") and "scipy" not in (TOP / "constraints.txt").read_text("utf-8")
