"""Plan a run for the chunk size asked for now; decide again when the slider moves, even in the middle of a step."""

from __future__ import annotations

from collections.abc import Callable

from app.base.trouble import Trouble
from app.compat.machine.verdicts import Verdicts
from app.compat.planning.types import Chunk, Plan
from app.engine.jobs.control import Dial
from app.engine.models.loading.release_memory import release
from app.engine.models.planned import note_refused_chunk


class LivePlan:
    """Read by attention in any thread; deciding is pure, so two threads that decide at once agree."""

    def __init__(self, decided: Callable[..., Plan], dial: Dial, verdicts: Verdicts, before: LivePlan | None = None) -> None:
        """`decided`: make_plan() but for verdicts and chunk; `before`: of the same job, before a fallback. Raise Trouble if there is
        none and the size asked for cannot run."""
        self._decided, self._dial, self._verdicts = decided, dial, verdicts
        self._plans: dict[Chunk, Plan | Trouble] = {}
        self._standing_in: dict[tuple[Chunk, int], Plan] = {}
        asked = dial.chunk  # which may change at any time
        first = self._decide_for(asked)
        self._chunk: Chunk = asked if before is None or isinstance(first, Plan) else before._chunk
        """The last size that was asked for and can run."""
        latest = self._decide_for(self._chunk)
        if isinstance(latest, Trouble):
            raise latest
        self._latest = self._computing = latest

    @property
    def refused(self) -> Trouble | None:
        """Why the size asked for now cannot run here; the previous one stays in use."""
        found = self._decide_for(self._dial.chunk)
        return found if isinstance(found, Trouble) else None

    @property
    def now(self) -> Plan:
        """Return the plan; if the size asked for cannot run, the previous plan with the reason."""
        chunk = self._dial.chunk
        found = self._decide_for(chunk)
        if isinstance(found, Plan):
            self._chunk, self._latest = chunk, found
            return found
        latest = self._latest
        key = chunk, id(latest)
        if key not in self._standing_in:
            self._standing_in.setdefault(key, note_refused_chunk(latest, chunk, found))
        return self._standing_in[key]

    def _decide_for(self, chunk: Chunk) -> Plan | Trouble:
        if chunk not in self._plans:
            try:
                self._plans[chunk] = self._decided(self._verdicts, chunk=chunk)
            except Trouble as trouble:
                self._plans[chunk] = trouble
        return self._plans[chunk]

    def plan_with(self, verdicts: Verdicts) -> Plan:
        """Plan by other verdicts, for the last size that can run."""
        return self._decided(verdicts, chunk=self._chunk)

    def read_chunk_q(self) -> Chunk:
        """Return what the plan allows the next attention call; release the memory of the size before. Called in the thread that computes, which
        owns the device."""
        plan = self.now
        if plan is not self._computing:
            self._computing = plan
            release()
        return plan.chunk_q
