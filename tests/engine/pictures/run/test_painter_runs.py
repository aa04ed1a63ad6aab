"""Test a painter's run: Stop within a step, resuming from the last good one, progress, released memory."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Generator
from pathlib import Path
from typing import Any

import diffusers
import pytest
import torch
from PIL import Image

from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure
from app.compat.planning.decide import decide
from app.compat.planning.fallbacks import next_fallback
from app.compat.planning.types import Choice, Vae
from app.engine.jobs import schedulers
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, PartDone, Preview, Step, Stopped
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.model import describe_need
from app.engine.pictures.run import checkpoint, per_request, preview, steps
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run.checkpoint import Checkpoint
from app.engine.pictures.run.final_settings import resolve_settings
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, break_denoiser, list_parts, load_painter, read_pixels

pytestmark = pytest.mark.long

pytest_plugins = ["tests.support.picture_fixtures"]


@pytest.mark.parametrize("family", tiny.ONE_A_KIND)
def test_goes_on_from_the_last_good_step_to_the_very_same_picture(
    family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, _ = load_painter(folders[family])
    request = PictureRequest("a red ball", **{**SMALL, "steps": 6, "guidance": 1.0})
    list(paints.run(request, Control(), None, tmp_path / "whole"))
    hook = break_denoiser(paints, 4)
    with pytest.raises(NumbersBroke) as broke:
        list(paints.run(request, Control(), None, tmp_path / "broken"))
    hook.remove()
    assert (broke.value.step, broke.value.where) == (4, "denoiser")
    again = [event for event in paints.run(request, Control(), None, tmp_path / "broken") if isinstance(event, Step)]
    assert [step.done for step in again] == [4, 5, 6]
    assert torch.equal(decoded[0], decoded[1])
    assert not list((tmp_path / "broken").glob("*.safetensors")), "nothing is left over"


@pytest.mark.slow
@pytest.mark.parametrize("name", schedulers.NAMES)
def test_every_scheduler_paints_and_goes_on_alike(name: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints, _ = load_painter(folders["sd15"])
    request = PictureRequest("a red ball", **{**SMALL, "steps": 6, "scheduler": name, "guidance": 1.0})
    events = list(paints.run(request, Control(), None, tmp_path / "whole"))
    assert isinstance(events[-1], Finished)
    hook = break_denoiser(paints, 4)
    with pytest.raises(NumbersBroke):
        list(paints.run(request, Control(), None, tmp_path / "broken"))
    hook.remove()
    list(paints.run(request, Control(), None, tmp_path / "broken"))
    assert torch.equal(decoded[0], decoded[1])


@pytest.mark.parametrize("name", schedulers.NAMES)
def test_the_clean_picture_is_guessed_rightly(name: str) -> None:
    """A denoiser that knows the picture returns the exact noise, so every step has to predict that picture."""
    row = schedulers.find_scheduler(name)
    scheduler = getattr(diffusers, row.class_name)(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, **row.settings)
    scheduler.set_timesteps(10)
    known = torch.randn(1, 4, 4, 4, generator=torch.Generator().manual_seed(1))
    sample = torch.randn(1, 4, 4, 4, generator=torch.Generator().manual_seed(2)) * scheduler.init_noise_sigma
    for timestep in scheduler.timesteps:
        seen = scheduler.scale_model_input(sample, timestep)
        alpha_squared = scheduler.alphas_cumprod[int(timestep.round())]
        noise = (seen - alpha_squared.sqrt() * known) / (1 - alpha_squared).sqrt()
        guess = steps.predict_clean(scheduler, noise, timestep, sample, getattr(scheduler, "step_index", None) or 0)
        assert (guess - known).abs().max() < 0.06
        sample = scheduler.step(noise, timestep, sample, return_dict=False)[0]


def stopping(paints: picture_painter.Painter, request: PictureRequest, at: int, job: Path) -> tuple[list[Event], int]:
    """Press Stop while step `at` is computed; return how many times the denoiser was called."""
    control, asked = Control(), 0

    def press(_module: torch.nn.Module, _args: Any, _output: Any) -> None:
        nonlocal asked
        asked += 1
        if asked == at:
            control.stop()

    hook = getattr(paints.pipe, paints.family.denoiser).register_forward_hook(press)
    events = list(paints.run(request, control, None, job))
    hook.remove()
    return events, asked


@pytest.mark.parametrize("family", tiny.ONE_A_KIND)
def test_stop_ends_within_the_step_and_keeps_a_valid_picture(family: str, folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders[family])
    events, asked = stopping(paints, PictureRequest("a", **{**SMALL, "steps": 8, "batch": 3, "guidance": 1.0}), 3, tmp_path)
    assert asked == 3
    assert [event.done for event in events if isinstance(event, Step)] == [1, 2, 3]
    last = events[-1]
    assert isinstance(last, Stopped) and len(last.files) == 1
    assert read_pixels(last.files[0]).shape == (64, 64, 3)
    assert not list(tmp_path.glob(".*"))


def test_stop_before_the_first_step_and_after_the_last(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    control = Control()
    control.stop()
    events = list(paints.run(PictureRequest("a", **SMALL), control, None, tmp_path / "before"))
    assert isinstance(events[-1], Stopped) and events[-1].files == ()
    control = Control()
    events = []
    for event in paints.run(PictureRequest("a", **SMALL), control, None, tmp_path / "after"):
        events.append(event)
        if isinstance(event, PartDone):
            control.stop()
    assert isinstance(events[-1], Finished), "there was nothing left to stop"


def test_the_reader_may_go_at_any_moment(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    before = {*threading.enumerate()}
    run = paints.run(PictureRequest("a", **{**SMALL, "steps": 50}), Control(), None, tmp_path)
    assert isinstance(next(run), Step) and isinstance(run, Generator)
    run.close()
    assert not {*threading.enumerate()} - before
    assert "step" not in vars(paints.pipe.scheduler) and "forward" not in vars(paints.pipe.unet)


def test_each_picture_of_a_batch_is_the_same_alone(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints, _ = load_painter(folders["sd15"])
    events = list(paints.run(PictureRequest("a", **{**SMALL, "batch": 3}), Control(), None, tmp_path / "three"))
    assert [part.seed for part in list_parts(events)] == [11, 12, 13]
    list(paints.run(PictureRequest("a", **{**SMALL, "seed": 12}), Control(), None, tmp_path / "one"))
    assert (decoded[1] - decoded[3]).abs().max() < 1e-4 and not torch.allclose(decoded[0], decoded[1], atol=1e-2)


def test_a_job_taken_up_again_leaves_finished_pictures_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    request = PictureRequest("a", **{**SMALL, "seed": None, "batch": 2})
    first = list_parts(list(paints.run(request, Control(), None, tmp_path)))
    written = Path(first[0].path).stat().st_mtime_ns
    Path(first[1].path).unlink()
    again = list(paints.run(request, Control(), None, tmp_path))
    assert list_parts(again) == first, "the same drawn seed"
    assert Path(first[0].path).stat().st_mtime_ns == written
    assert {event.part for event in again if isinstance(event, Step)} == {1}


@pytest.mark.parametrize("at", [2, 4], ids=["between the steps", "while it is decoded"])
def test_a_picture_that_another_machine_finished_first_is_left(
    at: int, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.pictures.steps.AT_ONCE", 1)
    paints, _ = load_painter(folders["sd15"])
    calls, theirs = 0, tmp_path / "picture-0.png"

    def arrive(_module: torch.nn.Module, _arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            theirs.write_bytes(b"another's")

    hooks = [part.register_forward_pre_hook(arrive) for part in (paints.pipe.unet, paints.pipe.vae.decoder)]
    events = list(paints.run(PictureRequest("a", **{**SMALL, "batch": 2, "guidance": 1.0}), Control(), None, tmp_path))
    for hook in hooks:
        hook.remove()
    assert theirs.read_bytes() == b"another's" and not list(tmp_path.glob("latent-*"))
    assert isinstance(events[-1], Finished) and len(events[-1].files) == 2
    assert [event.done for event in events if isinstance(event, Step)] == [*range(1, min(at, 3) + 1), 1, 2, 3]


def test_a_broken_decoder_is_told_and_the_steps_are_not_done_again(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    weight = paints.pipe.vae.decoder.conv_in.weight
    good = weight.data.clone()
    weight.data.mul_(float("nan"))
    with pytest.raises(NumbersBroke) as broke:
        list(paints.run(PictureRequest("a", **SMALL), Control(), None, tmp_path))
    assert broke.value.where == "vae"
    weight.data.copy_(good)
    events = list(paints.run(PictureRequest("a", **SMALL), Control(), None, tmp_path))
    assert not [event for event in events if isinstance(event, Step)] and isinstance(events[-1], Finished)


def test_a_decoder_without_room_says_so_and_tiles_come_first(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, model = load_painter(folders["sd15"])

    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    hook = paints.pipe.vae.decoder.register_forward_pre_hook(full)
    try:
        with pytest.raises(torch.OutOfMemoryError) as broke:
            list(paints.run(PictureRequest("a", **SMALL), Control(), None, tmp_path))
    finally:
        hook.remove()
    machine, asked = MACHINES["rtx-3060"], describe_need(model, width=1024, height=1024)
    found = next_fallback(
        lambda verdicts: decide(machine, asked, Choice(), verdicts),
        asked,
        {},
        RunFailure("memory"),
        where=getattr(broke.value, "where", None),
    )
    assert found is not None and found[0].fallback.id == "tiled-decoder"


def test_previews_come_as_asked(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["flux2-klein"])
    request = PictureRequest("a", **{**SMALL, "steps": 7, "preview_every": 3})
    seen = [event for event in paints.run(request, Control(), None, tmp_path) if isinstance(event, Preview)]
    assert [event.step for event in seen] == [3, 6]
    assert read_pixels(seen[1].path).shape == (256, 256, 3)


def test_where_parts_take_turns_the_decoder_goes_before_the_steps(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = catalog.find(str(folders["sd15"]))
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model, offload="model", device="cuda"), {})
    pipe, order = paints.pipe, []
    fit, free = preview.fit_colours, pipe.maybe_free_model_hooks
    monkeypatch.setattr(preview, "fit_colours", lambda *args: order.append("fit") or fit(*args))
    monkeypatch.setattr(pipe, "maybe_free_model_hooks", lambda: order.append("free") or free())
    pipe.text_encoder.register_forward_pre_hook(lambda *_: order.append("words"))
    list(paints.run(PictureRequest("a", **{**SMALL, "preview_every": 1}), Control(), None, tmp_path))
    assert order[:3] == ["fit", "free", "words"]


def test_tiles_and_slices_are_taken_on_while_loaded(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints, model = load_painter(folders["sd15"])
    request = PictureRequest("a", **{**SMALL, "width": 256, "height": 256})
    list(paints.run(request, Control(), None, tmp_path / "whole"))
    assert paints.adapt(tiny.make_plan(model, vae=Vae(True, 128)))
    list(paints.run(request, Control(), None, tmp_path / "tiled"))
    assert 0 < (decoded[0] - decoded[1]).abs().mean() < 0.1
    assert paints.adapt(tiny.make_plan(model))
    list(paints.run(request, Control(), None, tmp_path / "again"))
    assert torch.equal(decoded[0], decoded[2])
    assert not paints.adapt(tiny.make_plan(model, "bfloat16"))


def test_black_is_believed_in_float32_only(folders: dict[str, Path], tmp_path: Path) -> None:
    """In half precision a black picture means overflow; in float32 it may be intended."""
    for dtype in ("float32", "bfloat16"):
        model = catalog.find(str(folders["sd15"]))
        paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model, dtype), {})
        paints.pipe.vae.decoder.conv_out.weight.data.zero_()
        paints.pipe.vae.decoder.conv_out.bias.data.fill_(-1)
        run = paints.run(PictureRequest("a black night", **SMALL), Control(), None, tmp_path / dtype)
        if dtype == "float32":
            assert isinstance(list(run)[-1], Finished)
        else:
            with pytest.raises(NumbersBroke):
                list(run)


def test_closing_lets_go_of_the_weights(folders: dict[str, Path], tmp_path: Path) -> None:
    model = catalog.find(str(folders["sd15"]))
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model), {})
    list(paints.run(PictureRequest("a", **SMALL), Control(), None, tmp_path))
    held = weakref.ref(paints.pipe.unet)
    paints.close()
    gc.collect()
    assert held() is None


def test_what_a_family_leaves_aside_is_not_stored_as_done(folders: dict[str, Path], tmp_path: Path) -> None:
    """It was left aside with a note, and stood in the picture's settings all the same."""
    Image.new("RGB", (64, 64), "blue").save(start := tmp_path / "start.png")
    asked = PictureRequest("a", negative="fog", strength=0.3, scheduler="Euler a", image=str(start), **SMALL)
    made = {
        family: resolve_settings(asked, catalog.find(str(folders[family])), tmp_path / family) for family in ("sd15", "flux", "flux2-klein")
    }
    kept = {name: (each.request.negative, each.request.strength, each.request.scheduler) for name, each in made.items()}
    assert kept["sd15"] == ("fog", 0.3, "Euler a") and kept["flux"][:2] == ("", 0.3) and kept["flux2-klein"][:2] == ("", 1.0)
    assert kept["flux"][2] != "Euler a" != kept["flux2-klein"][2]
    assert {each.key for each in made["flux2-klein"].notes} >= {"paint.no-negative", "paint.no-strength", "paint.flow"}


@pytest.mark.parametrize("family", ["sd15", "flux", "flux2-klein"])
def test_the_latents_of_a_step_are_read_as_the_pipeline_reads_its_last(
    family: str, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Previews and Stop unpack latents as the pipeline itself does."""
    paints, model = load_painter(folders[family])
    kept: list[Checkpoint] = []
    monkeypatch.setattr(checkpoint, "save", lambda _path, each, _mark: kept.append(each))
    request = PictureRequest("a", guidance=1.0, **SMALL)
    list(paints.run(request, Control(), None, tmp_path))
    chosen = resolve_settings(request, model, tmp_path)
    mine, theirs = (per_request.unpack_latents(paints.pipe, paints.family, each.latents, chosen) for each in kept[-2:])
    assert mine.shape == (1, paints.pipe.vae.config.latent_channels, 8, 8)
    assert torch.allclose(mine, theirs, atol=1e-5)
