"""Run full-size Stable Diffusion 1.5 and XL with random weights, as planned for old cards and within their memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import diffusers
import pytest
import torch

from app.base.paths import home
from app.compat.machine.meter import read
from app.compat.planning.types import Choice, Plan
from app.engine.jobs import schedulers
from app.engine.jobs.control import Control
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, Step, Unloaded
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.models.picture_families import FAMILIES
from app.engine.pictures.families import placement
from app.engine.pictures.families.kept_layers import keep_layers
from app.engine.pictures.run import per_request, steps
from app.engine.session.session import Session
from tests.card import full_size
from tests.card.old_cards import CARDS, GIB, acting, alone, off, peak_gib
from tests.support.picture_fixtures import find_pipe

pytestmark = pytest.mark.card
PROMPT = "a lighthouse at dusk"
SIZE = {"sd15": 512, "sdxl": 1024}
STEPS = {"sd15": 8, "sdxl": 4}
WITHIN = {"float32": 1e-3, "float16": 5e-2}


@dataclass
class Painted:
    events: list[Event] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    latents: list[torch.Tensor] = field(default_factory=list)
    image: list[torch.Tensor] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    decoded_s: float = 0.0

    @property
    def fallbacks(self) -> list[str]:
        return [event.fallback for event in self.events if isinstance(event, Adjusted)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("pictures")
    return cache(lambda family: full_size.picture(family, root / family))


@pytest.fixture(scope="module")
def reference(folder: Any) -> Any:
    """Return the final latents and the picture of diffusers in float32 with torch's attention. `noise`: the dtype in which it is drawn, for torch
    before 2.13 draws other numbers in half precision from the same seed."""

    @torch.no_grad()
    def made(family: str, noise: str) -> tuple[torch.Tensor, torch.Tensor]:
        gc.collect()
        model = catalog.find(str(folder(family)))
        kinds = FAMILIES[model.family]
        precise, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
        plain = getattr(diffusers, kinds.text_class).from_pretrained(folder(family), dtype=torch.float32, **kinds.load_arguments)
        plain.to(full_size.DEVICE)
        row = schedulers.find_scheduler(model.settings.scheduler)
        plain.scheduler = getattr(diffusers, row.class_name).from_config(plain.scheduler.config, **row.settings)
        size = SIZE[family]
        begin = torch.randn(1, 4, size // 8, size // 8, generator=torch.Generator("cpu").manual_seed(11), dtype=getattr(torch, noise))
        latents = plain(
            prompt=PROMPT,
            num_inference_steps=STEPS[family],
            guidance_scale=5.0,
            width=size,
            height=size,
            latents=begin.float().to(full_size.DEVICE),
            output_type="latent",
        ).images
        image = plain.vae.decode(latents / plain.vae.config.scaling_factor, return_dict=False)[0]
        torch.backends.cudnn.allow_tf32 = precise
        return latents.cpu(), image.cpu()

    return cache(made)


def request(folder: Path, family: str) -> PictureRequest:
    return PictureRequest(
        PROMPT, model=str(folder), width=SIZE[family], height=SIZE[family], steps=STEPS[family], guidance=5.0, seed=11, preview_every=0
    )


def paint(session: Session, asked: PictureRequest, job: Path, choice: Choice = Choice()) -> Painted:  # noqa: B008
    painted = Painted()
    decode, check = per_request.decode_latents, steps.check_decoded

    def decoded(pipe: Any, family: Any, latents: torch.Tensor, settings: Any, **more: Any) -> Any:
        painted.latents.append(latents.float().cpu())
        began_s = time.perf_counter()
        image = decode(pipe, family, latents, settings, **more)
        painted.decoded_s = time.perf_counter() - began_s
        return image

    def checked(image: torch.Tensor, *more: Any) -> None:
        painted.image.append(image.float().cpu())
        check(image, *more)

    with patch.object(per_request, "decode_latents", decoded), patch.object(steps, "check_decoded", checked):
        for event in session.run(asked, choice, Control(), job, lambda _, plan: painted.plans.append(plan)):
            painted.events.append(event)
            if isinstance(event, Step):
                painted.at_s.append(time.perf_counter())
    end = painted.events[-1]
    assert isinstance(end, Finished), isinstance(end, Failed) and (
        str(end.sentence),
        [str(each) for each in end.objections],
        painted.fallbacks,
    )
    return painted


@contextmanager
def opened(folder: Path) -> Iterator[Session]:
    session = Session(home(folder / "home").create())
    try:
        yield session
    finally:
        session.free()


def run_as(
    card: str,
    family: str,
    folder: Any,
    reference: Any,
    tmp_path: Path,
    choice: Choice = Choice(),  # noqa: B008 - frozen
) -> tuple[Painted, int]:
    """Run, print the table's row, and return the result with the bytes left on the card after unloading."""
    asked = request(folder(family), family)
    with alone(), acting(card) as hardware, opened(tmp_path) as session:
        painted = paint(session, asked, tmp_path / "job", choice)
        reading = read()
        assert reading.device_bytes == torch.cuda.memory_reserved()
        assert reading.allocated_bytes == torch.cuda.memory_allocated()
        end, peak, used = painted.events[-1], torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated()
        (gone,) = (each for each in session.holder.unload() if isinstance(each, Unloaded))
        left = torch.cuda.memory_allocated()
    assert isinstance(end, Finished)
    plan = painted.plans[-1]
    wanted, whole = reference(family, plan.dtype)
    gc.collect()
    each_s = [after - before for before, after in zip(painted.at_s, painted.at_s[1:], strict=False)]
    error, seen = off(painted.latents[-1], wanted), off(painted.image[-1], whole)
    print(
        f"| {family} | {card} | {plan.dtype}, offload {plan.offload}, tiles {plan.vae.tile_pixels} | {1000 * median(each_s):.0f} ms a step, "
        f"{painted.decoded_s:.2f} s to decode | {peak / GIB:.2f} of {hardware.free_bytes / GIB:.2f} GiB, {used / GIB:.2f} used | latents off {error:.1e}, "
        f"picture {seen:.1e} | meter saw {end.highest_bytes / peak:.2f} of the peak, {gone.freed_bytes / GIB:.2f} GiB given back, "
        f"{left >> 20} MiB left | {painted.fallbacks}"
    )
    assert peak <= hardware.free_bytes
    assert error < WITHIN[plan.dtype]
    assert plan.vae.tile_pixels or seen < WITHIN[plan.dtype]
    return painted, left


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("family", ["sd15", "sdxl"])
def test_it_paints_as_this_card(card: str, family: str, folder: Any, reference: Any, tmp_path: Path) -> None:
    painted, left = run_as(card, family, folder, reference, tmp_path)
    assert not painted.fallbacks
    assert left < 256 << 20


