"""Slow down wrong guesses of passwords and keys, without ever shutting out the right one."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

DELAY_S: Final = 0.5
DELAY_MOST_S: Final = 8.0
FORGET_S: Final = 900.0
HOUSEHOLDS_MOST: Final = 1000
"""Households whose wrong guesses are remembered."""
HELD_OF_ONE: Final = 4
HELD_MOST: Final = 64
"""Wrong guesses whose answers are held back at once, of one household and of all."""


@dataclass(slots=True)
class Guesses:
    """Every guess is compared, and a right one is let in at once; the answer to a wrong one is held back, each time twice
    as long. Of many at once only a few are held, and the others refused: what then bounds guessing is the length of
    the secret. A generated password has 48 bits: at a thousand guesses a second it takes four thousand years."""

    wrong: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By household: how many, and when the last one was; the oldest household first."""
    held: Counter[str] = field(default_factory=Counter)

    def add_wrong(self, household: str, now_s: float) -> float:
        """Count a wrong guess, and return how long its answer is to be held back."""
        count, last_s = self.wrong.pop(household, (0, now_s))
        if now_s - last_s > FORGET_S:
            count = 0
        self.wrong[household] = count + 1, now_s
        if len(self.wrong) > HOUSEHOLDS_MOST:
            del self.wrong[next(iter(self.wrong))]
        return min(DELAY_MOST_S, DELAY_S * 2.0 ** min(count, 16))

    def forget(self, household: str) -> None:
        self.wrong.pop(household, None)

    async def hold(self, household: str, delay_s: float) -> bool:
        """Hold an answer back; return False at once if too many are held already."""
        if self.held[household] >= HELD_OF_ONE or self.held.total() >= HELD_MOST:
            return False
        self.held[household] += 1
        try:
            await asyncio.sleep(delay_s)
        finally:
            self.held -= Counter({household: 1})  # drops those at zero
        return True
