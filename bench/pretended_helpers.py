"""Many helpers in one process, for measurements: all of a helper but its engine, in whose place a clock runs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from app.engine.jobs.events import Finished
from app.machines.pipe import Message, Pipe
from app.machines.tasks import event_json

if TYPE_CHECKING:
    from app.machines.cluster.helper_process import Helper


class PretendedEngine:
    """It stands where a helper's keeper is: a task takes as long as its body says, divided by this helper's speed, one after another."""

    def __init__(self, loop: asyncio.AbstractEventLoop, speed: float) -> None:
        self._loop, self._speed = loop, speed
        self._waiting: dict[str, float] = {}
        """Each task needs so many seconds; the first one is under way."""
        self._clock: asyncio.TimerHandle | None = None
        self.helper: Helper

    def tell(self, op: str, **values: Any) -> None:
        """Any thread may call."""
        if op == "online":
            facts = {"card": f"pretended, speed {self._speed:g}", "models": ["pretended"], "paused": False}
            self._loop.call_soon_threadsafe(self.helper.hear, {"op": "facts", "facts": facts})
        elif op == "ask":
            self._loop.call_soon_threadsafe(self.helper.hear, {"op": "answer", "question": values["question"], "answer": None})
        elif op == "run":
            needed_s = json.loads(values["body"])["request"]["seconds"] / self._speed
            self._loop.call_soon_threadsafe(self._take, values["id"], needed_s)
        elif op == "stop":
            self._loop.call_soon_threadsafe(self._leave, values["id"])

    def _take(self, task: str, needed_s: float) -> None:
        self._waiting[task] = needed_s
        self._begin()

    def _begin(self) -> None:
        if self._waiting and self._clock is None:
            task, needed_s = next(iter(self._waiting.items()))
            self._clock = self._loop.call_later(needed_s, self._end, task, needed_s)

    def _leave(self, task: str) -> None:
        if self._clock is not None and task == next(iter(self._waiting)):
            self._clock.cancel()
            self._clock = None
        self._waiting.pop(task, None)
        self._begin()

    def _end(self, task: str, needed_s: float) -> None:
        event = event_json.to_json(Finished((), needed_s, 0.0, "", 0))
        self.helper.hear({"op": "end", "id": task, "event": event, "files": {}})
        self._leave(task)


async def serve(connection: Any, arguments: dict[str, Any]) -> None:
    """Run all helpers until the starter says `close` or is gone."""
    from app.machines.cluster.helper_process import Helper

    loop, pipe, helpers = asyncio.get_running_loop(), Pipe(connection), list[Helper]()
    for each in arguments["helpers"]:
        engine = PretendedEngine(loop, each["speed"])
        engine.helper = Helper(engine, {"folder": each["folder"], "scratch": each["folder"], "main": arguments["main"]})
        helpers.append(engine.helper)

    def hear(message: Message) -> None:
        for helper in helpers:
            helper.hear(message)

    pipe.listen(hear)
    await asyncio.gather(*(helper.run() for helper in helpers))
