"""Which pieces of a job go to other machines next. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

OVERDUE: Final = 1.25
"""Times what was foreseen, after which a piece is no longer waited for alone: half of them take longer than the median of earlier ones."""


@dataclass(frozen=True, slots=True)
class Making:
    """A piece that a machine, or the engine here, is at."""

    place: int
    foreseen_s: float | None
    """With loading; None where it never used the model."""
    gone_s: float


def choose_pieces(missing: Sequence[int], away: Iterable[int], idle: int, here: bool = True, ahead: Collection[int] = ()) -> list[int]:
    """Choose what the idle machines make next, of what nobody makes: from the back, as this machine goes from the front.
    `missing`: in order. `away`: what other machines make. `here`: whether this machine is at the first. `ahead`: what lies at machines
    that make another piece first; it is chosen after what lies nowhere."""
    made = {*away, *(missing[:1] if here else ())}
    return sorted((place for place in missing if place not in made), key=lambda place: (place in ahead, -place))[: max(0, idle)]


def choose_joined(missing: Sequence[int], making: Iterable[Making], needed_s: Sequence[float | None]) -> list[int | None]:
    """Choose what idle machines make that somebody is at already, so that nobody waits for a slow machine at the end of a job: where fewest
    are at it, and only where a machine would be done first. `needed_s`: how long each idle machine takes, with loading, the best first."""
    making, chosen = [*making], list[int | None]()
    at_it = Counter(each.place for each in making)
    for needed in needed_s:
        late = {each.place for each in making if not is_done_before(needed, each)}
        wanted = [place for place in missing if at_it[place] and place not in late and place not in chosen]
        chosen.append(min(wanted, key=lambda place: (at_it[place], -place), default=None))
    return chosen


def is_done_before(needed_s: float | None, other: Making) -> bool:
    """Tell whether a machine that begins now is done before who is at it; it is told so where one of both is unknown, and where the other
    is overdue."""
    if needed_s is None or other.foreseen_s is None or other.gone_s > OVERDUE * other.foreseen_s:
        return True
    return needed_s < other.foreseen_s - other.gone_s


def choose_ahead(missing: Sequence[int], given: Collection[int], machines: int, here: bool = True) -> list[int]:
    """Choose what lies ready at machines that make another piece: they need not wait for it then. `given`: what any machine has."""
    return [place for place in reversed(missing[here:]) if place not in given][:machines]
