"""Say which steps of a picture reuse what the step before computed, for each "quicker" setting. No torch."""

from __future__ import annotations

from typing import Final, Literal, get_args

Quicker = Literal["off", "little", "much"]
QUICKER: Final[tuple[Quicker, ...]] = get_args(Quicker)
LEAST_STEPS: Final = 10
"""With fewer, neighbouring steps differ too much: docs/speed-pictures.md has what they lose."""
OUTER_SHARE: Final = {"sd15": 0.4, "sdxl": 0.2}
"""How much of a UNet's work its outermost blocks are, which every step computes. SD 1.5's was timed
(docs/speed-pictures.md); SDXL's is an estimate."""


def reuses(quicker: str, index: int, total: int) -> bool:
    """Tell whether this step, counted from 0, reuses what the one before computed."""
    return quicker != "off" and total >= LEAST_STEPS and index % 2 == 1


def applies(quicker: str, family: str, guided: bool, total: int) -> bool:
    """Tell whether the setting changes anything: some models have neither guidance nor a UNet."""
    return reuses(quicker, 1, total) and estimate_share(quicker, family, guided, total) < 1


def estimate_share(quicker: str, family: str, guided: bool, total: int) -> float:
    """Estimate the work of all steps, as a share of what they take without the setting."""
    reusing = sum(reuses(quicker, index, total) for index in range(total))
    each = 0.5 if guided and family != "z-image" else 1.0
    if quicker == "much":
        each *= OUTER_SHARE.get(family, 1.0)
    return (total - reusing + reusing * each) / max(1, total)
