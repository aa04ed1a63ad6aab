"""A full card on Windows: torch is held to what is free, and a crawl is told once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from app.base.paths import home
from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Verdict
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Note, Step
from app.engine.jobs.request import PictureRequest
from app.engine.models.catalog import BY_ID
from app.engine.pictures.run.painter import Painter
from app.engine.session import card_spill
from app.engine.session.session import Session
from tests.support.tiny_pictures import save

GIB = 1 << 30
WINDOWS = replace(MACHINES["gtx-1060"], pretended="")
WSL = replace(WINDOWS, system="linux", system_version="5.15.153.1-microsoft-standard-WSL2")
LINUX = replace(MACHINES["t4"], pretended="")
MAC = replace(MACHINES["m2-16gb"], pretended="")


def card(free_bytes: int, held_bytes: int = GIB) -> Reading:
    return Reading(device_bytes=held_bytes, limit_bytes=held_bytes + free_bytes, free_bytes=free_bytes)


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    set_to: list[float] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", set_to.append)
    return set_to


@pytest.mark.parametrize(
    ("hardware", "spills"), [(WINDOWS, True), (WSL, True), (LINUX, False), (MAC, False), (MACHINES["gtx-1060"], False)]
)
def test_only_windows_spills(hardware: Hardware, spills: bool, shares: list[float]) -> None:
    card_spill.bound_share(hardware, card(3 * GIB))
    assert shares == ([pytest.approx((4 * GIB - card_spill.BESIDE_BYTES) / WINDOWS.memory_bytes)] if spills else [])


def test_every_job_may_take_what_is_free_then(shares: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(home(tmp_path / "home").create())
    session.hardware = WINDOWS
    for free_bytes in (4 * GIB, GIB, 9 * GIB, 0):
        monkeypatch.setattr("app.engine.session.session.read", lambda free_bytes=free_bytes: card(free_bytes, 0))
        session._read_hardware()
    beside = card_spill.BESIDE_BYTES
    assert shares == [pytest.approx((4 * GIB - beside) / (6 * GIB)), pytest.approx((GIB - beside) / (6 * GIB)), 1.0, 0.0]


def step(rate: float, memory: Reading) -> Step:
    return Step(1, 9, rate, "steps", None, memory)


@pytest.mark.parametrize(("hardware", "told"), [(WINDOWS, 1), (LINUX, 0), (MAC, 0)])
def test_a_crawl_on_a_full_card_is_told_once(hardware: Hardware, told: int) -> None:
    watch = card_spill.CrawlWatch(hardware)
    rates = [(2.0, GIB), (1.0, 0), (0.1, GIB), (0.4, 100 << 20), (0.1, 0)]
    heard = [watch.notice(step(rate, card(free))) for rate, free in rates]
    sentences = [sentence for sentence in heard if sentence is not None]
    assert len(sentences) == told and heard[:3] == [None] * 3
    if told:
        assert dict(sentences[0].values)["times"] == 5


def paint(session: Session, folder: Path, model: Path) -> list[str]:
    request = PictureRequest("a boat", model=str(model), width=64, height=64, steps=3, preview_every=0)
    events = list(session.run(request, Choice(), Control(), folder, lambda *_: None))
    return [event.sentence.key if isinstance(event, Note) else type(event).__name__ for event in events]


@pytest.mark.slow
def test_a_crawl_from_the_first_step_on_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the pace of an earlier run of this model here, also after a new start."""
    run, rate = Painter.run, 2.0

    def paced(self: Painter, *args: Any) -> Iterator[Event]:
        for event in run(self, *args):
            yield replace(event, rate=rate, memory=card(0)) if isinstance(event, Step) else event

    monkeypatch.setattr(Painter, "run", paced)
    monkeypatch.setattr(card_spill, "can_spill", lambda _: True)
    model, said = save("sd15", tmp_path / "sd15"), []
    for index, rate in enumerate((2.0, 1.9, 0.4)):  # noqa: B007 - read by the painter
        session = Session(home(tmp_path / "home").create())
        said.append(paint(session, tmp_path / f"job-{index}", model))
        session.free()
    plain = ["Loading", "Step", "Step", "Step", "PartDone", "Finished"]
    assert said == [plain, plain, ["Loading", "Step", "session.crawl", *plain[2:]]]
    (stored,) = session.home.verdicts.glob("*.json")
    assert '"pace:sd15/' in stored.read_text("utf-8") and str(tmp_path) not in stored.read_text("utf-8")


@pytest.mark.parametrize(("hardware", "usual", "times"), [(WINDOWS, 0.5, 5), (WINDOWS, 1.0, None), (LINUX, 0.5, None)])
def test_steps_are_compared_with_the_usual_pace_for_as_much_work(hardware: Hardware, usual: float, times: int | None) -> None:
    """Half a second for a unit of work, and four units in a step."""
    pace = card_spill.name_pace(BY_ID["sd15"], decide(MACHINES["t4"]))
    watch = card_spill.CrawlWatch(hardware, Verdict(pace, True, elapsed_s=usual / 4), work=4.0)
    heard = [watch.notice(step(rate, card(free))) for rate, free in ((0.4, 0), (0.4, GIB), (0.4, 0))]
    assert heard[:2] == [None, None], "the first step reads the prompt; then the card was not full"
    assert (heard[2] is None) is (times is None) and watch.learn(pace) is None
    if heard[2] is not None:
        assert dict(heard[2].values)["times"] == times


def test_only_a_faster_pace_is_learnt() -> None:
    pace = card_spill.name_pace(BY_ID["sd15"], decide(MACHINES["t4"]))
    usual: Verdict | None = None
    learnt = []
    for rate in (2.0, 2.1, 1.0, 4.0):
        watch = card_spill.CrawlWatch(WINDOWS, usual, work=2.0)
        for _ in range(2):
            watch.notice(step(rate, card(GIB)))
        found = watch.learn(pace)
        usual = found or usual
        learnt.append(found and found.elapsed_s)
    assert learnt == [0.25, None, None, 0.125]


def test_the_person_hears_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Painter.run

    def crawl(self: Painter, *args: Any) -> Iterator[Event]:
        for event in run(self, *args):
            yield replace(event, rate=1.0 if event.done == 1 else 0.1, memory=card(0)) if isinstance(event, Step) else event

    monkeypatch.setattr(Painter, "run", crawl)
    monkeypatch.setattr(card_spill, "can_spill", lambda _: True)
    request = PictureRequest("a boat", model=str(save("sd15", tmp_path / "sd15")), width=64, height=64, steps=3, preview_every=0)
    session = Session(home(tmp_path / "home").create())
    events = list(session.run(request, Choice(), Control(), tmp_path / "job", lambda *_: None))
    session.free()
    keys = [event.sentence.key if isinstance(event, Note) else type(event).__name__ for event in events]
    assert keys == ["Loading", "Step", "session.crawl", "Step", "Step", "PartDone", "Finished"]
