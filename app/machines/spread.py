"""Which pieces of a job go to other machines next. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence


def choose_pieces(
    missing: Sequence[int], away: Iterable[int], idle: int, here: bool = True, joins: bool = True, ahead: Collection[int] = ()
) -> list[int]:
    """Choose what the idle machines make next. First what nobody makes, from the back, as this machine goes from the front; then,
    at the end of the job, what fewest are at already: nobody waits for a slow machine, and how fast each is need not be known.
    `missing`: in order. `away`: what other machines make. `here`: whether this machine is at the first. `joins`: False leaves out what
    somebody is at, for machines that have other work. `ahead`: what lies at machines that make another piece first; it is chosen after
    what lies nowhere."""
    made_by = Counter(away)
    made_by.update(missing[:1] if here else ())
    wanted = [place for place in missing if joins or not made_by[place]]
    return sorted(wanted, key=lambda place: (made_by[place], place in ahead, -place))[: max(0, idle)]


def choose_ahead(missing: Sequence[int], given: Collection[int], machines: int, here: bool = True) -> list[int]:
    """Choose what lies ready at machines that make another piece: they need not wait for it then. `given`: what any machine has."""
    return [place for place in reversed(missing[here:]) if place not in given][:machines]
