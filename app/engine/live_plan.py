"""The plan of a run for the chunk size that is asked for now: decided anew when the slider moves, also in the middle of a step."""

from __future__ import annotations

from collections.abc import Callable

from app.compat.plan import Chunk, Plan
from app.engine.control import Dial
from app.sentence import Trouble


class LivePlan:
    """Read by the attention of any thread; deciding is pure, so two threads that decide at once decide the same."""

    def __init__(self, decided: Callable[[Chunk], Plan], dial: Dial) -> None:
        self._decided, self._dial = decided, dial
        self._latest = decided(dial.chunk)
        self._plans = {dial.chunk: self._latest}
        self.refused: Trouble | None = None
        """Why the size that is asked for now cannot run here; what ran before goes on."""

    @property
    def now(self) -> Plan:
        asked = self._dial.chunk
        if asked not in self._plans:
            try:
                self._plans[asked] = self._decided(asked)
            except Trouble as trouble:
                self.refused = trouble
                return self._latest
        self.refused = None
        self._latest = self._plans[asked]
        return self._latest

    def chunk(self) -> Chunk:
        return self.now.chunk_q
