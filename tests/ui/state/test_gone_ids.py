"""Every question about a job, task or creation that is gone, or whose row is damaged, has an answer: the page goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from app.engine.jobs.creation import RunSummary
from app.engine.jobs.events import END, Finished, Stopped
from app.engine.jobs.owners import new_guest
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.jobs.tasks import SelfTest
from app.engine.keeper.progress_board import REMEMBERED
from app.ui import routes
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, OWNER
from app.ui.tabs import shelf
from tests.support.guests import desk_at


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path) as desk:
        yield desk


@pytest.fixture
def page(desk: Desk) -> TestClient:
    app = Starlette(routes=[*routes.routes(desk), *shelf.routes(desk)])

    async def as_owner(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, KEY: OWNER}, receive, send)

    handled: ASGIApp = as_owner
    return TestClient(handled, raise_server_exceptions=False)


def test_a_task_is_still_shown_after_many_jobs(desk: Desk, page: TestClient) -> None:
    """It ended first and only the board knew it: the page asked the journal for it, and answered 500 until a restart."""
    desk.measuring.start(SelfTest())
    desk.keeper.board.post(desk.measuring.job, Finished((), 1.0, 1.0, "", 0))
    for number in range(REMEMBERED + 2):
        desk.keeper.board.open(f"job {number}")
        desk.keeper.board.post(f"job {number}", Stopped((), 0.0))
    answer = page.get("/hearth/live")
    assert answer.status_code == 200 and answer.json()["measuring"]["end"]["kind"] == "finished"
    assert desk.keeper.board.find("job 0") is None


def test_a_task_that_nobody_remembers_has_ended(desk: Desk, page: TestClient) -> None:
    desk.measuring.job, desk.measuring.kind = "errand-1", "SelfTest"
    assert page.get("/hearth/live").json()["measuring"]["end"]["kind"] == "failed"
    assert not desk.measuring.is_running()
    assert isinstance(list(desk.keeper.follow("errand-1"))[-1], END)


@pytest.mark.parametrize(
    "damage", ["DELETE FROM jobs", "UPDATE jobs SET request='{\"kind\"'", "UPDATE jobs SET created_s='x', state='running'"]
)
def test_jobs_whose_rows_are_gone_or_damaged(desk: Desk, page: TestClient, damage: str) -> None:
    ids = [desk.jobs.begin(each, OWNER) for each in (SpeechRequest("[S1] One."), PictureRequest("a tree"))]
    desk.jobs.begin_grid(PictureRequest("a tree"), ("steps", [2]), ("guidance", [1.0]), OWNER)
    for job in desk.keeper.journal.list_live():
        desk.keeper.board.forget(job.id)
    desk.keeper.database.write(damage)
    asked = [("GET", "/hearth/live"), ("GET", "/hearth/sheet"), ("POST", "/hearth/smaller/speech"), ("POST", "/hearth/smaller/picture")]
    asked += [("POST", f"/hearth/queue/{id_}/{act}") for id_ in [*ids, "no"] for act in ("up", "go-on", "let-go", "remove")]
    asked += [("GET", f"/hearth/made/{id_}/part-000.wav") for id_ in ids]
    assert [(path, found) for method, path in asked if (found := page.request(method, path).status_code) >= 500] == []
    for id_ in ids:
        desk.keeper.resume(id_)
        desk.keeper.stop(id_)
        desk.keeper.discard(id_)
        assert desk.keeper.get_progress(id_).end is not None and list(desk.keeper.follow(id_))
    assert page.get("/hearth/live").status_code == 200
    good = desk.jobs.begin(SpeechRequest("[S1] Two."), OWNER)
    assert page.get("/hearth/live").json()["speech"]["job"] == good


@pytest.mark.parametrize(
    "damage", ["request='{'", "plan='[1'", "seconds=9e999", "rate='fast'", "path=x'00ff'", "created_s='soon'", "text=x'ff'"]
)
def test_one_damaged_row_leaves_the_others_on_the_shelf(desk: Desk, page: TestClient, tmp_path: Path, damage: str) -> None:
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for file in files:
        file.write_bytes(file.name.encode())
    job = desk.keeper.journal.queue(PictureRequest("hills"), desk.machine.read_choice(OWNER))
    first, second, third = desk.keeper.shelf.keep(job, files, RunSummary("starter-painter"))
    desk.keeper.database.write(f"UPDATE creations SET {damage} WHERE id=?", second.id)
    answer = page.get("/hearth/shelf")
    assert answer.status_code == 200
    assert {first.id, third.id} <= {each["id"] for each in answer.json()["creations"]}
    assert page.get(f"/hearth/creation/{second.id}").status_code < 500
    assert page.post(f"/hearth/shelf/{second.id}/favourite").status_code < 500
    desk.keeper.shelf.list_of_job(job.id)


def test_what_a_guest_made_is_marked_on_the_shelf(desk: Desk, page: TestClient, tmp_path: Path) -> None:
    makers = {}
    for owner in (OWNER.name, new_guest("ten")):
        (file := tmp_path / f"{owner}.png").write_bytes(owner.encode())
        job = desk.keeper.journal.queue(PictureRequest("hills"), desk.machine.read_choice(OWNER), owner)
        (made,) = desk.keeper.shelf.keep(job, [file], RunSummary("starter-painter"))
        makers[made.id] = "" if owner == OWNER.name else "by a guest"
    assert {each["id"]: each["maker"] for each in page.get("/hearth/shelf").json()["creations"] if each["id"] in makers} == makers
