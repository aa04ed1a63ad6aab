"""Test that each picture of a batch gets the words that its seed chooses, and is the one that these words alone would give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from app.engine.jobs.control import Control
from app.engine.jobs.request import PictureRequest
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.alternatives import choose_words
from tests.support.picture_fixtures import SMALL, list_parts, load_painter, read_pixels

pytest_plugins = ["tests.support.picture_fixtures"]


def test_a_batch_paints_what_its_seeds_choose(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    asked = PictureRequest("a {red|blue|green|large} (ball:1.3)", negative="ugly", guidance=4.0, batch=4, **SMALL)
    made = list_parts(list(paints.run(asked, Control(), None, tmp_path / "batch")))
    words = [choose_words(asked.prompt, SMALL["seed"] + place) for place in range(4)]
    assert len(set(words)) > 1
    for place, part in enumerate(made):
        alone = replace(asked, prompt=words[place], batch=1, seed=SMALL["seed"] + place)
        plain = list_parts(list(paints.run(alone, Control(), None, tmp_path / str(place))))[0]
        assert np.abs(read_pixels(part.path) - read_pixels(plain.path)).max() <= 2 / 255
        restored = picture_settings.read(Path(part.path)).request
        assert (restored.prompt, restored.seed) == (asked.prompt, SMALL["seed"] + place)
        assert choose_words(restored.prompt, restored.seed or 0) == words[place]
