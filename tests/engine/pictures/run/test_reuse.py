"""Test that "quicker" computes less, stays close, resumes to the same picture, and leaves all others exactly as they are."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import diffusers
import pytest
import torch

from app.compat.planning.types import Precision
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, Preview, Step
from app.engine.jobs.quicker import reuses
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.picture_families import FAMILIES
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run import painter, reuse
from app.engine.pictures.run.painter import Painter
from app.engine.pictures.run.reuse import list_inner_blocks, list_stacks
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, list_parts, load_painter
from tests.support.separate_memory import separate_memory

pytest_plugins = ["tests.support.picture_fixtures"]
STEPS = {**SMALL, "steps": 12, "guidance": 4.0}
PROMPT = "a red ball"


def deepen(folder: Path, copy: Path) -> Path:
    """Copy a model, with three transformer blocks of each kind in place of one."""
    shutil.copytree(folder, copy)
    kind = diffusers.AutoModel.from_pretrained(str(folder / "transformer"))
    more = {name: 3 for name in ("num_layers", "num_single_layers", "n_layers") if name in kind.config}
    torch.manual_seed(0)
    type(kind).from_config({**kind.config, **more}).save_pretrained(copy / "transformer")
    return copy


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
    unet = paints.pipe.unet
    assert count_rows(paints, unet.down_blocks[0], tmp_path / "outer", quicker=quicker) == outer
    assert count_rows(paints, unet.mid_block, tmp_path / "inner", quicker=quicker) == inner
    assert not any("forward" in vars(each) for each in unet.modules())


@pytest.mark.slow
def test_where_layers_are_sent_in_groups_the_first_picture_reuses_too(folders: dict[str, Path], tmp_path: Path) -> None:
    """diffusers puts back a denoiser's forward() after the first call, in which it learns the order of the layers."""
    model = catalog.find(str(folders["sd15"]))
    how = tuple(Precision(part.name, part.role, "float32", "float32", "cuda") for part in model.parts)
    with separate_memory("cuda"):
        plan = tiny.make_plan(model, offload="group", device="cuda", runs_on="cuda", precision=how, kernels=("efficient", "math"))
        paints = painter.load(folders["sd15"], model, plan, {}, tmp_path / "scratch")
        rows: list[int] = []
        paints.pipe.unet.conv_in.register_forward_pre_hook(lambda _layer, given: rows.append(len(given[0])))
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


