"""Run tiny models on a card with separate memory: a simulated one, or with -m card this machine's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app.compat.planning.types import Dtype, Precision
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, PartDone
from app.engine.jobs.request import Lora, PictureRequest, SpeechRequest, VoicePrompt
from app.engine.models import catalog
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.picture_families import FAMILIES
from app.engine.pictures.families import placement
from app.engine.pictures.run import painter
from app.engine.speech.families.dia.codec import Codec
from app.engine.speech.run import loader, sounding
from app.engine.speech.sound.sound import Samples, read, write
from tests.support import picture_fixtures
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, break_denoiser, list_parts, make_gguf, make_lora, read_pixels
from tests.support.plans import plan
from tests.support.separate_memory import SeparateMemory, separate_memory
from tests.support.tiny_voices import save_voice

pytestmark = pytest.mark.long

pytest_plugins = ["tests.support.picture_fixtures"]
OFFLOADS = ("none", "model", "group", "sequential")
NONE_AND_GROUP = ("none", "group", *(pytest.param(each, marks=pytest.mark.slow) for each in ("model", "sequential")))
"""Group is the one whose parts move while they compute."""
WITHIN = {"float32": 3 / 255, "apart": 12 / 255}
PRECISIONS: dict[str, tuple[Dtype, Dtype]] = {"float32": ("float32", "float32"), "apart": ("float16", "float32")}


@pytest.fixture(params=["pretended", pytest.param("real", marks=pytest.mark.card)], autouse=True)
def card(request: pytest.FixtureRequest) -> Iterator[SeparateMemory | None]:
    if request.param == "real":
        yield None
        return
    with separate_memory() as memory:
        yield memory


def test_it_tells_the_two_memories_apart(card: SeparateMemory | None) -> None:
    here, there = torch.ones(3, 4), torch.ones(3, 4, device="cuda")
    assert there.device.type == "cuda" and there.is_cuda and here.device.type == "cpu"
    assert (there @ there.T).is_cuda and there[1:].is_cuda and (there * torch.tensor(2.0)).is_cuda
    for wrong in (lambda: here + there, lambda: torch.cat((there, here)), lambda: torch.nn.functional.linear(there, here)):
        with pytest.raises(RuntimeError, match="same device"):
            wrong()
    for strange in (lambda: there.numpy(), lambda: torch.randn(3, generator=torch.Generator("cpu"), device="cuda")):
        with pytest.raises((TypeError, RuntimeError)):
            strange()
    back = there.to("cpu")
    back.zero_()
    assert there.sum() == 12 and (here + back).sum() == 12
    assert there.to(torch.float16).is_cuda and not here.to(back).is_cuda and here.to(there).is_cuda
    layer = torch.nn.Linear(4, 4).to("cuda")
    assert layer(there).is_cuda
    if card is not None:
        held = card.held_bytes
        del layer
        assert held - card.held_bytes >= 80


@pytest.fixture
def load(folders: dict[str, Path], tmp_path: Path) -> Any:
    def load(family: str, offload: Any = "none", precision: str = "apart", **more: Any) -> painter.Painter:
        model, (storage, compute) = catalog.find(str(folders[family])), PRECISIONS[precision]
        # As plans have it, a decoder rests in what it computes in.
        how = tuple(Precision(part.name, part.role, compute if part.role == "vae" else storage, compute, "cuda") for part in model.parts)
        fields = {"device": "cuda", "runs_on": "cuda", "precision": how, "kernels": ("efficient", "math"), **more}
        companions = fields.pop("companions", {})
        return painter.load(folders[family], model, tiny.make_plan(model, compute, offload=offload, **fields), companions, tmp_path)

    return load


def ask(**more: Any) -> PictureRequest:
    return PictureRequest(**{"prompt": "a red ball", **SMALL, "preview_every": 1, **more})


def painted(paints: painter.Painter, job: Path, **more: Any) -> Any:
    return paint(paints, job, ask(**more))


def paint(paints: painter.Painter, job: Path, asked: PictureRequest) -> Any:
    events = list(paints.run(asked, Control(), None, job))
    assert isinstance(events[-1], Finished)
    return read_pixels(list_parts(events)[0].path)


@pytest.fixture(scope="module")
def worn(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_lora(folders["sd15"], tmp_path_factory.mktemp("worn") / "one.safetensors", 1)


@pytest.fixture(scope="module")
def plain(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, PictureRequest], Any]:
    """What a processor paints: once for all offloads."""

    @cache
    def paint_once(family: str, asked: PictureRequest) -> Any:
        return paint(picture_fixtures.load_painter(folders[family])[0], tmp_path_factory.mktemp("plain"), asked)

    return paint_once


def forms(family: str, gradient: Path, worn: Path) -> list[dict[str, Any]]:
    """List the kinds of request: text, picture, mask, weighted and long prompts, LoRAs, other schedulers."""
    picture = {"image": str(gradient)}
    asked: list[dict[str, Any]] = [{}, picture] if FAMILIES[family].image_class else [{}]
    if family in ("sd15", "sdxl"):
        asked += [{**picture, "mask": str(gradient)}, {"prompt": "a (red:1.4) ball"}, {"prompt": "a red ball " * 40}]
    if family == "sd15":
        asked += [{"loras": (Lora(str(worn)),)}, {"scheduler": "Euler a"}, {"scheduler": "UniPC"}, {"batch": 2}]
    return asked


@pytest.mark.parametrize(
    ("family", "offload"),
    [
        pytest.param(family, offload, marks=[] if family == "z-image" and offload == "group" else pytest.mark.slow)
        for family in tiny.MAKERS
        for offload in (OFFLOADS if family in ("sd15", "sdxl") else OFFLOADS[1:3])
    ],
)
def test_a_card_paints_as_the_processor(
    family: str, offload: str, load: Any, plain: Callable[[str, PictureRequest], Any], gradient: Path, worn: Path, tmp_path: Path
) -> None:
    paints, seen = load(family, offload), set()
    modules: dict[str, Any] = placement.list_modules(paints.pipe)
    modules["vae"] = modules["vae"].decoder
    for name, module in modules.items():
        module.register_forward_hook(lambda _module, _args, out, name=name: seen.add((name, tensor_of(out).device.type)))
    for index, more in enumerate(forms(family, gradient, worn)):
        asked = ask(guidance=1.0 if family.startswith("flux") else 3.0, **more)
        assert abs(paint(paints, tmp_path / str(index), asked) - plain(family, asked)).max() < WITHIN["apart"], more
    assert {place for _, place in seen} == {"cuda"} and {name for name, _ in seen} >= {"vae", paints.family.denoiser}
    paints.close()


def tensor_of(out: Any) -> torch.Tensor:
    while not isinstance(out, torch.Tensor):
        out = next(iter(out.values())) if isinstance(out, dict) else out[0]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("offload", NONE_AND_GROUP)
@pytest.mark.parametrize("scheduler", [pytest.param("DPM++ 2M SDE", marks=pytest.mark.slow), "UniPC"])
def test_a_broken_picture_goes_on_from_its_file(offload: str, scheduler: str, folders: dict[str, Path], load: Any, tmp_path: Path) -> None:
    """A checkpoint is read into the CPU's memory and has to move to the card's."""
    paints, asked = load("sd15", offload, "float32"), {"scheduler": scheduler, "steps": 6}
    whole = painted(paints, tmp_path / "whole", **asked)
    hook = break_denoiser(paints, 4)
    with pytest.raises(NumbersBroke):
        painted(paints, tmp_path / "broken", **asked)
    hook.remove()
    assert abs(painted(paints, tmp_path / "broken", **asked) - whole).max() < 2 / 255
    paints.close()


@pytest.mark.slow
@pytest.mark.parametrize("offload", ("none", "group"))
def test_gguf_paints_on_a_card(
    offload: str, folders: dict[str, Path], load: Any, plain: Callable[[str, PictureRequest], Any], tmp_path: Path
) -> None:
    file = make_gguf(folders["flux"], tmp_path / "tiny.gguf")
    paints = load("flux", offload, "float32", companions={"gguf": file}, quantised="gguf")
    assert abs(painted(paints, tmp_path / "job", guidance=1.0) - plain("flux", ask(guidance=1.0))).mean() < 12 / 255


@dataclass
class Voice:
    folder: Path
    clip: Path


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    folder = save_voice(tmp_path_factory.mktemp("voice"))
    clip = folder / "clip.wav"
    write(clip, (0.1 * np.sin(np.arange(60_000) / 40)).astype(np.float32), 44100)
    return Voice(folder, clip)


def spoken(
    voice: Voice, job: Path, device: str, offload: Any = "none", storage: Any = "float32", compute: Any = "float32", codec: str = ""
) -> Any:
    how = (Precision("model", "speech", storage, compute, device), Precision("codec", "codec", "float32", "float32", codec or device))
    here = plan(device=device, runs_on=device, precision=how, offload=offload, dtype=compute)
    asked = SpeechRequest(
        "[S1] A line. [S2] And another.", voice=VoicePrompt(str(voice.clip), "[S1] A tone."), seed=3, max_frames=90, loudness_lufs=None
    )
    speaker = loader.load(voice.folder, here)
    events = list(speaker.run(asked, Control(), None, job))
    assert isinstance(events[-1], Finished)
    speaker.close()
    (part,) = (event for event in events if isinstance(event, PartDone))
    return read(Path(part.path))[0]


@pytest.fixture(scope="module")
def here(voice: Voice, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return spoken(voice, tmp_path_factory.mktemp("here"), "cpu")


@pytest.mark.parametrize("offload", NONE_AND_GROUP)
@pytest.mark.parametrize("codec", ["cuda", pytest.param("cpu", marks=pytest.mark.slow)])
def test_a_card_speaks_as_the_processor(
    offload: str, codec: str, card: SeparateMemory | None, voice: Voice, here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A codec on the processor works beside the loop, in a thread that must not touch the card."""
    decode, threads = Codec.decode, list[str]()

    def note(codec: Codec, *args: Any) -> Samples:
        threads.append(threading.current_thread().name)
        return decode(codec, *args)

    monkeypatch.setattr(Codec, "decode", note)
    if card is not None:
        monkeypatch.setattr(sounding, "ThreadPoolExecutor", partial(ThreadPoolExecutor, initializer=card.__enter__))
    there = spoken(voice, tmp_path / "card", "cuda", offload, codec=codec)
    assert len(there) == len(here) and abs(there - here).max() < 1e-3
    assert len(threads) > 1 and any(each.startswith("sounding") for each in threads) == (codec == "cpu")
    assert card is None or not card.bitten
