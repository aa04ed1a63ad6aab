"""Test hires: painted small, enlarged, painted over in tiles without seams; told before, counted, stopped and restored."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image

from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, Note, Step, Stopped
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import PictureRequest
from app.engine.models.catalog import find
from app.engine.models.enlargers import count_products
from app.engine.models.model import describe_need
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run import enlarge, tiled_denoiser
from app.engine.pictures.run.batch import Loop, Picture
from app.engine.pictures.run.painter import _Run
from app.engine.pictures.steps import count_work, estimate_seconds, weigh_products
from tests.engine.pictures.run.test_rrdb import make_old, save
from tests.support.picture_fixtures import SMALL, list_parts, load_painter, read_pixels

pytest_plugins = ["tests.support.picture_fixtures"]
HIRES = PictureRequest("a red ball", upscale=4, hires=True, **{**SMALL, "steps": 4})


class Sees(torch.nn.Module):
    """Answers what a UNet does at its worst: each tile in a light of its own, as it sees no others."""

    def forward(self, sample: torch.Tensor, *_: Any, return_dict: bool = True, **__: Any) -> tuple[torch.Tensor]:
        return (sample + sample.mean(),)


def measure_step(latents: torch.Tensor, places: list[int]) -> float:
    """Return how much columns differ from the ones before, at these places."""
    return float((latents[..., places] - latents[..., [each - 1 for each in places]]).abs().mean())


def test_no_seam_where_tiles_meet() -> None:
    """A slope, of which each tile sees another part: cut hard, the light jumps where a tile begins; blended, it moves as everywhere."""
    sample, denoiser = torch.linspace(0, 8, 128).repeat(1, 4, 128, 1), Sees()
    with tiled_denoiser.tiles(denoiser, 512, 8):
        blended = denoiser(sample)[0]
    _, across = tiled_denoiser.list_spans((128, 128), 512, 8)
    borders = [edge for begin, end in across for edge in (begin, end) if 0 < edge < 128]
    assert borders == [72, 56]
    hard = torch.cat([sample[..., :64] + sample[..., :72].mean(), sample[..., 64:] + sample[..., 56:].mean()], -1)
    everywhere = measure_step(sample, list(range(1, 128)))
    assert measure_step(hard, [64]) > 20 * everywhere
    assert measure_step(blended, borders) < 8 * everywhere
    assert measure_step(blended, list(range(1, 128))) < 2 * everywhere


def test_what_needs_no_tiles_is_not_cut() -> None:
    denoiser, sample = Sees(), torch.rand(1, 4, 64, 80)
    with tiled_denoiser.tiles(denoiser, 512, 8):
        assert torch.equal(denoiser(sample)[0], sample + sample.mean())
    assert "forward" not in vars(denoiser)


@pytest.mark.slow
def test_it_is_painted_over_counted_and_restored(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, model = load_painter(folders["sd15"])
    events = list(paints.run(HIRES, Control(), None, tmp_path / "hires"))
    made = list_parts(events)[0]
    steps = [each for each in events if isinstance(each, Step)]
    assert [(each.done, each.total) for each in steps] == [(place, 5) for place in range(1, 6)]
    assert steps[0].eta_s is not None and steps[0].eta_s > 0
    plain = list_parts(list(paints.run(replace(HIRES, hires=False), Control(), None, tmp_path / "plain")))[0]
    large, before = read_pixels(made.path), read_pixels(plain.path)
    assert large.shape == before.shape == (256, 256, 3) and np.abs(large - before).mean() > 1e-3
    restored = picture_settings.read(Path(made.path)).request
    assert (restored.hires, restored.upscale, restored.enlarger, restored.width) == (True, 4, "starter", 64)
    again = list_parts(list(paints.run(restored, Control(), None, tmp_path / "again")))[0]
    assert np.array_equal(large, read_pixels(again.path))
    with Image.open(made.path) as picture:
        assert "Denoising strength: 0.35, Hires upscale: 4" in picture.info["parameters"]
    finished = events[-1]
    assert isinstance(finished, Finished) and finished.rate * finished.elapsed_s == pytest.approx(count_work(HIRES, model))


def test_a_size_between_whole_ones_is_one_that_the_model_takes(folders: dict[str, Path], tmp_path: Path) -> None:
    """72 and 64 px make 90 and 80: it paints multiples of 8 alone."""
    paints, model = load_painter(folders["sd15"])
    request = replace(HIRES, width=72, upscale=1.25)
    events = list(paints.run(request, Control(), None, tmp_path / "hires"))
    made = list_parts(events)[0]
    assert read_pixels(made.path).shape == (80, 88, 3)
    need = describe_need(model, width=72, height=64, larger=1.25)
    assert (need.width, need.height) == (88, 80)
    restored = picture_settings.read(Path(made.path)).request
    assert (restored.upscale, restored.hires, restored.width) == (1.25, True, 72)
    plain = list_parts(list(paints.run(replace(request, hires=False), Control(), None, tmp_path / "plain")))[0]
    assert read_pixels(plain.path).shape == (80, 90, 3), "what is not painted over has any size"


@pytest.mark.slow
def test_it_stops_within_a_step_and_goes_on_from_the_small_picture(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    whole = list_parts(list(paints.run(HIRES, Control(), None, tmp_path / "whole")))[0]
    control, seen = Control(), list[Any]()
    for event in paints.run(replace(HIRES, batch=2), control, None, tmp_path / "job"):
        seen.append(event)
        if sum(isinstance(each, Step) for each in seen) == 5:
            control.stop()
    asked = [place for place, each in enumerate(seen) if isinstance(each, Step)][4]
    assert isinstance(seen[-1], Stopped) and np.abs(read_pixels(seen[-1].files[0]) - read_pixels(whole.path)).max() < 0.02, "two at once"
    assert sum(isinstance(each, Step) for each in seen[asked + 1 :]) <= 1, "within a step; the report of one may wait for its reader"
    denoise, calls = paints._denoise, list[int]()

    def break_off(run: Any, loop: Any) -> Any:
        calls.append(run.before)
        if run.before:
            raise MemoryError
        return denoise(run, loop)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paints, "_denoise", break_off)
        with pytest.raises(MemoryError):
            list(paints.run(HIRES, Control(), None, tmp_path / "broken"))
    events = list(paints.run(HIRES, Control(), None, tmp_path / "broken"))
    assert calls == [0, 4] and [each.done for each in events if isinstance(each, Step)] == [5]
    assert np.array_equal(read_pixels(list_parts(events)[0].path), read_pixels(whole.path))


def test_an_esrgan_enlarger_is_counted_and_stops_between_tiles(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paints, model = load_painter(folders["sd15"])
    monkeypatch.setattr(enlarge, "choose_tile", lambda *_: 16)
    request = replace(HIRES, upscale=2, batch=2, enlarger=str(save(make_old(1, 1), tmp_path / "net.safetensors")))
    events = list(paints.run(request, Control(), None, tmp_path / "whole"))
    steps = [each for each in events if isinstance(each, Step)]
    weight = math.ceil(weigh_products(count_products(request.enlarger, (64, 64), 2), request, model))
    ends = [4, 4 + weight // 2, 4 + (weight + 1) // 2, 4 + (2 * weight + 1) // 2, 5 + weight]
    assert [steps[place - 1].done for place in (4, 20, 21, 37, 38)] == ends and {each.total for each in steps} == {ends[-1]} and weight > 16
    shares = [each.share for each in accumulate(events, Progress.add, initial=Progress())]
    assert shares == sorted(shares) and {(each.part, each.at_once, len(steps)) for each in steps} == {(0, 2, 38)}
    finished = events[-1]
    assert isinstance(finished, Finished) and finished.rate * finished.elapsed_s == pytest.approx(count_work(request, model) * 2)

    control, seen = Control(), list[Any]()
    for event in paints.run(request, control, None, tmp_path / "job"):
        seen.append(event)
        if isinstance(event, Step) and event.done > 4:
            control.stop()
    assert sum(isinstance(each, Step) and each.done > 4 for each in seen) <= 3, "the reports of two may wait for their reader"
    small = list_parts(list(paints.run(replace(request, hires=False, upscale=1), Control(), None, tmp_path / "small")))[0]
    kept, expected = read_pixels(seen[-1].files[0]), Image.open(small.path).resize((128, 128), Image.Resampling.LANCZOS)
    assert isinstance(seen[-1], Stopped) and len(seen[-1].files) == 1 and np.array_equal(kept, np.asarray(expected) / 255)


def test_the_time_left_counts_the_enlarger(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more picture follows; before the enlarger ran it counts by its weight, then as it was measured."""
    paints, _ = load_painter(folders["sd15"])
    loop = Loop([Picture(0, tmp_path, tmp_path, "")], None, 1, elapsed_s=[2.0])
    run = _Run(cast(Any, SimpleNamespace(request=HIRES)), Control(), None, lambda _: None)
    for product_s, enlarged, expected_s, done in ((None, 0.0, 38.0, 2), (1e-9, 0.0, 2.0, 2), (1e-9, 0.5, 1.5, 7)):
        monkeypatch.setattr(paints, "_product_s", product_s)
        plain, counted = (paints._make_step(each, 2, 4, loop, enlarged) for each in (run, replace(run, products=1e9, enlarging=9.5)))
        assert plain.eta_s is not None and counted.eta_s == pytest.approx(plain.eta_s + expected_s)
        assert (counted.done, counted.total) == (done, plain.total + 10)


