"""Test that the same words are encoded once, and again where a LoRA or other words make a difference."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from app.engine.jobs.control import Control
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run.prompt_embeddings import KeptEmbeddings
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, make_lora

pytest_plugins = ["tests.support.picture_fixtures"]


def load(folder: Path) -> picture_painter.Painter:
    model = catalog.find(str(folder))
    return picture_painter.load(folder, model, tiny.make_plan(model), {})


class Count:
    """Counts the calls of a pipeline's first text encoder."""

    def __init__(self, paints: picture_painter.Painter) -> None:
        self.calls = 0
        paints.pipe.text_encoder.register_forward_hook(self._count)

    def _count(self, *_: Any) -> None:
        self.calls += 1


def paint(paints: picture_painter.Painter, job: Path, prompt: str = "a red ball", **more: Any) -> None:
    list(paints.run(PictureRequest(prompt, **{**SMALL, "guidance": 1.0, **more}), Control(), None, job))


@pytest.mark.slow
@pytest.mark.parametrize("family", tiny.ONE_A_KIND)
def test_a_batch_and_the_next_job_encode_once(family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints = load(folders[family])
    count = Count(paints)
    paint(paints, tmp_path / "one", batch=2)
    once = count.calls
    assert once
    paint(paints, tmp_path / "two", batch=2)
    assert count.calls == once
    assert torch.equal(decoded[0], decoded[2]) and torch.equal(decoded[1], decoded[3])
    paint(paints, tmp_path / "other", "a small house", batch=2)
    assert count.calls == 2 * once
    assert not torch.equal(decoded[1], decoded[-1])


@pytest.mark.slow
@pytest.mark.parametrize("family", tiny.MAKERS)
def test_another_number_of_pictures_encodes_no_more(
    family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    """One picture, then three in one call, against three in one call that were encoded for it."""
    fresh, paints = load(folders[family]), load(folders[family])
    fresh._embeddings.keep = lambda pipe: None  # type: ignore[method-assign]
    paint(fresh, tmp_path / "fresh", batch=3)
    count = Count(paints)
    paint(paints, tmp_path / "one")
    once = count.calls
    paint(paints, tmp_path / "three", batch=3)
    assert count.calls == once
    for alone, kept in zip(decoded[:3], decoded[4:], strict=True):
        torch.testing.assert_close(kept, alone, rtol=1e-4, atol=1e-4)


def test_weighted_words_are_kept_too(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints = load(folders["sd15"])
    count = Count(paints)
    seen = []
    for index, prompt in enumerate(("a (red:1.4) ball", "a (red:1.4) ball", "a (red:0.6) ball")):
        paint(paints, tmp_path / str(index), prompt)
        seen.append(count.calls)
    assert seen[0] == seen[1] < seen[2]
    assert torch.equal(decoded[0], decoded[1]) and not torch.equal(decoded[0], decoded[2])


def test_another_lora_encodes_again(folders: dict[str, Path], tmp_path: Path) -> None:
    paints = load(folders["sd15"])
    count = Count(paints)
    style = Lora(str(make_lora(folders["sd15"], tmp_path / "style.safetensors", 1)))
    seen = []
    for index, loras in enumerate([(), (style,), (style,), ()]):
        paint(paints, tmp_path / str(index), loras=loras)
        seen.append(count.calls)
    assert seen == [seen[0], 2 * seen[0], 2 * seen[0], 3 * seen[0]]


def test_another_plan_encodes_again(folders: dict[str, Path], tmp_path: Path) -> None:
    """The other plan may be there because the encoder made nonsense under the first."""
    paints = load(folders["sd15"])
    paint(paints, tmp_path / "good")
    encoder, broken = paints.pipe.text_encoder, []

    def break_once(_module: Any, _given: Any, output: Any) -> Any:
        broken.append(True)
        return (output[0] * torch.nan, *output[1:])

    with encoder.register_forward_hook(break_once), pytest.raises(NumbersBroke):
        paint(paints, tmp_path / "broken", "a small house")
    assert broken
    assert paints.adapt(dataclasses.replace(paints._plan, contiguous=not paints._plan.contiguous))
    paint(paints, tmp_path / "again", "a small house")


def test_only_the_latest_are_kept() -> None:
    kept, made = KeptEmbeddings(), []
    for key in ("a", "b", "c", "d", "a", "e", "a", "b"):
        kept.make(key, lambda key=key: made.append(key))  # type: ignore[misc]
    assert made == ["a", "b", "c", "d", "e", "b"]
