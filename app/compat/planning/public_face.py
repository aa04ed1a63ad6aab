"""The public face's Choice and decide(): the choice may name a chunk size too, as it did before decide() was given that beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.compat.planning import decide as planning
from app.compat.planning import types
from app.compat.planning.types import AUTO, Chunk, Need, Plan

if TYPE_CHECKING:
    from app.compat.machine.hardware import Hardware
    from app.compat.machine.verdicts import Verdicts


@dataclass(frozen=True, slots=True)
class Choice(types.Choice):
    chunk: Chunk = AUTO
    """It counts where decide() is given none."""


def decide(
    hardware: Hardware,
    need: Need = Need(),  # noqa: B008 - frozen
    choice: types.Choice = Choice(),
    verdicts: Verdicts = planning.NO_VERDICTS,
    *,
    chunk: Chunk = AUTO,
) -> Plan:
    """Return the best plan that is correct on this machine. Raise Trouble if what was chosen cannot work, or nothing can."""
    named = choice.chunk if isinstance(choice, Choice) else AUTO
    return planning.decide(hardware, need, choice, verdicts, chunk=named if chunk == AUTO else chunk)
