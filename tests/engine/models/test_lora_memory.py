"""LoRAs take memory beside the denoiser: each that a request names and each that comes with a model counts in plan and forecast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from app.base.paths import Home
from app.compat.machine.pretended import MACHINES
from app.compat.planning.memory_formulas import peak_bytes, weights_bytes
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import lora_facts
from app.engine.models.catalog import BY_ID
from app.engine.models.forecast import make_forecast
from app.engine.models.planned import Setup, find_need

MIB = 1 << 20
HALF = 16 * MIB
"""The LoRA of these tests has so many parameters: 32 MiB in half precision."""


@pytest.fixture
def lora(tmp_path: Path) -> Lora:
    layers = {f"unet.{name}.weight": np.zeros((4096, HALF // 8192), np.float16) for name in ("mid.lora_A", "mid.lora_B")}
    save_file(layers, tmp_path / "style.safetensors")
    return Lora(str(tmp_path / "style.safetensors"))


@pytest.mark.parametrize(("machine", "wide"), [("t4", 2), ("gtx-1060", 4), ("m2-16gb", 2)])
def test_a_requests_loras_count_as_wide_as_the_denoiser_is_stored(machine: str, wide: int, lora: Lora, tmp_path: Path) -> None:
    # A fuller one would take the VAE in smaller tiles for them; where this much is free a GTX 1060 stores float32.
    roomy = replace(MACHINES[machine], free_bytes=14 << 30)
    setup, model = Setup(Home(tmp_path, tmp_path), roomy), BY_ID["sd15"]
    embedding = Lora(lora.path, word="badhand")
    peaks, weights = [], []
    for loras in ((), (lora,), (lora, lora), (embedding,)):
        asked = PictureRequest("a boat", width=512, height=512, loras=loras)
        need, plan = find_need(setup.home, setup.hardware, model, asked), setup.plan(model, asked)
        peaks.append(peak_bytes(need, plan) - plan.budget_bytes)
        weights.append(weights_bytes(need, plan))
        assert make_forecast(setup, asked, model).plan == plan
    assert [each - weights[0] for each in weights] == [0, HALF * wide, 2 * HALF * wide, 0], "an embedding is no LoRA"
    assert [each - peaks[0] for each in peaks] == [0, HALF * wide, 2 * HALF * wide, 0]


@pytest.mark.parametrize(("model", "base", "mb"), [("sd15", "", 135), ("sdxl-lightning", "sdxl", 394), ("ssd-1b-lcm", "ssd-1b", 210)])
def test_the_lora_for_few_steps_counts_with_its_model(model: str, base: str, mb: int, tmp_path: Path) -> None:
    """It is loaded along, and is 8 of 100 of SDXL's and SSD-1B's denoiser."""
    home = Home(tmp_path, tmp_path)
    for machine in ("t4", "gtx-1060"):
        setup = Setup(home, MACHINES[machine])
        need = find_need(home, setup.hardware, BY_ID[model])
        part = next(each for each in need.parts if each.role == "denoiser")
        assert part.loras == mb * 1_000_000 // 2
        if base:
            plain = find_need(home, setup.hardware, BY_ID[base])
            plans = setup.plan(BY_ID[model]), setup.plan(BY_ID[base])
            assert weights_bytes(need, plans[0]) - weights_bytes(plain, plans[1]) == part.loras * 2


def test_a_lora_that_cannot_be_read_counts_nothing(tmp_path: Path) -> None:
    """Its run says what is wrong with it."""
    (tmp_path / "broken.safetensors").write_bytes(b"no header")
    assert lora_facts.count_parameters(tmp_path / "broken.safetensors") == 0
    assert lora_facts.count_parameters(tmp_path / "gone.safetensors") == 0


def test_a_file_that_changed_is_read_anew(lora: Lora) -> None:
    assert lora_facts.count_parameters(Path(lora.path)) == HALF
    save_file({"unet.mid.lora_A.weight": np.zeros((8, 8), np.float32)}, lora.path)
    assert lora_facts.count_parameters(Path(lora.path)) == 64
