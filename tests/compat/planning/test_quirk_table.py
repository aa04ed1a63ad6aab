"""The rows: all there, each with an effect, right at their edges, known by their words, and retired by what was measured."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from app.base.trouble import Trouble
from app.cli.doctor import SHOWN
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import check_machine, decide
from app.compat.planning.quirk import Quirk, has_code, version
from app.compat.planning.quirk_table import QUIRKS, list_quirks, match_symptom
from app.compat.planning.types import AUTO, Choice, Chunk, ModelPart, Need, Plan
from app.compat.selftest.probes import SHOWN_BY
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from tests.support.places import TOP

ROWS = {row.id: row for row in QUIRKS}
FACTS = [
    "mps-gqa-abort", "mps-decode-oob", "mps-q-stride", "mps-batch-stride", "mps-causal-leak", "mps-value-dim",
    "mps-placeholder", "mps-4gib", "mps-buffer", "mps-int32", "mps-long-k", "mps-half-softmax", "mps-quadratic",
    "mps-fp16-black", "masked-rows", "mps-baddbmm", "mps-leak", "mps-device-map", "mps-stride-zero", "mps-bf16",
    "mps-fp64", "mps-fallback", "mps-watermark", "mps-memory", "mps-oom-type", "rng-device", "conv-65536",
    "cuda-flash", "cuda-efficient", "cuda-gqa", "cuda-bf16", "pascal-fp16", "gtx16-fp16", "sdpa-dtype",
    "sdpa-mask-dtype", "sdpa-heads", "bias-overflow", "wheel-arch", "uv-backend", "fused-qkv-stride",
    "rocm-strided-v", "intel-mac", "directml", "vae-fp16", "mps-allocator", "mps-slow-path", "mps-vector-mask", "mps-threads",
    "mps-scalar-view", "mps-conv-weight", "mps-conv-chunk", "mps-out-slice", "mps-graph-26", "mps-graph-27",
    "cudnn-old-card", "rdna2-bf16", "windows-spill", "mps-m5-linear", "mps-large-product",
]  # fmt: skip

M1, M2, M3 = MACHINES["m1-8gb"], MACHINES["m2-16gb"], MACHINES["m3-max-64gb"]
RX_6800 = Hardware("rocm", "AMD Radeon RX 6800", None, 16 << 30, 15 << 30, False, torch="2.13.0+rocm7.2", gfx="gfx1030")
LARGE = Need("large", "picture", 2, 8, 8, 40, 70000, 70000, parts=(ModelPart("unet", "denoiser", 859_520_964),))
"""Its attention is past every limit there is."""
XL = describe_need(BY_ID["sdxl"])
OWN_VAE = replace(XL, parts=tuple(replace(part, half_is_safe=part.role != "vae") for part in XL.parts))
MODELS = (
    Need(),
    *(describe_need(BY_ID[each]) for each in SHOWN),
    OWN_VAE,
    LARGE,
    replace(LARGE, model="wide", queries=4096, keys=1 << 17, masked=False),
)
CHOICES = (
    Choice(), Choice(gqa="native"), Choice(gqa="folded"), Choice(gqa="expanded"),
    Choice(kernels="math"), Choice(kernels=("efficient", "math")), Choice(kernels="flash"),
    Choice(kernels=()), Choice(dtype="float32"), Choice(dtype="float16"), Choice(dtype="bfloat16"), Choice(dtype="float64"),
    Choice(offload="sequential"), Choice(quantised="bnb-nf4"), Choice(quantised="awq"),
)  # fmt: skip
ASKED: tuple[tuple[Choice, Chunk], ...] = (
    *((choice, AUTO) for choice in CHOICES), *((Choice(), chunk) for chunk in (1, 1000, 65536)), (Choice(dtype="float32"), 65536),
)  # fmt: skip
"""Each choice by hand goes with a chunk size."""
FURTHER = (
    replace(M1, system_version="13.6", torch="2.6.0"),
    replace(M2, torch="2.11.0", system_version="15.3"),
    replace(M2, torch="2.7.1"),
    replace(M3, torch="2.12.1"),
    replace(M3, name="Apple M2", torch="2.14.0"),
    replace(MACHINES["gtx-1060"], name="NVIDIA GeForce GTX 970", capability=(5, 2)),
    replace(MACHINES["gtx-1060"], name="Tesla V100", capability=(7, 0)),
    replace(MACHINES["gtx-1060"], cudnn="9.13"),
    Hardware("rocm", "AMD Instinct MI300X", None, 192 << 30, 190 << 30, False, torch="2.13.0+rocm", gfx="gfx942"),
    RX_6800,
)
STOPPED = {
    "wheel-arch": replace(MACHINES["gtx-1060"], torch="2.13.0+cu130", arch_list=("sm_75", "sm_80", "sm_86", "sm_90")),
    "intel-mac": Hardware("cpu", "Intel Core i7", system="macos", processor="x86_64", torch="2.2.2"),
    "directml": Hardware("directml", "DirectML", torch="2.4.1"),
}


def test_every_row_of_the_facts_is_there_once() -> None:
    assert len(ROWS) == len(QUIRKS)
    # One row of the facts speaks of two families of cards that are cured differently.
    assert set(ROWS) == {*FACTS, "maxwell-fp16"}


@pytest.mark.parametrize("keys", [77, 4096])
def test_metals_graph_rounds_scores_however_many_keys_there_are(keys: int) -> None:
    need = Need("wide", "picture", 2, 8, 8, 512, 4096, keys)
    found = {dtype: decide(M3, need, Choice(dtype=dtype)) for dtype in ("bfloat16", "float16")}
    assert {plan.path for plan in found.values()} == {"graph"}
    assert found["bfloat16"].score_dtype == "float32" and found["float16"].score_dtype is None
    assert "quirk.mps-half-softmax" in {each.sentence.key for each in found["bfloat16"].because}


CURES = {
    "mps-baddbmm": ("app/compat/planning/chunk_fields.py", "chunk_q"),
    "mps-out-slice": ("app/compat/attention/tiled.py", "[:numel].view(shape)"),
    "mps-device-map": ("app/engine/models/loading/from_pretrained.py", "mps-device-map"),
    "mps-memory": ("app/compat/machine/hardware.py", "driver_allocated_memory"),
    "mps-oom-type": ("app/compat/machine/fault_words.py", '"out of memory"'),
    "mps-threads": ("app/engine/keeper/worker.py", "read_beside("),
    "mps-large-product": ("app/compat/planning/memory_formulas.py", "SCORES_AT_MOST: Final = GIB"),
    "mps-scalar-view": ("app/engine/pictures/run/steps.py", "_Sigmas"),
    "rng-device": ("app/engine/pictures/run/painter.py", 'Generator("cpu")'),
    "conv-65536": ("app/engine/speech/families/dia/codec.py", "MOST_FRAMES = 127"),
    "uv-backend": ("app/launcher/torch_build.py", "cu126"),
    "windows-spill": ("app/engine/session/card_spill.py", "set_per_process_memory_fraction"),
    "sdpa-dtype": ("app/compat/attention/dispatch.py", "query.to(dtype), key.to(dtype), value.to(dtype)"),
    "sdpa-mask-dtype": ("app/compat/attention/dispatch.py", "align_mask("),
    "sdpa-heads": ("app/compat/attention/dispatch.py", "self.choose_gqa(call.groups"),
    "fused-qkv-stride": ("app/compat/attention/dispatch.py", "layout("),
}
"""These rows have no effect on a plan. Each names the file that holds its cure, and what that must say, so that no row is left behind when
its cure moves."""


@pytest.mark.parametrize("row", CURES)
def test_a_cure_that_is_built_in_lies_there(row: str) -> None:
    place, code = CURES[row]
    assert code in (TOP / place).read_text("utf-8")


TOLD = ("mps-stride-zero", "mps-m5-linear", "mps-conv-weight", "mps-conv-chunk", "mps-graph-26", "mps-graph-27")
"""No plan can cure these rows: torch, the models or the order of the engine's work avoid them. The self-test asks, the verdict tells."""


