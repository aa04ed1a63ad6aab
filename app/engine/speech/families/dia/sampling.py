"""Choose the codes of Dia's next row from its logits, all channels at once, as transformers' generate() chooses them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

NEVER = -torch.inf


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a code is drawn; temperature 0 takes the most likely one."""

    guidance: float = 3.0
    temperature: float = 1.8
    top_p: float = 0.95
    cfg_filter: int = 45

    @property
    def guided(self) -> bool:
        return self.guidance > 1


def choose_codes(logits: Tensor, sampling: Sampling, end: int, generator: torch.Generator) -> Tensor:
    """Return a code for each channel. `logits`: (batch, channels, vocabulary), on the processor; row 1 of a batch of two is
    unguided. `end`: the code that ends the part, in the first channel only; all codes above it are never chosen."""
    heard = logits[0]
    codes, scores = _list_candidates(logits, sampling, end)
    special = codes > end
    special[1:] |= codes[1:] == end
    scores = scores.masked_fill(special, NEVER)
    # The end comes if it is the most likely code, and only then.
    ends = codes[0] == end
    scores[0].masked_fill_(~ends if bool(ends[scores[0].argmax()]) else ends, NEVER)
    empty = (scores == NEVER).all(1)
    if bool(empty.any()):  # so few candidates that none may be chosen, where generate() fails: the likeliest that may
        codes[empty, 0], scores[empty, 0] = heard[empty, :end].argmax(1), 0.0
    if sampling.temperature == 0:
        return codes.gather(1, scores.argmax(1, keepdim=True))[:, 0]
    scores = _keep_likely(scores / sampling.temperature, sampling.top_p)
    # Drawn from the whole vocabulary, as generate() does, so that a seed means the same.
    chances = torch.zeros_like(heard).scatter_(1, codes, scores.softmax(1))
    return torch.multinomial(chances, 1, generator=generator)[:, 0]


def _list_candidates(logits: Tensor, sampling: Sampling, end: int) -> tuple[Tensor, Tensor]:
    """Return the codes that guidance leaves for each channel, or without it the likeliest ones, and their logits."""
    heard, most = logits[0], min(sampling.cfg_filter, end)
    if sampling.guided:
        codes = torch.topk(heard + (heard - logits[1]) * sampling.guidance, most).indices
        return codes, heard.gather(1, codes)
    # One more than are kept, because the end may be among them and be taken out. Those above it cannot be chosen.
    scores, codes = torch.topk(heard[:, : end + 1], most + 1)
    scores[(codes == end).sum(1) == 0, most:] = NEVER
    return codes, scores


def _keep_likely(scores: Tensor, share: float) -> Tensor:
    """Keep the likeliest codes that together have this share of the chances, at least one."""
    if share >= 1:
        return scores
    order = scores.argsort(1)
    unlikely = scores.gather(1, order).softmax(1).cumsum(1) <= 1 - share
    unlikely[:, -1] = False
    return scores.masked_fill(torch.zeros_like(unlikely).scatter_(1, order, unlikely), NEVER)
