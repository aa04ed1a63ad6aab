"""The one place that asks torch what it can do on this processor: tried once, told once, and never mistaken for a lack of memory."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from app.base import notices
from app.compat.attention import compose, step_aside
from app.compat.attention.seam import applied
from app.compat.machine import processor
from app.compat.machine.processor import Layer, OperatorRefused, call_private, find_refusal, give_up_order, keeps_order
from tests.support import refused
from tests.support.plans import plan
from tests.support.refused import Lack, take_away

asked_anew = refused.asked_anew
needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
OPERATORS: dict[Layer, tuple[str, ...]] = {
    "linear": ("ops.mkldnn._reorder_linear_weight", "ops.mkldnn._linear_pointwise"),
    "convolution": ("_C._nn.mkldnn_reorder_conv2d_weight", "ops.mkldnn._convolution_pointwise"),
}
EACH = [(layer, path) for layer, paths in OPERATORS.items() for path in paths]


@needs_onednn
@pytest.mark.parametrize("lack", ["missing", "refused"])
@pytest.mark.parametrize(("layer", "path"), EACH)
def test_what_torch_lacks_or_refuses_is_found_and_told_once(
    layer: Layer, path: str, lack: Lack, asked_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keeps_order(layer, torch.float32), find_refusal(layer, torch.float32)
    assert not notices.list_notices()
    find_refusal.cache_clear()
    take_away(monkeypatch, path, lack)
    assert not keeps_order(layer, torch.float32) and not keeps_order(layer, torch.float32)
    (told,) = notices.take_all()
    assert told.key == "processor.plain-order" and path in str(told)
    give_up_order(layer, torch.float32, "again, in a layer")
    assert not notices.list_notices()


@needs_onednn
@pytest.mark.parametrize(("layer", "path"), [(layer, paths[1]) for layer, paths in OPERATORS.items()])
def test_a_wrong_answer_is_a_refusal(layer: Layer, path: str, asked_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    name = path.rpartition(".")[2]
    right = getattr(torch.ops.mkldnn, name)
    monkeypatch.setattr(torch.ops.mkldnn, name, lambda *given: right(*given) + 1)
    assert "wrong" in find_refusal(layer, torch.float32) and not keeps_order(layer, torch.float32)


@pytest.mark.parametrize(
    "words", ["[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory", "MPS backend out of memory"]
)
def test_a_lack_of_memory_is_no_refusal(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused, "WORDS", words)
    take_away(monkeypatch, "ops.mkldnn._linear_pointwise")
    with pytest.raises(RuntimeError) as caught:
        call_private("ops.mkldnn._linear_pointwise")
    assert not isinstance(caught.value, OperatorRefused) and str(caught.value) == words


def test_a_torch_without_onednn_is_nothing_to_tell(asked_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not keeps_order("linear", torch.float32) and not notices.list_notices()


@pytest.mark.parametrize("native", [True, False])
def test_the_processor_is_asked_whether_it_multiplies_bfloat16(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: native, raising=False)
    assert processor.multiplies_bfloat16() is native
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name)
    assert not processor.multiplies_bfloat16()


def load_without(module: ModuleType, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import a file anew, under another name, into a torch that lacks these."""
    spec = importlib.util.spec_from_file_location("without", Path(str(module.__file__)))
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as lacking:
        for name in names:
            lacking.delattr(torch._C, name)
        spec.loader.exec_module(found)
    return found


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_torch_without_its_private_questions_computes_the_same_and_that_is_told_once(
    asked_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "_lacking", [])
    asked = ("_are_functorch_transforms_active", "_is_tracing", "_len_torch_dispatch_stack", "_get_dispatch_mode", "_TorchDispatchModeKey")
    aside = load_without(step_aside, asked, monkeypatch)
    whole = load_without(compose, ("_is_any_autocast_enabled",), monkeypatch)
    query = torch.randn(1, 2, 5, 8, generator=torch.Generator().manual_seed(0))
    assert aside.path_aside(query, query, query) is None
    assert aside.path_aside(query.to("meta"), query, query) == step_aside.META
    seen: list[str | None] = []
    torch.jit.trace(lambda given: seen.append(aside.path_aside(given, given, given)) or given * 2, query)
    assert step_aside.TRACED in seen
    for lowered in (False, True):
        with torch.autocast("cpu", enabled=lowered):
            mine, right = (each.compose(plan())(query, query, query) for each in (whole, compose))
        assert torch.equal(mine, right) and mine.dtype == (torch.bfloat16 if lowered else torch.float32)
    for _ in range(2):
        with applied(plan()):
            pass
    (told,) = notices.take_all()
    assert told.key == "processor.lacking" and all(f"torch._C.{name}" in str(told) for name in (*asked, "_is_any_autocast_enabled"))


def test_this_torch_lacks_nothing() -> None:
    assert not processor._lacking
