"""Say which steps of a picture reuse what the step before computed, for each "quicker" setting. No torch."""

from __future__ import annotations

from typing import Final, Literal, get_args

Quicker = Literal["off", "little", "much"]
QUICKER: Final[tuple[Quicker, ...]] = get_args(Quicker)
LEAST_STEPS: Final = 10
"""With fewer, neighbouring steps differ too much: docs/speed-pictures.md has what they lose."""


def reuses(quicker: str, index: int, total: int) -> bool:
    """Tell whether this step, counted from 0, reuses what the one before computed."""
    return quicker != "off" and total >= LEAST_STEPS and index % 2 == 1


def estimate_share(quicker: str, spares_guidance: bool, outer_share: float, total: int) -> float:
    """Estimate the work of all steps, as a share of what they take without the setting. `spares_guidance`: whether there is a row without the prompt
    that can be reused; `outer_share`: how much of a step its outermost blocks are, which every step computes."""
    reusing = sum(reuses(quicker, index, total) for index in range(total))
    each = 0.5 if spares_guidance else 1.0
    if quicker == "much":
        each *= outer_share
    return (total - reusing + reusing * each) / max(1, total)
