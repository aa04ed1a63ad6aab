"""Let a step reuse what the step before computed: how far guidance pulls, and what the inner blocks of a UNet made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

GUIDED_ROWS = 2
"""Guidance computes two rows at once: first without the prompt, then with it."""


class Reuse:
    """What one picture's steps remember. `due` tells whether a step, counted from 0, reuses the one before."""

    def __init__(self, due: Callable[[int], bool], inner: list[torch.nn.Module]) -> None:
        self._due, self._inner = due, inner
        self._pull: torch.Tensor | None = None
        self._made: dict[int, Any] = {}
        self._reusing = False
        self.count = 0
        """Steps that reused something."""

    def compute(self, index: int, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Compute a step's answer; `forward` is the denoiser's."""
        if self._due(index) and (self._pull is not None or self._made):
            self._reusing, self.count = True, self.count + 1
            if self._pull is None:
                return forward(*args, **kwargs)
            prompted = forward(*_take_prompted(args), **_take_prompted(kwargs))[0]
            return (torch.cat([prompted - self._pull, prompted]),)
        self._reusing = False
        self._made.clear()  # before the blocks make it anew, so that it is not held twice
        answer = forward(*args, **kwargs)
        guided = isinstance(answer, tuple) and isinstance(answer[0], torch.Tensor) and len(answer[0]) == GUIDED_ROWS
        self._pull = answer[0][1:] - answer[0][:1] if guided else None
        return answer

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Have the inner blocks keep what they make, and give it again in a step that reuses."""
        before = [vars(block).get("forward") for block in self._inner]
        for block in self._inner:
            block.forward = self._replace(id(block), block.forward)
        try:
            yield
        finally:
            for block, forward in zip(self._inner, before, strict=True):
                if forward is None:
                    del block.forward
                else:  # an offload hook's, which had replaced forward() on the instance
                    block.forward = forward
            self._made.clear()
            self._pull = None

    def _replace(self, block: int, forward: Callable[..., Any]) -> Callable[..., Any]:
        def give(*args: Any, **kwargs: Any) -> Any:
            if not self._reusing:
                self._made[block] = forward(*args, **kwargs)
                return self._made[block]
            return self._made[block] if self._pull is None else _take_prompted(self._made[block])

        return give


def list_inner_blocks(denoiser: Any) -> list[torch.nn.Module]:
    """List all blocks of a UNet but the outermost; other denoisers have none."""
    if not all(getattr(denoiser, name, None) for name in ("down_blocks", "mid_block", "up_blocks")):
        return []
    return [*denoiser.down_blocks[1:], denoiser.mid_block, *denoiser.up_blocks[:-1]]


def _take_prompted(value: Any) -> Any:
    """Return only the row with the prompt of every tensor that has both."""
    if isinstance(value, torch.Tensor):
        return value[1:] if value.ndim and len(value) == GUIDED_ROWS else value
    if isinstance(value, tuple):
        return tuple(map(_take_prompted, value))
    if isinstance(value, dict):
        return {name: _take_prompted(each) for name, each in value.items()}
    return value