@pytest.mark.parametrize("row", TOLD)
def test_what_no_plan_cures_is_asked(row: str) -> None:
    assert row in SHOWN_BY and row not in CURES


@pytest.mark.parametrize("row", QUIRKS, ids=lambda row: row.id)
def test_every_row_says_something_has_a_source_and_an_effect(row: Quirk) -> None:
    assert str(row.sentence).endswith(".") and row.sentence.key == f"quirk.{row.id}"
    assert row.source and row.where
    assert row.against or row.limits or row.sets or row.stops or row.id in (*CURES, *TOLD)


def effect(row_less: tuple[Quirk, ...], machine: Hardware, need: Need, asked: tuple[Choice, Chunk]) -> Plan | str:
    try:
        return decide(machine, need, asked[0], quirks=row_less, chunk=asked[1])
    except Trouble as trouble:
        return str(trouble)


@cache
def grid() -> tuple[tuple[Hardware, Need, tuple[Choice, Chunk], Plan | str], ...]:
    return tuple(
        (machine, describe_need, asked, effect(QUIRKS, machine, describe_need, asked))
        for machine in (*MACHINES.values(), *FURTHER)
        for describe_need in MODELS
        for asked in ASKED
    )


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in QUIRKS if not row.stops and row.id not in (*CURES, *TOLD)], ids=lambda row: row.id)
def test_deleting_a_row_changes_a_plan(row: Quirk) -> None:
    rest = tuple(other for other in QUIRKS if other is not row)
    assert any(effect(rest, machine, need, asked) != known for machine, need, asked, known in grid() if row.applies(machine))


