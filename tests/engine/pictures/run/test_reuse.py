"""Test that "quicker" computes less, stays close, resumes to the same picture, and leaves all others exactly as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from app.compat.planning.types import Precision
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, Preview, Step
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run import painter
from app.engine.pictures.run.painter import Painter
from app.engine.pictures.run.reuse import list_inner_blocks
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, list_parts, load_painter
from tests.support.separate_memory import separate_memory

pytest_plugins = ["tests.support.picture_fixtures"]
STEPS = {**SMALL, "steps": 12, "guidance": 4.0}
PROMPT = "a red ball"


def paint(paints: Painter, job: Path, **more: Any) -> list[Event]:
    events = list(paints.run(PictureRequest(PROMPT, **{**STEPS, **more}), Control(), None, job))
    assert isinstance(events[-1], Finished)
    return events


def count_rows(paints: Painter, module: torch.nn.Module, job: Path, **more: Any) -> list[int]:
    """Return the rows of each call of a module while a picture is painted."""
    rows: list[int] = []
    before = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        rows.append(len(args[0] if args else kwargs["hidden_states"]))
        return before(*args, **kwargs)

    module.forward = forward
    try:
        paint(paints, job, **more)
    finally:
        del module.forward
    return rows


def read_notes(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(each.sentence.key, dict(each.sentence.values)) for each in events if isinstance(each, Note)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quicker", "outer", "inner"), [("off", [2] * 12, [2] * 12), ("little", [2, 1] * 6, [2, 1] * 6), ("much", [2, 1] * 6, [2] * 6)]
)
def test_it_computes_what_it_says(quicker: str, outer: list[int], inner: list[int], folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    unet = paints._pipe.unet
    assert count_rows(paints, unet.down_blocks[0], tmp_path / "outer", quicker=quicker) == outer
    assert count_rows(paints, unet.mid_block, tmp_path / "inner", quicker=quicker) == inner
    assert not any("forward" in vars(each) for each in unet.modules())


def test_where_layers_are_sent_in_groups_the_first_picture_reuses_too(folders: dict[str, Path], tmp_path: Path) -> None:
    """diffusers puts back a denoiser's forward() after the first call, in which it learns the order of the layers."""
    model = catalog.find(str(folders["sd15"]))
    how = tuple(Precision(part.name, part.role, "float32", "float32", "cuda") for part in model.parts)
    with separate_memory("cuda"):
        plan = tiny.make_plan(model, offload="group", device="cuda", runs_on="cuda", precision=how, kernels=("efficient", "math"))
        paints = painter.load(folders["sd15"], model, plan, {}, tmp_path / "scratch")
        rows: list[int] = []
        paints._pipe.unet.conv_in.register_forward_pre_hook(lambda _layer, given: rows.append(len(given[0])))
        for number in range(2):
            paint(paints, tmp_path / str(number), quicker="little")
        assert rows == [2, 1] * 12
        paints.close()


def test_it_comes_close_and_says_what_ran(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints, _ = load_painter(folders["sd15"])
    for quicker in ("off", "little", "much", "off"):
        events = paint(paints, tmp_path / f"{quicker}{len(decoded)}", quicker=quicker, preview_every=3)
        assert sum(isinstance(each, Preview) for each in events) == 3
        assert (("quicker.ran", {"reused": 6, "steps": 12}) in read_notes(events)) == (quicker != "off")
        made = list_parts(events)[0]
        restored = picture_settings.read(Path(made.path)).request
        assert isinstance(restored, PictureRequest) and restored.quicker == quicker
    full, little, much, again = decoded
    assert torch.equal(full, again)
    spread = full.std().item()
    assert 0 < (full - little).abs().mean().item() < 0.2 * spread
    assert 0 < (full - much).abs().mean().item() < 0.5 * spread


@pytest.mark.parametrize("family", ["sdxl", "pixart-sigma", "sd3"])
def test_other_families_take_it_too(family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints, _ = load_painter(folders[family])
    for quicker in ("off", "much"):
        events = paint(paints, tmp_path / quicker, quicker=quicker)
    assert ("quicker.ran", {"reused": 6, "steps": 12}) in read_notes(events)
    assert 0 < (decoded[0] - decoded[1]).abs().mean().item() < decoded[0].std().item()


@pytest.mark.parametrize(
    ("family", "quicker", "more", "why"),
    [
        ("flux", "much", {}, "quicker.nothing"),
        ("z-image", "much", {}, "quicker.nothing"),
        ("sd15", "much", {"steps": 6}, "quicker.few-steps"),
        ("sd15", "little", {"guidance": 1.0}, "quicker.unguided"),
        ("sd3", "much", {"guidance": 1.0}, "quicker.needs-guidance"),
    ],
)
def test_where_nothing_can_be_reused_it_says_why(
    family: str, quicker: str, more: dict[str, Any], why: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    paints, _ = load_painter(folders[family])
    notes = [key for key, _ in read_notes(paint(paints, tmp_path, quicker=quicker, **more))]
    assert [key for key in notes if key.startswith("quicker")] == [why]


@pytest.mark.parametrize("at", [2, 3, 4, 7])
def test_a_broken_run_resumes_to_the_same_picture(at: int, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    """What a reusing step needs is not stored, so a run resumes before a full one."""
    paints, _ = load_painter(folders["sd15"])
    paint(paints, tmp_path / "whole", quicker="much")
    calls = 0

    def break_once(_module: torch.nn.Module, _args: Any, output: Any) -> Any:
        nonlocal calls
        calls += 1
        return (output[0] * torch.nan,) if calls == at else output

    hook = paints._pipe.unet.register_forward_hook(break_once)
    with pytest.raises(NumbersBroke):
        paint(paints, tmp_path / "broken", quicker="much")
    hook.remove()
    events = paint(paints, tmp_path / "broken", quicker="much")
    assert torch.equal(decoded[0], decoded[1])
    resumed = (at - 1) // 2 * 2
    assert [each.done for each in events if isinstance(each, Step)] == list(range(resumed + 1, 13))


def test_a_start_picture_counts_the_steps_that_run(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    first = list_parts(paint(paints, tmp_path / "first"))[0].path
    notes = read_notes(paint(paints, tmp_path / "second", image=first, strength=0.5, quicker="little"))
    assert [key for key, _ in notes if key.startswith("quicker")] == ["quicker.few-steps"], "six steps are too few"
    notes = read_notes(paint(paints, tmp_path / "third", image=first, steps=20, strength=0.48, quicker="little"))
    assert notes[-1] == ("quicker.few-steps", {"least": 10, "steps": 9}), "diffusers rounds 9.6 down"


def test_only_a_unet_has_inner_blocks(folders: dict[str, Path]) -> None:
    assert list_inner_blocks(load_painter(folders["sd3"])[0]._pipe.transformer) == []
    unet = load_painter(folders["sd15"])[0]._pipe.unet
    inner = list_inner_blocks(unet)
    assert unet.mid_block in inner and unet.down_blocks[0] not in inner and unet.up_blocks[-1] not in inner
