"""Hold Dia's linear weights in four ways: the same rows, the bytes moved for each, and with -m slow -s the time."""

from __future__ import annotations

import copy
import statistics
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import psutil
import pytest
import torch
from diffusers.hooks.layerwise_casting import apply_layerwise_casting
from transformers import DiaConfig, DiaForConditionalGeneration
from transformers.models.dia.configuration_dia import DiaDecoderConfig, DiaEncoderConfig

from app.compat.attention.seam import applied
from app.compat.machine.hardware import probe
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, Need, Plan, Precision
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.speech.families.dia.decoder import Decoding, PartInput
from app.engine.speech.families.dia.linears import StoredLinear, StoredLinears, choose_kept, runs_once
from app.engine.speech.families.dia.sampling import Sampling
from app.engine.speech.run import loader
from tests.support import speech_fixtures
from tests.support.moved_bytes import MovedBytes
from tests.support.plans import plan
from tests.support.separate_memory import separate_memory
from tests.support.speech_fixtures import dia_of

folders = speech_fixtures.folders

TEXT = torch.randint(32, 120, (64,), generator=torch.Generator().manual_seed(0))
HALF: Final = torch.float16
CODES: Final = 9
WAYS: Final = ("cast and cast back", "widened in scratch", "float32 resident", "multiplied in half")
PER_PARAMETER: Final = dict(zip(WAYS, (16, 10, 4, 2), strict=True))
"""Each way moves so many bytes for each parameter of a layer: reads and writes of its casts, and what the product reads."""


def make(config: DiaConfig) -> Any:
    torch.manual_seed(0)
    return DiaForConditionalGeneration(config).eval().requires_grad_(False)


def hold(model: Any, way: str) -> Any:
    """Return a copy of the model that holds its weights in this way."""
    model = copy.deepcopy(model)
    if way == "float32 resident":
        return model
    model = model.to(HALF)
    if way == "cast and cast back":  # as Hearth did before it had linears.py
        apply_layerwise_casting(model, storage_dtype=HALF, compute_dtype=torch.float32, skip_modules_pattern=())
        for module in model.modules():
            if not isinstance(module, torch.nn.Linear | torch.nn.Embedding):
                for parameter in module.parameters(recurse=False):
                    parameter.data = parameter.data.float()
    else:
        StoredLinears(model, "cpu", HALF if way == "multiplied in half" else torch.float32, torch.float32)
    return model


def decode(model: Any, rows: int) -> tuple[torch.Tensor, list[float], int]:
    """Return the last row's logits, the seconds of each row, and the bytes moved for one row's weights."""
    with applied(decide(probe(), Need(kind="speech"), Choice(dtype="float32"), {})), torch.inference_mode():
        decoding = Decoding(model, "cpu", PartInput(TEXT, None, Sampling(), 1, rows + 40))
        seconds = []
        for _ in range(rows):
            began_s = time.perf_counter()
            decoding.step()
            seconds.append(time.perf_counter() - began_s)
        with MovedBytes() as moved:
            logits = decoding.compute_logits()
    return logits, seconds, moved.total_bytes


def row_parameters(model: Any) -> int:
    """Count the linear weights that each row reads."""
    layers = ((name, each) for name, each in model.named_modules() if isinstance(each, torch.nn.Linear))
    return sum(each.weight.numel() for name, each in layers if not runs_once(name))


SMALL = DiaConfig(
    encoder_config=DiaEncoderConfig(
        num_hidden_layers=1, hidden_size=128, num_attention_heads=2, num_key_value_heads=2, head_dim=64, intermediate_size=256
    ),
    decoder_config=DiaDecoderConfig(
        num_hidden_layers=2, hidden_size=256, num_attention_heads=4, num_key_value_heads=4, head_dim=64, cross_num_attention_heads=4,
        cross_num_key_value_heads=4, cross_head_dim=64, cross_hidden_size=128, intermediate_size=512,
    ),
)  # fmt: skip


def test_no_weight_is_cast_back() -> None:
    model = make(SMALL)
    parameters, table = row_parameters(model), model.model.decoder.embeddings.embed.weight.numel()
    found = {way: decode(hold(model, way), 3) for way in WAYS}
    right = decode(hold(model.to(HALF).float(), "float32 resident"), 3)[0]
    for way, (logits, _, moved_bytes) in found.items():
        tables = 12 * table if way == "cast and cast back" else 0  # it widens and narrows the embeddings too
        assert abs(moved_bytes - tables - PER_PARAMETER[way] * parameters) < 0.01 * PER_PARAMETER[way] * parameters, way
        torch.testing.assert_close(logits, right, rtol=0, atol=2e-3 if way in ("float32 resident", "multiplied in half") else 1e-6)


def full_size() -> Any:
    """Return Dia 1.6B without its numbers."""
    with torch.device("meta"):
        return DiaForConditionalGeneration(DiaConfig())