@pytest.mark.slow
@pytest.mark.parametrize("family", [each for each in FAMILIES if each != "sd15"])
def test_other_families_take_it_too(
    family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random weights change far more from step to step than trained ones."""
    monkeypatch.setattr(reuse, "MOST_CHANGE", 1e9)
    paints, _ = load_painter(folders[family] if family == "sdxl" else deepen(folders[family], tmp_path / "deep"))
    calls: Counter[str] = Counter()
    guided = FAMILIES[family].guidance == "calls" and paints._model.settings.guidance > 1
    share = FAMILIES[family].call_arguments.get("cfg_trunc_ratio", 1.0)
    each_step = [2 if guided and (step + 1) / 12 <= share else 1 for step in range(12)]
    if family != "sdxl":
        for number, block in enumerate(list_stacks(paints.pipe.transformer)[-1]):
            linear = next(each for each in block.modules() if isinstance(each, torch.nn.Linear))
            linear.register_forward_hook(lambda *_, name=str(number): calls.update([name]))
    for quicker in ("off", "much"):
        events = paint(paints, tmp_path / quicker, quicker=quicker)
        inner = sum(made for step, made in enumerate(each_step) if not reuses(quicker, step, 12))
        assert family == "sdxl" or calls == dict(zip("012", (sum(each_step), inner, inner), strict=True))
        calls.clear()
    assert ("quicker.ran", {"reused": 6, "steps": 12}) in read_notes(events)
    assert 0 < (decoded[0] - decoded[1]).abs().mean().item() < decoded[0].std().item()


@pytest.mark.parametrize("family", ["flux", pytest.param("z-image", marks=pytest.mark.slow)])
def test_what_changed_much_is_computed(
    family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reuse, "MOST_CHANGE", 0.0)
    paints, _ = load_painter(deepen(folders[family], tmp_path / "deep"))
    for quicker in ("off", "much"):
        events = paint(paints, tmp_path / quicker, quicker=quicker)
    assert torch.equal(*decoded) and "quicker.ran" not in dict(read_notes(events))


class Grows(torch.nn.Module):
    """A block that adds to two streams, and as a transformer's last leaves the second out."""

    def __init__(self, by: float, last: bool = False) -> None:
        super().__init__()
        self.by, self.last, self.calls = by, last, 0

    def forward(self, picture: torch.Tensor, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        self.calls += 1
        return picture + self.by * words, None if self.last else words + self.by


class Streams(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.transformer_blocks = torch.nn.ModuleList([Grows(1.0), Grows(2.0), Grows(3.0, last=True)])

    def forward(self, picture: torch.Tensor, words: torch.Tensor) -> tuple[torch.Tensor]:
        for block in self.transformer_blocks:
            picture, words = block(picture, words)
        return (picture,)


def test_the_two_calls_of_a_step_are_not_mixed() -> None:
    """FLUX.2's pipeline asks twice in each step: with the prompt, then without."""
    denoiser = Streams()
    remembers = reuse.Reuse(lambda index: index % 2 == 1, denoiser)
    asked = [(torch.full((1, 3), 10.0), torch.ones(1, 3)), (torch.full((1, 3), -10.0), -torch.ones(1, 3))]
    whole = [denoiser(*each)[0] for each in asked]
    with remembers.remembering():
        for step in range(4):
            made = [remembers.compute(step, denoiser.forward, *each)[0] for each in asked]
            assert all(map(torch.equal, made, whole)), step
        made = [remembers.compute(5, denoiser.forward, picture + 0.5, words)[0] for picture, words in asked]
    assert all(torch.equal(one, other + 0.5) for one, other in zip(made, whole, strict=True)), "what is new goes through"
    assert remembers.count == 3 and [each.calls for each in denoiser.transformer_blocks] == [12, 6, 6]
    assert not any("forward" in vars(each) for each in denoiser.modules())


@pytest.mark.parametrize(
    ("family", "quicker", "more", "why"),
    [
        ("flux", "little", {}, "quicker.only-much"),
        ("z-image", "little", {}, "quicker.only-much"),
        ("sd15", "much", {"steps": 6}, "quicker.few-steps"),
        ("sd15", "little", {"guidance": 1.0}, "quicker.only-much"),
    ],
)
def test_where_nothing_can_be_reused_it_says_why(
    family: str, quicker: str, more: dict[str, Any], why: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    paints, _ = load_painter(folders[family])
    notes = [key for key, _ in read_notes(paint(paints, tmp_path, quicker=quicker, **more))]
    assert [key for key in notes if key.startswith("quicker")] == [why]


@pytest.mark.parametrize(
    ("family", "at"), [("sd15", 2), *(pytest.param("sd15", at, marks=pytest.mark.slow) for at in (3, 4, 7)), ("flux", 4)]
)
def test_a_broken_run_resumes_to_the_same_picture(
    family: str, at: int, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a reusing step needs is not stored, so a run resumes before a full one."""
    monkeypatch.setattr(reuse, "MOST_CHANGE", 1e9)
    paints, _ = load_painter(folders[family] if family == "sd15" else deepen(folders[family], tmp_path / "deep"))
    paint(paints, tmp_path / "whole", quicker="much")
    calls = 0

    def break_once(_module: torch.nn.Module, _args: Any, output: Any) -> Any:
        nonlocal calls
        calls += 1
        return (output[0] * torch.nan,) if calls == at else output

    hook = getattr(paints.pipe, FAMILIES[family].denoiser).register_forward_hook(break_once)
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


def test_only_a_unet_has_inner_blocks_and_only_a_transformer_stacks(folders: dict[str, Path]) -> None:
    assert list_inner_blocks(load_painter(folders["sd3"])[0].pipe.transformer) == []
    unet = load_painter(folders["sd15"])[0].pipe.unet
    assert list_stacks(unet) == []
    inner = list_inner_blocks(unet)
    assert unet.mid_block in inner and unet.down_blocks[0] not in inner and unet.up_blocks[-1] not in inner
