"""Paint on a pretended Mac: one thread uses its device, and it misreads a processor's scalar as Metal in torch 2.12 and 2.13."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import diffusers
import pytest
import torch

from app.engine.jobs import schedulers
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, PartDone, Preview, Stopped
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.pictures.run import painter, steps
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, load_painter, read_pixels
from tests.support.separate_memory import separate_memory

pytest_plugins = ["tests.support.picture_fixtures"]


def load(folder: Path, scratch: Path, offload: Any) -> painter.Painter:
    model = catalog.find(str(folder))
    plan = tiny.make_plan(model, device="mps", runs_on="mps", offload=offload)
    there = replace(plan, precision=tuple(replace(part, device="mps") for part in plan.precision))
    return painter.load(folder, model, there, {}, scratch)


QUICK = [("sd15", "none"), ("sd15", "model"), ("flux", "none")]
SLOW = [pytest.param(family, "none", marks=pytest.mark.slow) for family in tiny.MAKERS if family not in ("sd15", "flux")]
"""Every family runs under a pretended card in test_separate_memory.py, with the same watch over threads."""


@pytest.mark.slow
@pytest.mark.parametrize(("family", "offload"), [*QUICK, *SLOW])
def test_a_mac_paints_in_one_thread_what_the_processor_paints(family: str, offload: Any, folders: dict[str, Path], tmp_path: Path) -> None:
    request = PictureRequest("a red ball", **{**SMALL, "preview_every": 1, "guidance": 1.0})
    plain = list(load_painter(folders[family])[0].run(request, Control(), None, tmp_path / "plain"))
    with separate_memory("mps") as memory:
        paints = load(folders[family], tmp_path / "scratch", offload)
        there = list(paints.run(request, Control(), None, tmp_path / "there"))
        stopped, control = [], Control()
        for event in paints.run(request, control, None, tmp_path / "stopped"):
            stopped.append(event)
            if isinstance(event, Preview):
                control.stop()
        paints.close()
    assert not memory.bitten and isinstance(there[-1], Finished) and isinstance(stopped[-1], Stopped)
    one, other = (next(each.path for each in events if isinstance(each, PartDone)) for events in (plain, there))
    assert abs(read_pixels(one) - read_pixels(other)).max() < 3 / 255


def test_a_pretended_mac_reads_a_scalar_at_the_start_of_its_storage() -> None:
    sigmas = torch.tensor([9.0, 2.0, 7.0])
    with separate_memory("mps"):
        ones = torch.ones(2).to("mps")
        for value in (ones * sigmas[2], sigmas[2] * ones):
            assert value.cpu().tolist() == [9, 9]
        assert (ones + sigmas[2]).cpu()[0] == 10 and (ones / sigmas[1]).cpu()[0] == 1 / torch.tensor(9.0)
        assert (ones * sigmas[2].clone()).cpu().tolist() == [7, 7] == (ones * sigmas.to("mps")[2]).cpu().tolist()


def denoise(name: str, kind: str, device: str) -> torch.Tensor:
    """Take a run's steps with a made-up denoiser, watched as a painter watches them."""
    row = schedulers.find_scheduler(name)
    scheduler = getattr(diffusers, row.class_name)(
        beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, prediction_type=kind, **row.settings
    )
    scheduler.set_timesteps(5, device=device)
    generator = torch.Generator("cpu").manual_seed(1)
    sample = torch.randn(1, 4, 4, 4, generator=generator).to(device) * scheduler.init_noise_sigma
    clean: list[torch.Tensor] = []
    accepted = {"generator": generator} if name in ("Euler a", "Euler a trailing", "LCM", "DPM++ 2M SDE", "DPM++ 2M SDE Karras") else {}
    with steps.watch_steps(
        SimpleNamespace(scheduler=scheduler),
        torch.nn.Identity(),
        [generator],
        control=Control(),
        on_step=lambda _, predict, __: clean.append(predict()),
        start=None,
    ):
        for timestep in scheduler.timesteps:
            out = torch.tanh(scheduler.scale_model_input(sample, timestep))
            sample = scheduler.step(out, timestep, sample, return_dict=False, **accepted)[0]
    return torch.cat([sample, *clean]).cpu()


@pytest.mark.parametrize("kind", ["epsilon", "v_prediction"])
@pytest.mark.parametrize("name", schedulers.NAMES)
def test_every_step_on_a_mac_is_the_processors(name: str, kind: str) -> None:
    here = denoise(name, kind, "cpu")
    with separate_memory("mps") as memory:
        there = denoise(name, kind, "mps")
    assert not memory.bitten and torch.allclose(there, here, rtol=1e-4, atol=1e-5)
