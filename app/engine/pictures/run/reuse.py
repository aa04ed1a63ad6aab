"""Let a step reuse what the step before computed: how far guidance pulls, and what the inner blocks of the denoiser made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

GUIDED_ROWS = 2
"""Guidance computes two rows at once: first without the prompt, then with it."""
STACKS = ("transformer_blocks", "single_transformer_blocks", "layers")
"""A transformer of diffusers has its blocks there."""
MOST_CHANGE = 0.15
"""The first block's answer may have moved this far, as a share, since the step before if what the others added is to be reused."""


class Reuse:
    """What one picture's steps remember. `due` tells whether a step, counted from 0, reuses the one before."""

    def __init__(self, due: Callable[[int], bool], denoiser: Any = None) -> None:
        """With a denoiser its inner blocks are reused too, not only the pull of guidance."""
        self._due = due
        self._inner, self._stacks = list_inner_blocks(denoiser), [_Stack(blocks) for blocks in list_stacks(denoiser)]
        self._pull: torch.Tensor | None = None
        self._made: dict[int, Any] = {}
        self._reusing = False
        self._at, self._call = -1, 0
        """The step, and which of its calls of the denoiser: some pipelines compute the row without the prompt apart."""
        self.count = 0
        """Steps that reused something."""

    def compute(self, index: int, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Compute a step's answer; `forward` is the denoiser's."""
        self._call = self._call + 1 if index == self._at else 0
        self._at = index
        self._reusing = self._due(index) and (self._pull is not None or bool(self._made) or any(stack.added for stack in self._stacks))
        if not self._reusing:
            if not self._call:
                self._forget()  # before the blocks make it anew, so that it is not held twice
            answer = forward(*args, **kwargs)
            guided = isinstance(answer, tuple) and isinstance(answer[0], torch.Tensor) and len(answer[0]) == GUIDED_ROWS
            self._pull = answer[0][1:] - answer[0][:1] if guided else None
            return answer
        if self._pull is not None:
            self.count += 1
            prompted = forward(*_take_prompted(args), **_take_prompted(kwargs))[0]
            return (torch.cat([prompted - self._pull, prompted]),)
        answer = forward(*args, **kwargs)
        self.count += not self._call and (bool(self._made) or any(stack.answer is not None for stack in self._stacks))
        return answer

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Have the inner blocks keep what they make, and give it again in a step that reuses."""
        changed = [(block, self._replace(id(block), block.forward)) for block in self._inner]
        for stack in self._stacks:
            first, *others = stack.blocks
            changed += [(first, self._replace_first(stack, first.forward)), *((each, self._replace_other(stack, each)) for each in others)]
        before = [vars(block).get("forward") for block, _ in changed]
        for block, forward in changed:
            block.forward = forward
        try:
            yield
        finally:
            for (block, _), was in zip(changed, before, strict=True):
                if was is None:
                    del block.forward
                else:  # an offload hook's, which had replaced forward() on the instance
                    block.forward = was
            self._forget()
            self._pull = None

    def _forget(self) -> None:
        self._made.clear()
        for stack in self._stacks:
            stack.begun.clear()
            stack.added.clear()
            stack.answer = None

    def _replace(self, block: int, forward: Callable[..., Any]) -> Callable[..., Any]:
        def give(*args: Any, **kwargs: Any) -> Any:
            if not self._reusing:
                self._made[block] = forward(*args, **kwargs)
                return self._made[block]
            return self._made[block] if self._pull is None else _take_prompted(self._made[block])

        return give

    def _replace_first(self, stack: _Stack, forward: Callable[..., Any]) -> Callable[..., Any]:
        def begin(*args: Any, **kwargs: Any) -> Any:
            answer = forward(*args, **kwargs)
            if not self._reusing:
                stack.begun[self._call] = answer
                return answer
            kept = (stack.begun[self._call], stack.added[self._call])
            begun, added = kept if self._pull is None else map(_take_prompted, kept)
            stack.answer = _add(answer, added) if _measure_change(answer, begun) <= MOST_CHANGE else None
            return answer if stack.answer is None else stack.answer

        return begin

    def _replace_other(self, stack: _Stack, block: torch.nn.Module) -> Callable[..., Any]:
        forward, is_last = block.forward, block is stack.blocks[-1]

        def go_on(*args: Any, **kwargs: Any) -> Any:
            if self._reusing and stack.answer is not None:
                return stack.answer
            answer = forward(*args, **kwargs)
            if is_last and not self._reusing:
                stack.added[self._call] = _subtract(answer, stack.begun[self._call])
            return answer

        return go_on


class _Stack:
    """A transformer's blocks of one shape, each of which adds to what it is given. The first is computed in every step."""

    def __init__(self, blocks: list[torch.nn.Module]) -> None:
        self.blocks = blocks
        self.begun: dict[int, Any] = {}
        """The first block answered this in each call of the last step that was computed whole."""
        self.added: dict[int, Any] = {}
        """All others added this to it."""
        self.answer: Any = None
        """What they answer in a step that reuses; None: they are computed."""


def list_inner_blocks(denoiser: Any) -> list[torch.nn.Module]:
    """List all blocks of a UNet but the outermost; other denoisers have none."""
    if not all(getattr(denoiser, name, None) for name in ("down_blocks", "mid_block", "up_blocks")):
        return []
    return [*denoiser.down_blocks[1:], denoiser.mid_block, *denoiser.up_blocks[:-1]]


def list_stacks(denoiser: Any) -> list[list[torch.nn.Module]]:
    """List the blocks of a transformer, by shape; other denoisers have none."""
    found = [getattr(denoiser, name, None) for name in STACKS]
    return [[*blocks] for blocks in found if isinstance(blocks, torch.nn.ModuleList) and len(blocks) > 1]


def _take_prompted(value: Any) -> Any:
    """Return only the row with the prompt of every tensor that has both."""
    if isinstance(value, torch.Tensor):
        return value[1:] if value.ndim and len(value) == GUIDED_ROWS else value
    if isinstance(value, tuple):
        return tuple(map(_take_prompted, value))
    if isinstance(value, dict):
        return {name: _take_prompted(each) for name, each in value.items()}
    return value


def _subtract(answer: Any, begun: Any) -> Any:
    """Subtract tensor by tensor; None where the last block leaves the text out."""
    if isinstance(answer, tuple):
        return tuple(map(_subtract, answer, begun))
    return None if answer is None else answer - begun


def _add(answer: Any, added: Any) -> Any:
    if isinstance(answer, tuple):
        return tuple(map(_add, answer, added))
    return answer if added is None else answer + added


def _measure_change(answer: Any, begun: Any) -> float:
    """Return how far an answer is from another, as a share of it: of several tensors, the farthest."""
    if isinstance(answer, tuple):
        return max(map(_measure_change, answer, begun))
    return float((answer - begun).abs().mean(dtype=torch.float32) / begun.abs().mean(dtype=torch.float32))
