"""Who makes what: from the back, nothing twice before the end, and at the end nobody waits for a slow machine, nor races a fast one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.machines.shared_job import OVERDUE, Making, choose_free, choose_joined


def test_helpers_take_from_the_back_what_nobody_paints() -> None:
    assert choose_free(range(8), (), 3) == [7, 6, 5]
    assert choose_free([1, 2, 3, 4, 5, 7], {7, 5}, 2) == [4, 3]
    assert choose_free(range(8), (), 0) == choose_free([], (), 9) == choose_free(range(8), (), -1) == []
    assert choose_free(range(2), (), 2, here=False) == [1, 0], "of a job that this machine is not at"
    assert choose_free([1, 2, 3], {3}, 9) == [2], "what somebody has is left to him"


def unknown(*places: int) -> list[Making]:
    return [Making(place, None, 5.0) for place in places]


def test_at_the_end_a_second_machine_joins_in() -> None:
    assert choose_joined([1, 2, 3], unknown(1, 2, 3), [None] * 3) == [3, 2, 1]
    assert choose_joined([1, 2, 3], unknown(1, 1, 2, 3, 3), [None]) == [2], "where fewest are at it"
    assert choose_joined([0], unknown(0), [None, None]) == [0, None], "one at a time"
    assert choose_joined([1, 2], unknown(2, 0), [None, None]) == [2, None], "1 is nobody's yet, and 0 is there"


@pytest.mark.parametrize(
    ("needed_s", "foreseen_s", "gone_s", "joins"),
    [
        (5.0, 20.0, 10.0, True), (10.0, 20.0, 10.0, False), (30.0, 20.0, 0.0, False),
        (30.0, 20.0, OVERDUE * 20.0, False), (30.0, 20.0, OVERDUE * 20.0 + 0.1, True), (5.0, 20.0, 18.0, False),
        (None, 20.0, 1.0, True), (5.0, None, 1.0, True),
    ],
)  # fmt: skip
def test_it_joins_where_it_is_done_first_or_the_other_is_overdue(
    needed_s: float | None, foreseen_s: float | None, gone_s: float, joins: bool
) -> None:
    assert choose_joined([0], [Making(0, foreseen_s, gone_s)], [needed_s]) == [0 if joins else None]


def test_one_of_those_at_it_that_is_done_first_is_enough_to_stay_away() -> None:
    slow, fast = Making(3, 100.0, 0.0), Making(3, 100.0, 97.0)
    assert choose_joined([3], [slow], [5.0]) == [3] and choose_joined([3], [slow, fast], [5.0]) == [None]
    assert choose_joined([2, 3], [slow, fast, Making(2, 50.0, 0.0)], [5.0]) == [2]


def test_a_slow_machine_leaves_what_a_fast_one_joins() -> None:
    assert choose_joined([2, 3], [Making(3, 20.0, 0.0), Making(2, 20.0, 5.0)], [30.0, 5.0, 5.0, 5.0]) == [None, 3, 2, None]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("paces", [[1.0], [1.0, 1.0, 1.0], [10.0, 1.0, 5.0], [1.0, 50.0, 50.0], [30.0, 30.0, 1.0], [1.0, 2.0], [2.0, 1.0]])
def test_machines_of_any_speed_finish_each_picture_once(paces: Sequence[float], known: bool) -> None:
    """Simulated: each machine paints at its own pace, which it says before or not; no picture is missing. Where paces are known none
    paints what it cannot be first with."""
    there, now, in_vain = set[int](), 0.0, 0
    at: dict[int, tuple[int, float]] = {}
    while len(there) < 16:
        for machine, pace in enumerate(paces):
            if machine in at:
                continue
            missing = [place for place in range(16) if place not in there]
            making = [Making(place, paces[other] if known else None, now - (end - paces[other])) for other, (place, end) in at.items()]
            if 0 not in at and missing:
                making.append(Making(missing[0], pace if known else None, 0.0))
            chosen: Sequence[int | None] = missing[:1]
            if machine:
                free = choose_free(missing, {each.place for each in making}, 1, here=False)
                chosen = free or choose_joined(missing, making, [pace if known else None])
            if chosen and chosen[0] is not None:
                at[machine] = chosen[0], now + pace
        machine, (place, now) = min(at.items(), key=lambda each: each[1][1])
        there.add(place)
        in_vain += sum(each != machine and at_place == place for each, (at_place, _) in at.items())
        at = {each: (at_place, end) for each, (at_place, end) in at.items() if at_place not in there}
    ideal = 16 / sum(1 / pace for pace in paces)
    assert now <= ideal + 2 * min(paces) + 1e-9, (paces, now, ideal)
    if known and len({*paces}) == 1:
        assert in_vain == 0, "all are as fast"
