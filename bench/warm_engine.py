"""Time an engine that is ready and holds its models: the first step and the first sound after a request. No torch in this process."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from app.base.paths import home
from app.base.trouble import Trouble
from app.engine.jobs.events import END, Event, Failed, Sound, Step
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest
from app.engine.keeper.keeper import Keeper

REQUESTS: Final[dict[str, Request]] = {
    "speak": SpeechRequest("[S1] hello. good morning.", "starter-voice", seed=1),
    "paint": PictureRequest("a red circle on a blue background", "starter-painter", seed=1),
}
STAGES: Final[dict[type[Event], str]] = {Step: "first step", Sound: "first sound"}


def time_warm_engine(root: Path, rounds: int, times: dict[tuple[str, str], list[float]], names: Collection[str] = tuple(REQUESTS)) -> None:
    """Ask by turns for speech and for a picture; the first of each loads its model and does not count."""
    keeper = Keeper(home(root))
    try:
        for number in range(rounds + 1):
            for name, request in ((name, REQUESTS[name]) for name in names):
                found = time_request(keeper, request)
                for stage, seconds in found.items() if number else ():
                    times.setdefault((f"ready engine, {name}", stage), []).append(seconds)
    finally:
        keeper.close()


def time_request(keeper: Keeper, request: Request) -> dict[str, float]:
    """Return the seconds from the request to each stage, each at its first time."""
    began_s, found = time.perf_counter(), dict[str, float]()
    for event in keeper.follow(keeper.submit(request).id):
        stage = STAGES.get(type(event), "done" if isinstance(event, END) else "")
        if stage:
            found.setdefault(stage, time.perf_counter() - began_s)
        if isinstance(event, Failed):
            raise Trouble(event.sentence, *event.objections)
    return found