@pytest.mark.parametrize("offload", ["model", "group", "sequential"])
def test_every_offload_paints_the_same(offload: Any, folder: Any, reference: Any, tmp_path: Path) -> None:
    painted, _ = run_as("GTX 1060, 6 GB", "sd15", folder, reference, tmp_path, Choice(offload=offload))
    assert painted.plans[-1].offload == offload


@pytest.mark.parametrize("card", ["RTX 2060, 6 GB", "GTX 1060, 6 GB"])
def test_layers_that_stay_make_a_step_of_sdxl_shorter(card: str, folder: Any, reference: Any, tmp_path: Path) -> None:
    step_s: dict[str, float] = {}
    for name, keep in (("sent", lambda *_: nullcontext()), ("kept", keep_layers)):
        with patch("app.engine.pictures.run.painter.keep_layers", keep):
            painted, _ = run_as(card, "sdxl", folder, reference, tmp_path / name)
        step_s[name] = median(after - before for before, after in zip(painted.at_s, painted.at_s[1:], strict=False))
    print(f"| sdxl | {card} | every layer sent {1000 * step_s['sent']:.0f} ms a step, as planned {1000 * step_s['kept']:.0f} ms |")
    assert step_s["kept"] < step_s["sent"]


def test_a_picture_goes_on_after_memory_ran_out(folder: Any, reference: Any, tmp_path: Path) -> None:
    """The card refuses memory in the fourth step: three steps are not repeated, and the picture is the same."""
    with acting("GTX 1060, 6 GB"), opened(tmp_path) as session:
        asked = request(folder("sd15"), "sd15")
        whole = paint(session, asked, tmp_path / "whole")
        unet, calls = find_pipe(session).unet, list[int]()

        def full(*_: Any) -> None:
            calls.append(1)
            if len(calls) == 4:
                torch.empty(64 * GIB, dtype=torch.uint8, device=full_size.DEVICE)

        unet.conv_in.register_forward_pre_hook(full)
        broken = paint(session, asked, tmp_path / "broken")
        assert broken.fallbacks == ["smaller-chunk"], (broken.fallbacks, len(calls))
        # Once for the step that broke, and once for an answer whose shape the skipped steps repeat.
        assert len(calls) == STEPS["sd15"] + 2, len(calls)
        assert off(broken.latents[-1], whole.latents[-1]) < 1e-4


@pytest.mark.parametrize(("room_gib", "kernels"), [(2.5, ("math",)), (2.5, ()), (1.6, None), (0.6, None)])
def test_a_card_with_less_than_it_says(room_gib: float, kernels: Any, folder: Any, reference: Any, tmp_path: Path) -> None:
    """Other programs took memory meanwhile: the run falls back until it fits, and the picture is right."""
    wanted, _ = reference("sd15", "float16")
    with acting("T4, 15 GB", int(room_gib * GIB)), opened(tmp_path) as session:
        painted = paint(session, request(folder("sd15"), "sd15"), tmp_path / "job", Choice(kernels=kernels))
        print(
            f"{room_gib} GiB, kernels {kernels}: fallbacks {painted.fallbacks}, peak {peak_gib():.2f} GiB, off {off(painted.latents[-1], wanted):.1e}"
        )
        assert painted.fallbacks and peak_gib() <= room_gib
        assert off(painted.latents[-1], wanted) < WITHIN["float16"]


def test_parts_that_wait_are_not_on_the_card(folder: Any, tmp_path: Path) -> None:
    """With offload "model" the card holds only the active part."""
    held: dict[str, int] = {}
    with acting("GTX 1060, 6 GB"), opened(tmp_path) as session:
        choice, asked = Choice(offload="model"), request(folder("sd15"), "sd15")
        paint(session, asked, tmp_path / "first", choice)
        parts = placement.list_modules(find_pipe(session))
        for name, part in parts.items():
            first: Any = part.decoder if name == "vae" else part
            first.register_forward_hook(lambda *_, name=name: held.update({name: torch.cuda.memory_allocated()}))
        paint(session, asked, tmp_path / "second", choice)
        sizes = {name: sum(each.nbytes for each in part.parameters()) for name, part in parts.items()}
        print({name: (held[name] >> 20, sizes[name] >> 20) for name in parts})
        assert all(sizes[name] < held[name] < sizes[name] + (700 << 20) for name in parts)
        assert torch.cuda.memory_allocated() < 256 << 20, "after the picture everything waits"
