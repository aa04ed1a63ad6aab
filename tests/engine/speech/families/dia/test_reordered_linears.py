"""Hold Dia's bfloat16 weights in oneDNN's order: the same answers, no plain weight beside it, and only where that is quicker."""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from app.base import notices
from app.compat.attention.seam import applied
from app.compat.machine import processor
from app.compat.machine.processor import find_refusal
from app.compat.planning.types import Dtype, Plan, Precision
from app.engine.models.loading import from_pretrained
from app.engine.speech.families.dia import linears
from app.engine.speech.families.dia.decoder import Decoding, PartInput
from app.engine.speech.families.dia.linears import ReorderedLinear
from app.engine.speech.families.dia.sampling import Sampling
from app.engine.speech.run import loader
from tests.support import refused, speech_fixtures
from tests.support.refused import Lack, take_away
from tests.support.speech_fixtures import dia_of

folders, plan, asked_anew = speech_fixtures.folders, speech_fixtures.plan, refused.asked_anew
REORDER, MULTIPLY = "ops.mkldnn._reorder_linear_weight", "ops.mkldnn._linear_pointwise"

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
_why = torch.backends.mkldnn.is_available() and find_refusal("linear", torch.bfloat16)
halves = pytest.param("bfloat16", marks=pytest.mark.skipif(bool(_why), reason=f"on this processor: {_why}"))


def load(folder: Path, plan: Plan, dtype: Dtype, monkeypatch: pytest.MonkeyPatch, reorders: bool) -> loader.Speaker:
    """Load as where the order is quicker, or as where it is not; oneDNN computes the same on both."""
    monkeypatch.setattr("app.engine.speech.families.dia.voice.is_quicker_here", lambda compute: reorders)
    parts = (Precision("model", "speech", dtype, dtype, "cpu"), Precision("codec", "codec", "float32", "float32", "cpu"))
    return loader.load(folder, replace(plan, precision=parts))


def draw_rows(voice: loader.Speaker) -> torch.Tensor:
    return torch.randint(0, 100, (50, dia_of(voice).model.config.decoder_config.num_channels), generator=torch.Generator().manual_seed(0))


def decode(voice: loader.Speaker, plan: Plan, guidance: float, rows: torch.Tensor) -> torch.Tensor:
    """Return the logits after a prompt of many rows, and after one more."""
    text = torch.randint(32, 120, (40,), generator=torch.Generator().manual_seed(0))
    with applied(plan):
        decoding = Decoding(dia_of(voice).model, "cpu", PartInput(text, rows, Sampling(guidance=guidance), 1, 20))
        first = decoding.compute_logits()
        decoding.append(rows[0])
        return torch.stack((first, decoding.compute_logits())).float()


