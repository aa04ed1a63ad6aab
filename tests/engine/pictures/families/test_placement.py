"""Test on the CPU that weights are offloaded and quantised as planned, complete or refused."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import peft
import psutil
import pytest
import torch
from accelerate import cpu_offload
from diffusers import DiffusionPipeline
from diffusers.hooks.group_offloading import _is_group_offload_enabled
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors import SafetensorError
from safetensors.torch import save_file

from app.base.paths import home
from app.base.trouble import Trouble
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, learn
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, Dtype, ModelPart, Need, Plan, Precision
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, Loading, Note
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.engine.models.loading import quantise, save_tensors
from app.engine.pictures.families import parts_on_disk, placement
from app.engine.pictures.run import painter as picture_painter
from app.engine.session.session import Session
from tests.support import tiny_pictures as tiny
from tests.support import tiny_single_files as single
from tests.support.combinations import combine
from tests.support.picture_fixtures import SMALL, find_pipe, list_parts, load_painter, make_gguf, make_lora, read_pixels
from tests.support.separate_memory import separate_memory

pytest_plugins = ["tests.support.picture_fixtures"]
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")]  # torchao with torch 2.13


def painted(paints: picture_painter.Painter, job: Path, **more: Any) -> list[Any]:
    events = list(paints.run(PictureRequest(**{"prompt": "a red ball", **SMALL, "preview_every": 1, **more}), Control(), None, job))
    assert isinstance(events[-1], Finished)
    return events


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Any]:
    opened: list[picture_painter.Painter] = []

    def load(folder: Path, companions: dict[str, Path] | None = None, **plan: Any) -> picture_painter.Painter:
        row = catalog.find(str(folder))
        opened.append(picture_painter.load(folder, row, tiny.make_plan(row, **plan), companions or {}, tmp_path / "scratch"))
        return opened[-1]

    yield load
    for each in opened:
        each.close()
    assert not [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()], "what waited was left behind"


def hooked(part: torch.nn.Module) -> list[Any]:
    return [module._hf_hook for module in part.modules() if hasattr(module, "_hf_hook")]


OFFLOADED: dict[str, tuple[dict[str, str], Any]] = {
    "a card's parts one by one": ({"offload": "model", "device": "cuda"}, lambda part: hooked(part)[0].__class__.__name__ == "CpuOffload"),
    "in groups": ({"offload": "group", "device": "cuda"}, _is_group_offload_enabled),
    "layer by layer": ({"offload": "sequential", "device": "cuda"}, lambda part: all(weight.is_meta for weight in part.parameters())),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["flux", "flux2-klein"])
@pytest.mark.parametrize("offload", ["none", "group"])
def test_the_pictures_stream_of_flux_stays_within_float16(family: str, offload: str, loaded: Any, tmp_path: Path) -> None:
    """Its blocks for text and picture overflow with some weights, and diffusers clips the text's stream alone."""
    folder = tiny.save(family, tmp_path / family)
    pipe = loaded(folder, dtype="float16", offload=offload).pipe
    block = pipe.transformer.transformer_blocks[-1]
    given: list[torch.Tensor] = []
    pipe.transformer.single_transformer_blocks[0].register_forward_pre_hook(
        lambda _block, args, kwargs: given.extend(each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)),
        with_kwargs=True,
    )

    def overflow(_module: torch.nn.Module, _given: Any, out: torch.Tensor) -> torch.Tensor:
        return torch.where(out > 0, torch.inf, out)

    block.ff.register_forward_hook(overflow)
    pipe(prompt="a", width=64, height=64, num_inference_steps=1, output_type="latent")
    streams = [each for each in given if each.ndim == 3]
    assert streams and all(each.isfinite().all() for each in streams)
    assert max(float(each.abs().max()) for each in streams) == 65504


