"""Combinations of which few are quick: all are there once, and the quick ones hold each value of each parameter."""

from __future__ import annotations

import itertools

import pytest

from tests.support.combinations import combine


@pytest.mark.parametrize("sizes", [(1,), (4,), (3, 2), (2, 3), (12, 3, 2), (2, 2, 2)])
def test_each_value_is_asked_quickly_and_each_combination_in_the_long_run(sizes: tuple[int, ...]) -> None:
    axes = [[f"{axis}{value}" for value in range(size)] for axis, size in enumerate(sizes)]
    made = combine(*axes)
    assert [row.values for row in made] == list(itertools.product(*axes))
    quick = [row.values for row in made if not row.marks]
    assert [set(values) for values in zip(*quick, strict=True)] == [set(axis) for axis in axes]
    assert len(quick) == max(sizes) and all(mark.name == "slow" for row in made for mark in row.marks)
