"""Pictures: every family paints as plain diffusers does, stops, goes on, and says in a sentence what it cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from PIL import Image

import tiny_pictures as tiny
from app.engine import catalog, picture
from app.engine.control import Control
from app.engine.event import Event, Finished, Part
from app.engine.model import Model
from app.engine.painting import schedulers, steps
from app.engine.painting.families import FAMILIES
from app.engine.request import PictureRequest

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # diffusers with numpy 2

SMALL: dict[str, Any] = {"width": 64, "height": 64, "steps": 3, "seed": 11, "preview_every": 0}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {family: tiny.made(family, tmp_path_factory.mktemp("models") / family) for family in tiny.MAKERS}


def painter(folder: Path, **changes: Any) -> tuple[picture.Painter, Model]:
    model = catalog.find(str(folder))
    return picture.load(folder, model, tiny.plan(model, **changes), {}), model


def pixels(path: str | Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), dtype=np.float64) / 255


def parts(events: list[Event]) -> list[Part]:
    return [event for event in events if isinstance(event, Part)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """What the decoder gave, before it was rounded to the 256 steps of a PNG."""
    seen: list[torch.Tensor] = []
    check = steps.check

    def record(image: torch.Tensor, step: int, exact: bool) -> None:
        seen.append(image.detach().clone())
        check(image, step, exact)

    monkeypatch.setattr(steps, "check", record)
    return seen


def plainly(folder: Path, model: Model, form: str = "text", **told: Any) -> np.ndarray:
    """The same from diffusers' own class alone: its own loading, loop and decoding."""
    family = FAMILIES[model.family]
    plain = getattr(diffusers, getattr(family, form)).from_pretrained(folder, **family.loaded_with)
    if model.settings.scheduler:
        row = schedulers.by_name(model.settings.scheduler)
        plain.scheduler = getattr(diffusers, row.class_name).from_config(plain.scheduler.config, **row.settings)
    image = plain(
        num_inference_steps=3, generator=torch.Generator("cpu").manual_seed(11), output_type="np", **family.told, **told
    ).images[0]
    return np.asarray(image, dtype=np.float64)


def assert_same(decoded: torch.Tensor, plain: np.ndarray) -> None:
    mine = ((decoded[0].double() + 1) / 2).clamp(0, 1).permute(1, 2, 0).numpy()
    assert mine.std() > 0.01, "a grey picture would equal anything"
    assert np.abs(mine - plain).max() <= 1e-4


@pytest.mark.parametrize("family", tiny.MAKERS)
def test_paints_what_plain_diffusers_paints(
    family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, model = painter(folders[family])
    guidance = 1.0 if family in ("flux", "flux2-klein") else 3.0
    events = list(paints.run(PictureRequest("a red ball", guidance=guidance, **SMALL), Control(), None, tmp_path))
    assert isinstance(events[-1], Finished)
    plain = plainly(folders[family], model, prompt="a red ball", guidance_scale=guidance, width=64, height=64)
    assert_same(decoded[0], plain)
    assert np.abs(pixels(parts(events)[0].path) - plain).max() <= 0.51 / 255
