"""How many pictures of a batch one call of the pipeline paints, and what that saves. Pure, and imports no torch."""

from __future__ import annotations

from typing import Final

from app.compat.planning.memory_formulas import SCRATCH_BYTES, TIGHT
from app.compat.planning.types import AUTO, Chunk
from app.engine.jobs.request import PictureRequest
from app.engine.models.model import SMALL_PARAMETERS, Model

AT_ONCE: Final = 4
"""Eight were no quicker than four."""
CARD_PIXELS: Final = 512 * 512
"""Of one picture on a card or Metal: up to this size starting a kernel takes as long as much of its work."""
PROCESSOR_PIXELS: Final = 256 * 256
"""Of a small model's picture on the processor, where four at once take 0.55 to 0.74 of the time (docs/speed-pictures.md)."""
ALL_SHARE: Final = 0.72
"""Time of as many at once on the processor, decoded, as a share of one by one (docs/speed-pictures.md)."""


def count_at_once(request: PictureRequest, model: Model, device: str, chunk_q: Chunk, free_bytes: float) -> int:
    """Return how many pictures one call may paint. A chunk set by hand bounds the memory of one picture; what `quicker` remembers
    and a start picture are of one."""
    if request.batch == 1 or request.image or request.quicker != "off" or chunk_q != AUTO:
        return 1
    small = sum(part.parameters for part in model.parts) < SMALL_PARAMETERS
    most = CARD_PIXELS if device != "cpu" else PROCESSOR_PIXELS if small else 0
    if (request.width or 0) * (request.height or 0) > most:
        return 1
    return int(max(1, min(AT_ONCE, TIGHT * free_bytes // SCRATCH_BYTES["picture"])))


def estimate_share(request: PictureRequest, model: Model, device: str, chunk_q: Chunk, free_bytes: float) -> float:
    """Estimate what painting several at once leaves of the time of one by one. 1 on a card, where that was not measured."""
    if device != "cpu":
        return 1.0
    most = count_at_once(request, model, device, chunk_q, free_bytes)
    calls, rest = divmod(request.batch, most)
    return (calls * _weigh_call(most) + _weigh_call(rest)) / request.batch


def _weigh_call(count: int) -> float:
    """Weigh a call by the time of one picture: what each adds, and what only the first costs."""
    first_only = (AT_ONCE - ALL_SHARE * AT_ONCE) / (AT_ONCE - 1)
    return count - first_only * (count - 1) if count else 0.0