@pytest.mark.slow
@pytest.mark.parametrize(("how", "family"), combine(OFFLOADED, ("sd15", "flux")))
def test_an_offload_that_is_planned_is_there_and_changes_nothing(
    how: str, family: str, folders: dict[str, Path], loaded: Any, tmp_path: Path, gradient: Path
) -> None:
    plan, is_so = OFFLOADED[how]
    paints = loaded(folders[family], **plan)
    for name, part in placement.list_modules(paints.pipe).items():
        assert is_so(part), f"{name} is not offloaded"
    plain, _ = load_painter(folders[family])
    for index, more in enumerate(({}, {"image": str(gradient)})):
        guidance = 1.0 if family == "flux" else 3.0
        one, other = (painted(each, tmp_path / f"{index}{name}", guidance=guidance, **more) for each, name in ((paints, "o"), (plain, "p")))
        assert abs(read_pixels(list_parts(one)[0].path) - read_pixels(list_parts(other)[0].path)).max() < 1.5 / 255


@pytest.mark.slow
@pytest.mark.parametrize(("how", "family"), combine(OFFLOADED, ("sd15", "sdxl")))
def test_weighted_and_long_prompts_are_read_by_an_encoder_whose_weights_wait(
    how: str, family: str, folders: dict[str, Path], loaded: Any, tmp_path: Path
) -> None:
    paints, (plain, _) = loaded(folders[family], **OFFLOADED[how][0]), load_painter(folders[family])
    for index, prompt in enumerate(("a (red:1.4) ball", "a red ball " * 40)):
        one, other = (painted(each, tmp_path / f"{index}{name}", prompt=prompt) for each, name in ((paints, "o"), (plain, "p")))
        assert abs(read_pixels(list_parts(one)[0].path) - read_pixels(list_parts(other)[0].path)).max() < 1.5 / 255


