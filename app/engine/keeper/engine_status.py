"""What the engine does, as the strip and the live charts show it: changed by the loop, read by any thread."""

from __future__ import annotations

import dataclasses
import threading

from app.compat.machine.hardware import with_room
from app.engine.jobs.messages import Beat
from app.engine.keeper.charts import Charts
from app.engine.keeper.state import EngineState


class EngineStatus:
    def __init__(self) -> None:
        self.state = EngineState()
        self.charts = Charts()
        self._lock = threading.Lock()

    def set(self, **changes: object) -> None:
        with self._lock:
            self.state = dataclasses.replace(self.state, **changes)  # type: ignore[arg-type]

    def note_beat(self, beat: Beat) -> None:
        """Take over what the engine told of itself."""
        hardware = self.state.hardware
        if hardware is not None:
            hardware = with_room(hardware, beat.reading, beat.held_bytes)
        self.set(reading=beat.reading, model=beat.model, hardware=hardware, checked=beat.checked)
