"""Small pictures of a batch are painted in one call: each is the same as alone, is kept alone, and stops and resumes alone."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import DPMSolverMultistepScheduler
from safetensors import safe_open
from safetensors.torch import save_file

from app.base.paths import home
from app.compat.planning.memory_formulas import GIB
from app.compat.planning.types import AUTO, Choice
from app.engine.jobs import schedulers
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, PartDone, Preview, Step, Stopped
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.model import Model
from app.engine.pictures.run import batch, checkpoint
from app.engine.pictures.run.checkpoint import Checkpoint
from app.engine.pictures.run.painter import Painter
from app.engine.pictures.steps import count_at_once
from app.engine.session.session import Session
from app.machines.tasks.begun import keep
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, break_denoiser, list_parts, load_painter, read_pixels

pytest_plugins = ["tests.support.picture_fixtures"]

SAME = 1e-4
"""The range is 2, and so much may be off: a matrix product of more rows may round otherwise."""
QUICK = {"Euler", "Euler a", "Heun", "DPM++ 2M SDE", "UniPC", "PNDM", "LCM"}
"""Some of these schedulers remember nothing, some numbers, one row or several, and some draw."""


def count_calls(paints: Painter) -> tuple[list[int], Any]:
    """Record how many rows each call of the denoiser has."""
    rows: list[int] = []

    def look(_module: torch.nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> None:
        latents = args[0] if args else given["hidden_states"]
        rows.append(len(latents))

    return rows, getattr(paints.pipe, paints.family.denoiser).register_forward_pre_hook(look, with_kwargs=True)


def run(paints: Painter, request: PictureRequest, job: Path, control: Control | None = None) -> list[Event]:
    return list(paints.run(request, control or Control(), None, job))


@pytest.mark.parametrize("family", tiny.ONE_A_KIND)
def test_each_family_paints_several_at_once_as_alone(
    family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, _ = load_painter(folders[family])
    request = PictureRequest("a red ball", **{**SMALL, "batch": 3, "guidance": 1.0})
    rows, hook = count_calls(paints)
    events = run(paints, request, tmp_path / "three")
    hook.remove()
    assert len(rows) == 3 and set(rows) <= {3, 6}, "three steps of three pictures"
    assert [part.seed for part in list_parts(events)] == [11, 12, 13]
    assert [step.at_once for step in events if isinstance(step, Step)] == [3, 3, 3]
    for index in range(3):
        run(paints, replace(request, seed=11 + index, batch=1), tmp_path / str(index))
    for together, alone in zip(decoded[:3], decoded[3:], strict=True):
        assert alone.std() > 0.01 and (together - alone).abs().max() <= SAME
    assert not torch.allclose(decoded[0], decoded[1], atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in schedulers.NAMES])
def test_each_scheduler_goes_on_with_one_of_them_alone(
    name: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    """What is kept of a picture is what it would have been alone: its row of the scheduler's memory, its own random numbers."""
    paints, _ = load_painter(folders["sd15"])
    request = PictureRequest("a red ball", **{**SMALL, "steps": 6, "scheduler": name, "batch": 3})
    run(paints, request, tmp_path / "whole")
    hook = break_denoiser(paints, 4)
    with pytest.raises(NumbersBroke):
        run(paints, request, tmp_path / "broken")
    hook.remove()
    rows, hook = count_calls(paints)
    again = run(paints, request, tmp_path / "broken")
    hook.remove()
    assert set(rows) == {2}, "one picture with guidance"
    assert [part.index for part in list_parts(again)] == [0, 1, 2] and not list((tmp_path / "broken").glob("*.safetensors"))
    for whole, resumed in zip(decoded[:3], decoded[3:], strict=True):
        assert (whole - resumed).abs().max() <= SAME


