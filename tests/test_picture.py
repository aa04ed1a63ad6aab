"""Pictures: every family paints as plain diffusers does, stops, goes on, and says in a sentence what it cannot do."""

from __future__ import annotations

import gc
import json
import pickle
import shutil
import struct
import threading
import weakref
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import diffusers
import gguf
import numpy as np
import pytest
import tiny_pictures as tiny
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from app.compat.plan import Precision, Vae
from app.compat.seam import applied
from app.engine import catalog, metadata, picture
from app.engine.control import Control
from app.engine.event import Event, Finished, Note, Part, Preview, Step, Stopped
from app.engine.faults import NumbersBroke
from app.engine.model import Model
from app.engine.painting import schedulers, steps
from app.engine.painting.families import FAMILIES
from app.engine.request import Lora, PictureRequest
from app.sentence import Trouble

pytestmark = [  # diffusers' schedulers with numpy 2
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning"),
]

SMALL: dict[str, Any] = {"width": 64, "height": 64, "steps": 3, "seed": 11, "preview_every": 0}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {family: tiny.made(family, tmp_path_factory.mktemp("models") / family) for family in tiny.MAKERS}


@cache
def painter(folder: Path) -> tuple[picture.Painter, Model]:
    """Loaded once; a test that spoils one loads its own."""
    model = catalog.find(str(folder))
    return picture.load(folder, model, tiny.plan(model), {}), model


def pixels(path: str | Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), dtype=np.float64) / 255