def test_sliced_attention_is_never_switched_on() -> None:
    for path in (TOP / "app").rglob("*.py"):
        assert "attention_slicing" not in path.read_text("utf-8"), path


@pytest.mark.parametrize("name", STOPPED)
def test_a_machine_that_cannot_be_driven_gets_a_sentence_and_a_cure(name: str) -> None:
    machine = STOPPED[name]
    with pytest.raises(Trouble) as caught:
        decide(machine)
    assert caught.value.objections == (ROWS[name].sentence,) and caught.value.cure
    assert machine.name in str(caught.value) and "no kernel image" not in str(caught.value)
    check_machine(replace(machine, torch="2.13"), tuple(row for row in QUIRKS if row.id != name))


def test_an_old_torch_is_refused_with_a_sentence() -> None:
    with pytest.raises(Trouble, match=r"torch 2\.6 or newer, but 2\.5\.1 is installed"):
        decide(replace(MACHINES["cpu"], torch="2.5.1"))


EDGES: tuple[tuple[str, Hardware, bool], ...] = (
    ("mps-gqa-abort", replace(M1, torch="2.6.0"), True),
    ("mps-gqa-abort", replace(M1, torch="2.7.0"), False),
    ("mps-decode-oob", replace(M1, torch="2.7.1"), False),
    ("mps-decode-oob", replace(M1, torch="2.8.0"), True),
    ("mps-decode-oob", replace(M1, torch="2.10.1"), True),  # by number: 2.10 comes after 2.9
    ("mps-decode-oob", replace(M1, torch="2.11.0"), False),
    ("mps-q-stride", replace(M1, torch="2.8.1"), True),
    ("mps-q-stride", replace(M1, torch="2.9.0"), False),
    ("mps-batch-stride", replace(M1, torch="2.11.0"), True),
    ("mps-batch-stride", replace(M1, torch="2.12.0"), False),
    ("mps-causal-leak", replace(M1, torch="2.12.1"), True),
    ("mps-causal-leak", replace(M1, torch="2.13.0"), False),
    ("mps-causal-leak", replace(M1, torch=""), True),  # nobody knows: with care
    ("mps-value-dim", replace(M1, torch="2.11.0"), True),
    ("mps-value-dim", replace(M1, torch="2.12.0"), False),
    ("mps-4gib", replace(M1, system_version="15.3"), True),
    ("mps-4gib", replace(M1, system_version="15.4"), False),
    ("mps-fp16-black", replace(M1, torch="2.9.1"), True),
    ("mps-fp16-black", replace(M1, torch="2.10.0"), False),
    ("mps-leak", replace(M1, system_version="26.0", torch="2.7.1"), True),
    ("mps-leak", replace(M1, system_version="26.0", torch="2.8.0"), False),
    ("mps-leak", replace(M1, system_version="14.7", torch="2.7.1"), False),
    ("mps-allocator", replace(M3, torch="2.12.1"), True),
    ("mps-allocator", M3, False),
    ("mps-allocator", replace(M1, torch="2.13.0"), True),  # macOS 14 takes torch's slow path
    ("mps-allocator", replace(M1, torch="2.14.0"), False),
    ("mps-slow-path", M1, True),
    ("mps-slow-path", replace(M1, system_version="15.0"), False),
    ("mps-vector-mask", replace(M3, torch="2.12.1"), True),
    ("mps-vector-mask", M3, False),
    ("mps-scalar-view", M3, True),
    ("mps-scalar-view", replace(M3, torch="2.14.0"), False),
    ("mps-conv-weight", M3, True),
    ("mps-conv-weight", replace(M3, torch="2.14.0"), False),
    ("mps-conv-weight", M1, False),
    ("mps-conv-chunk", M3, True),
    ("mps-conv-chunk", M2, False),
    ("mps-out-slice", M1, True),
    ("mps-out-slice", replace(M1, system_version="15.0"), False),
    ("mps-graph-26", M3, True),
    ("mps-graph-26", replace(M3, system_version="15.7"), False),
    ("mps-graph-27", replace(M3, system_version="27.0", torch="2.12.1"), True),
    ("mps-graph-27", replace(M3, system_version="27.0"), False),
    ("mps-bf16", replace(M1, system_version="13.7"), True),
    ("mps-bf16", replace(M1, system_version="14.0"), False),
    ("conv-65536", replace(M1, system_version="15.0"), True),
    ("conv-65536", replace(M1, system_version="15.1"), False),
    ("mps-long-k", M2, True),
    ("mps-long-k", M3, False),
    ("cuda-flash", MACHINES["t4"], True),
    ("cuda-flash", MACHINES["rtx-3060"], False),
    ("cuda-flash", replace(MACHINES["rtx-3060"], capability=(12, 1)), False),
    ("cuda-gqa", replace(MACHINES["t4"], torch="2.14.0"), False),
    ("cuda-gqa", MACHINES["t4"], True),
    ("pascal-fp16", replace(MACHINES["gtx-1060"], capability=(6, 0)), False),
    ("pascal-fp16", MACHINES["gtx-1060"], True),
    ("pascal-fp16", replace(MACHINES["gtx-1060"], capability=(6, 2)), False),
    ("maxwell-fp16", replace(MACHINES["gtx-1060"], capability=(5, 2)), True),
    ("maxwell-fp16", replace(MACHINES["gtx-1060"], capability=(5, 3)), False),
    ("mps-int32", MACHINES["cpu"], False),
    ("cudnn-old-card", replace(MACHINES["gtx-1060"], cudnn="9.11"), True),
    ("cudnn-old-card", replace(MACHINES["gtx-1060"], cudnn="9.10"), False),
    ("cudnn-old-card", MACHINES["gtx-1060"], False),  # not known: torch's own, which is right
    ("cudnn-old-card", replace(MACHINES["t4"], cudnn="9.13"), False),
    ("windows-spill", MACHINES["gtx-1060"], True),
    ("windows-spill", MACHINES["t4"], False),
    ("rdna2-bf16", RX_6800, True),
    ("rdna2-bf16", replace(RX_6800, gfx="gfx906"), True),
    ("rdna2-bf16", replace(RX_6800, gfx="gfx90a"), False),
    ("rdna2-bf16", replace(RX_6800, gfx="gfx1100"), False),
    ("rdna2-bf16", replace(RX_6800, gfx=""), False),
)