def test_groups_do_not_nail_every_weight_to_its_place(folders: dict[str, Path], loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(DiffusionPipeline, "enable_group_offload", lambda *_, **more: told.update(more))
    loaded(folders["sd15"], offload="group", device="cuda")
    assert told["offload_type"] == "leaf_level" and told["low_cpu_mem_usage"]


@pytest.mark.parametrize(("device", "quantised"), [("cpu", "none"), ("mps", "torchao-int8")])
def test_in_one_memory_a_part_that_waits_lies_in_a_file(
    device: str, quantised: str, folders: dict[str, Path], loaded: Any, tmp_path: Path, gradient: Path
) -> None:
    if quantised != "none":
        pytest.importorskip("torchao", reason="one of the quantised extra")
    waits = loaded(folders["sd15"], offload="model", device=device, quantised=quantised)
    stays = loaded(folders["sd15"], quantised=quantised)
    modules = placement.list_modules(waits.pipe)
    whole = {name: size(part) for name, part in placement.list_modules(stays.pipe).items()}
    assert all(size(part) == 0 for part in modules.values()), "nothing is in memory before it is asked for"
    inside: list[dict[str, int]] = []
    activate = waits.disk_parts.activate

    def recording(name: str) -> None:
        activate(name)
        inside.append({each: size(part) for each, part in modules.items() if size(part)})

    waits.disk_parts.activate = recording
    for index, more in enumerate(({}, {"image": str(gradient)})):
        one, other = (painted(each, tmp_path / f"{index}{place}", **more) for place, each in enumerate((waits, stays)))
        assert abs(read_pixels(list_parts(one)[0].path) - read_pixels(list_parts(other)[0].path)).max() < 1.5 / 255
    assert all(len(there) == 1 for there in inside) and {name for there in inside for name in there} == set(modules)
    assert all(there[name] == whole[name] for there in inside for name in there)


def test_what_a_pipeline_reads_of_a_decoder_that_waits_is_there(folders: dict[str, Path], loaded: Any, tmp_path: Path) -> None:
    """FLUX.2's pipeline and every preview read the VAE's batch norm before they call the VAE."""
    one, other = (
        read_pixels(list_parts(painted(loaded(folders["flux2-klein"], offload=how), tmp_path / how, guidance=1.0))[0].path)
        for how in ("model", "none")
    )
    assert abs(one - other).max() < 1.5 / 255, "but for a last bit that weights read from a file can round another way"


def size(part: torch.nn.Module) -> int:
    from app.engine.pictures.families.parts_on_disk import list_tensors

    return sum(leaf.numel() * leaf.element_size() for leaf in list_tensors(part))


@pytest.mark.slow
def test_what_waits_really_gives_its_memory_back(tmp_path: Path) -> None:
    from app.engine.pictures.families.parts_on_disk import DiskParts

    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    turns = DiskParts(tmp_path)
    for name in ("one", "two"):
        part = torch.nn.Linear(4096, 8192, bias=False)  # 128 MiB
        torch.nn.init.ones_(part.weight)
        turns.add(name, part)
    del part
    gc.collect()
    assert process.memory_info().rss - before < 64 << 20
    turns.close()
    assert not list(tmp_path.rglob("*.safetensors"))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    (tmp_path / f"{child.pid}-killed").mkdir()
    (tmp_path / f"{os.getpid()}-mine").mkdir()
    DiskParts(tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == [f"{os.getpid()}-mine"]


@pytest.mark.parametrize(("dtype", "written"), [("float32", False), ("bfloat16", True)])
def test_what_the_models_own_files_hold_is_not_written_anew(
    dtype: Dtype, written: bool, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another dtype than theirs it is."""
    folder = folders["sd15"]
    sizes: list[int] = []
    save = save_tensors.save_tensors

    def note(tensors: dict[str, torch.Tensor], path: Path, about: dict[str, str]) -> None:
        sizes.append(sum(each.nbytes for each in tensors.values()))
        save(tensors, path, about)

    monkeypatch.setattr(parts_on_disk, "save_tensors", note)
    row = catalog.find(str(folder))
    paints = picture_painter.load(folder, row, tiny.make_plan(row, dtype, offload="model"), {}, tmp_path / "scratch")
    held = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    assert sum(sizes) > held // 3 if written else sum(sizes) < held // 100, (sizes, held)
    there = picture_painter.load(folder, row, tiny.make_plan(row, dtype), {}, tmp_path / "other")
    one, other = (read_pixels(list_parts(painted(each, tmp_path / name))[0].path) for name, each in (("one", paints), ("other", there)))
    # A processor that multiplies bfloat16 itself rounds packed weights and mapped ones differently: 1.1 of 255 on the whole, 10 in one pixel.
    assert abs(one - other).mean() < (2 if written else 0.01) / 255
    paints.close()
    assert not [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in folder.rglob("*.safetensors")) == held


def test_a_part_comes_back_where_its_model_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, part = tmp_path / "model.safetensors", torch.nn.Linear(8, 4)
    weight, bias = part.weight.detach().clone(), part.bias.detach().clone()
    save_file({"weight": weight, "bias": bias + 1}, file)  # the bias is not what was loaded from it
    turns = parts_on_disk.DiskParts(tmp_path / "waiting")
    turns.add("one", part, [file])
    file.unlink()
    assert part.weight.numel() == part.bias.numel() == 0
    assert torch.equal(part(torch.ones(2, 8)), torch.nn.functional.linear(torch.ones(2, 8), weight, bias))
    turns.close()
    save_file({"weight": weight, "bias": bias}, file)
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EXDEV, "Invalid cross-device link")))
    turns = parts_on_disk.DiskParts(tmp_path / "waiting")
    turns.add("one", part, [file])
    assert torch.equal(part(torch.ones(2, 8)), torch.nn.functional.linear(torch.ones(2, 8), weight, bias))
    turns.close()


def test_a_part_that_leaves_a_mac_leaves_its_cache_too(tmp_path: Path) -> None:
    from app.engine.pictures.families.parts_on_disk import DiskParts

    with separate_memory("mps") as memory:
        turns, parts = DiskParts(tmp_path), {}
        for name in ("one", "two"):
            parts[name] = torch.nn.Linear(256, 256, bias=False).to("mps")
            turns.add(name, parts[name])
            assert memory.driver_bytes < 1 << 10
        for name in ("one", "two", "one"):
            turns.activate(name)
            assert (memory.held_bytes, memory.driver_bytes) == (256 << 10, 256 << 10)
        turns.close()


def test_a_disk_without_room_for_what_waits_is_told_as_that(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_tensors: Any, path: Path, _about: Any) -> None:
        path.write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(save_tensors, "save_file", full)
    row = catalog.find(str(folders["sd15"]))
    with pytest.raises(OSError, match="No space") as told:
        picture_painter.load(folders["sd15"], row, tiny.make_plan(row, "bfloat16", offload="model"), {}, tmp_path)
    assert told.value.errno == errno.ENOSPC and not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_lora_is_worn_over_weights_that_wait(folders: dict[str, Path], loaded: Any, tmp_path: Path) -> None:
    worn = (Lora(str(make_lora(folders["sd15"], tmp_path / "one.safetensors", 1))),)
    waits, stays = loaded(folders["sd15"], offload="model"), loaded(folders["sd15"])
    for index, loras in enumerate(((), worn, ())):
        one, other = (
            read_pixels(list_parts(painted(each, tmp_path / f"{index}{place}", loras=loras))[0].path)
            for place, each in enumerate((waits, stays))
        )
        assert abs(one - other).max() < 1.5 / 255, "but for rounding: what stays is packed, and has the LoRA in its weights"


@pytest.mark.parametrize("breaks", [False, True])
def test_a_layer_that_computed_wide_has_its_own_weights_again(breaks: bool) -> None:
    """They are never dropped meanwhile: on a card what is sent next would be written over what it has still to read."""
    part = torch.nn.Sequential(torch.nn.Linear(4, 4).half())
    stored = [(each.data, each.data.clone()) for each in part.parameters()]
    placement._store_narrow(part, torch.float16, torch.float32)
    if breaks:
        with pytest.raises(RuntimeError, match="shapes"):
            part(torch.ones(1, 3))
    assert part(torch.ones(1, 4)).dtype == torch.float32
    for weight, (own, values) in zip(part.parameters(), stored, strict=True):
        assert weight.dtype == torch.float16 and torch.equal(weight, values) and (breaks or weight.data_ptr() == own.data_ptr())


@pytest.mark.filterwarnings("ignore:Already found a `peft_config`")
@pytest.mark.parametrize(("dora", "sent"), [(False, False), (True, False), (False, True)])
def test_a_lora_is_stored_as_narrow_as_its_layer_and_computes_as_if_merged_in_float32(dora: bool, sent: bool) -> None:
    """No digit is lost but in the order of sums. Stored wide: DoRA, which multiplies outside of its layers."""

    def make(dtype: torch.dtype) -> torch.nn.Module:
        torch.manual_seed(5)
        layers = {"convolution": torch.nn.Conv2d(8, 8, 3, padding=1), "flat": torch.nn.Flatten(1, 2), "linear": torch.nn.Linear(16, 16)}
        part = torch.nn.Sequential(OrderedDict(layers)).half().to(dtype)
        if dtype == torch.float16:
            placement._store_narrow(part, dtype, torch.float32)
        for name in ("one", "two"):
            peft.inject_adapter_in_model(peft.LoraConfig(r=4, target_modules=["convolution", "linear"], use_dora=dora), part, name)
        torch.manual_seed(6)
        for name, weight in part.named_parameters():
            if ".lora_" in name:
                weight.data = (torch.randn(weight.shape) / 8).half().to(weight.dtype)
        for layer in part.modules():
            if isinstance(layer, BaseTunerLayer):
                layer.set_adapter(["one", "two"])
        return part.requires_grad_(False)

    given, narrow, right = torch.randn(2, 8, 16, 16), make(torch.float16), make(torch.float32)
    if sent:
        cpu_offload(narrow, torch.device("cpu"))
    placement.fit_loras(narrow)
    placement.fit_loras(narrow)  # as after each further LoRA
    added = {name: weight.dtype for name, weight in narrow.named_parameters() if ".lora_" in name}
    assert added and set(added.values()) == {torch.float32 if dora else torch.float16}
    assert torch.equal(narrow(given), right(given)), "as with wide weights"
    for layer in right.modules():
        if isinstance(layer, BaseTunerLayer):
            layer.merge()
    found, merged = narrow(given), right(given)
    assert found.dtype == torch.float32 and float((found - merged).abs().max() / merged.abs().max()) < 2e-6
    assert added == {name: weight.dtype for name, weight in narrow.named_parameters() if ".lora_" in name}


@pytest.mark.slow
@pytest.mark.parametrize("offload", [{}, {"offload": "group", "device": "cuda"}])
def test_a_lora_computes_as_wide_as_the_layer_that_it_sits_on(
    offload: dict[str, str], folders: dict[str, Path], loaded: Any, tmp_path: Path
) -> None:
    """As on a GTX 1660, where float16 gives NaN."""
    model = catalog.find(str(folders["sd15"]))
    kept = tuple(Precision(part.name, part.role, "float16", "float32", "cpu") for part in model.parts)
    worn = (Lora(str(make_lora(folders["sd15"], tmp_path / "one.safetensors", 1))),)
    paints, seen = loaded(folders["sd15"], precision=kept, **offload), set()
    painted(paints, tmp_path / "first", loras=worn)
    for name, module in paints.pipe.unet.named_modules():
        if ".lora_A." in name:
            module.register_forward_hook(lambda _module, _args, output: seen.add(output.dtype))
    painted(paints, tmp_path / "second", loras=worn)
    assert seen == {torch.float32}
    assert paints.pipe.unet.conv_in.weight.dtype == torch.float16
    stored = {weight.dtype for name, weight in paints.pipe.unet.named_parameters() if ".lora_" in name}
    assert stored == {torch.float16}


@pytest.mark.parametrize("family", ["sd15", "z-image"])
def test_int8_weights_that_are_planned_are_made(
    family: str, folders: dict[str, Path], loaded: Any, tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    pytest.importorskip("torchao", reason="one of the quantised extra")
    paints, plain = loaded(folders[family], quantised="torchao-int8"), load_painter(folders[family])[0]
    for name, part in placement.list_modules(paints.pipe).items():
        linear = [module.weight for each, module in part.named_modules() if isinstance(module, torch.nn.Linear) and each != "lm_head"]
        made = [type(weight).__name__ == "Int8Tensor" for weight in linear]
        assert not any(made) if name == "vae" else all(made) and made, name
    for place, each in enumerate((plain, paints)):
        painted(each, tmp_path / str(place), guidance=1.0, steps=1)
    assert 0 < (decoded[0] - decoded[1]).abs().mean() < 0.1


def test_a_single_file_is_made_smaller_or_refused(tmp_path: Path, loaded: Any) -> None:
    pytest.importorskip("torchao", reason="one of the quantised extra")
    folder, file = single.save("sd15", tmp_path)
    configs = {"configs": single.copy_configs(folder, tmp_path / "configs")}
    paints = loaded(file, configs, quantised="torchao-int8")
    assert quantise.has_quantised_weights(paints.pipe.unet) and quantise.has_quantised_weights(paints.pipe.text_encoder)
    painted(paints, tmp_path / "job")
    with pytest.raises(Trouble) as told:
        loaded(file, configs, quantised="bnb-nf4")
    assert told.value.sentence.key == "quantise.single-file"


def test_gguf_that_waits_paints_the_same(folders: dict[str, Path], loaded: Any, tmp_path: Path) -> None:
    file = make_gguf(folders["flux"], tmp_path / "tiny.gguf")
    one, other = (
        read_pixels(
            list_parts(painted(loaded(folders["flux"], {"gguf": file}, quantised="gguf", offload=how), tmp_path / how, guidance=1.0))[
                0
            ].path
        )
        for how in ("none", "model")
    )
    assert (one == other).all()


def test_a_way_that_did_nothing_is_refused(folders: dict[str, Path], loaded: Any) -> None:
    """GGUF was planned but its file is missing: full weights must not be used silently."""
    with pytest.raises(Trouble) as told:
        loaded(folders["flux"], quantised="gguf")
    assert told.value.sentence.key == "quantise.not-done"


XL = Need("xl", "picture", heads=10, kv_heads=10, parts=(ModelPart("unet", "denoiser", 2_567_463_684),), width=1024, height=1024)


@pytest.mark.parametrize(
    ("name", "kind", "key"),
    [
        ("cpu", "bnb-nf4", "quantised.bnb-pictures"),
        ("cpu", "bnb-int8", "quantised.bnb-pictures"),
        ("m2-16gb", "bnb-int8", "quantised.bnb-int8-metal"),
        ("cpu", "gguf", "quantised.not-gguf"),
    ],
)
def test_what_the_libraries_cannot_do_is_refused_in_the_plan(name: str, kind: Any, key: str) -> None:
    hardware = replace(machine(name), torch="2.13.0")
    with pytest.raises(Trouble) as told:
        decide(hardware, XL, Choice(quantised=kind))
    assert key in [each.key for each in told.value.objections]


def test_a_library_that_is_missing_is_named_in_the_plan() -> None:
    with pytest.raises(Trouble) as told:
        decide(replace(machine("cpu"), packages=()), XL, Choice(quantised="torchao-int8"))
    assert "start.py add quantised" in str(told.value.objections[0])


@pytest.mark.slow
def test_only_how_it_is_decoded_changes_and_nothing_is_loaded_again(folders: dict[str, Path], tmp_path: Path) -> None:
    session = Session(home(tmp_path / "home").create())
    asked = PictureRequest("a", model=str(folders["sd15"]), **{**SMALL, "steps": 1})

    def run(request: PictureRequest, choice: Choice, *fallbacks: str) -> list[Any]:
        for fallback in fallbacks:
            verdict = Verdict(Subject.fallback(asked.model, fallback), passed=False, seen=RunFailure("memory"))
            learn(session.home.verdicts, session.hardware, verdict)
        job = tmp_path / str(len(list(tmp_path.iterdir())))
        events = list(session.run(request, choice, Control(), job, lambda *_: None))
        assert isinstance(events[-1], Finished), events[-1]
        return events

    assert any(isinstance(event, Loading) for event in run(asked, Choice()))
    pipe = find_pipe(session)
    session.dial.chunk = 64
    changes: list[tuple[PictureRequest, Choice, tuple[str, ...]]] = [
        (asked, Choice(), ()),
        (replace(asked, scheduler="Euler"), Choice(), ()),
        (replace(asked, guidance=2.0), Choice(), ()),
        (replace(asked, width=576, height=576), Choice(), ("tiled-decoder",)),
    ]
    for request, choice, fallbacks in changes:
        assert not any(isinstance(event, Loading) for event in run(request, choice, *fallbacks))
    assert pipe.vae.use_tiling and pipe.vae.tile_sample_min_size == 512
    assert any(isinstance(event, Loading) for event in run(asked, Choice(dtype="bfloat16")))
    session.free()


def test_a_pretended_card_says_what_it_cannot_do_here(folders: dict[str, Path], tmp_path: Path) -> None:
    session = Session(home(tmp_path / "home").create(), "rtx-3060")
    asked = PictureRequest("a", model=str(folders["sd15"]), **{**SMALL, "steps": 1})
    plans: list[Plan] = []
    events = list(
        session.run(asked, Choice(quantised="bnb-nf4", offload="group"), Control(), tmp_path / "job", lambda _, plan: plans.append(plan))
    )
    assert isinstance(events[-1], Finished), events[-1]
    assert plans[0].quantised == "none" and plans[0].offload == "group"
    (why,) = [each for each in plans[0].because if each.field == "quantised"]
    assert "You asked for bnb-nf4" in str(why.sentence) and "cannot make these weights" in str(why.sentence)
    assert why.sentence in [event.sentence for event in events if isinstance(event, Note)]
    assert _is_group_offload_enabled(find_pipe(session).unet)
    session.free()