def test_stop_keeps_the_first_and_the_others_go_on_where_they_were(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    request = PictureRequest("a red ball", **{**SMALL, "steps": 6, "batch": 3})
    control, events = Control(), list[Event]()
    for event in paints.run(request, control, None, tmp_path):
        events.append(event)
        if isinstance(event, Step) and event.done == 3:
            control.stop()
    last = events[-1]
    assert isinstance(last, Stopped) and [Path(each).name for each in last.files] == ["picture-0.png"]
    asked = max(event.done for event in events if isinstance(event, Step))
    assert asked <= 4, "within a step; the report of one may wait for its reader"
    again = run(paints, request, tmp_path)
    assert isinstance(again[-1], Finished) and len(again[-1].files) == 3
    assert {(step.part, step.done) for step in again if isinstance(step, Step)} == {
        (part, done) for part in (1, 2) for done in range(asked + 1, 7)
    }


def test_each_picture_is_told_as_soon_as_it_is_decoded(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    there: list[int] = []
    hook = paints.pipe.vae.decoder.register_forward_pre_hook(lambda *_: there.append(len(list(tmp_path.glob("picture-*.png")))))
    events = run(paints, PictureRequest("a", **{**SMALL, "batch": 3}), tmp_path)
    hook.remove()
    assert there == [0, 1, 2] and [part.index for part in list_parts(events)] == [0, 1, 2]


def test_a_preview_shows_all_of_them(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["flux"])
    request = PictureRequest("a", **{**SMALL, "batch": 3, "preview_every": 2})
    shown = [event for event in run(paints, request, tmp_path / "three") if isinstance(event, Preview)]
    alone = [event for event in run(paints, replace(request, batch=1, seed=12), tmp_path / "one") if isinstance(event, Preview)]
    assert len(shown) == len(alone) == 1
    together, second = read_pixels(shown[0].path), read_pixels(alone[0].path)
    assert together.shape == second.shape == (256, 256, 3)
    corner = together[8:120:16, 136:248:16]
    assert abs(corner - second[16:240:32, 16:240:32]).mean() < 0.05, "the second is at the top right"


@pytest.mark.parametrize(("arrivals", "computed"), [({2: [1]}, 8), ({2: [1], 4: [0, 2]}, 4)], ids=["one", "all"])
def test_what_another_machine_made_meanwhile_is_left(
    arrivals: dict[int, list[int]], computed: int, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, _ = load_painter(folders["sd15"])
    calls, others = 0, sorted(index for each in arrivals.values() for index in each)

    def arrive(_module: torch.nn.Module, _arguments: Any) -> None:
        nonlocal calls
        calls += 1
        for index in arrivals.get(calls, []):
            (tmp_path / f"picture-{index}.png").write_bytes(b"another's")

    hook = paints.pipe.unet.register_forward_pre_hook(arrive)
    events = run(paints, PictureRequest("a", **{**SMALL, "steps": 8, "batch": 3}), tmp_path)
    hook.remove()
    assert calls == computed and len(decoded) == 3 - len(others)
    assert isinstance(events[-1], Finished) and [part.index for part in list_parts(events)] == [0, 1, 2]
    theirs = [index for index in range(3) if (tmp_path / f"picture-{index}.png").read_bytes() == b"another's"]
    assert theirs == others and not list(tmp_path.glob("latent-*"))


def test_without_room_for_several_they_are_painted_one_by_one(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])

    def fill(_module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        if len(args[0]) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    hook = paints.pipe.unet.register_forward_pre_hook(fill)
    events = run(paints, PictureRequest("a", **{**SMALL, "batch": 3}), tmp_path)
    hook.remove()
    notes = [event.sentence for event in events if isinstance(event, Note)]
    assert [each.key for each in notes] == ["paint.one-by-one"] and dict(notes[0].values) == {"count": 3}
    assert isinstance(events[-1], Finished) and [part.index for part in list_parts(events)] == [0, 1, 2]
    assert [event.at_once for event in events if isinstance(event, Step)] == [1] * 9


def test_a_picture_that_landed_is_not_told_again_where_memory_ends_later(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    calls = 0

    def fill(*_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    hook = paints.pipe.vae.decoder.register_forward_pre_hook(fill)
    events = run(paints, PictureRequest("a", **{**SMALL, "batch": 3}), tmp_path)
    hook.remove()
    assert [event.index for event in events if isinstance(event, PartDone)] == [0, 1, 2]
    assert len([event for event in events if isinstance(event, Step)]) == 3, "what is painted is only decoded"


STARTER = catalog.BY_ID["starter-painter"]
LARGE = catalog.BY_ID["sd15"]


@pytest.mark.parametrize(
    ("model", "device", "pixels", "free_gib", "changed", "count"),
    [
        (STARTER, "cpu", 256, 16, {}, 4),
        (STARTER, "cpu", 512, 16, {}, 1),
        (LARGE, "cpu", 256, 16, {}, 1),
        (LARGE, "cuda", 512, 16, {}, 4),
        (LARGE, "mps", 512, 16, {}, 4),
        (LARGE, "mps", 768, 16, {}, 1),
        (LARGE, "cuda", 512, 1.3, {}, 2),
        (LARGE, "cuda", 512, 0.2, {}, 1),
        (STARTER, "cpu", 256, 16, {"quicker": "much"}, 1),
        (STARTER, "cpu", 256, 16, {"image": "start.png"}, 1),
        (STARTER, "cpu", 256, 16, {"batch": 1}, 1),
    ],
)
def test_how_many_are_painted_at_once(model: Model, device: str, pixels: int, free_gib: float, changed: dict[str, Any], count: int) -> None:
    request = replace(PictureRequest("a", width=pixels, height=pixels, batch=8), **changed)
    assert count_at_once(request, model, device, AUTO, free_gib * GIB) == count
    assert count_at_once(request, model, device, 128, free_gib * GIB) == 1


def begin(paints: Painter, request: PictureRequest, job: Path) -> Path:
    """Break in the fourth step; return what is kept of the picture."""
    hook = break_denoiser(paints, 4)
    with pytest.raises(NumbersBroke):
        run(paints, request, job)
    hook.remove()
    return job / "latent-0.safetensors"


@pytest.mark.slow
def test_a_picture_that_another_machine_began_goes_on_here(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    """It has the model, the files and the job in other folders, and a single picture where the job here has a batch."""
    here, _ = load_painter(folders["sd15"])
    there, _ = load_painter(Path(shutil.copytree(folders["sd15"], tmp_path / "there" / "sd15")))
    start = Path(list_parts(run(here, PictureRequest("a start", **SMALL), tmp_path / "start"))[0].path)
    elsewhere = Path(shutil.copy(start, tmp_path / "there" / "other-name.png"))
    request = PictureRequest("a red ball", **{**SMALL, "steps": 9, "batch": 3, "image": str(start), "strength": 0.9})
    run(here, request, tmp_path / "whole")
    kept = begin(
        there, replace(request, batch=1, seed=13, image=str(elsewhere), model=str(tmp_path / "there" / "sd15")), tmp_path / "begun"
    )
    (tmp_path / "job").mkdir()
    shutil.copy(kept, tmp_path / "job" / "latent-2.safetensors")
    again = run(here, request, tmp_path / "job")
    assert [step.done for step in again if isinstance(step, Step) and step.part == 2] == [4, 5, 6, 7, 8]
    assert (decoded[3] - decoded[-1]).abs().max() <= SAME


def damage(kept: Path, how: str) -> None:
    """Change what another machine sent."""
    with safe_open(kept, "pt") as file:
        about, tensors = dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    state = json.loads(about["scheduler"])
    if how in ("shape", "none", "nan", "huge", "black"):
        odd = {"shape": torch.zeros(1, 4, 3, 3), "nan": tensors["latents"] * torch.nan}
        odd |= {which: torch.full_like(tensors["latents"], 1e38) for which in ("huge", "black")}
        about["done"] = "6" if how == "black" else about["done"]
        tensors |= {"latents": odd[how]} if how in odd else {}
        tensors = {name: each for name, each in tensors.items() if name != "latents" or how != "none"}
    elif how == "generator":
        tensors["generator"] = torch.zeros(3, dtype=torch.uint8)
    elif how == "drawn":
        tensors["generator"] = torch.full_like(tensors["generator"], 255)
    elif how in ("dtype", "done"):
        about[how] = "load" if how == "dtype" else "many"
    elif how == "flat":
        tensors["flat"] = torch.zeros(7)
        state |= {"model_outputs": {"list": [{"tensor": "flat"}] * 2}, "lower_order_nums": {"value": 5}}
    elif how == "zero":
        state |= {"num_inference_steps": {"value": 0}}
    elif how == "far":
        about["done"] = "1000"
    else:
        state |= {
            "method": {"scale_model_input": {"value": 1}},
            "index": {"_step_index": {"value": 9999}},
            "words": {"_step_index": {"value": "x"}},
            "memory": {"model_outputs": {"list": [{"tensor": "generator"}]}},
            "form": {"_step_index": {}},
        }[how]
    save_file(tensors, kept, {**about, "scheduler": json.dumps(state)})


HOW = (
    "shape", "none", "nan", "huge", "black", "generator", "drawn", "dtype", "done", "far", "method", "index", "words", "memory", "flat", "form", "zero",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_a_picture_whose_beginning_is_odd_begins_anew(
    how: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    """What another machine sends may hold anything; the worst that it does is to be of no use."""
    paints, _ = load_painter(folders["sd15"])
    scheduler = "ddim" if how == "zero" else "dpm++ 2m"
    request = PictureRequest("a red ball", str(folders["sd15"]), **{**SMALL, "steps": 6, "scheduler": scheduler})
    begun, job, session = begin(paints, request, tmp_path / "there"), tmp_path / "job", Session(home(tmp_path / "home").create())
    job.mkdir()

    def paint(place: Path) -> list[Event]:
        return list(session.run(request, Choice(), Control(), place, lambda model, plan: None))

    paint(tmp_path / "whole")
    damage(begun, how)
    if not keep(begun, job / begun.name):
        assert how in ("none", "done")
    again = paint(job)
    session.free()
    assert isinstance(again[-1], Finished), again[-1]
    assert not [each for each in session.verdicts if each.kind == "rung"] and [*job.glob("latent*")] == []
    assert torch.equal(decoded[0], decoded[-1])


def test_only_what_a_run_went_on_from_is_blamed() -> None:
    """What torch refuses, and numbers that break, are this machine's, for the session to answer."""
    begun, broke = Checkpoint(3, torch.zeros(1), {}, torch.zeros(1)), NumbersBroke(4, "denoiser")
    blamed = checkpoint.is_to_blame
    assert blamed(begun, IndexError()) and not blamed(replace(begun, complete=True), IndexError()) and not blamed(None, IndexError())
    for own in (broke, RuntimeError("refused"), torch.OutOfMemoryError("out of memory"), MemoryError(), OSError(28, "full")):
        assert not blamed(begun, own)


def test_what_is_blamed_is_forgotten(tmp_path: Path) -> None:
    picture = batch.Picture(0, tmp_path / "picture-0.png", tmp_path / "latent-0.safetensors", "")
    picture.checkpoint_path.touch()
    loop = batch.Loop([picture], Checkpoint(3, torch.zeros(1), {}, torch.zeros(1)), 0, elapsed_s=[1.0])
    loop.begin_anew()
    assert not picture.checkpoint_path.exists() and loop.start is None and loop.elapsed_s == []


def test_no_beginning_replaces_what_a_scheduler_does() -> None:
    scheduler, generator, sample = DPMSolverMultistepScheduler(), torch.Generator(), torch.zeros(1, 4, 8, 8)
    for state, fits in (
        ({"_step_index": 3}, True),
        ({"model_outputs": [None, sample]}, True),
        ({"convert_model_output": 3}, False),
        ({"config": 3}, False),
    ):
        assert checkpoint.fits(Checkpoint(3, sample, state, generator.get_state()), scheduler, generator, sample) is fits, state
