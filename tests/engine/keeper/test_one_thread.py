"""Run the engine's worker on a pretended Mac, whose device fails where two threads use it: jobs, beats, idle time, unloading."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.base.paths import home
from app.compat.machine.pretended import MACHINES
from app.compat.planning.types import Choice
from app.engine.jobs.events import END, Event, Finished, Preview, Step, Stopped
from app.engine.jobs.messages import Beat, Free, JobEvent, Quit, Run
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest
from app.engine.keeper import worker
from app.engine.session.session import Session
from tests.support import tiny_pictures
from tests.support.separate_memory import SeparateMemory, separate_memory
from tests.support.tiny_voices import STARTER, save_voice

LONGEST_BEATS = 4000
"""So many may pass until the device's memory is told to be free again."""
MAC = replace(MACHINES["m3-max-64gb"], pretended="")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {"voice": str(save_voice(folder / "voice", STARTER)), "sd15": str(tiny_pictures.save("sd15", folder / "sd15"))}


@pytest.fixture
def mac() -> Iterator[SeparateMemory]:
    with separate_memory("mps") as memory:
        yield memory


class Keeper:
    """The other end of the worker's pipe: moves the chunk size, presses Stop, and quits once a beat tells that all is unloaded."""

    def __init__(self, orders: list[Run]) -> None:
        self.here = worker.Worker(self)  # type: ignore[arg-type]
        self.orders, self.events, self.beats = orders, {each.job: list[Event]() for each in orders}, list[Beat]()
        self.idle, self.closed = 0, False

    def send(self, report: Any) -> None:
        if self.closed:
            raise EOFError
        if isinstance(report, JobEvent):
            self.events[report.job].append(report.event)
            if isinstance(report.event, Step):
                self.here.dial.chunk = 2 + len(report.job)  # another one for each job
            if report.job == "stopped early" and isinstance(report.event, Preview):
                self.here._control.stop()
        elif isinstance(report, Beat):
            self.beats.append(report)
            done = all(events and isinstance(events[-1], END) for events in self.events.values())
            self.idle += done
            if self.idle == 3:
                self.here._orders.put(Free())
            held = [each.reading.device_bytes or 0 for each in self.beats]
            if self.idle >= 9 and (held[-1] < max(held) / 2 or self.idle > LONGEST_BEATS):  # unloading takes as long as it takes
                self.here._orders.put(Quit())

    def beat(self) -> None:
        with pytest.raises(EOFError):
            self.here.beat()

    def work(self, session: Session) -> None:
        """Run the worker's main thread here and its beat in another, as in the engine's process."""
        beating = threading.Thread(target=self.beat, name="beat")
        beating.start()
        try:
            for order in self.orders:
                self.here._orders.put(order)
            self.here.work(session)
        finally:
            self.closed = True
            beating.join()
            session.free()


def test_the_engine_uses_a_mac_in_one_thread(
    mac: SeparateMemory, models: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Speech, a picture with previews and parts from disk, another one stopped; between and after them idle time."""
    monkeypatch.setattr(worker, "BEAT_S", 0.005)
    speech = SpeechRequest("[S1] A short line.", model=models["voice"], seed=3, max_frames=24)
    picture = PictureRequest("a boat", model=models["sd15"], width=64, height=64, steps=3, seed=3, preview_every=1)
    asked: dict[str, tuple[Request, Choice]] = {
        "said": (speech, Choice()),
        "painted": (picture, Choice(offload="model")),
        "stopped early": (picture, Choice()),
    }
    keeper = Keeper([Run(job, request, choice, str(tmp_path / job)) for job, (request, choice) in asked.items()])
    session = Session(home(tmp_path / "home").create(), "", keeper.here.dial)
    session.hardware = MAC
    keeper.work(session)
    ends = {job: type(events[-1]) for job, events in keeper.events.items()}
    assert ends == {"said": Finished, "painted": Finished, "stopped early": Stopped}, keeper.events
    assert not mac.bitten
    held = [beat.reading.device_bytes or 0 for beat in keeper.beats]
    assert max(held) > 0 and held[-1] < max(held) / 2, "the beat tells what the device's owner reads"
