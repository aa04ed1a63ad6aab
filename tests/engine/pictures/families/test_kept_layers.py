"""Layers that stay on a card while a picture is painted: bytes sent at each step, the same picture, nothing left behind, LoRAs that come between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from safetensors.torch import load_file

from app.compat.planning.types import Dtype, Precision
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.engine.pictures.families import kept_layers, placement
from app.engine.pictures.families.kept_layers import spread
from app.engine.pictures.run import painter
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, list_parts, load_painter, make_gguf, make_lora, read_pixels
from tests.support.separate_memory import separate_memory

pytest_plugins = ["tests.support.picture_fixtures"]
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
STEPS = 4


class Painted:
    """A picture painted on a pretended card with so many bytes of its denoiser's layers kept."""

    def __init__(
        self,
        folder: Path,
        job: Path,
        kept_bytes: int,
        monkeypatch: pytest.MonkeyPatch,
        loras: tuple[Lora, ...] = (),
        stored: Dtype = "float32",
        gguf: Path | None = None,
    ) -> None:
        self.sent: list[int] = []
        """Each call of the denoiser sends so many bytes."""
        self.held: list[int] = []
        """After each of them, so many bytes lie on the card."""
        model = catalog.find(str(folder))
        how = tuple(
            Precision(
                part.name,
                part.role,
                stored if part.role == "denoiser" else "float32",
                "float32",
                "cuda",
                None,
                kept_bytes if part.role == "denoiser" else 0,
            )
            for part in model.parts
        )
        with separate_memory("cuda") as card:
            plan = tiny.make_plan(
                model,
                offload="group",
                quantised="gguf" if gguf else "none",
                device="cuda",
                runs_on="cuda",
                precision=how,
                kernels=("efficient", "math"),
            )
            paints = painter.load(folder, model, plan, {"gguf": gguf} if gguf else {}, job / "scratch")
            denoiser: Any = getattr(paints.pipe, paints.family.denoiser)
            self.whole = sum(each.nbytes for each in denoiser.parameters())
            before, decode = [0], paints.pipe.vae.decode

            def end_step(*_: object) -> None:
                self.sent.append(card.sent_bytes - before[-1])
                self.held.append(card.held_bytes)

            def note_decode(*given: Any, **named: Any) -> Any:
                self.decoding = card.held_bytes
                return decode(*given, **named)

            denoiser.register_forward_pre_hook(lambda *_: before.append(card.sent_bytes))
            denoiser.register_forward_hook(end_step)
            monkeypatch.setattr(paints.pipe.vae, "decode", note_decode)
            asked = PictureRequest(**{"prompt": "a red ball", **SMALL, "steps": STEPS, "guidance": 3.0, "loras": loras})
            events = list(paints.run(asked, Control(), None, job))
            assert isinstance(events[-1], Finished), events[-1]
            self.pixels = read_pixels(list_parts(events)[0].path)
            paints.close()


