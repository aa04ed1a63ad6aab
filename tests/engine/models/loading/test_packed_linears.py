"""Pack weights in 8 and 4 bits: what the packed numbers stand for, what is lost, and torch's kernels against float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from app.base import notices
from app.compat.planning.types import Quantised
from app.engine.models.loading import packed_linears
from app.engine.models.loading.packed_linears import (
    BITS,
    FEW_LINES,
    GROUP,
    Bits,
    Int4Linear,
    Int8Linear,
    pack_linear,
    pair_up,
    round_to_4_bits,
    round_to_8_bits,
)
from app.engine.session.packed_weights_check import unpack
from tests.support import refused
from tests.support.refused import Lack, take_away

asked_anew = refused.asked_anew

BF16 = torch.bfloat16


def draw(*size: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(sum(size)))


@pytest.mark.parametrize("lines", [1, 2, FEW_LINES, FEW_LINES + 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BF16])
@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_a_product_is_that_of_what_the_numbers_stand_for(kind: Quantised, dtype: torch.dtype, lines: int) -> None:
    weight, given = draw(1040, 1056) / 40, (16 * draw(lines, 3, 1056)).to(BF16)
    right = given.double().numpy() @ unpack(kind, weight, BF16).double().numpy().T
    found = pack_linear(weight, BITS[kind], "cpu", dtype)(given.to(dtype))
    assert found.dtype == dtype and found.shape == right.shape
    assert np.abs(found.double().numpy() - right).max() < 1e-2 * np.abs(right).max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BF16])
@pytest.mark.parametrize("bits", BITS.values())
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_bias_is_added_whole(bits: Bits, dtype: torch.dtype, device: str) -> None:
    weight, bias, given = draw(48, 64), draw(48), draw(3, 2, 64).to(dtype)
    biased, bare = (pack_linear(weight, bits, device, dtype, bias=each) for each in (bias, None))
    if device == "cpu":
        assert torch.equal(biased(given), bare(given) + bias.to(dtype)) and biased(given).dtype == dtype
    else:  # as on Metal, which does not take this shape
        assert isinstance(biased, torch.nn.Linear) and biased.bias.shape == bias.shape and biased.bias.dtype == dtype


@pytest.mark.parametrize("stored", [BF16, torch.float16, torch.float32])
def test_rounding_loses_half_a_step_at_most(stored: torch.dtype) -> None:
    weight = draw(48, 96) * 10.0 ** torch.arange(-3, 3).repeat(8)[:, None]
    _, scales = round_to_8_bits(weight, stored)
    # A scale that was rounded down cuts the largest number by up to 127 times what the scale lost.
    assert ((unpack("int8", weight, stored) - weight).abs() <= scales.double()[:, None]).all()
    _, scales = round_to_4_bits(weight, stored)
    step, zero = scales.double().transpose(0, 1).repeat_interleave(GROUP, 1).unbind(-1)
    off = (unpack("int4", weight, stored) - weight).abs()
    assert (off <= step / 2 + 2 * torch.finfo(stored).eps * (zero.abs() + 8 * step)).all()
    assert off.square().mean().sqrt() < 0.1 * weight.square().mean().sqrt()


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_rows_that_are_empty_equal_or_huge_stay_what_they_are(kind: Quantised) -> None:
    weight = torch.stack([torch.zeros(64), torch.full((64,), 0.5), torch.full((64,), -3e30), torch.arange(64.0)])
    kept = unpack(kind, weight, BF16)
    assert kept.isfinite().all() and (kept[0] == 0).all()
    assert torch.allclose(kept[1:3], weight[1:3].double(), rtol=1e-2)


def test_a_shape_that_4_bits_do_not_take_gets_8() -> None:
    assert isinstance(pack_linear(draw(32, 64), 4, "cpu", torch.float32), Int4Linear)
    for rows, columns in ((24, 64), (32, 48)):
        assert isinstance(pack_linear(draw(rows, columns), 4, "cpu", torch.float32), Int8Linear)


def test_a_shape_that_metal_does_not_take_stays_whole() -> None:
    for bits in BITS.values():
        whole = pack_linear(draw(48, 64), bits, "meta", torch.float16)  # as any device but the processor
        assert isinstance(whole, torch.nn.Linear) and whole.weight.dtype == torch.float16


@pytest.mark.parametrize("kind", BITS)
def test_lines_need_not_lie_together(kind: Quantised) -> None:
    packed, given = pack_linear(draw(64, 64), BITS[kind], "cpu", BF16), draw(2, 3, 64).to(BF16)
    assert torch.equal(packed(given[:, -1:]), packed(given[:, -1:].contiguous()))


def test_metal_gets_its_bytes_as_its_kernel_reads_them() -> None:
    """torch's Metal code exchanges the halves of each byte, and its product takes the lower half first."""
    numbers, _ = round_to_4_bits(draw(16, 64), torch.float16)
    given = pair_up(numbers)
    stored = given << 4 | given >> 4
    assert given.dtype == torch.uint8 and given.shape == (16, 32)
    assert (torch.stack((stored & 15, stored >> 4), -1).flatten(1) == numbers).all()


