"""Speak a part as the engine does, each second of it heard while the next is made: its sound made in the loop, or in a thread beside it."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from app.compat.attention.seam import applied
from app.compat.planning.types import Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Sound
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.families.dia.voice import Dia
from app.engine.speech.family import PartTask
from app.engine.speech.run.pace import Pace
from app.engine.speech.run.part import PartRun
from app.engine.speech.text.turns import ScriptPart, Turn
from bench.clocks import Took, read_clocks, since

TEXT: Final = "He comes in from the fjord, alone, and nobody has seen the boat since."
FIRST_FRAMES: Final = 8
"""A part of so many warms the voice and its codec up."""


class HeardPart:
    """A part of so many seconds. `beside`: where its sound is made; None: in the loop."""

    def __init__(self, dia: Dia, plan: Plan, scratch: Path, seconds: int, beside: ThreadPoolExecutor | None = None) -> None:
        self._dia, self._plan, self._scratch, self._beside = dia, plan, scratch, beside
        self.frames = round(seconds * dia.codec.frame_rate)
        self._is_warm = False

    def time_parts(self, times: int) -> list[Took]:
        """Return what a second of sound took, of each part."""
        if not self._is_warm:
            self._speak(FIRST_FRAMES)
            self._is_warm = True
        return [self._speak(self.frames) for _ in range(times)]

    def _speak(self, frames: int) -> Took:
        dia, limits = self._dia, self._dia.limits
        part, asked_s = ScriptPart((Turn(1, TEXT),), frames / limits.frame_rate), limits.time_rows(frames + limits.delay + 1)
        task = PartTask(0, part, None, dia.choose_settings(SpeechRequest(TEXT)), 1, asked_s, (), "")
        with tempfile.TemporaryDirectory(prefix="part-", dir=self._scratch) as job, applied(self._plan) as seam:
            began = read_clocks()
            run = PartRun(dia, task, Path(job), self._beside)
            events = list(run.events(Control(), seam, Pace(limits.frame_rate, [float(frames)])))
            took = since(began, read_clocks())
        heard_s = sum(each.seconds for each in events if isinstance(each, Sound))
        return Took(took.seconds / heard_s, took.cpu_s / heard_s)
