"""Test that an embedding stands where its word stands, as diffusers has it, and leaves no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import diffusers
import pytest
import torch
from safetensors.torch import save_file

from app.base.trouble import Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.engine.pictures.run import painter as picture_painter
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, assert_same, load_painter, paint_with_diffusers

pytest_plugins = ["tests.support.picture_fixtures"]


def make_embedding(path: Path, vectors: int = 3, **widths: int) -> Path:
    torch.manual_seed(5)
    save_file({name: torch.randn(vectors, width) for name, width in (widths or {"emb_params": 32}).items()}, path)
    return path


def paint(paints: picture_painter.Painter, job: Path, prompt: str, *loras: Lora, negative: str = "") -> None:
    list(paints.run(PictureRequest(prompt, negative=negative, loras=loras, guidance=4.0, **SMALL), Control(), None, job))


def test_an_embedding_paints_as_diffusers_own(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the prompt and in the negative one, of several vectors, between other words."""
    paints, model = load_painter(folders["sd15"])
    file = make_embedding(tmp_path / "inkwash.safetensors")
    paint(paints, tmp_path / "job", "a red InkWash, sea", Lora(str(file), word="inkwash"), negative="inkwash ugly")
    load = diffusers.StableDiffusionPipeline.from_pretrained

    def load_with_embedding(*given: Any, **named: Any) -> Any:
        pipe = load(*given, **named)
        pipe.load_textual_inversion(str(file), token="<ink>")
        return pipe

    monkeypatch.setattr(diffusers.StableDiffusionPipeline, "from_pretrained", load_with_embedding)
    plain = paint_with_diffusers(
        folders["sd15"], model, prompt="a red <ink>, sea", negative_prompt="<ink> ugly", guidance_scale=4.0, width=64, height=64
    )
    assert_same(decoded[0], plain)


def test_both_encoders_of_sdxl_read_their_own(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints, _ = load_painter(folders["sdxl"])
    file = make_embedding(tmp_path / "ink.safetensors", clip_l=32, clip_g=32)
    paint(paints, tmp_path / "with", "a red ink", Lora(str(file), word="ink"))
    paint(paints, tmp_path / "without", "a red ink")
    paint(paints, tmp_path / "again", "a red ink", Lora(str(file), word="ink"))
    used, bare, again = decoded
    assert (used - bare).abs().max() > 1e-2 and torch.allclose(used, again, atol=1e-5)


def test_it_counts_with_weights_and_goes_without_a_trace(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints, _ = load_painter(folders["sd15"])
    lora = Lora(str(make_embedding(tmp_path / "ink.safetensors")), word="ink")
    paint(paints, tmp_path / "before", "a red ink")
    paint(paints, tmp_path / "plain", "a red ink", lora)
    paint(paints, tmp_path / "weighted", "a red (ink:1.4)", lora)
    paint(paints, tmp_path / "after", "a red ink")
    before, plain, weighted, after = decoded
    assert (plain - weighted).abs().max() > 1e-3 and torch.equal(before, after)


@pytest.mark.parametrize("widths", [{"clip_l": 32, "clip_g": 32}, {"other": 1280}])
def test_one_of_another_family_is_read_as_a_word(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor], widths: dict[str, int]
) -> None:
    paints, _ = load_painter(folders["sd15"])
    paint(paints, tmp_path / "with", "a red ink", Lora(str(make_embedding(tmp_path / "ink.safetensors", **widths)), word="ink"))
    paint(paints, tmp_path / "without", "a red ink")
    assert torch.equal(*decoded)


def test_one_of_another_model_is_told(folders: dict[str, Path], tmp_path: Path) -> None:
    model = catalog.find(str(folders["sd15"]))
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model), {})
    with pytest.raises(Trouble) as told:
        paint(paints, tmp_path / "job", "a red ink", Lora(str(make_embedding(tmp_path / "ink.safetensors", emb_params=48)), word="ink"))
    assert told.value.sentence.key == "embedding.misfit"


def test_numbers_that_are_none_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    file = tmp_path / "ink.safetensors"
    save_file({"emb_params": torch.full((2, 32), float("nan"))}, file)
    with pytest.raises(Trouble) as told:
        paint(paints, tmp_path / "job", "a red ink", Lora(str(file), word="ink"))
    assert told.value.sentence.key == "lora.fact"
