"""Slow down wrong guesses of passwords and keys, without ever shutting out the right one; refuse own ones that are guessed soon."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from app.base.sentence import say
from app.base.trouble import Trouble

DELAY_S: Final = 0.5
DELAY_MOST_S: Final = 8.0
FORGET_S: Final = 900.0
HOUSEHOLDS_MOST: Final = 1000
"""Wrong guesses are remembered of so many households; the oldest is forgotten first."""
HELD_OF_ONE: Final = 4
HELD_MOST: Final = 64
"""So many wrong guesses of one household, and of all, wait at once for answers that are held back."""
LETTERS_LEAST: Final = 10
"""The owner's own password or key needs so many letters at least. 26 ** 10 guesses take 450 years on average at 5,000 a second."""
COMMON: Final = re.compile(
    r"[\s_-]+|hearth|pass(word|wort|wd|code)?|letmein|welcome|willkommen|iloveyou|admin(istrator)?|secret|login|master|dragon|monkey|football"
    r"|baseball|superman|batman|princess|sunshine|shadow|michael|computer|internet|default|changeme|guest|user|owner|test|woaini"
)
"""Everybody tries these first."""
ROWS: Final = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "qwertzuiop", "azertyuiop", "asdfghjkl", "zxcvbnm")


@dataclass(slots=True)
class Guesses:
    """Every guess is compared, and a right one is let in at once; the answer to a wrong one is held back, each time twice
    as long. Of many at once only a few are held, and the others refused: what then bounds guessing is the length of
    the secret. A generated password has 47.5 bits: at 5,000 guesses a second it takes 600 years on average."""

    wrong: dict[str, tuple[int, float]] = field(default_factory=dict)
    """It holds by household how many there were, and when the last one was; the oldest household comes first."""
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


def require_text(variable: str, secret: str) -> None:
    """Raise Trouble for a password or key that is no text, which nobody could type or send: Python reads such bytes as
    surrogates."""
    try:
        secret.encode()
    except UnicodeEncodeError as fault:
        raise Trouble(
            say("open.not-text", "{variable} is not valid UTF-8 text. Set it again, or leave it out.", variable=variable)
        ) from fault


def require_hard_to_guess(variable: str, secret: str) -> None:
    """Raise Trouble for a password or key of the owner's own, given in a variable, that is soon guessed."""
    if count_letters(secret) < LETTERS_LEAST:
        raise Trouble(
            say(
                "open.guessable",
                "{variable} is too easy to guess. Use at least {least} {least:character|characters}, or leave it out. "
                "Spaces, words such as password, repetitions and runs such as 1234 or qwerty do not count.",
                variable=variable,
                least=LETTERS_LEAST,
            )
        )


def count_letters(secret: str) -> int:
    """Count the characters that a guesser has to find, by the different triples that are no run along a row."""
    rest = COMMON.sub("", secret.casefold())
    triples = {rest[start : start + 3] for start in range(len(rest) - 2)}
    free = [each for each in triples if not any(each in row or each[::-1] in row for row in ROWS)]
    return min(len(rest), len(free) + 2)
