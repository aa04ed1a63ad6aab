"""Hold Dia's bfloat16 weights in oneDNN's order: the same answers, no plain weight beside it, and only where that is quicker."""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from app.compat.attention.seam import applied
from app.compat.planning.types import Dtype, Plan, Precision
from app.engine.loading import from_pretrained
from app.engine.speech import loader, reordered_linears
from app.engine.speech.decoder import Decoding, PartInput
from app.engine.speech.reordered_linears import ReorderedLinear
from app.engine.speech.sampling import Sampling
from tests.support import speech_fixtures

folders, plan = speech_fixtures.folders, speech_fixtures.plan

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


def load(folder: Path, plan: Plan, dtype: Dtype, monkeypatch: pytest.MonkeyPatch, native: bool) -> loader.Speaker:
    """Load as on a processor that multiplies bfloat16 itself, or on one that does not; oneDNN computes the same on both."""
    monkeypatch.setattr(loader, "is_quicker_here", lambda: native)
    parts = (Precision("model", "speech", dtype, dtype, "cpu"), Precision("codec", "codec", "float32", "float32", "cpu"))
    return loader.load(folder, replace(plan, precision=parts))


def decode(voice: loader.Speaker, plan: Plan, guidance: float, rows: torch.Tensor) -> torch.Tensor:
    """Return the logits after a prompt of many rows, and after one more."""
    text = torch.randint(32, 120, (40,), generator=torch.Generator().manual_seed(0))
    with applied(plan):
        decoding = Decoding(voice.dia.model, "cpu", PartInput(text, rows, Sampling(guidance=guidance), 1, 20))
        first = decoding.compute_logits()
        decoding.append(rows[0])
        return torch.stack((first, decoding.compute_logits())).float()


@pytest.mark.parametrize("guidance", [1.0, 3.0])
def test_the_answers_are_as_exact_as_in_the_plain_order(
    guidance: float, folders: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = load(folders["dia"], plan, "float32", monkeypatch, True)
    rows = torch.randint(0, 100, (50, exact.dia.model.config.decoder_config.num_channels), generator=torch.Generator().manual_seed(0))
    right = decode(exact, plan, guidance, rows)
    plain, found = (decode(load(folders["dia"], plan, "bfloat16", monkeypatch, native), plan, guidance, rows) for native in (False, True))
    assert found.shape[1] == (2 if guidance > 1 else 1)
    assert 0 < float((found - right).abs().max()) < 1.5 * float((plain - right).abs().max())


def test_every_row_reads_reordered_weights_and_no_plain_one_is_kept(
    folders: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[weakref.ref[torch.Tensor]] = []
    read = from_pretrained.load

    def note(*how: Any) -> Any:
        model, notes = read(*how)
        held.extend(weakref.ref(each) for name, each in model.named_parameters() if ".decoder." in name and each.ndim == 2)
        return model, notes

    monkeypatch.setattr(from_pretrained, "load", note)
    model = load(folders["dia"], plan, "bfloat16", monkeypatch, True).dia.model
    layers = model.config.decoder_config.num_hidden_layers
    names = {name.rsplit(".", 1)[-1] for name, each in model.named_modules() if isinstance(each, ReorderedLinear)}
    assert names == {"qkv_proj", "q_proj", "o_proj", "gate_up_proj", "down_proj", "logits_dense"}
    kept = [name for name, each in model.model.decoder.named_modules() if isinstance(each, torch.nn.Linear)]
    assert len(kept) == 2 * layers and all(name.endswith(("cross_attention.k_proj", "cross_attention.v_proj")) for name in kept)
    alive = sum(each() is not None for each in held)
    assert len(held) > 6 * layers and alive == 2 * layers + sum("embed" in name for name, _ in model.model.decoder.named_parameters())


@pytest.mark.parametrize(("dtype", "native"), [("float32", True), ("float16", True), ("bfloat16", False)])
def test_elsewhere_weights_stay_plain(
    dtype: Dtype, native: bool, folders: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(folders["dia"], plan, dtype, monkeypatch, native).dia.model
    assert not any(isinstance(each, ReorderedLinear) for each in model.modules())


@pytest.mark.parametrize("native", [True, False])
def test_the_processor_is_asked(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: native, raising=False)
    assert reordered_linears.is_quicker_here() is native