def test_the_time_left_counts_what_each_of_a_batch_still_needs(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once, 2 s a step; each is enlarged in 1 s and painted over in two steps of 8 s."""
    paints, _ = load_painter(folders["sd15"])
    monkeypatch.setattr(paints, "_product_s", 1e-9)
    monkeypatch.setattr(paints, "_finish_s_a_pixel", 0.0)
    pictures = [Picture(place, tmp_path, tmp_path, "") for place in range(2)]
    loop, inner = Loop(pictures, None, 0, elapsed_s=[4.0]), Loop(pictures[1:], None, 0, elapsed_s=[8.0])
    run = _Run(cast(Any, SimpleNamespace(request=HIRES)), Control(), None, lambda _: None, products=1e9, enlarging=9.5, over=2, weight=4.0)
    over = replace(run, before=14, outer=loop)
    told = [
        (0, run, 2, 4, loop, 0.0, 2, 42.0), (0, run, 4, 4, loop, 0.5, 6, 33.5), (0, over, 1, 2, inner, 0.0, 9, 25.0),
        (1, run, 4, 4, loop, 0.5, 12, 16.5), (1, over, 1, 2, inner, 0.0, 15, 8.0), (1, over, 2, 2, inner, 0.0, 16, 0.0),
    ]  # fmt: skip
    for finished, now, done, total, paints_now, enlarged, shown, eta_s in told:
        loop.finished = finished
        step = paints._make_step(now, done, total, paints_now, enlarged)
        assert (step.done, step.total, step.part, step.at_once) == (shown, 16, 0, 2) and step.eta_s == pytest.approx(eta_s)


def test_what_cannot_be_painted_over_is_told(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["flux2-klein"])
    for request, key in ((replace(HIRES, upscale=1), "paint.hires-alone"), (replace(HIRES, upscale=2), "paint.hires-none")):
        events = list(paints.run(request, Control(), None, tmp_path / key))
        assert key in [each.sentence.key for each in events if isinstance(each, Note)]
        assert max(each.total for each in events if isinstance(each, Step)) == 4
        assert not picture_settings.read(Path(list_parts(events)[0].path)).request.hires


def test_no_forecast_counts_what_is_not_painted_over() -> None:
    model, small = find("lumina-2"), replace(HIRES, hires=False)
    assert count_work(HIRES, model) == count_work(small, model)
    assert describe_need(model, width=512, height=512, larger=4) == describe_need(model, width=512, height=512)


def test_memory_and_time_are_those_of_its_tiles(folders: dict[str, Path]) -> None:
    _, model = load_painter(folders["sd15"])
    small, tiled = describe_need(model, width=64, height=64), describe_need(model, width=64, height=64, larger=4)
    whole = describe_need(model, width=256, height=256)
    assert (tiled.width, tiled.height) == (whole.width, whole.height) and small.queries < tiled.queries < whole.queries
    assert count_work(HIRES, model) > count_work(replace(HIRES, upscale=2), model) > count_work(replace(HIRES, hires=False), model) == 4
    assert estimate_seconds(HIRES, model, []) is None
