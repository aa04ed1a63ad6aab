"""A job's model is looked for once, when it is submitted, and its script is parsed once in each process: all that come later are given both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.base.languages import ENGLISH
from app.base.paths import home
from app.compat.planning.types import Choice
from app.engine.jobs.control import Control
from app.engine.jobs.events import END, Finished, PartDone
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest
from app.engine.keeper.keeper import Keeper
from app.engine.models import catalog
from app.engine.session.session import Session
from app.engine.speech.text.script import parse_script
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.state.settings import Settings
from app.ui.tabs.speak_view import job_view
from tests.support import light_engine
from tests.support.tiny_voices import STARTER, save_voice
from tests.support.waiting import Idle

SCRIPT = "[S1] One is warm. (pause 0.2s) Two is cold. (pause 0.2s) Three is dry."


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """Count the calls of one of the catalog's functions."""
    calls, function = list[Any](), getattr(catalog, name)

    def counted(*given: Any) -> Any:
        calls.append(given[0])
        return function(*given)

    monkeypatch.setattr(catalog, name, counted)
    return calls


def test_in_the_keepers_process_while_a_page_looks_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    light_engine.replace_engines(monkeypatch)
    place = home(tmp_path / "home")
    desk = Desk(Keeper(place), Settings(place.create().settings))
    parse_script.cache_clear()
    best = count_calls(monkeypatch, "choose_best")
    try:
        job = desk.jobs.begin(SpeechRequest(SCRIPT), OWNER)
        assert desk.keeper.journal.get(job).request == SpeechRequest(SCRIPT, model="starter-voice")
        for event in desk.keeper.follow(job):
            if isinstance(event, PartDone):
                job_view(desk, job, ENGLISH)
        assert isinstance(event, END) and isinstance(event, Finished), event
        job_view(desk, job, ENGLISH)
        assert best == ["speech"] and parse_script.cache_info().misses == 1
    finally:
        desk.keeper.close()


def test_in_the_engines_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = str(save_voice(tmp_path / "voice", STARTER))
    session = Session(home(tmp_path / "home").create())
    parse_script.cache_clear()
    best, found = (count_calls(monkeypatch, name) for name in ("choose_best", "find"))
    request = SpeechRequest(SCRIPT, model=voice, seed=3, max_frames=40)
    events = [*session.run(request, Choice(), Control(), tmp_path / "job", lambda model, plan: None)]
    session.free()
    assert isinstance(events[-1], Finished), events[-1]
    assert (best, found) == ([], [voice]) and parse_script.cache_info().misses == 1


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    idle = Idle(home(tmp_path / "home"))
    yield idle
    idle.close()


@pytest.mark.parametrize(("open_", "named"), [(SpeechRequest(SCRIPT), "starter-voice"), (PictureRequest("a ball"), "starter-painter")])
def test_a_job_of_an_earlier_version_that_names_no_model_gets_one_when_it_is_resumed(keeper: Keeper, open_: Request, named: str) -> None:
    job = keeper.journal.queue(open_, Choice()).id
    keeper.journal.end(job, "failed")
    keeper.resume(job)
    assert keeper.journal.get(job).request == replace(open_, model=named) and keeper.journal.get(job).state == "queued"


def test_a_command_without_a_model_finds_what_it_left(keeper: Keeper) -> None:
    """Whether the version that began it stored the model or not."""
    submitted = keeper.submit(SpeechRequest(SCRIPT, seed=1)).id
    earlier = keeper.journal.queue(SpeechRequest(SCRIPT, seed=2), Choice()).id
    for job in (submitted, earlier):
        light_engine.speak(keeper.folder(job), 0, "[S1] One is warm.")
        keeper.journal.end(job, "failed")
    found = [keeper.find_unfinished(SpeechRequest(SCRIPT, seed=seed), Choice()) for seed in (1, 2, 3)]
    assert [each and each.id for each in found] == [submitted, earlier, None]