@pytest.mark.parametrize(("row", "machine", "holds"), EDGES)
def test_a_row_holds_up_to_its_edge(row: str, machine: Hardware, holds: bool) -> None:
    assert (ROWS[row] in list_quirks(machine, {})) is holds


GTX16 = ["1660", "1660 Ti", "1660 SUPER", "1650", "1650 Ti", "1630"]
FAMILY = [f"NVIDIA GeForce GTX {each}" for each in GTX16] + [
    "NVIDIA T500", "NVIDIA T550 Laptop GPU", "NVIDIA T600", "NVIDIA T1000 8GB", "NVIDIA T1200 Laptop GPU", "Quadro T2000",
    "NVIDIA GeForce MX450", "NVIDIA GeForce MX550", "NVIDIA CMP 30HX", "NVIDIA T400", "NVIDIA T400 4GB",
]  # fmt: skip
OTHERS = [
    "Tesla T4", "NVIDIA GeForce RTX 2060", "NVIDIA GeForce GTX 1060 6GB", "NVIDIA GeForce GTX 1080 Ti", "Quadro RTX 5000",
    "NVIDIA GeForce MX150", "NVIDIA CMP 50HX",
]  # fmt: skip


@pytest.mark.parametrize("name", FAMILY + OTHERS)
def test_cards_without_working_half_precision_are_known_by_name(name: str) -> None:
    assert ROWS["gtx16-fp16"].applies(replace(MACHINES["t4"], name=name)) is (name in FAMILY)


