"""The time left of a script, told while it is spoken: against parts whose lengths the starter voice was recorded to have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.engine.speech.run.pace import Pace

FRAME_RATE = 40.0
RECORDED = {
    "a story": ([193, 160, 127, 182, 119, 215, 113, 146, 185, 110, 243, 14], [190, 140, 138, 163, 96, 217, 285, 114, 185, 108, 203, 27]),
    "numbers": (
        [66, 248, 69, 66, 248, 69, 66, 248, 69, 66, 248, 69, 66, 248, 69, 66, 248, 69],
        [78, 210, 77, 104, 217, 79, 70, 225, 77, 140, 219, 78, 98, 221, 76, 136, 217, 76],
    ),
    "two lines": ([223], [233]),
}
"""The frames of each part were first estimated from its text, then spoken."""
SLOWER = {
    f"{name}, slower": (estimated, [round(1.3 * each) for each in spoken])
    for name, (estimated, spoken) in RECORDED.items()
    if len(spoken) > 1
}
"""The voice speaks more slowly than its text lets expect; of a single part nothing tells so beforehand."""


@dataclass(frozen=True)
class Machine:
    """Seconds that each of the three takes."""

    prepare_s: float
    frame_s: float
    sound_s: float


MACHINES = {
    "this one": Machine(0.03, 0.006, 0.004),
    "slow to make sound": Machine(0.03, 0.004, 0.012),
    "slow to prepare": Machine(1.5, 0.02, 0.002),
    "a large model": Machine(0.8, 0.15, 0.01),
}
TELL_S, FIRST_SOUND, SOUND, OVERLAP = 0.1, 20, 40, 4
WITHIN, FROM, TO, MATTERS_S = 1.5, 0.1, 0.9, 2.0
"""A guess may be so far off, from so much to so much of a job, while so much is left. Where the last part ends, nothing tells."""


def guesses(estimated: list[int], spoken: list[int], machine: Machine) -> Iterator[tuple[float, float]]:
    """Yield the time and the time left that is told, as a run tells it."""
    pace, now_s, told_s = Pace(FRAME_RATE, [float(each) for each in estimated]), 0.0, 0.0
    for part, length in enumerate(spoken):
        now_s += machine.prepare_s
        pace.record_prepared(machine.prepare_s)
        began_s, sent = now_s, 0
        for frames in range(1, length + 1):
            now_s += machine.frame_s
            if now_s - told_s >= TELL_S:
                told_s = now_s
                step = pace.make_step(part, frames, frames - sent, frames, now_s - began_s, None)
                assert step.eta_s is not None and 0 <= step.done <= step.total
                yield now_s, step.eta_s
            if frames == length or frames - sent >= (SOUND if sent else FIRST_SOUND) + OVERLAP:
                fresh = frames - sent - (0 if frames == length else OVERLAP)
                now_s += fresh * machine.sound_s
                pace.record_sound(fresh, fresh * machine.sound_s)
                sent += fresh
        pace.worked_s += now_s - began_s
        pace.made += length
        pace.record_finished(part, length)
    yield now_s, 0.0


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("script", [*RECORDED, *SLOWER])
def test_after_a_tenth_the_time_left_is_within_half_as_much_again(script: str, machine: Machine) -> None:
    *told, (end_s, _) = guesses(*(RECORDED | SLOWER)[script], machine)
    counted = [
        (now_s, eta_s / (end_s - now_s)) for now_s, eta_s in told if FROM * end_s <= now_s <= TO * end_s and end_s - now_s >= MATTERS_S
    ]
    off = [(round(now_s / end_s, 2), round(ratio, 2)) for now_s, ratio in counted if not 1 / WITHIN <= ratio <= WITHIN]
    assert not off, f"{len(off)} of {len(counted)}: {off[:20]}"


def test_parts_that_are_kept_take_no_time() -> None:
    pace = Pace(FRAME_RATE, [0.0, 200.0, 0.0, 0.0])
    pace.record_prepared(9.0)
    step = pace.make_step(1, 50, 50, 50, 1.0, None)
    assert (step.done, step.total, step.part, step.parts) == (50, 200, 1, 4)
    assert step.eta_s == pytest.approx(3.0)


def test_a_part_that_is_longer_than_its_estimate_is_not_over() -> None:
    step = Pace(FRAME_RATE, [100.0]).make_step(0, 130, 130, 130, 1.3, None)
    assert step.done < step.total and step.eta_s
