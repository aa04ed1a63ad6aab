"""The self-test's own formula, layouts and probes: right in torch's float64, so that what a machine gets wrong is the machine's."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from app.compat.selftest import operations, probes, reference
from app.compat.selftest.reference import CaseShape, error, make

SMALL = (
    *(replace(each, queries=12, keys=10) for each in (reference.T5, reference.BLIND, reference.DIA_TEXT, reference.EXPANDED)),
    *(replace(each, queries=12, keys=12) for each in (reference.FUSED, reference.DIA_PROMPT)),
    replace(reference.SD15, queries=12, keys=14),
    replace(reference.WIDE, queries=7, keys=9),
    replace(reference.DIA_STEP, keys=20),
    replace(reference.WIDE_MASK, queries=70, keys=12),
)


@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: shape.name)
def test_the_formula_is_torchs(shape: CaseShape) -> None:
    made = make(shape, "float64", "cpu")
    found = torch.nn.functional.scaled_dot_product_attention(made.query, made.key, made.value, **made.options())
    assert error(found.nan_to_num(), made.right, shape.every) < 1e-12


@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: shape.name)
def test_layouts_hold_the_same_numbers(shape: CaseShape) -> None:
    made, (query, key, value, _, _) = make(shape, "float32", "cpu"), reference.numbers(shape)
    for laid, drawn in zip((made.query, made.key, made.value), (query, key, value), strict=True):
        assert np.array_equal(laid.numpy(), np.broadcast_to(drawn, laid.shape))
        steps = drawn * 64 / (1 if drawn is value else shape.loud)
        assert np.array_equal(steps, np.round(steps)) and 32 < np.std(steps) < 128, "exact in every dtype"
    assert (0 in made.key.stride()) is (shape.layout == "expanded")
    assert made.query.is_contiguous() is (shape.layout not in ("permuted", "fused"))
    one = {each.untyped_storage().data_ptr() for each in (made.query, made.key, made.value)}
    assert (len(one) == 1) is (shape.layout == "fused")


def test_an_error_is_relative_to_the_largest_number() -> None:
    right = np.array([[1.0, -4.0], [2.0, 0.5], [3.0, 1.0]])
    found = torch.tensor(right)
    found[1, 0] += 0.5
    assert error(found, right) == 0.125 and error(found[:2], right) == math.inf
    assert error(found, right[::2], every=2) == 0.0
    found[0, 0] = math.nan
    assert error(found, right) == math.inf


def test_probes_of_a_processor_are_right() -> None:
    for probe in (operations.long_sound, operations.ignored_addend):
        assert probe("float32", "cpu")[0] < 1e-5
    made = make(reference.WIDE, "float64", "cpu")
    assert error(probes.by_hand(made), made.right) < 1e-12


def test_a_sound_is_longer_than_metal_once_took(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    held = torch.nn.functional.conv1d
    monkeypatch.setattr(torch.nn.functional, "conv1d", lambda sound, kernel: seen.append(tuple(sound.shape)) or held(sound, kernel))
    operations.long_sound("float32", "cpu")
    assert seen == [(1, 1, 66_000)]