@pytest.mark.parametrize("guidance", [1.0, 3.0])
@pytest.mark.parametrize("dtype", ["float32", halves])
def test_the_answers_are_as_exact_as_in_the_plain_order(
    dtype: Dtype, guidance: float, folders: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = load(folders["dia"], plan, "float32", monkeypatch, False)
    rows = draw_rows(exact)
    right = decode(exact, plan, guidance, rows)
    plain, found = (decode(load(folders["dia"], plan, dtype, monkeypatch, reorders), plan, guidance, rows) for reorders in (False, True))
    assert found.shape[1] == (2 if guidance > 1 else 1)
    assert float((found - right).abs().max()) < 1.5 * float((plain - right).abs().max()) + 1e-5 * float(right.abs().max())


def list_reordered(model: torch.nn.Module) -> list[ReorderedLinear]:
    return [each for each in model.modules() if isinstance(each, ReorderedLinear) and each.weight.is_mkldnn]


def count_bytes(model: torch.nn.Module) -> int:
    return sum(each.numel() * each.element_size() for each in model.parameters())


@pytest.mark.parametrize("lack", ["missing", "refused"])
@pytest.mark.parametrize("path", [REORDER, MULTIPLY])
def test_refused_at_the_start_the_weights_stay_plain(
    path: str, lack: Lack, folders: dict[str, Path], plan: Plan, asked_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where no trial has shown it: the layers themselves are refused."""
    plain = load(folders["dia"], plan, "float32", monkeypatch, False)
    rows = draw_rows(plain)
    right = decode(plain, plan, 3.0, rows)
    take_away(monkeypatch, path, lack)
    voice = load(folders["dia"], plan, "float32", monkeypatch, True)
    assert torch.equal(decode(voice, plan, 3.0, rows), right)
    assert not list_reordered(dia_of(voice).model) and count_bytes(dia_of(voice).model) <= count_bytes(dia_of(plain).model)
    (told,) = notices.take_all()
    assert told.key == "processor.plain-order" and path in str(told)


@pytest.mark.parametrize("lack", ["missing", "refused"])
def test_refused_in_the_middle_every_layer_goes_on_with_its_plain_weight(
    lack: Lack, folders: dict[str, Path], plan: Plan, asked_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, voice = (load(folders["dia"], plan, "float32", monkeypatch, reorders) for reorders in (False, True))
    rows = draw_rows(plain)
    right = decode(plain, plan, 3.0, rows)
    decode(voice, plan, 3.0, rows)
    assert list_reordered(dia_of(voice).model) and not notices.list_notices()
    take_away(monkeypatch, MULTIPLY, lack)
    assert torch.equal(decode(voice, plan, 3.0, rows), right)
    assert not list_reordered(dia_of(voice).model) and count_bytes(dia_of(voice).model) <= count_bytes(dia_of(plain).model)
    assert [each.key for each in notices.take_all()] == ["processor.plain-order"]


@pytest.mark.parametrize("dtype", ["float32", halves])
def test_every_row_reads_reordered_weights_and_no_plain_one_is_kept(
    dtype: Dtype, folders: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[weakref.ref[torch.Tensor]] = []
    read = from_pretrained.load

    def note(*how: Any) -> Any:
        model, notes = read(*how)
        held.extend(weakref.ref(each) for name, each in model.named_parameters() if ".decoder." in name and each.ndim == 2)
        return model, notes

    monkeypatch.setattr(from_pretrained, "load", note)
    model = dia_of(load(folders["dia"], plan, dtype, monkeypatch, True)).model
    layers = model.config.decoder_config.num_hidden_layers
    names = {name.rsplit(".", 1)[-1] for name, each in model.named_modules() if isinstance(each, ReorderedLinear)}
    assert names == {"qkv_proj", "q_proj", "o_proj", "gate_up_proj", "down_proj", "logits_dense"}
    kept = [name for name, each in model.model.decoder.named_modules() if isinstance(each, torch.nn.Linear)]
    assert len(kept) == 2 * layers and all(name.endswith(("cross_attention.k_proj", "cross_attention.v_proj")) for name in kept)
    alive = sum(each() is not None for each in held)
    assert len(held) > 6 * layers and alive == 2 * layers + sum("embed" in name for name, _ in model.model.decoder.named_parameters())


@pytest.mark.parametrize(
    ("dtype", "native", "refusal", "quicker"),
    [
        ("bfloat16", True, "", True),
        ("bfloat16", True, "bf16 path needs the cpu support avx512bw", False),
        ("bfloat16", False, "", False),
        ("float32", True, "", False),
        ("float16", True, "", False),
    ],
)
def test_it_is_quicker_where_the_processor_multiplies_bfloat16_and_onednn_takes_it(
    dtype: Dtype, native: bool, refusal: str, quicker: bool, asked_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linears, "multiplies_bfloat16", lambda: native)
    monkeypatch.setattr(processor, "find_refusal", lambda *_: refusal)
    assert linears.is_quicker_here(dtype) is quicker
    assert len(notices.take_all()) == bool(refusal)


def test_elsewhere_weights_stay_plain(folders: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    model = dia_of(load(folders["dia"], plan, "bfloat16", monkeypatch, False)).model
    assert not any(isinstance(each, ReorderedLinear) for each in model.modules())
