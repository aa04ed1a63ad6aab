"""Share tiny Dia models of two shapes, made and loaded once, and a way to run one."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.compat.attention.seam import applied
from app.compat.machine.hardware import probe
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, ModelPart, Need, Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.families.dia.voice import Dia
from app.engine.speech.run import loader
from app.engine.speech.sound import sound
from tests.support import tiny_voices

SHAPES = {"dia": tiny_voices.DIA, "starter": tiny_voices.STARTER}
TEXT = "[S1] Hello there, how are you on this fine day? [S2] I am well, thank you (laughs), and you are as well, I hope."
LONG = " ".join(f"[S{1 + index % 2}] This is sentence number {index}, and it goes on for quite a while." for index in range(9))


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make the models once for all test files."""
    return _folders(tmp_path_factory.getbasetemp() / "tiny-voices")


@cache
def _folders(top: Path) -> dict[str, Path]:
    return {name: tiny_voices.save_voice(top / name, shape) for name, shape in SHAPES.items()}


@pytest.fixture(scope="session")
def plan() -> Plan:
    parts = (ModelPart("model", "speech", 10_000), ModelPart("codec", "codec", 10_000))
    return decide(probe(), Need(kind="speech", parts=parts), Choice(dtype="float32"), {})


@pytest.fixture(scope="session")
def speakers(folders: dict[str, Path], plan: Plan) -> dict[str, loader.Speaker]:
    return {name: loader.load(folder, plan) for name, folder in folders.items()}


def dia_of(speaker: loader.Speaker) -> Dia:
    assert isinstance(speaker.voice, Dia)
    return speaker.voice


def run(speaker: loader.Speaker, job: Path, control: Control | None = None, plan: Plan | None = None, **settings: Any) -> list[Event]:
    asked: dict[str, Any] = {"text": TEXT, "seed": 5, "max_frames": 60} | settings
    request = SpeechRequest(**asked)
    with applied(plan or PLAIN) as seam:
        return list(speaker.run(request, control or Control(), seam, job))


PLAIN = decide(probe(), Need(kind="speech"), Choice(dtype="float32"), {})


def find_result(events: list[Event]) -> Path:
    assert isinstance(events[-1], Finished), events[-1]
    return Path(events[-1].files[0])


def write_clip(path: Path, seconds: float, rate: int = 22050, loud: float = 0.2) -> str:
    samples = loud * np.random.default_rng(0).standard_normal(int(seconds * rate))
    sound.write(path, samples.astype(np.float32), rate)
    return str(path)


def copy_voice(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    return target
