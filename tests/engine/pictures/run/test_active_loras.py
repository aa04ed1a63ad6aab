"""Test that LoRAs added into the weights compute what LoRAs beside them do, and come off again."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft.tuners.lora.layer import Linear as LoraLayer

from app.base.trouble import Trouble
from app.compat.planning.memory_formulas import part_bytes
from app.compat.planning.types import Dtype, Precision
from app.engine.jobs.control import Control
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.engine.models.lora_facts import count_parameters
from app.engine.pictures.families import loader
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run.final_settings import resolve_settings
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, make_lora

pytest_plugins = ["tests.support.picture_fixtures"]


@pytest.fixture
def paints(folders: dict[str, Path]) -> picture_painter.Painter:
    model = catalog.find(str(folders["sd15"]))
    return picture_painter.load(folders["sd15"], model, tiny.make_plan(model), {})


@pytest.mark.parametrize(
    ("stored", "computed"),
    [
        pytest.param("float32", "float32", marks=pytest.mark.slow),
        pytest.param("bfloat16", "bfloat16", marks=pytest.mark.slow),
        ("float16", "float32"),
    ],
)
def test_a_loaded_lora_takes_what_the_plan_counts(stored: Dtype, computed: Dtype, folders: dict[str, Path], tmp_path: Path) -> None:
    """Beside layers that are widened to compute it is wide itself."""
    model, file = catalog.find(str(folders["sd15"])), make_lora(folders["sd15"], tmp_path / "style.safetensors", 1)
    how = tuple(Precision(part.name, part.role, stored if part.role == "denoiser" else computed, computed, "cpu") for part in model.parts)
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model, precision=how), {})
    loader.add_lora(paints.pipe, file, "style")
    taken = sum(each.nbytes for name, each in paints.pipe.unet.named_parameters() if ".lora_" in name)
    part = replace(next(each for each in model.parts if each.role == "denoiser"), loras=count_parameters(file))
    its = next(each for each in how if each.role == "denoiser")
    assert taken == part_bytes(part, its, "none") - part_bytes(replace(part, loras=0), its, "none") > 0


def paint(paints: picture_painter.Painter, job: Path, *loras: Lora) -> None:
    list(paints.run(PictureRequest("a", loras=loras, **SMALL), Control(), None, job))


def list_merged(paints: picture_painter.Painter) -> list[bool]:
    return [bool(each.merged) for each in paints.pipe.unet.modules() if hasattr(each, "merged_adapters")]


def test_a_copy_of_a_lora_is_worn_once(folders: dict[str, Path], tmp_path: Path) -> None:
    one, copy = make_lora(folders["sd15"], tmp_path / "one.safetensors", 1), tmp_path / "copy.safetensors"
    copy.write_bytes(one.read_bytes())
    asked = PictureRequest("a", loras=(Lora(str(one), 0.3), Lora(str(copy), 0.7)), **SMALL)
    settings = resolve_settings(asked, catalog.find(str(folders["sd15"])), tmp_path)
    assert settings.request.loras == (Lora(str(one), 0.7),)


def test_merged_and_unmerged_paint_the_same(
    paints: picture_painter.Painter, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    one, two = (Lora(str(make_lora(folders["sd15"], tmp_path / f"{seed}.safetensors", seed)), 0.7) for seed in (1, 2))
    paint(paints, tmp_path / "merged", one, two)
    assert list_merged(paints) and all(list_merged(paints))
    paints._loras._merges = False
    paint(paints, tmp_path / "one", one)
    paint(paints, tmp_path / "beside", one, two)
    assert not any(list_merged(paints))
    merged, alone, beside = decoded
    assert torch.allclose(merged, beside, atol=1e-4) and (merged - alone).abs().max() > 1e-2


@pytest.mark.filterwarnings("ignore:Already unmerged")
def test_a_merge_that_breaks_off_comes_off_again(
    paints: picture_painter.Painter, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As want of memory does: the first layer has the LoRA, the second not."""
    style = Lora(str(make_lora(folders["sd15"], tmp_path / "style.safetensors", 1)))
    paint(paints, tmp_path / "before")
    merge, calls = LoraLayer.merge, []

    @functools.wraps(merge)
    def break_off(self: Any, safe_merge: bool = False, adapter_names: list[str] | None = None) -> None:
        calls.append(self)
        if len(calls) == 2:
            raise MemoryError
        merge(self, safe_merge=safe_merge, adapter_names=adapter_names)

    with monkeypatch.context() as patch:
        patch.setattr(LoraLayer, "merge", break_off)
        with pytest.raises(MemoryError):
            paint(paints, tmp_path / "broken", style)
    paint(paints, tmp_path / "after")
    assert len(calls) == 2 and torch.allclose(decoded[0], decoded[-1], atol=1e-4)


@pytest.mark.slow
def test_twenty_changes_leave_no_trace_but_rounding(
    paints: picture_painter.Painter, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    style = Lora(str(make_lora(folders["sd15"], tmp_path / "style.safetensors", 1)))
    for index in range(11):
        paint(paints, tmp_path / f"{index}-bare")
        paint(paints, tmp_path / f"{index}-style", style)
    assert torch.allclose(decoded[0], decoded[-2], atol=1e-4) and torch.allclose(decoded[1], decoded[-1], atol=1e-4)


@pytest.mark.slow
def test_the_same_loras_are_not_merged_again(
    paints: picture_painter.Painter, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    style = Lora(str(make_lora(folders["sd15"], tmp_path / "style.safetensors", 1)))
    merges: list[Any] = []
    fuse = paints.pipe.fuse_lora
    monkeypatch.setattr(paints.pipe, "fuse_lora", lambda **more: (merges.append(more), fuse(**more)))
    for index in range(3):
        paint(paints, tmp_path / str(index), style)
    assert len(merges) == 1


def test_a_refused_lora_leaves_the_next_picture_right(
    paints: picture_painter.Painter, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    style = Lora(str(make_lora(folders["sd15"], tmp_path / "style.safetensors", 1)))
    paint(paints, tmp_path / "first", style)
    with pytest.raises(Trouble):
        paint(paints, tmp_path / "missing", style, Lora(str(tmp_path / "missing.safetensors")))
    paint(paints, tmp_path / "again", style)
    assert torch.allclose(decoded[0], decoded[1], atol=1e-4)


def test_nothing_is_merged_into_weights_that_are_not_plain_float32(folders: dict[str, Path], tmp_path: Path) -> None:
    model = catalog.find(str(folders["sd15"]))
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model, "bfloat16"), {})
    paint(paints, tmp_path / "half", Lora(str(make_lora(folders["sd15"], tmp_path / "style.safetensors", 1))))
    assert not any(list_merged(paints))
