"""The texts that the window offers to begin with: the starter models know every word of them."""

from __future__ import annotations

import re

from app.base.paths import assets
from app.engine.models.voice_limits import read_limits
from app.engine.pictures.prompts import starter_words
from app.engine.speech.text import script
from app.ui.page.bundle import FOLDERS

STARTER = assets() / "starter"
OFFERED = re.findall(r'(?:script:|prompt:|\),) "([^"]+)"', (FOLDERS[".js"] / "samples.js").read_text("utf-8"))
SCRIPTS = [each for each in OFFERED if each.startswith("[S1]")]
PROMPTS = [each for each in OFFERED if not each.startswith("[S1]")]


def test_the_starter_voice_speaks_every_script() -> None:
    limits = read_limits(STARTER / "voice")
    assert len(SCRIPTS) == 4
    for each in SCRIPTS:
        assert not [str(problem.sentence) for problem in script.parse_script(each, limits).problems], each


def test_the_starter_painter_learned_every_one_of_the_prompts() -> None:
    assert len(PROMPTS) == 5
    for each in PROMPTS:
        assert starter_words.match_prompt(STARTER / "painter", each).note is None, each