def parts(events: list[Event]) -> list[Part]:
    return [event for event in events if isinstance(event, Part)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """What the decoder gave, before it was rounded to the 256 steps of a PNG."""
    seen: list[torch.Tensor] = []
    check = steps.check

    def record(image: torch.Tensor, step: int, exact: bool) -> None:
        seen.append(image.detach().clone())
        check(image, step, exact)

    monkeypatch.setattr(steps, "check", record)
    return seen


def plainly(folder: Path, model: Model, form: str = "text", **told: Any) -> np.ndarray:
    """The same from diffusers' own class alone: its own loading, loop and decoding."""
    family = FAMILIES[model.family]
    plain = getattr(diffusers, getattr(family, form)).from_pretrained(folder, **family.loaded_with)
    if model.settings.scheduler:
        row = schedulers.by_name(model.settings.scheduler)
        plain.scheduler = getattr(diffusers, row.class_name).from_config(plain.scheduler.config, **row.settings)
    image = plain(
        num_inference_steps=3, generator=torch.Generator("cpu").manual_seed(11), output_type="np", **family.told, **told
    ).images[0]
    return np.asarray(image, dtype=np.float64)


def assert_same(decoded: torch.Tensor, plain: np.ndarray) -> None:
    mine = ((decoded[0].double() + 1) / 2).clamp(0, 1).permute(1, 2, 0).numpy()
    assert mine.std() > 0.01, "a grey picture would equal anything"
    assert np.abs(mine - plain).max() <= 1e-4


@pytest.mark.parametrize("family", tiny.MAKERS)
def test_paints_what_plain_diffusers_paints(
    family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, model = painter(folders[family])
    guidance = 1.0 if family in ("flux", "flux2-klein") else 3.0
    events = list(paints.run(PictureRequest("a red ball", guidance=guidance, **SMALL), Control(), None, tmp_path))
    assert isinstance(events[-1], Finished)
    plain = plainly(folders[family], model, prompt="a red ball", guidance_scale=guidance, width=64, height=64)
    assert_same(decoded[0], plain)
    assert np.abs(pixels(parts(events)[0].path) - plain).max() <= 0.51 / 255


def breaking(paints: picture.Painter, at: int) -> Any:
    """The denoiser's numbers break once, at this call."""
    module = getattr(paints._pipe, paints._family.denoiser)
    calls = 0

    def spoil(_module: torch.nn.Module, _args: Any, output: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != at:
            return output
        first = output[0]
        return ([each * float("nan") for each in first] if isinstance(first, list) else first * float("nan"),)

    return module.register_forward_hook(spoil)


@pytest.mark.parametrize("family", tiny.MAKERS)
def test_goes_on_from_the_last_good_step_to_the_very_same_picture(
    family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, _ = painter(folders[family])
    request = PictureRequest("a red ball", **{**SMALL, "steps": 6, "guidance": 1.0})
    list(paints.run(request, Control(), None, tmp_path / "whole"))
    hook = breaking(paints, 4)
    with pytest.raises(NumbersBroke) as broke:
        list(paints.run(request, Control(), None, tmp_path / "broken"))
    hook.remove()
    assert (broke.value.step, broke.value.where) == (4, "denoiser")
    again = [event for event in paints.run(request, Control(), None, tmp_path / "broken") if isinstance(event, Step)]
    assert [step.done for step in again] == [4, 5, 6]
    assert torch.equal(decoded[0], decoded[1])
    assert not list((tmp_path / "broken").glob("*.safetensors")), "nothing is left over"


@pytest.mark.parametrize("name", schedulers.NAMES)
def test_every_scheduler_paints_and_goes_on_alike(
    name: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, _ = painter(folders["sd15"])
    request = PictureRequest("a red ball", **{**SMALL, "steps": 6, "scheduler": name, "guidance": 1.0})
    events = list(paints.run(request, Control(), None, tmp_path / "whole"))
    assert isinstance(events[-1], Finished)
    hook = breaking(paints, 4)
    with pytest.raises(NumbersBroke):
        list(paints.run(request, Control(), None, tmp_path / "broken"))
    hook.remove()
    list(paints.run(request, Control(), None, tmp_path / "broken"))
    assert torch.equal(decoded[0], decoded[1])


@pytest.mark.parametrize("name", schedulers.NAMES)
def test_the_clean_picture_is_guessed_rightly(name: str) -> None:
    """A denoiser that knows the picture answers with the exact noise: every step's guess has to be that picture."""
    row = schedulers.by_name(name)
    scheduler = getattr(diffusers, row.class_name)(
        beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, **row.settings
    )
    scheduler.set_timesteps(10)
    known = torch.randn(1, 4, 4, 4, generator=torch.Generator().manual_seed(1))
    sample = torch.randn(1, 4, 4, 4, generator=torch.Generator().manual_seed(2)) * scheduler.init_noise_sigma
    for timestep in scheduler.timesteps:
        seen = scheduler.scale_model_input(sample, timestep)
        alpha_squared = scheduler.alphas_cumprod[int(timestep.round())]
        noise = (seen - alpha_squared.sqrt() * known) / (1 - alpha_squared).sqrt()
        guess = steps.clean(scheduler, noise, timestep, sample, getattr(scheduler, "step_index", None) or 0)
        assert (guess - known).abs().max() < 0.06
        sample = scheduler.step(noise, timestep, sample, return_dict=False)[0]


def stopping(paints: picture.Painter, request: PictureRequest, at: int, job: Path) -> tuple[list[Event], int]:
    """Stop is pressed while step `at` is being computed; how many times the denoiser was asked in all."""
    control, asked = Control(), 0

    def press(_module: torch.nn.Module, _args: Any, _output: Any) -> None:
        nonlocal asked
        asked += 1
        if asked == at:
            control.stop()

    hook = getattr(paints._pipe, paints._family.denoiser).register_forward_hook(press)
    events = list(paints.run(request, control, None, job))
    hook.remove()
    return events, asked


@pytest.mark.parametrize("family", tiny.MAKERS)
def test_stop_ends_within_the_step_and_keeps_a_valid_picture(
    family: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    paints, _ = painter(folders[family])
    events, asked = stopping(
        paints, PictureRequest("a", **{**SMALL, "steps": 8, "batch": 3, "guidance": 1.0}), 3, tmp_path
    )
    assert asked == 3
    assert [event.done for event in events if isinstance(event, Step)] == [1, 2, 3]
    last = events[-1]
    assert isinstance(last, Stopped) and len(last.files) == 1
    assert pixels(last.files[0]).shape == (64, 64, 3)
    assert not list(tmp_path.glob("*.part"))


def test_stop_before_the_first_step_and_after_the_last(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = painter(folders["sd15"])
    control = Control()
    control.stop()
    events = list(paints.run(PictureRequest("a", **SMALL), control, None, tmp_path / "before"))
    assert isinstance(events[-1], Stopped) and events[-1].files == ()
    control = Control()
    events = []
    for event in paints.run(PictureRequest("a", **SMALL), control, None, tmp_path / "after"):
        events.append(event)
        if isinstance(event, Part):
            control.stop()
    assert isinstance(events[-1], Finished), "there was nothing left to stop"


def test_the_reader_may_go_at_any_moment(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = painter(folders["sd15"])
    before = threading.active_count()
    run = paints.run(PictureRequest("a", **{**SMALL, "steps": 50}), Control(), None, tmp_path)
    assert isinstance(next(run), Step)
    run.close()
    assert threading.active_count() == before
    assert "step" not in vars(paints._pipe.scheduler) and "forward" not in vars(paints._pipe.unet)


def test_each_picture_of_a_batch_is_the_same_alone(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, _ = painter(folders["sd15"])
    events = list(paints.run(PictureRequest("a", **{**SMALL, "batch": 3}), Control(), None, tmp_path / "three"))
    assert [part.seed for part in parts(events)] == [11, 12, 13]
    list(paints.run(PictureRequest("a", **{**SMALL, "seed": 12}), Control(), None, tmp_path / "one"))
    assert torch.equal(decoded[1], decoded[3]) and not torch.equal(decoded[0], decoded[1])


def test_a_job_taken_up_again_leaves_finished_pictures_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = painter(folders["sd15"])
    request = PictureRequest("a", **{**SMALL, "seed": None, "batch": 2})
    first = parts(list(paints.run(request, Control(), None, tmp_path)))
    written = Path(first[0].path).stat().st_mtime_ns
    Path(first[1].path).unlink()
    again = list(paints.run(request, Control(), None, tmp_path))
    assert parts(again) == first, "the same drawn seed"
    assert Path(first[0].path).stat().st_mtime_ns == written
    assert {event.part for event in again if isinstance(event, Step)} == {1}


def test_a_broken_decoder_is_told_and_the_steps_are_not_done_again(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = painter(folders["sd15"])
    weight = paints._pipe.vae.decoder.conv_in.weight
    good = weight.data.clone()
    weight.data.mul_(float("nan"))
    with pytest.raises(NumbersBroke) as broke:
        list(paints.run(PictureRequest("a", **SMALL), Control(), None, tmp_path))
    assert broke.value.where == "vae"
    weight.data.copy_(good)
    events = list(paints.run(PictureRequest("a", **SMALL), Control(), None, tmp_path))
    assert not [event for event in events if isinstance(event, Step)] and isinstance(events[-1], Finished)


def test_previews_come_as_asked(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = painter(folders["flux2-klein"])
    request = PictureRequest("a", **{**SMALL, "steps": 7, "preview_every": 3})
    seen = [event for event in paints.run(request, Control(), None, tmp_path) if isinstance(event, Preview)]
    assert [event.step for event in seen] == [3, 6]
    assert pixels(seen[1].path).shape == (256, 256, 3)


MIXED = {
    "decoder in float32": {"vae": "float32"},
    "words in float32": {"text": "float32"},
    "denoiser in float32": {"denoiser": "float32"},
}


@pytest.mark.parametrize("wide", MIXED)
@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "flux2-klein", "z-image"])
def test_parts_of_different_precision_work_together(
    family: str, wide: str, folders: dict[str, Path], tmp_path: Path, gradient: Path
) -> None:
    model = catalog.find(str(folders[family]))
    parts_in = tuple(
        Precision(part.name, part.role, MIXED[wide].get(part.role, "bfloat16"), MIXED[wide].get(part.role, "bfloat16"), "cpu")
        for part in model.parts
    )  # fmt: skip
    paints = picture.load(folders[family], model, tiny.plan(model, "bfloat16", precision=parts_in), {})
    request = PictureRequest("a", image=str(gradient), **SMALL)
    assert isinstance(list(paints.run(request, Control(), None, tmp_path))[-1], Finished)


def test_weights_kept_in_half_compute_in_float32(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    """As on Pascal: what comes out differs from float32 by the rounding of the weights, not by that of the arithmetic."""
    model = catalog.find(str(folders["sd15"]))
    kept = tuple(Precision(part.name, part.role, "float16", "float32", "cpu") for part in model.parts)
    halved = picture.load(folders["sd15"], model, tiny.plan(model, precision=kept), {})
    assert halved._pipe.unet.conv_in.weight.dtype == torch.float16
    list(halved.run(PictureRequest("a", **SMALL), Control(), None, tmp_path / "kept"))
    rounded = picture.load(folders["sd15"], model, tiny.plan(model), {})
    for part in (rounded._pipe.text_encoder, rounded._pipe.unet, rounded._pipe.vae):
        for module in part.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
                for weight in module.parameters(recurse=False):
                    weight.data = weight.data.half().float()
    list(rounded.run(PictureRequest("a", **SMALL), Control(), None, tmp_path / "rounded"))
    assert (decoded[0] - decoded[1]).abs().max() < 2e-3


@pytest.fixture(scope="session")
def gradient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "gradient.png"
    values = np.linspace(0, 255, 96 * 96 * 3).reshape(96, 96, 3).astype(np.uint8)
    Image.fromarray(values).save(path)
    return path


@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "flux2-klein", "z-image"])
def test_starts_from_a_picture_as_plain_diffusers_does(
    family: str, folders: dict[str, Path], tmp_path: Path, gradient: Path, decoded: list[torch.Tensor]
) -> None:
    paints, model = painter(folders[family])
    guidance = 1.0 if family in ("flux", "flux2-klein") else 3.0
    request = PictureRequest("a red ball", image=str(gradient), strength=0.7, guidance=guidance, **SMALL)
    assert isinstance(list(paints.run(request, Control(), None, tmp_path))[-1], Finished)
    with Image.open(gradient) as opened:
        start = opened.convert("RGB").resize((64, 64), Image.Resampling.LANCZOS)
    told: dict[str, Any] = {"prompt": "a red ball", "guidance_scale": guidance, "image": start}
    if family == "flux2-klein":
        told |= {"width": 64, "height": 64}
    else:
        told["strength"] = 0.7
        if family in ("flux", "sd3", "z-image"):
            told |= {"width": 64, "height": 64}
    assert_same(decoded[0], plainly(folders[family], model, "image", **told))


@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "flux2-klein", "z-image"])
def test_paints_into_a_mask_and_leaves_the_rest_alone(
    family: str, folders: dict[str, Path], tmp_path: Path, gradient: Path
) -> None:
    mask = tmp_path / "mask.png"
    drawn = Image.new("L", (96, 96), 0)
    drawn.paste(255, (48, 0, 96, 96))
    drawn.save(mask)
    paints, _ = painter(folders[family])
    request = PictureRequest("a", image=str(gradient), mask=str(mask), strength=1.0, **{**SMALL, "guidance": 1.0})
    events = list(paints.run(request, Control(), None, tmp_path / "job"))
    made = pixels(parts(events)[0].path)
    with Image.open(gradient) as opened:
        before = np.asarray(opened.convert("RGB").resize((64, 64), Image.Resampling.LANCZOS)) / 255
    assert np.array_equal(np.round(made[:, :32] * 255), np.round(before[:, :32] * 255))
    assert np.abs(made[:, 40:] - before[:, 40:]).mean() > 0.05


def test_weights_in_the_prompt_change_the_picture_and_weight_one_does_not(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    for family in ("sd15", "sdxl"):
        decoded.clear()
        paints, _ = painter(folders[family])
        for index, prompt in enumerate(("a red ball", "a (red:1.0) ball", "a (red:1.6) ball", "a red ball " * 30)):
            list(
                paints.run(
                    PictureRequest(prompt, negative="ugly", guidance=3.0, **SMALL),
                    Control(),
                    None,
                    tmp_path / family / str(index),
                )
            )
        assert torch.equal(decoded[0], decoded[1])
        assert (decoded[0] - decoded[2]).abs().max() > 1e-3
        assert (decoded[0] - decoded[3]).abs().max() > 1e-3


def test_a_model_that_takes_no_weights_says_so(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, _ = painter(folders["z-image"])
    plain = list(paints.run(PictureRequest("a red ball", **SMALL), Control(), None, tmp_path / "plain"))
    weighted = list(paints.run(PictureRequest("a (red:1.6) ball", **SMALL), Control(), None, tmp_path / "weighted"))
    assert not [event for event in plain if isinstance(event, Note)]
    assert [event.sentence.key for event in weighted if isinstance(event, Note)] == ["words.no-weights"]
    assert torch.equal(decoded[0], decoded[1])


SEAMS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "in chunks of 5 by its own arithmetic": {"chunk_q": 5, "kernels": (), "gqa": "folded", "contiguous": True},
    "over keys too": {"chunk_q": 64, "chunk_k": 96, "kernels": (), "gqa": "expanded", "explicit_mask": True},
}


@pytest.mark.parametrize("remedy", SEAMS)
@pytest.mark.parametrize("family", tiny.MAKERS)
def test_with_the_seam_on_it_is_still_the_same_picture(
    family: str, remedy: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, model = painter(folders[family])
    request = PictureRequest("a red ball", guidance=1.0, **SMALL)
    with applied(tiny.plan(model, **SEAMS[remedy])) as seam:
        events = list(paints.run(request, Control(), seam, tmp_path))
    assert seam.calls > 0
    assert all(event.attention for event in events if isinstance(event, Step))
    assert_same(
        decoded[0], plainly(folders[family], model, prompt="a red ball", guidance_scale=1.0, width=64, height=64)
    )


@pytest.fixture(scope="session")
def starter(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter") / "painter"
    shutil.copytree(folders["sd15"], folder)
    card = {"words": ["a", "red", "ball", "on", "white"], "examples": ["a red ball on white"]}
    (folder / "starter.json").write_text(json.dumps(card))
    return folder


def test_the_starter_says_which_words_it_was_never_taught(starter: Path, tmp_path: Path) -> None:
    model = replace(catalog.find("starter-painter"), path=str(starter))
    paints = picture.load(starter, model, tiny.plan(model), {})
    assert isinstance(list(paints.run(PictureRequest("A red ball!", **SMALL), Control(), None, tmp_path))[-1], Finished)
    with pytest.raises(Trouble) as told:
        list(paints.run(PictureRequest("a red dragon on (Mars:1.2)", **SMALL), Control(), None, tmp_path))
    assert told.value.cure == "get-sd15"
    assert dict(told.value.sentence.values)["words"] == "dragon, mars"


def broken(path: Path, how: str) -> None:
    {
        "cut off": lambda: path.write_bytes(path.read_bytes()[:-100]),
        "cut off in its header": lambda: path.write_bytes(path.read_bytes()[:200]),
        "empty": lambda: path.write_bytes(b""),
        "a text": lambda: path.write_text("hello"),
        "a pickle": lambda: path.write_bytes(pickle.dumps({"a": 1})),
        "gone": path.unlink,
        "a pickle by name": lambda: path.rename(path.with_suffix(".bin")),
    }[how]()


@pytest.mark.parametrize(
    "how", ["cut off", "cut off in its header", "empty", "a text", "a pickle", "gone", "a pickle by name"]
)
def test_broken_weights_are_told(how: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["sd15"], folder)
    model = catalog.find(str(folder))
    broken(folder / "unet" / "diffusion_pytorch_model.safetensors", how)
    with pytest.raises(Trouble) as told:
        picture.load(folder, model, tiny.plan(model), {})
    assert str(folder / "unet") in str(told.value)


@pytest.mark.parametrize(
    "part", ["unet/config.json", "tokenizer/vocab.json", "tokenizer/tokenizer.json", "model_index.json"]
)
def test_broken_configs_are_told(part: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["sd15"], folder)
    model = catalog.find(str(folder))
    for path in folder.glob(part):
        path.write_text("{")
        with pytest.raises(Trouble):
            picture.load(folder, model, tiny.plan(model), {})


def png(path: Path, size: tuple[int, int]) -> Path:
    Image.new("RGB", size, "red").save(path)
    return path


BAD_PICTURES: dict[str, Callable[[Path], Any]] = {
    "canvas.missing": lambda path: None,
    "canvas.not-a-picture": lambda path: path.write_text("a text file"),
    "canvas.too-small": lambda path: png(path, (1, 1)),
    "canvas.too-large": lambda path: path.write_bytes(huge()),
}


def huge() -> bytes:
    """A PNG that says it is 20,000 x 20,000 pixels: 1.2 GB when opened."""
    head = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    data = b"IDAT" + zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each)) for each in (chunk, data, b"IEND")
    )


@pytest.mark.parametrize("key", BAD_PICTURES)
def test_a_bad_picture_to_start_from_is_told(key: str, folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = painter(folders["sd15"])
    path = tmp_path / "start.png"
    BAD_PICTURES[key](path)
    with pytest.raises(Trouble) as told:
        list(paints.run(PictureRequest("a", image=str(path), **SMALL), Control(), None, tmp_path / "job"))
    assert told.value.sentence.key == key


def test_a_cut_off_picture_is_told(folders: dict[str, Path], tmp_path: Path, gradient: Path) -> None:
    paints, _ = painter(folders["sd15"])
    path = tmp_path / "start.png"
    path.write_bytes(gradient.read_bytes()[:-300])
    with pytest.raises(Trouble):
        list(paints.run(PictureRequest("a", image=str(path), **SMALL), Control(), None, tmp_path / "job"))


@pytest.mark.parametrize(
    ("key", "family", "more"),
    [
        ("canvas.multiple", "flux", {"width": 72}),
        ("scheduler.unknown", "sd15", {"scheduler": "Magic"}),
        ("paint.no-image", "pixart-sigma", {"image": "GRADIENT"}),
        ("paint.no-image", "pixart-sigma", {"image": "GRADIENT", "mask": "GRADIENT"}),
        ("lora.missing", "sd15", {"loras": (Lora("nowhere.safetensors"),)}),
        ("detect.pickle", "sd15", {"loras": (Lora("PICKLE"),)}),
        ("lora.misfit", "sd15", {"loras": (Lora("MISFIT"),)}),
        ("lora.none", "pixart-sigma", {"loras": (Lora("MISFIT"),)}),
    ],
)
def test_what_cannot_be_painted_is_told(
    key: str, family: str, more: dict[str, Any], folders: dict[str, Path], tmp_path: Path, gradient: Path
) -> None:
    (tmp_path / "evil.ckpt").write_bytes(pickle.dumps({"a": 1}))
    save_file({"some.layer.weight": torch.zeros(2, 2)}, tmp_path / "misfit.safetensors")
    names = {
        "GRADIENT": str(gradient),
        "PICKLE": str(tmp_path / "evil.ckpt"),
        "MISFIT": str(tmp_path / "misfit.safetensors"),
    }
    more = {name: names.get(value, value) if isinstance(value, str) else value for name, value in more.items()}
    if "loras" in more:
        more["loras"] = tuple(replace(each, path=names.get(each.path, each.path)) for each in more["loras"])
    paints, _ = painter(folders[family])
    with pytest.raises(Trouble) as told:
        list(paints.run(PictureRequest("a", **{**SMALL, **more}), Control(), None, tmp_path / "job"))
    assert told.value.sentence.key == key


def lora(folder: Path, path: Path, seed: int) -> Path:
    """A random LoRA for this model's UNet, as peft and diffusers write it."""
    torch.manual_seed(seed)
    pipe = diffusers.StableDiffusionPipeline.from_pretrained(folder, safety_checker=None)
    state = {}
    for name, module in pipe.unet.named_modules():
        if name.endswith("attn1.to_q"):
            state[f"unet.{name}.lora_A.weight"] = torch.randn(2, module.in_features)
            state[f"unet.{name}.lora_B.weight"] = torch.randn(module.out_features, 2)
    save_file(state, path)
    return path


def test_loras_are_worn_with_their_weights_and_taken_off(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    one = str(lora(folders["sd15"], tmp_path / "one.safetensors", 1))
    two = str(lora(folders["sd15"], tmp_path / "two.safetensors", 2))
    paints, _ = painter(folders["sd15"])
    for index, loras in enumerate(
        [(), (Lora(one),), (Lora(one), Lora(two, -0.5)), (Lora(two, -0.5), Lora(one)), (Lora(one, 0.0),), ()]
    ):
        list(paints.run(PictureRequest("a", loras=loras, **SMALL), Control(), None, tmp_path / str(index)))
    bare, first, both, turned, none, off = decoded
    assert torch.equal(bare, off)
    assert torch.allclose(bare, none, atol=1e-5)
    assert torch.allclose(both, turned, atol=1e-4)
    assert (bare - first).abs().max() > 1e-2 and (first - both).abs().max() > 1e-2


def test_upscaling_keeps_the_settings_that_were_painted(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = painter(folders["sd15"])
    request = PictureRequest("a red ball", upscale=2, **SMALL)
    made = parts(list(paints.run(request, Control(), None, tmp_path)))[0]
    assert pixels(made.path).shape == (128, 128, 3)
    restored = metadata.read(Path(made.path)).request
    assert (restored.width, restored.upscale, restored.seed, restored.steps) == (64, 2, 11, 3)
    again = parts(list(paints.run(restored, Control(), None, tmp_path / "again")))[0]
    assert np.array_equal(pixels(made.path), pixels(again.path))


def gguf_of(folder: Path, file: Path) -> Path:
    """The denoiser's weights in 8 bits, as GGUF files hold them: rows of 32 numbers share a scale."""
    writer = gguf.GGUFWriter(str(file), "tiny")
    for name, tensor in load_file(folder / "transformer" / "diffusion_pytorch_model.safetensors").items():
        values = tensor.float().numpy()
        fits = name.endswith(".weight") and values.ndim == 2 and values.shape[1] % 32 == 0
        kind = gguf.GGMLQuantizationType.Q8_0 if fits else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.mark.parametrize("family", ["flux", "flux2-klein", "z-image", "sd3"])
def test_a_denoiser_in_gguf_paints_nearly_the_same(
    family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    file = gguf_of(folders[family], tmp_path / "tiny.gguf")
    bare = tmp_path / "bare"
    shutil.copytree(folders[family], bare)
    (bare / "transformer" / "diffusion_pytorch_model.safetensors").unlink()
    model = catalog.find(str(folders[family]))
    request = PictureRequest("a red ball", guidance=1.0, **{**SMALL, "steps": 1})
    whole = picture.load(folders[family], model, tiny.plan(model), {})
    small = picture.load(bare, model, tiny.plan(model, quantised="gguf"), {"gguf": file})
    for index, paints in enumerate((whole, small)):
        list(paints.run(request, Control(), None, tmp_path / str(index)))
    kinds = {type(each).__name__ for each in small._pipe.transformer.modules()}
    assert "GGUFLinear" in kinds
    assert 0 < (decoded[0] - decoded[1]).abs().mean() < 0.05


def test_the_few_steps_lora_is_worn_with_lcm_only(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    few = lora(folders["sd15"], tmp_path / "pytorch_lora_weights.safetensors", 4)
    local = catalog.find(str(folders["sd15"]))
    row = catalog.find("sd15")
    model = replace(
        local, settings=replace(row.settings, width=64, height=64), plain=row.plain, companions=row.companions
    )
    paints = picture.load(folders["sd15"], model, tiny.plan(model), {"few-steps": few.parent})
    bare, _ = painter(folders["sd15"])
    for index, (one, scheduler) in enumerate(((paints, "LCM"), (bare, "LCM"), (paints, "Euler"), (bare, "Euler"))):
        list(
            one.run(
                PictureRequest("a", scheduler=scheduler, guidance=1.0, **SMALL), Control(), None, tmp_path / str(index)
            )
        )
    assert (decoded[0] - decoded[1]).abs().max() > 1e-2
    assert torch.equal(decoded[2], decoded[3])
    made = parts(
        list(paints.run(PictureRequest("a", width=64, height=64, seed=1), Control(), None, tmp_path / "auto"))
    )[0]
    restored = metadata.read(Path(made.path)).request
    assert (restored.steps, restored.guidance, restored.scheduler) == (6, 1.5, "LCM")


def test_tiles_and_slices_are_taken_on_while_loaded(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, model = painter(folders["sd15"])
    request = PictureRequest("a", **{**SMALL, "width": 256, "height": 256})
    list(paints.run(request, Control(), None, tmp_path / "whole"))
    assert paints.adapt(tiny.plan(model, vae=Vae(True, 128)))
    list(paints.run(request, Control(), None, tmp_path / "tiled"))
    assert 0 < (decoded[0] - decoded[1]).abs().mean() < 0.1
    assert paints.adapt(tiny.plan(model))
    list(paints.run(request, Control(), None, tmp_path / "again"))
    assert torch.equal(decoded[0], decoded[2])
    assert not paints.adapt(tiny.plan(model, "bfloat16"))


def test_black_is_believed_in_float32_only(folders: dict[str, Path], tmp_path: Path) -> None:
    """In half precision a black picture is how overflow shows; in float32 it may be what was asked for."""
    for dtype in ("float32", "bfloat16"):
        model = catalog.find(str(folders["sd15"]))
        paints = picture.load(folders["sd15"], model, tiny.plan(model, dtype), {})
        paints._pipe.vae.decoder.conv_out.weight.data.zero_()
        paints._pipe.vae.decoder.conv_out.bias.data.fill_(-1)
        run = paints.run(PictureRequest("a black night", **SMALL), Control(), None, tmp_path / dtype)
        if dtype == "float32":
            assert isinstance(list(run)[-1], Finished)
        else:
            with pytest.raises(NumbersBroke):
                list(run)


def test_closing_lets_go_of_the_weights(folders: dict[str, Path], tmp_path: Path) -> None:
    model = catalog.find(str(folders["sd15"]))
    paints = picture.load(folders["sd15"], model, tiny.plan(model), {})
    list(paints.run(PictureRequest("a", **SMALL), Control(), None, tmp_path))
    held = weakref.ref(paints._pipe.unet)
    paints.close()
    gc.collect()
    assert held() is None
