"""The peaks by which the page draws a sound: right for a line, and small and quick for a result of hours."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile

from app.ui.page.views import read_peaks

HOUR_FRAMES = 3600 * 8000


def test_each_bar_is_the_peak_of_its_stretch(tmp_path: Path) -> None:
    loud = np.repeat(np.array([0.1, 0.4, 0.0, 0.2], np.float32), 1000)
    loud[::2] *= -1
    soundfile.write(tmp_path / "line.wav", loud, 8000, "FLOAT")
    assert read_peaks(str(tmp_path / "line.wav"), 4) == (0.25, 1.0, 0.0, 0.5)
    assert len(read_peaks(str(tmp_path / "line.wav"))) == 96
    soundfile.write(tmp_path / "short.wav", loud[:3], 8000, "FLOAT")
    assert read_peaks(str(tmp_path / "short.wav")) == (1.0, 1.0, 1.0)
    soundfile.write(tmp_path / "empty.wav", loud[:0], 8000, "FLOAT")
    assert read_peaks(str(tmp_path / "empty.wav")) == (0.0,)


def test_an_hour_is_never_in_memory(tmp_path: Path) -> None:
    with soundfile.SoundFile(tmp_path / "book.wav", "w", 8000, 1, "PCM_16") as file:
        for minute in range(60):
            file.write(np.full(HOUR_FRAMES // 60, minute / 100, np.float32))
    tracemalloc.start()
    try:
        peaks = read_peaks(str(tmp_path / "book.wav"), 60)
        highest = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peaks == pytest.approx([minute / 59 for minute in range(60)], abs=2e-3)
    assert highest < 4 << 20
