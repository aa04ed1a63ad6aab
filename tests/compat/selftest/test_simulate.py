"""The pretended machines bite: every failure shows on its own machine, in the words its row knows it by, and on no healthy one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from app.compat.attention.seam import applied
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES, find_machine, machine
from app.compat.machine.report import describe_report
from app.compat.machine.report_file import lay_out
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.quirk_table import QUIRKS
from app.compat.selftest.failures import ATTENTION, Aborted, DeviceLimits
from app.compat.selftest.simulate import Bites, biting

SMALL = DeviceLimits(
    ndarray_bytes=1 << 16, indexed_elements=1 << 14, bias_pairs=1 << 12, broadcast_elements=1 << 12, reduction=512,
    softmax_keys=96, decode_keys=64, convolution_length=256,
)  # fmt: skip
OLD_MAC = replace(machine("m1-8gb"), system_version="13.6", pretended="old-mac")
OLD_M5 = replace(machine("m3-max-64gb"), name="Apple M5", torch="2.12.0", pretended="old-m5")
ROCM = Hardware(kind="rocm", name="AMD Instinct MI300X", torch="2.13.0", pretended="rocm")
WRONG_WHEEL = replace(machine("gtx-1060"), arch_list=machine("rtx-3060").arch_list)
HEALTHY = machine("cpu")


def made(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def qkv(
    queries: int, keys: int, dim: int = 64, dtype: torch.dtype = torch.float32, heads: int = 4, batch: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(made(batch, heads, n, dim, dtype=dtype, seed=i) for i, n in enumerate((queries, keys, keys)))  # type: ignore[return-value]


def attend(*tensors: Tensor, **options: object) -> Callable[[], Tensor]:
    return lambda: F.scaled_dot_product_attention(*tensors, **options)  # type: ignore[arg-type]


def grouped() -> Callable[[], Tensor]:
    return attend(made(1, 4, 16, 64), made(1, 2, 16, 64), made(1, 2, 16, 64), enable_gqa=True)


def permuted(queries: int = 4) -> Callable[[], Tensor]:
    return attend(*(made(2, n, 4, 64).transpose(1, 2) for n in (queries, 16, 16)))


def fused(dtype: torch.dtype = torch.float16) -> Callable[[], Tensor]:
    """Views of one tensor that holds something between the queries and the keys."""
    together = made(1, 16, 16, 32, dtype=dtype).transpose(1, 2)
    return attend(together[:, :4], together[:, 8:12], together[:, 12:])


def masked(queries: int, keys: int, blind_row: bool = False) -> Callable[[], Tensor]:
    mask = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    mask[..., 0, :] = not blind_row
    return attend(*qkv(queries, keys, dim=40), mask)


def shared_mask() -> Callable[[], Tensor]:
    """One mask for all heads, another for each member of the batch."""
    mask = torch.ones(2, 1, 8, 8, dtype=torch.bool)
    mask[0, :, :, 4:] = False
    return attend(*qkv(8, 8), mask)


FOREIGN_CUDNN = replace(machine("gtx-1060"), cudnn="9.13", pretended="foreign-cudnn")
half, bf16 = torch.float16, torch.bfloat16
RAISING: list[tuple[str, str | Hardware, DeviceLimits, Callable[[], Callable[[], Tensor]]]] = [
    ("mps-gqa-abort", "m1-8gb", DeviceLimits(), grouped),
    ("mps-stride-zero", "m2-16gb", DeviceLimits(), lambda: partial(nn.Linear(8, 8), made(1, 4, 8).expand(3, -1, -1))),
    ("mps-placeholder", "m1-8gb", SMALL, lambda: masked(64, 64)),
    ("mps-4gib", "m1-8gb", SMALL, lambda: attend(*qkv(64, 64, dim=40))),
    ("mps-4gib", "m1-8gb", SMALL, lambda: lambda: made(4, 128, 8) @ made(4, 8, 64)),
    ("mps-buffer", "m3-max-64gb", replace(SMALL, buffer_bytes=1 << 14), lambda: attend(*qkv(64, 64, dim=40))),
    ("mps-buffer", "m3-max-64gb", replace(SMALL, buffer_bytes=1 << 14), lambda: lambda: made(4, 128, 8) @ made(4, 8, 64)),
    ("mps-fp64", "m3-max-64gb", DeviceLimits(), lambda: attend(*qkv(8, 8, dtype=torch.float64))),
    ("mps-fp64", "m3-max-64gb", DeviceLimits(), lambda: partial(torch.bmm, made(2, 8, 8).double(), made(2, 8, 8).double())),
    ("mps-bf16", OLD_MAC, DeviceLimits(), lambda: attend(*qkv(8, 8, dtype=bf16))),
    ("mps-bf16", OLD_MAC, DeviceLimits(), lambda: partial(torch.matmul, made(8, 8, dtype=bf16), made(8, 8, dtype=bf16))),
    ("conv-65536", "m2-16gb", SMALL, lambda: lambda: nn.Conv1d(1, 1, 3)(made(1, 1, 300))),
    ("wheel-arch", WRONG_WHEEL, DeviceLimits(), lambda: attend(*qkv(8, 8))),
    ("wheel-arch", WRONG_WHEEL, DeviceLimits(), lambda: lambda: made(8, 8) @ made(8, 8)),
]

SPOILING: list[tuple[str, str | Hardware, DeviceLimits, Callable[[], Callable[[], Tensor]]]] = [
    ("mps-q-stride", "m2-16gb", DeviceLimits(), lambda: attend(made(1, 4, 4, 64).transpose(1, 2), *qkv(1, 16, batch=1)[1:])),
    ("mps-batch-stride", "m2-16gb", DeviceLimits(), permuted),
    ("fused-qkv-stride", "rtx-3060", DeviceLimits(), fused),
    ("fused-qkv-stride", "t4", DeviceLimits(), lambda: fused(torch.float32)),
    ("rocm-strided-v", ROCM, DeviceLimits(), permuted),
    ("mps-causal-leak", "m2-16gb", DeviceLimits(), lambda: attend(*qkv(6, 6, dim=40, dtype=bf16), is_causal=True)),
    ("mps-value-dim", "m1-8gb", DeviceLimits(), lambda: attend(*qkv(16, 16)[:2], made(2, 4, 16, 32))),
    ("mps-value-dim", "m1-8gb", DeviceLimits(), lambda: attend(*qkv(16, 16)[:2], made(2, 4, 16, 96))),
    ("mps-decode-oob", "m2-16gb", SMALL, lambda: attend(*qkv(1, 80, dtype=bf16))),
    ("mps-int32", "m3-max-64gb", SMALL, lambda: attend(*qkv(80, 80, dim=40))),
    ("mps-int32", "m3-max-64gb", SMALL, lambda: lambda: made(4, 128, 8) @ made(4, 8, 64)),
    ("mps-long-k", "m1-8gb", SMALL, lambda: attend(*qkv(2, 600, dim=40))),
    ("mps-long-k", "m2-16gb", SMALL, lambda: lambda: made(2, 4, 600) @ made(2, 600, 8)),
    ("mps-half-softmax", "m3-max-64gb", SMALL, lambda: attend(*qkv(9, 128, dim=40, dtype=bf16))),
    ("mps-half-softmax", "m3-max-64gb", SMALL, lambda: lambda: made(2, 9, 128, dtype=bf16).softmax(-1)),
    ("mps-fp16-black", "m1-8gb", DeviceLimits(), lambda: attend(*qkv(16, 16, dtype=half))),
    ("mps-fp16-black", "m2-16gb", DeviceLimits(), lambda: lambda: made(2, 16, 16, dtype=half).softmax(-1)),
    ("mps-vector-mask", "m2-16gb", DeviceLimits(), shared_mask),
    ("mps-scalar-view", "m3-max-64gb", DeviceLimits(), lambda: lambda: made(2, 3) * torch.arange(5.0)[4]),
    ("mps-conv-weight", "m3-max-64gb", DeviceLimits(), lambda: partial(F.conv2d, made(1, 2, 8, 8), made(3, 2, 3, 3, 3)[:, :, 1])),
    ("mps-conv-chunk", "m3-max-64gb", DeviceLimits(), lambda: partial(F.conv2d, made(2, 4, 8, 8).chunk(2, 1)[1], made(3, 2, 3, 3))),
    ("mps-out-slice", "m1-8gb", DeviceLimits(), lambda: lambda: torch.mm(made(4, 4), made(4, 4), out=torch.zeros(2, 4, 4)[1])),
    ("mps-baddbmm", "m3-max-64gb", DeviceLimits(), lambda: lambda: torch.baddbmm(made(2, 8, 8), made(2, 8, 8), made(2, 8, 8), beta=0)),
    ("bias-overflow", "gtx-1060", SMALL, lambda: masked(96, 96)),
    ("gtx16-fp16", "gtx-1660", DeviceLimits(), lambda: partial(nn.Conv2d(2, 2, 3).half(), made(1, 2, 8, 8, dtype=half))),
    ("masked-rows", "m2-16gb", replace(DeviceLimits(), broadcast_elements=1 << 30), lambda: masked(16, 16, blind_row=True)),
    ("masked-rows", "m3-max-64gb", DeviceLimits(), lambda: attend(*qkv(8, 16), attn_mask=torch.zeros(2, 4, 8, 16, dtype=torch.bool))),
    ("mps-m5-linear", OLD_M5, DeviceLimits(), lambda: lambda: F.linear(made(2, 3, 8, dtype=half), made(4, 8, dtype=half))),
    ("mps-large-product", "m2-16gb", replace(SMALL, product_bytes=1 << 12, reduction=1 << 20), lambda: lambda: made(16, 40) @ made(40, 16)),
]


def test_a_plan_computes_convolutions_without_a_library_that_lacks_them() -> None:
    convolve = partial(F.conv2d, made(1, 2, 8, 8), made(3, 2, 3, 3))
    plan, right = decide(FOREIGN_CUDNN), convolve()
    assert plan.convolution == "torch" and decide(machine("gtx-1060")).convolution == "library"
    with biting(FOREIGN_CUDNN) as bites:
        with applied(plan):
            assert torch.equal(convolve(), right) and not bites.rows
            with applied(decide(machine("t4"))):
                assert torch.backends.cudnn.enabled
            assert not torch.backends.cudnn.enabled
        with pytest.raises(RuntimeError, match="unable to find an engine"):
            convolve()
    assert torch.backends.cudnn.enabled


def others(row: str) -> list[str]:
    """All rows but this, so that it is seen alone."""
    return [each.id for each in QUIRKS if each.id != row]


def named(case: tuple[object, ...]) -> str:
    return f"{case[0]}-{getattr(case[1], 'pretended', case[1])}"


@pytest.mark.parametrize("inference", [False, True], ids=["no-grad", "inference"])
@pytest.mark.parametrize("case", RAISING, ids=named)
def test_it_says_what_the_machine_says(case: tuple[Any, ...], inference: bool) -> None:
    row, where, limits, build = case
    symptom = next(each.symptom for each in QUIRKS if each.id == row)
    with torch.inference_mode() if inference else torch.no_grad():
        run = build()
        with biting(where, limits=limits, repaired=others(row)), pytest.raises((RuntimeError, TypeError), match=symptom):
            run()
        with biting(where, limits=limits, repaired=[each.id for each in QUIRKS]):
            run()
        with biting(HEALTHY, limits=limits) as healthy:
            run()
    assert not healthy.rows


@pytest.mark.parametrize("inference", [False, True], ids=["no-grad", "inference"])
@pytest.mark.parametrize("case", SPOILING, ids=named)
def test_it_spoils_the_result_silently(case: tuple[Any, ...], inference: bool) -> None:
    row, where, limits, build = case
    with torch.inference_mode() if inference else torch.no_grad():
        run = build()
        right = run()
        with biting(where, limits=limits, repaired=others(row)) as bitten:
            wrong = run()
        with biting(where, limits=limits, repaired=[each.id for each in QUIRKS]):
            repaired = run()
    assert bitten.rows == {row: 1}
    assert wrong.shape != right.shape or not (wrong - right).abs().max() < 0.02 * right.abs().max()
    assert torch.equal(repaired, right)


def from_file(folder: Path, name: str, row: str, passed: bool) -> Hardware:
    """A real machine of these facts, whose self-test said this of one row."""
    seen = {Subject.row(row): Verdict(Subject.row(row), passed)}
    file = folder / f"{name} {row}.json"
    file.write_text(lay_out(describe_report(replace(machine(name), pretended=""), seen)), "utf-8")
    return find_machine(str(file))


def test_a_machine_of_a_file_fails_as_its_own_self_test_saw(tmp_path: Path) -> None:
    """Where the table knows better or worse, too: a later torch than it has heard of, or one that was repaired."""
    of_strides = fused(torch.float32)
    with biting(from_file(tmp_path, "rtx-3060", "fused-qkv-stride", True)) as healed:
        assert torch.equal(of_strides(), fused(torch.float32)())
    with biting(from_file(tmp_path, "rtx-3060", "masked-rows", True)) as sick:
        wrong = of_strides()
    assert not healed.rows and sick.rows == {"fused-qkv-stride": 1} and not torch.equal(wrong, of_strides())
    causal = attend(*qkv(6, 6, dim=40, dtype=bf16), is_causal=True)
    with biting("m3-max-64gb") as listed:
        right = causal()
    with biting(from_file(tmp_path, "m3-max-64gb", "mps-causal-leak", False)) as own:
        wrong = causal()
    assert not listed.rows and own.rows == {"mps-causal-leak": 1} and not torch.equal(wrong, right)


@pytest.mark.parametrize("dim", [2, 3], ids=["three tensors of heads", "three in each head"])
def test_layouts_with_a_name_are_read_rightly(dim: int) -> None:
    sizes = (1, 16, 3, 4, 32) if dim == 2 else (1, 16, 4, 3, 32)
    run = attend(*(each.transpose(1, 2) for each in made(*sizes).unbind(dim)))
    with biting("rtx-3060") as bites:
        run()
    assert not bites.rows


def test_zeros_may_be_added_nought_times() -> None:
    with biting("m3-max-64gb") as bites:
        found = torch.baddbmm(torch.zeros(1), made(2, 8, 8), made(2, 8, 8), beta=0)
    assert torch.equal(found, made(2, 8, 8) @ made(2, 8, 8))
    assert not bites.rows


def test_every_failure_is_seen_here() -> None:
    seen = {case[0] for case in RAISING + SPOILING} | {"cuda-flash", "memory"}
    assert {each.row for each in ATTENTION} <= seen


def kernels_of(run: Callable[[], Tensor], name: str) -> dict[str, int]:
    with biting(name) as bites:
        run()
    return dict(bites.kernels)


def test_forcing_flash_below_ampere_has_no_kernel() -> None:
    with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.FLASH_ATTENTION]):
        with biting("t4"), pytest.raises(RuntimeError, match=r"No available kernel\. Aborting execution\."):
            attend(*qkv(16, 16, dtype=half))()
        assert kernels_of(attend(*qkv(16, 16, dtype=half)), "rtx-3060") == {"flash": 1}


def test_cards_before_ampere_take_the_quadratic_path_silently() -> None:
    assert kernels_of(attend(*qkv(16, 16, dtype=half)), "gtx-1060") == {"efficient": 1}
    assert kernels_of(attend(*qkv(16, 16, dtype=bf16)), "t4") == {"math": 1}
    assert kernels_of(grouped(), "t4") == {"math": 1}
    assert kernels_of(attend(*qkv(16, 16, dtype=bf16)), "rtx-3060") == {"flash": 1}


def test_the_quadratic_path_runs_out_of_memory() -> None:
    small = DeviceLimits(buffer_bytes=1 << 10)
    with biting("t4", limits=small), pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        grouped()()
    with biting("t4", limits=small):
        attend(*qkv(16, 16, dtype=half))()


def test_four_gibibytes_are_refused_before_they_are_made() -> None:
    with biting("m1-8gb"), pytest.raises(Aborted, match="NDArray"):
        attend(*qkv(24576, 24576, dim=4, heads=1))()


@pytest.mark.parametrize("name", MACHINES)
def test_torch_is_as_before(name: str) -> None:
    before = F.scaled_dot_product_attention
    with pytest.raises(ZeroDivisionError), biting(name):
        assert F.scaled_dot_product_attention is not before
        raise ZeroDivisionError
    assert F.scaled_dot_product_attention is before
    assert torch.equal(made(4, 4, dtype=half) @ torch.eye(4, dtype=half), made(4, 4, dtype=half))


def test_a_call_past_the_seam_is_counted() -> None:
    def calls(bites: Bites) -> tuple[int, int]:
        return bites.calls, bites.escaped

    torch_attention = F.scaled_dot_product_attention
    with biting("cpu") as bites, torch.no_grad():
        F.scaled_dot_product_attention(*qkv(4, 4))
        assert calls(bites) == (1, 1)
        torch_attention(*qkv(4, 4))  # kept from before: it goes below Python, and is seen there
        assert bites.escaped > 1


def die() -> None:
    with biting("m1-8gb", kill=True):
        grouped()()


@pytest.mark.slow
def test_it_can_really_kill_a_process() -> None:
    child = multiprocessing.get_context("spawn").Process(target=die)
    child.start()
    child.join(60)
    assert child.exitcode is not None and child.exitcode < 0
