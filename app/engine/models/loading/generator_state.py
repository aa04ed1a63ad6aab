"""Whether what was stored of a generator of random numbers is the state of one: another machine may have sent it."""

from __future__ import annotations

import torch


def is_state(state: torch.Tensor, generator: torch.Generator) -> bool:
    """Tell whether this generator could have such a state."""
    if (state.dtype, state.shape) != (torch.uint8, generator.get_state().shape):
        return False
    try:
        torch.Generator(generator.device).set_state(state)
    except RuntimeError:  # it has drawn more numbers than there are
        return False
    return True