KERNELS = {"int8": "_weight_int8pack_mm", "int4": "_weight_int4pack_mm_for_cpu"}
REFUSALS = [*KERNELS.items(), ("int4", "_convert_weight_to_int4pack_for_cpu")]


@pytest.mark.parametrize("lack", ["missing", "refused"])
@pytest.mark.parametrize(("kind", "name"), REFUSALS)
def test_refused_at_the_start_the_same_numbers_are_widened(
    kind: Quantised, name: str, lack: Lack, asked_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight, given = draw(80, 96), draw(2, 96)
    size = count_bytes(pack_linear(weight, BITS[kind], "cpu", torch.float32))
    take_away(monkeypatch, f"ops.aten.{name}", lack)
    layer = pack_linear(weight, BITS[kind], "cpu", torch.float32)
    for _ in range(2):
        torch.testing.assert_close(layer(given).double(), given.to(BF16).double() @ unpack(kind, weight, BF16).T, rtol=1e-5, atol=1e-4)
    assert count_bytes(layer) == size
    (told,) = notices.take_all()
    assert told.key == "processor.widened" and name in str(told)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [32, 64, 1040])
@pytest.mark.parametrize("lack", ["missing", "refused"])
@pytest.mark.parametrize("kind", KERNELS)
def test_refused_in_the_middle_they_are_unpacked_in_their_own_memory(
    kind: Quantised, lack: Lack, rows: int, asked_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight, given = draw(rows, 96), draw(2, 96).to(BF16)
    packed = pack_linear(weight, BITS[kind], "cpu", torch.float32)
    before, size = packed(given.float()), count_bytes(packed)
    take_away(monkeypatch, f"ops.aten.{KERNELS[kind]}", lack)
    found = packed(given.float())
    torch.testing.assert_close(found.double(), given.double() @ unpack(kind, weight, BF16).T, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(before, found, rtol=1e-2, atol=1e-2 * found.abs().max().item())
    assert count_bytes(packed) == size
    assert [each.key for each in notices.take_all()] == ["processor.widened"]


def count_bytes(layer: torch.nn.Module) -> int:
    return sum(each.nbytes for each in layer.buffers())


@pytest.mark.parametrize("columns", [32, 96])
@pytest.mark.parametrize("rows", [16, 32, 48, 64, 80, 144])
def test_torchs_order_of_4_bits_is_found_whatever_it_is(rows: int, columns: int) -> None:
    """It differs by the processor: with AVX512, with AVX2, without either."""
    numbers, _ = round_to_4_bits(draw(rows, columns), BF16)
    packed = packed_linears._pack(numbers, "cpu")
    assert torch.equal(packed_linears._unpack(packed, rows, columns), numbers.to(torch.uint8))
