"""Cut a sentence that is too long for a voice where a reader would breathe: at a mark, before a joining word, between words. Pure and linear."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final

_JOINING: Final = "and|but|or|nor|for|so|yet|because|although|though|while|when|where|which|who|whom|whose|that|if|as|until|unless|than|then|since|after|before"
_RELATING: Final = "with|without|from|into|through|to|in|on|at|of|by|over|under|between|among|about|against|like"
_MARK = re.compile(r"""(?:[;:!?]|(?<=[a-z]{3})\.|\.\.\.)["')\]]*+(?=\s)|(?<=\s)-{1,2}(?=\s)""")
_JOINED_CLAUSE = re.compile(rf""",["')]*+(?=\s(?:{_JOINING})\b)""")
_COMMA = re.compile(r""",["')]*+(?=\s)""")
_JOINING_WORD = re.compile(rf"\s(?=(?:{_JOINING})\b)")
_RELATING_WORD = re.compile(rf"\s(?=(?:{_RELATING})\b)")
_BLANK = re.compile(r"\s")
PLACES: Final = ((_MARK, 0.0), (_JOINED_CLAUSE, 0.05), (_COMMA, 0.15), (_JOINING_WORD, 0.3), (_RELATING_WORD, 0.5), (_BLANK, 0.8))
"""Where to cut, and what it costs, beside how far it lies from where equal pieces would end, as a share of their length."""
LEAST: Final = 0.4
"""Of an equal share: no piece is shorter where there is a choice."""


def cut_sentence(text: str, aim: int, most: int, measure: Callable[[str], float]) -> Iterator[str]:
    """Yield pieces of about `aim`, none longer than `most`, as `measure` tells; both are letters where each measures one."""
    left, begun = measure(text), 0
    while left > most:
        head = text[begun : begun + most]
        while (size := measure(head)) > most:
            head = head[: max(1, min(len(head) - 1, int(len(head) * most / size)))]
            if len(head) == 1:
                break
        share = left / math.ceil(left / aim) / max(measure(head), 1.0) * len(head)
        end = _find_best(head, share)
        yield text[begun : begun + end].strip()
        begun += end
        left = measure(text[begun:]) if len(text) - begun <= 4 * most else left - measure(head[:end])
    if rest := text[begun:].strip():
        yield rest


def _find_best(head: str, share: float) -> int:
    """Return where to end the first piece: within a word where there is no other place."""
    best, cheapest = max(1, min(len(head), int(share))), math.inf
    for pattern, price in PLACES:
        for found in pattern.finditer(head):
            end = found.end()
            cost = price + abs(end - share) / share + (1.0 if end < LEAST * share else 0.0)
            if head[:end].strip() and cost < cheapest:
                best, cheapest = end, cost
    return best
