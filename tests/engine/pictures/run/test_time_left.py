"""The time left of pictures, told while they are painted: by a clock that moves when a part computes."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, Step
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.pictures import steps as shared
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run import steps
from tests.support import picture_fixtures
from tests.support import tiny_pictures as tiny

folders = picture_fixtures.folders
WITHIN = 1.5


class Clock:
    now_s = 100.0

    def slow(self, monkeypatch: pytest.MonkeyPatch, part: Any, name: str, seconds: float) -> None:
        """Let a call take so long."""
        run = getattr(part, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            self.now_s += seconds
            return run(*args, **kwargs)

        monkeypatch.setattr(part, name, called)


def paint(
    folder: Path, monkeypatch: pytest.MonkeyPatch, job: Path, request: PictureRequest, encode_s: float, decode_s: float
) -> list[tuple[float, float]]:
    """Paint where a step takes a second; return for each step the share of the time that is over, and what was told, as a share of what was left."""
    model, clock, told = catalog.find(str(folder)), Clock(), list[tuple[float, float]]()
    painter = picture_painter.load(folder, model, tiny.make_plan(model), {})
    for module in (picture_painter, steps):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock.now_s, monotonic=time.monotonic))
    clock.slow(monkeypatch, painter.pipe.unet, "forward", 1.0)
    clock.slow(monkeypatch, painter.pipe.text_encoder, "forward", encode_s)
    clock.slow(monkeypatch, painter.pipe.vae, "decode", decode_s)
    make_step = painter._make_step

    def tell(*args: Any) -> Step:
        step = make_step(*args)
        assert step.eta_s is not None
        told.append((clock.now_s, step.eta_s))
        return step

    monkeypatch.setattr(painter, "_make_step", tell)
    events = list(painter.run(request, Control(), None, job))
    assert isinstance(events[-1], Finished) and len(told) == (request.steps or 0) * -(-request.batch // shared.AT_ONCE)
    began_s = told[0][0] - 1.0
    return [((now_s - began_s) / (clock.now_s - began_s), eta_s / (clock.now_s - now_s)) for now_s, eta_s in told]


@pytest.mark.slow
@pytest.mark.parametrize("decode_s", [1.0, 2.0])
@pytest.mark.parametrize("count", [6, 20])
def test_the_first_picture_counts_a_decoding_that_was_never_measured(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int, decode_s: float
) -> None:
    request = PictureRequest("a boat", width=64, height=64, steps=count, seed=1, preview_every=0)
    told = paint(folders["sd15"], monkeypatch, tmp_path / "job", request, 20.0, decode_s)
    assert all(1 / WITHIN <= ratio <= WITHIN for share, ratio in told if 0.1 <= share <= 0.9), told


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("decode_s", [0.2, 3.0])
def test_later_pictures_count_the_decoding_that_was_measured(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, decode_s: float, at_once: int
) -> None:
    monkeypatch.setattr("app.engine.pictures.steps.AT_ONCE", at_once)
    request = PictureRequest("a boat", width=64, height=64, steps=5, seed=1, batch=4, preview_every=0)
    told = paint(folders["sd15"], monkeypatch, tmp_path / "job", request, 0.0, decode_s)
    assert all(1 / 1.1 <= ratio <= 1.1 for _, ratio in told[5:]), told
