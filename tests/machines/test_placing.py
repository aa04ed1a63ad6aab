"""What Hearth's own rules of placing gain where Dask has none: each left out in turn, with the others in place, in a time of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.placing import ALONE, CASES, RULES, simulate

GAIN = 1.15
"""Less is not worth a rule."""
AHEAD, TWICE, SOONER, BEST, GOES_ON = RULES


@pytest.mark.parametrize("name", [name for name in CASES if "ten minutes" not in name])
def test_four_helpers_come_near_the_ideal(name: str) -> None:
    took, worked = simulate(CASES[name](4))
    assert took < 1.5 and worked < 1.3, "a few pieces at the end are made twice, and what dies is begun anew"


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (AHEAD, "pieces of half a second"),
        (TWICE, "one ten times slower"),
        (TWICE, "as many pieces as machines"),
        (SOONER, "as many pieces as machines"),
        (BEST, "one piece alone"),
        (GOES_ON, "pieces of ten minutes, one dies each minute"),
    ],
    ids=lambda each: getattr(each, "name", each),
)
def test_each_rule_gains_enough_to_stay(rule: object, name: str) -> None:
    case = CASES[name](4)
    assert simulate(case, rule)[0] > GAIN * simulate(case)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_all_rules_together_gain_over_dask_alone(name: str) -> None:
    took, alone = simulate(CASES[name](4))[0], simulate(CASES[name](4), ALONE)[0]
    assert alone > GAIN * took, (took, alone)


@pytest.mark.slow
@pytest.mark.parametrize("helpers", [50, 200])
def test_many_helpers_come_near_the_ideal(helpers: int) -> None:
    assert simulate(replace(CASES["one ten times slower"](helpers), pieces=3 * helpers))[0] < 1.4
