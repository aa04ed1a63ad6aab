"""Test painting the masked part alone: which box, what stays, how soft its edge is, and that a picture keeps its size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.base.trouble import Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.events import Note
from app.engine.jobs.owners import Allowance
from app.engine.jobs.request import PictureRequest, from_json, to_json
from app.engine.kinds import kind_of
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run.masked_part import Surroundings, choose_shape, find_box, soften
from tests.support.picture_fixtures import SMALL, list_parts, load_painter, read_pixels
from tests.support.tiny_pictures import save_control

pytest_plugins = ["tests.support.picture_fixtures"]


@pytest.mark.parametrize(
    ("marked", "padding", "shape", "box"),
    [
        ((400, 300, 500, 400), 32, (512, 512), (368, 268, 532, 432)),  # as in A1111
        ((400, 300, 500, 350), 0, (512, 512), (400, 275, 500, 375)),  # grown to the shape
        ((400, 300, 500, 400), 0, (768, 512), (375, 300, 525, 400)),
        ((0, 0, 10, 100), 0, (512, 512), (0, 0, 100, 100)),  # pushed back into the picture
        ((990, 590, 1000, 600), 20, (512, 512), (970, 570, 1000, 600)),
        ((0, 100, 1000, 200), 50, (512, 512), (0, 0, 1000, 600)),  # no further than the picture
        ((10, 20, 30, 40), 5, (0, 0), (5, 15, 35, 45)),
    ],
)
def test_the_box_around_a_mask(marked: Any, padding: int, shape: Any, box: Any) -> None:
    assert find_box(marked, (1000, 600), padding, shape) == box


@given(data=st.data())
def test_every_box_holds_the_mask_and_lies_within_the_picture(data: Any) -> None:
    width, height = (data.draw(st.integers(16, 5000)) for _ in range(2))
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    marked = left, top, data.draw(st.integers(left + 1, width)), data.draw(st.integers(top + 1, height))
    shape = data.draw(st.sampled_from([(512, 512), (1024, 64), (64, 1024), (832, 1248)]))
    padding = data.draw(st.integers(0, 512))
    box = find_box(marked, (width, height), padding, shape)
    assert 0 <= box[0] <= max(0, marked[0] - padding) and 0 <= box[1] <= max(0, marked[1] - padding)
    assert width >= box[2] >= min(width, marked[2] + padding) and height >= box[3] >= min(height, marked[3] + padding)
    across, down = box[2] - box[0], box[3] - box[1]
    if across < width and down < height:
        assert abs(across * shape[1] - down * shape[0]) <= max(shape), "it has the shape, but for a pixel"


def test_only_what_lies_inside_changes_whatever_the_blur() -> None:
    pixels = np.random.default_rng(1).integers(0, 255, (300, 400, 3), np.uint8)
    mask = Image.new("L", (400, 300))
    mask.paste(255, (100, 80, 220, 190))
    mask.paste(255, (390, 290, 400, 300))
    for blur in (0, 1, 4, 64):
        around = Surroundings.find(Image.fromarray(pixels), mask, 16, (64, 64))
        part, small = around.cut(64, 64)
        assert part.size == small.size == (64, 64) and set(np.asarray(small).ravel().tolist()) <= {0, 255}
        made = np.asarray(around.paste(Image.new("RGB", (64, 64), "red"), blur))
        outside = np.asarray(mask) == 0
        assert np.array_equal(made[outside], pixels[outside])
        assert (made[~outside] == (255, 0, 0)).all() == (blur == 0)


def test_the_edge_is_as_soft_as_asked_and_a_small_mask_is_not_lost() -> None:
    mask = Image.new("L", (300, 300))
    mask.paste(255, (100, 0, 300, 300))
    for blur in (4, 16, 40):
        row = np.asarray(soften(mask, blur))[150].astype(float)
        assert not row[:100].any() and row[100] < 255 * 2.5 / blur and row[100 + blur] > 0.9 * 255 and row[100 + 2 * blur] == 255
        assert row[299] == 255, "a mask that reaches the picture's border goes on there"
        assert (np.diff(row[100:]) >= 0).all()
    thin = Image.new("L", (300, 300))
    thin.paste(255, (100, 100, 106, 200))
    for blur in (4, 64):
        assert np.asarray(soften(thin, blur)).max() >= 250, "what is narrower than its edge would never be painted"


def test_a_thin_mask_of_a_large_picture_is_not_lost_when_it_is_scaled() -> None:
    mask = Image.new("L", (4000, 3000))
    mask.paste(255, (10, 1500, 3990, 1501))
    _, small = Surroundings.find(Image.new("RGB", (4000, 3000)), mask, 0, (512, 512)).cut(512, 512)
    assert np.asarray(small).any()
    assert choose_shape(mask, 0) == (3980, 1990), "no longer than twice its other side"


@pytest.fixture
def photo(tmp_path: Path) -> dict[str, Any]:
    """A picture of a size that no model paints, of which a small part is masked."""
    pixels = np.random.default_rng(5).integers(0, 255, (350, 501, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    mask = Image.new("L", (501, 350))
    mask.paste(255, (200, 100, 250, 160))
    mask.save(tmp_path / "mask.png")
    return {"image": str(tmp_path / "photo.png"), "mask": str(tmp_path / "mask.png")}


@pytest.mark.parametrize("family", ["sd15", "flux"])
def test_the_part_is_painted_at_full_size_and_the_picture_keeps_its_own(
    family: str, folders: dict[str, Path], photo: dict[str, Any], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, _ = load_painter(folders[family])
    asked = PictureRequest(
        "a red ball", masked_only=True, masked_padding=8, strength=1.0, upscale=2, hires=True, **photo, **SMALL | {"guidance": 1.0}
    )
    events = list(paints.run(asked, Control(), None, tmp_path / "job"))
    file = Path(list_parts(events)[0].path)
    made, before, mask = (read_pixels(each) for each in (file, photo["image"], photo["mask"]))
    assert decoded[-1].shape[-2:] == (64, 64) and made.shape == before.shape
    outside = mask == 0
    assert np.array_equal(made[outside], before[outside]) and np.abs(made[~outside] - before[~outside]).mean() > 0.05
    assert [each.sentence.key for each in events if isinstance(each, Note)] == ["paint.part-upscale"]
    stored = picture_settings.read(file).request
    assert (stored.masked_only, stored.masked_padding, stored.upscale, stored.width) == (True, 8, 1, 64)
    told = picture_settings.read_parameters(picture_settings.read_text(file).replace("Hearth", "")).request
    assert (told.masked_only, told.masked_padding, told.mask_blur) == (True, 8, 4), "as A1111 writes it"
    whole = replace(asked, masked_only=False, upscale=1, hires=False)
    assert read_pixels(list_parts(list(paints.run(whole, Control(), None, tmp_path / "whole")))[0].path).shape[:2] == (64, 64)


def test_a_guide_is_cut_to_the_same_part(folders: dict[str, Path], photo: dict[str, Any], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    control = save_control(folders["sd15"], tmp_path / "control")
    asked = PictureRequest(
        "a",
        masked_only=True,
        masked_padding=0,
        guide=photo["image"],
        control=str(control),
        strength=1.0,
        **photo,
        **SMALL | {"guidance": 1.0},
    )
    list(paints.run(asked, Control(), None, tmp_path / "job"))
    with Image.open(photo["image"]) as start, Image.open(tmp_path / "job" / "guide.png") as guide:
        part = np.asarray(start.crop((195, 100, 255, 160)).resize((64, 64), Image.Resampling.LANCZOS), float)
        assert np.abs(np.asarray(guide, float) - part).mean() < 2


def test_without_a_size_the_part_has_the_shape_of_its_mask(folders: dict[str, Path], photo: dict[str, Any], tmp_path: Path) -> None:
    paints, model = load_painter(folders["sd15"])
    asked = PictureRequest("a", masked_only=True, masked_padding=0, strength=1.0, steps=1, guidance=1.0, preview_every=0, **photo)
    file = list_parts(list(paints.run(asked, Control(), None, tmp_path / "job")))[0].path
    stored = picture_settings.read(Path(file)).request
    assert stored.width and stored.height and 0.7 < stored.width / stored.height < 1
    assert stored.width * stored.height == pytest.approx(model.settings.width * model.settings.height, rel=0.2)


def test_settings_without_it_stay_as_earlier_versions_have_them(photo: dict[str, Any], folders: dict[str, Path], tmp_path: Path) -> None:
    plain = PictureRequest("a", masked_only=False, **photo)
    assert not {"masked_only", "masked_padding", "mask_blur"} & to_json(plain).keys()
    asked = replace(plain, masked_only=True, mask_blur=12)
    assert from_json(to_json(asked)) == asked
    for wrong in ({"masked_padding": 513}, {"mask_blur": -1}, {"mask_blur": 2.5}, {"masked_only": "yes"}):
        with pytest.raises(Trouble):
            PictureRequest("a", **wrong)
    paints, _ = load_painter(folders["sd15"])
    file = list_parts(list(paints.run(PictureRequest("a", masked_only=True, **SMALL), Control(), None, tmp_path / "job")))[0].path
    assert picture_settings.read(Path(file)).request.masked_only is False, "without a mask it means nothing"


def test_a_guests_result_is_measured_as_it_will_be(photo: dict[str, Any], folders: dict[str, Path]) -> None:
    asked, model = PictureRequest("a", width=64, height=64, masked_only=True, **photo), load_painter(folders["sd15"])[1]
    kind = kind_of(asked)
    assert kind.grant(asked, Allowance(side=512), model) and kind.estimate_bytes(asked) > 10 * kind.estimate_bytes(
        replace(asked, mask=None)
    )
    with pytest.raises(Trouble, match="501 pixels"):
        kind.grant(asked, Allowance(side=500), model)
