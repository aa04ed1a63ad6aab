"""Who makes what: from the back, nothing twice before the end, and at the end nobody waits for a slow machine."""

from __future__ import annotations

from app.machines.spread import choose_pieces


def test_helpers_take_from_the_back_what_nobody_paints() -> None:
    assert choose_pieces(range(8), away=(), idle=3) == [7, 6, 5]
    assert choose_pieces([1, 2, 3, 4, 5, 7], away=(7, 5), idle=2) == [4, 3]
    assert choose_pieces(range(8), away=(), idle=0) == choose_pieces([], away=(), idle=9) == []
    assert choose_pieces(range(2), away=(), idle=2, here=False) == [1, 0], "of a job that this machine is not at"


def test_at_the_end_a_second_machine_joins_in() -> None:
    assert choose_pieces([1, 2, 3], away=(3, 2), idle=3) == [3, 2, 1], "1 is this machine's own"
    assert choose_pieces([1, 2, 3], away=(3, 2, 3, 1), idle=1) == [2], "where fewest are at it"
    assert choose_pieces([0], away=(), idle=2) == [0]
    assert choose_pieces([1, 2, 3], away=(3,), idle=9, joins=False) == [2], "machines that have other work leave what somebody is at"


def test_machines_of_any_speed_finish_each_picture_once() -> None:
    """Simulated: each machine paints at its own pace, some die; no picture is missing, and few are painted twice."""
    for paces in ([1.0], [1.0, 1.0, 1.0], [10.0, 1.0, 5.0], [1.0, 50.0, 50.0], [30.0, 30.0, 1.0]):
        there, now, painted = set[int](), 0.0, 0
        at: dict[int, tuple[int, float]] = {}
        while len(there) < 16:
            for machine, pace in enumerate(paces):
                if machine in at:
                    continue
                missing = [place for place in range(16) if place not in there]
                away = [place for helper, (place, _) in at.items() if helper]
                chosen = missing[:1] if machine == 0 else choose_pieces(missing, away, 1)
                if chosen:
                    at[machine] = chosen[0], now + pace
            machine, (place, now) = min(at.items(), key=lambda each: each[1][1])
            there.add(place)
            painted += 1
            at = {each: (at_place, end) for each, (at_place, end) in at.items() if at_place not in there}
        ideal = 16 / sum(1 / pace for pace in paces)
        assert painted == 16 and now <= ideal + 2 * min(paces) + 1e-9, (paces, now, ideal)