def test_the_first_step_sends_all_and_later_ones_what_does_not_stay(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folders["sd15"]
    usual = Painted(folder, tmp_path / "usual", 0, monkeypatch)
    most = usual.whole * 2 // 3
    kept = Painted(folder, tmp_path / "kept", most, monkeypatch)
    assert len(set(usual.sent[1:])) == 1 and usual.sent[1] >= usual.whole, "every step sends every layer"
    assert kept.sent[0] >= usual.sent[1] and len(set(kept.sent[1:])) == 1
    spared = usual.sent[1] - kept.sent[1]
    assert 0.9 * most < spared <= most
    assert kept.held[-1] - usual.held[-1] == pytest.approx(spared, rel=0.1)
    assert kept.decoding == usual.decoding, "when the picture is decoded nothing of the denoiser is on the card"
    plain = load_painter(folder)[0]
    asked = PictureRequest(**{"prompt": "a red ball", **SMALL, "steps": STEPS, "guidance": 3.0})
    right = read_pixels(list_parts(list(plain.run(asked, Control(), None, tmp_path / "plain")))[0].path)
    assert abs(kept.pixels - right).max() < 1.5 / 255 and abs(usual.pixels - right).max() < 1.5 / 255


@pytest.mark.slow
def test_a_lora_that_comes_between_is_kept_along(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """diffusers makes its groups anew where weights change."""
    worn = (Lora(str(make_lora(folders["sd15"], tmp_path / "one.safetensors", 1))),)
    usual, kept = (Painted(folders["sd15"], tmp_path / str(most), most, monkeypatch, worn) for most in (0, 1 << 40))
    assert kept.sent[-1] < 0.1 * usual.sent[-1]
    assert abs(kept.pixels - usual.pixels).max() < 1.5 / 255


@pytest.mark.slow
def test_layers_that_are_widened_to_compute_stay_narrow(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, kept = (Painted(folders["sd15"], tmp_path / str(most), most, monkeypatch, stored="float16") for most in (0, 1 << 40))
    assert kept.sent[-1] < 0.1 * usual.sent[-1]
    assert kept.held[-1] - usual.held[-1] <= kept.whole, "what stays is no wider than what is sent"
    assert abs(kept.pixels - usual.pixels).max() < 1.5 / 255


@pytest.mark.slow
def test_a_lora_is_sent_as_narrow_as_its_layers(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a card that widens float16 weights to compute it was sent in float32."""
    file = make_lora(folders["sd15"], tmp_path / "one.safetensors", 1)
    numbers = sum(each.numel() for each in load_file(file).values())
    bare, worn = (
        Painted(folders["sd15"], tmp_path / str(len(loras)), 0, monkeypatch, loras, "float16") for loras in ((), (Lora(str(file)),))
    )
    assert worn.sent[-1] - bare.sent[-1] == 2 * numbers


@pytest.mark.slow
def test_layers_in_gguf_stay_packed(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of them stays, then all: the same picture, and a step sends so much less."""
    file = make_gguf(folders["flux"], tmp_path / "tiny.gguf")
    usual = Painted(folders["flux"], tmp_path / "usual", 0, monkeypatch, gguf=file)
    assert usual.sent[-1] >= usual.whole, "every step sends every layer"
    for most in (usual.whole // 2, 1 << 40):
        kept = Painted(folders["flux"], tmp_path / str(most), most, monkeypatch, gguf=file)
        spared = usual.sent[-1] - kept.sent[-1]
        assert 0.8 * min(most, usual.whole) < spared <= min(most, usual.whole)
        assert kept.held[-1] - usual.held[-1] == pytest.approx(spared, rel=0.1)
        assert kept.decoding == usual.decoding
        assert np.array_equal(kept.pixels, usual.pixels)


@pytest.mark.parametrize(
    ("sizes", "most", "chosen"),
    [
        ([10] * 6, 0, []), ([10] * 6, 60, [0, 1, 2, 3, 4, 5]), ([10] * 6, 30, [0, 2, 4]), ([10] * 6, 1000, [0, 1, 2, 3, 4, 5]),
        ([100, 10, 10], 20, [1, 2]), ([], 10, []), ([10] * 4, 9, []),
    ],
)  # fmt: skip
def test_what_stays_is_spread_over_all(sizes: list[int], most: int, chosen: list[int]) -> None:
    """So that something can be sent while a layer that stays computes."""
    assert spread(sizes, most) == chosen


class Group:
    """What diffusers sends at a time."""

    def __init__(self, numbers: int) -> None:
        layer = torch.nn.Linear(numbers, 1, bias=False)
        self.modules, self.cpu_param_dict = [layer], {layer.weight: layer.weight.data}


@pytest.mark.parametrize("refuses", [False, True])
def test_what_is_sent_is_pinned_once_as_far_as_memory_allows(refuses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[int] = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        if refuses:
            raise RuntimeError("CUDA error: out of memory")
        pinned.append(tensor.data_ptr())
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: tensor.data_ptr() in pinned)
    groups = [Group(256) for _ in range(4)]  # a kilobyte each
    for free in (10_000, 10_000 - 2048):  # what is pinned is no longer free
        monkeypatch.setattr(psutil, "virtual_memory", lambda free=free: type("Memory", (), {"available": free}))
        kept_layers._pin(groups)
        assert len(pinned) == (0 if refuses else 2), "a quarter"


class Packed(torch.nn.Parameter):
    """A weight of several tensors, as torchao's: as large unpacked as its wrapper says."""

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        self.numbers, self.scales = torch.ones(self.shape, dtype=torch.int8), torch.ones(self.shape[0], 1)
        return ["numbers", "scales"], None


def test_weights_of_several_tensors_are_pinned_by_diffusers(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(256)
    group.cpu_param_dict = {Packed(torch.ones(8)): torch.ones(8)}
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: False)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pytest.fail("pinned"))
    kept_layers._pin([group])


def test_a_packed_weight_counts_with_what_is_sent_of_it() -> None:
    group = Group(1)
    group.modules[0].weight = Packed(torch.ones(8, 100))
    assert kept_layers._size(group) == 8 * 100 + 8 * 4


def test_a_denoiser_that_is_whole_on_its_device_is_left_alone(folders: dict[str, Path]) -> None:
    unet = load_painter(folders["sd15"])[0].pipe.unet
    with kept_layers.keep_layers(unet, 1 << 40):
        assert placement.find_device(unet).type == "cpu"
