"""Test VAEs that scale by 4 or 16 instead of 8: attention sizes are right, and all of painting works."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from app.base.trouble import Trouble
from app.compat.planning.types import Vae
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, Preview
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog, model
from app.engine.pictures.families import placement
from app.engine.pictures.run import painter, preview
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, assert_same, list_parts, paint_with_diffusers, read_pixels

pytest_plugins = ["tests.support.picture_fixtures"]
WIDTHS = {4: (16, 32, 32), 16: (16, 16, 16, 32, 32)}
FAMILIES = [(family, scale) for family in ("sd15", "sd3") for scale in WIDTHS]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Path]:
    root = tmp_path_factory.mktemp("scales")
    return {(family, scale): tiny.save(family, root / f"{family}-{scale}", widths=WIDTHS[scale]) for family, scale in FAMILIES}


@pytest.mark.parametrize(("family", "scale"), FAMILIES)
def test_its_attention_is_as_wide_as_was_foretold(family: str, scale: int, folders: Any) -> None:
    found = catalog.find(str(folders[family, scale]))
    pipe = getattr(tiny, family)(WIDTHS[scale])
    pipe.set_progress_bar_config(disable=True)
    width, height = max(128, 16 * scale), max(256, 32 * scale)
    asked = model.describe_need(found, width=width, height=height, guidance=7.0)
    widest = seen(lambda: pipe("a", width=width, height=height, num_inference_steps=1, output_type="latent"))
    tokens = asked.queries - found.attention.text_tokens
    assert widest[:2] == (asked.batch, asked.heads) and widest[3] == asked.head_dim
    text = pipe.tokenizer.model_max_length + 256 if family == "sd3" else 0  # this tiny T5 pads like the real one
    assert widest[2] == tokens + text


def seen(run: Any) -> tuple[int, ...]:
    shapes: list[tuple[int, ...]] = []
    original = torch.nn.functional.scaled_dot_product_attention

    def see(query: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        shapes.append(tuple(query.shape))
        return original(query, *args, **kwargs)

    torch.nn.functional.scaled_dot_product_attention = see
    try:
        run()
    finally:
        torch.nn.functional.scaled_dot_product_attention = original
    return max(shapes, key=lambda shape: shape[0] * shape[1] * shape[2])


@pytest.mark.slow
@pytest.mark.parametrize(("family", "scale"), FAMILIES)
def test_it_paints_what_plain_diffusers_paints(family: str, scale: int, folders: Any, tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    folder = folders[family, scale]
    row = catalog.find(str(folder))
    paints = painter.load(folder, row, tiny.make_plan(row), {})
    request = PictureRequest("a red ball", guidance=3.0, **{**SMALL, "preview_every": 1})
    events = list(paints.run(request, Control(), None, tmp_path))
    assert isinstance(events[-1], Finished)
    assert_same(decoded[0], paint_with_diffusers(folder, row, prompt="a red ball", guidance_scale=3.0, width=64, height=64))
    shown = [event.path for event in events if isinstance(event, Preview)]
    assert len(shown) == 2 and all(Image.open(path).size == (256, 256) for path in shown)


@pytest.mark.parametrize("scale", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_it_starts_from_a_picture_and_fills_a_mask(scale: int, folders: Any, tmp_path: Path, gradient: Path) -> None:
    row = catalog.find(str(folders["sd15", scale]))
    paints = painter.load(folders["sd15", scale], row, tiny.make_plan(row), {})
    mask = tmp_path / "mask.png"
    drawn = Image.new("L", (96, 96), 0)
    drawn.paste(255, (48, 0, 96, 96))
    drawn.save(mask)
    request = PictureRequest("a", image=str(gradient), strength=1.0, **SMALL)
    for index, each in enumerate((request, replace(request, mask=str(mask)))):
        events = list(paints.run(each, Control(), None, tmp_path / str(index)))
        assert isinstance(events[-1], Finished) and read_pixels(list_parts(events)[0].path).shape == (64, 64, 3)


@pytest.mark.parametrize("scale", WIDTHS)
def test_tiles_have_the_size_that_was_planned(scale: int, folders: Any) -> None:
    row = catalog.find(str(folders["sd15", scale]))
    paints = painter.load(folders["sd15", scale], row, tiny.make_plan(row), {})
    vae = paints.pipe.vae
    latents = torch.randn(1, 4, 128 // scale, 128 // scale, generator=torch.Generator().manual_seed(1))
    placement.configure_vae(vae, tiny.make_plan(row, vae=Vae(True, 64)))
    assert (vae.tile_sample_min_size, vae.tile_latent_min_size) == (64, 64 // scale)
    with torch.no_grad():
        tiled = vae.decode(latents).sample
    assert tiled.shape == (1, 3, 128, 128)


@pytest.mark.parametrize("scale", WIDTHS)
def test_its_preview_has_its_colours(scale: int, folders: Any) -> None:
    """A preview restores a picture from its latents with the loaded VAE's linear map."""
    row = catalog.find(str(folders["sd15", scale]))
    paints = painter.load(folders["sd15", scale], row, tiny.make_plan(row), {})
    colours = preview.fit_colours(paints.pipe.vae, torch.device("cpu"))
    assert colours.weight.shape == (4, 3)
    assert np.asarray(colours.draw(torch.zeros(1, 4, 320 // scale, 256 // scale))).shape[1] >= 64


def test_a_coarse_decoder_asks_for_larger_strides(folders: Any, tmp_path: Path) -> None:
    coarse, fine = (catalog.find(str(folders["sd15", scale])) for scale in (16, 4))
    assert (coarse.settings.multiple, fine.settings.multiple) == (16, 8)
    assert coarse.settings.sizes == ((128, 128),) and fine.settings.sizes == ((32, 32),)
    paints = painter.load(folders["sd15", 16], coarse, tiny.make_plan(coarse), {})
    with pytest.raises(Trouble) as told:
        list(paints.run(PictureRequest("a", width=72, height=64), Control(), None, tmp_path))
    assert told.value.sentence.key == "image.multiple"
