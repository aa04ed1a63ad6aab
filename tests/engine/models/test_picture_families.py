"""Test the rows of picture families: their attention calls as published configs have them, and what `quicker` spares of each."""

from __future__ import annotations

import pytest

from app.engine.models.catalog import CATALOG, CONFIGS
from app.engine.models.picture_families import BY_CLASS, FAMILIES, list_calls
from app.engine.pictures.families.unpack import UNPACK
from app.engine.pictures.steps import weigh_quicker


def test_a_row_is_whole() -> None:
    ids = {each.id: each for each in CATALOG}
    for family in FAMILIES.values():
        assert ids[family.like].family == family.name and family.unpack in UNPACK
        assert {family.denoiser, "vae", *(each.part for each in family.encoders)} <= family.parts.keys()
        assert set(family.scaled) <= set(family.unsafe_in_half) <= family.parts.keys()
        assert (family.name in CONFIGS) == bool(family.encoders), "what a single file lacks comes from its base model"
    assert len({each.title for each in FAMILIES.values()}) == len(FAMILIES) and BY_CLASS["FluxImg2ImgPipeline"].name == "flux"


def test_stable_diffusion_at_512_x_768() -> None:
    """320 channels at 8 pixels a token, 640 at 16, 1280 at 32 and 64, in 8 heads; 77 tokens of text; a VAE of 512."""
    found = [(each.heads, each.queries, each.keys, each.heads * each.head_dim) for each in list_calls("sd15", 512, 768)]
    levels = [(64 * 96, 320), (32 * 48, 640), (16 * 24, 1280), (8 * 12, 1280)]
    unet = [(8, tokens, keys, width) for tokens, width in levels for keys in (tokens, 77)]
    assert found == [(12, 77, 77, 768), *unet, (1, 64 * 96, 64 * 96, 512)]


def test_sizes_that_do_not_divide_are_rounded_up() -> None:
    assert [each.queries for each in list_calls("flux", 520, 500)] == [77, 256, 33 * 32 + 256, 65 * 63]


@pytest.mark.parametrize(
    ("setting", "family", "guided", "steps", "works"),
    [
        ("little", "sd15", True, 20, True), ("little", "sd15", False, 20, False), ("much", "sd15", False, 20, True),
        ("much", "sd3", True, 28, True), ("much", "flux", False, 28, True), ("much", "z-image", True, 20, True), ("little", "z-image", True, 20, False),
        ("much", "sd15", True, 6, False), ("off", "sd15", True, 20, False),
    ],
)  # fmt: skip
def test_it_works_where_there_is_something_to_reuse(setting: str, family: str, guided: bool, steps: int, works: bool) -> None:
    model = next(each for each in CATALOG if each.family == family)
    assert (weigh_quicker(setting, model, guided, steps) < 1) == works