@pytest.mark.parametrize(
    ("gib", "passed", "stay", "sent_mb"), [(6, False, 253, 0), (4, False, 81, 1168), (4, True, 90, 1034), (3, False, 31, 2080)]
)
def test_as_many_of_dias_layers_stay_on_a_card_as_fit(gib: int, passed: bool, stay: int, sent_mb: int) -> None:
    """Of 253 layers every row runs 145, and those stay first. Group offload moved 2529 MB up and as many back for each row."""
    sizes = [(name, each.weight.numel() * 2) for name, each in full_size().named_modules() if isinstance(each, torch.nn.Linear)]
    card = replace(MACHINES["gtx-1660"], memory_bytes=gib << 30, free_bytes=(gib << 30) - (600 << 20), packages=())
    subject = Subject.path("linear/float16", "float16")
    made = decide(card, describe_need(BY_ID["dia-1.6b"]), verdicts={subject: Verdict(subject, True)} if passed else {})
    kept = choose_kept(sizes, 4 << 30 if made.offload == "none" else made.precision[0].kept_bytes)
    sent = sum(size for name, size in sizes if name not in kept and not runs_once(name))
    assert max(size for _, size in sizes) == 2 * BY_ID["dia-1.6b"].parts[0].widest
    assert (len(kept), sent // 10**6) == (stay, sent_mb)


def test_nothing_comes_back_from_a_card(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """For a row: what does not stay is sent once, and only the scores return. A plan that keeps more or less needs no loading."""
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")  # a pretended memory is known to one thread
    with separate_memory() as memory:
        speaker = loader.load(folders["dia"], on_card(0))
        model = dia_of(speaker).model
        sizes = [(name, each.weight.nbytes) for name, each in model.named_modules() if isinstance(each, StoredLinear)]
        every_row, whole = sum(size for name, size in sizes if not runs_once(name)), sum(size for _, size in sizes)
        on_card_bytes = []
        for most in (0, every_row // 2, every_row, whole, every_row // 2):
            assert speaker.adapt(on_card(most))
            on_card_bytes.append(memory.held_bytes)
            decoding = Decoding(model, "cuda", PartInput(TEXT, None, Sampling(), 1, 20))
            decoding.step()
            memory.sent_bytes = memory.returned_bytes = 0
            decoding.step()
            stays = choose_kept(sizes, most)
            assert memory.sent_bytes == sum(size for name, size in sizes if not runs_once(name) and name not in stays) + CODES * 8
            assert memory.returned_bytes == 2 * CODES * model.config.decoder_config.vocab_size * 4
            del decoding
        assert on_card_bytes[0] < on_card_bytes[1] < on_card_bytes[2] < on_card_bytes[3] > on_card_bytes[4]
        assert not speaker.adapt(replace(on_card(0), offload="none"))


@pytest.mark.parametrize(
    ("kept_bytes", "free_bytes", "refused_after"),
    [(0, 1 << 40, None), (500_000, 1 << 40, None), (0, 300_000, None), (0, 1 << 40, 2)],
    ids=["all are sent", "some stay", "little memory", "the system refuses"],
)
def test_what_is_sent_for_each_row_is_locked_in_memory(
    kept_bytes: int, free_bytes: int, refused_after: int | None, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of every row first, as far as a quarter of the free memory and the system allow; what stays on the card is not."""
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free_bytes))
    locked: list[torch.Tensor] = []

    def pin(weight: torch.Tensor) -> torch.Tensor:
        if len(locked) == refused_after:
            raise RuntimeError("CUDA error: out of memory")
        locked.append(weight.clone())
        return locked[-1]

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    with separate_memory():
        speaker = loader.load(folders["dia"], on_card(kept_bytes))
        layers = {name: each for name, each in dia_of(speaker).model.named_modules() if isinstance(each, StoredLinear)}
        sent = layers.keys() - choose_kept([(name, each.weight.nbytes) for name, each in layers.items()], kept_bytes)
        places = {each.data_ptr() for each in locked}
        found = {name for name, each in layers.items() if each.weight.data_ptr() in places}
        assert speaker.adapt(on_card(kept_bytes)) and len(locked) == len(found), "nothing is locked twice"
    assert found and found <= sent and sum(layers[name].weight.nbytes for name in found) <= free_bytes // 4
    if refused_after is not None:
        assert len(found) == refused_after
    elif free_bytes == 1 << 40:
        assert found == sent and (len(sent) < len(layers)) is bool(kept_bytes)
    else:
        first = [each for each in layers if not runs_once(each)]
        left, expected = free_bytes // 4, set[str]()
        for name in (*first, *(layers.keys() - set(first))):
            if layers[name].weight.nbytes <= left:
                left -= layers[name].weight.nbytes
                expected.add(name)
        assert found & set(first) == expected & set(first) and found < sent


def on_card(kept_bytes: int) -> Plan:
    voice = Precision("model", "speech", "float16", "float32", "cuda", kept_bytes=kept_bytes)
    codec = Precision("codec", "codec", "float32", "float32", "cpu")
    return plan(device="cuda", runs_on="cuda", precision=(voice, codec), offload="group")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_a_row_costs_at_full_width() -> None:
    """Dia 1.6B's widths, one encoder and two decoder layers."""
    config = DiaConfig(encoder_config=DiaEncoderConfig(num_hidden_layers=1), decoder_config=DiaDecoderConfig(num_hidden_layers=2))
    model = make(config)
    parameters = row_parameters(model)
    held = {way: hold(model, way) for way in WAYS}
    rounds: dict[str, list[float]] = {way: [] for way in WAYS}
    moved = dict.fromkeys(WAYS, 0)
    for _ in range(3):
        for way in WAYS:
            _, seconds, moved[way] = decode(held[way], 8)
            rounds[way] += seconds[2:]
    middle_s = {way: statistics.median(each) for way, each in rounds.items()}
    base = middle_s["cast and cast back"]
    for way in WAYS:
        print(f"\n{way}: {moved[way] / parameters:.1f} bytes a parameter, {1000 * middle_s[way]:.1f} ms a row, {base / middle_s[way]:.1f}x")
    assert middle_s["widened in scratch"] * 2 < base
    assert middle_s["float32 resident"] * 2 < base