WORDS = {
    "mps-gqa-abort": "error: 'mps.matmul' op mps_matmul operands have incompatible dimensions\nLLVM ERROR: Failed to infer result type(s).",
    "mps-placeholder": "Placeholder shape mismatches (expected 1 vs got tensorData with 16) at dimIdx = 1",
    "mps-4gib": "/AppleInternal/.../MPSNDArray.mm:850: failed assertion `[MPSNDArray initWithDevice:descriptor:] Error: total bytes of NDArray > 2**32'",
    "mps-buffer": "RuntimeError: Invalid buffer size: 19.38 GiB",
    "mps-stride-zero": "buffer is not large enough. Must be 1572864 bytes",
    "mps-threads": "failed assertion `A command encoder is already encoding to this command buffer'",
    "mps-bf16": "TypeError: MPS BFloat16 is only supported on MacOS 14 or newer",
    "mps-fp64": "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.",
    "mps-fallback": "NotImplementedError: The operator 'aten::foo' is not currently implemented for the MPS device.",
    "mps-watermark": "RuntimeError: invalid low watermark ratio 1.4",
    "mps-oom-type": "RuntimeError: MPS backend out of memory (MPS allocated: 9.07 GB)",
    "conv-65536": "NotImplementedError: Output channels > 65536 not supported at the MPS device.",
    "cuda-flash": "RuntimeError: No available kernel. Aborting execution.",
    "sdpa-dtype": "Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: c10::Half",
    "sdpa-mask-dtype": "Expected attn_mask dtype to be bool or float or to match query dtype, but got",
    "sdpa-heads": "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 1",
    "wheel-arch": "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device",
}


@pytest.mark.parametrize("row", [row.id for row in QUIRKS if row.symptom])
def test_last_words_are_known(row: str) -> None:
    found = match_symptom(f"Traceback (most recent call last):\n  ...\n{WORDS[row]}\nAborted")
    assert found is ROWS[row]


def test_other_words_are_not_taken_for_a_defect() -> None:
    assert match_symptom("KeyError: 'prompt'") is None and match_symptom("") is None


def test_what_was_measured_retires_a_row() -> None:
    seen = {
        Subject("row", "mps-causal-leak"): Verdict(Subject("row", "mps-causal-leak"), True),
        Subject("row", "mps-4gib"): Verdict(Subject("row", "mps-4gib"), False),
    }
    before, after = list_quirks(M1, {}), list_quirks(M1, seen)
    assert set(before) - set(after) == {ROWS["mps-causal-leak"]}


ARCHES: tuple[tuple[tuple[int, int], tuple[str, ...], bool], ...] = (
    ((6, 1), ("sm_60", "sm_70"), True),  # 6.1 runs code for 6.0
    ((6, 1), ("sm_75", "sm_80"), False),
    ((7, 5), ("sm_70",), True),
    ((7, 0), ("sm_75",), False),
    ((8, 9), ("sm_80", "sm_90"), True),
    ((12, 0), ("sm_90",), False),
    ((12, 0), ("sm_90", "compute_90"), True),  # recompiled on the machine
    ((9, 0), ("sm_90a",), True),
    ((6, 1), (), True),  # unknown
)


@pytest.mark.parametrize(("capability", "arches", "runs"), ARCHES)
def test_code_for_a_card(capability: tuple[int, int], arches: tuple[str, ...], runs: bool) -> None:
    assert has_code(Hardware("cuda", capability=capability, arch_list=arches)) is runs


ORDER = ["2.6.0", "2.9.1", "2.10.0a0+git", "2.12.1", "2.13.0+cu126", "14.5", "15", "26.0"]


@pytest.mark.parametrize(("low", "high"), list(pairwise(ORDER)))
def test_versions_are_compared_by_number(low: str, high: str) -> None:
    assert version(low) < version(high)
