"""Enlarge as the page asks for it: beside its origin on the shelf, stopped, refused, and told where it fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.base import notices
from app.base.sentence import say
from app.compat.machine.meter import Reading
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import Failed, Finished, Step, Stopped
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.models.swin2sr import ROWS
from app.ui import routes as page_routes
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, NOBODY, OWNER, Person
from app.ui.tabs import shelf
from tests.support.both_servers import keep_creation
from tests.support.guests import desk_at
from tests.support.waiting import until


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "home") as desk:
        yield desk


@pytest.fixture
def boat(desk: Desk) -> Creation:
    return keep_creation(desk, PictureRequest("a boat", seed=7, width=128, height=128), "b.png")


def page_of(desk: Desk, person: Person) -> TestClient:
    routes = Starlette(routes=[*page_routes.routes(desk), *shelf.routes(desk)])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = person
        await routes(scope, receive, send)

    return TestClient(app)


def finish(desk: Desk, task: str) -> None:
    """What the engine does."""
    folder = desk.keeper.folder(task)
    folder.mkdir(parents=True)
    Image.new("RGB", (16, 16)).save(folder / "enlarged.png")
    desk.keeper.board.post(task, Finished((str(folder / "enlarged.png"),), 1.0, 0.0, "tiles", 0))


def test_the_larger_one_lies_beside_its_origin(desk: Desk, boat: Creation) -> None:
    page = page_of(desk, OWNER)
    names = [each["name"] for each in page.get("/hearth/enlarge").json()["enlargers"]]
    assert names == ["starter", "", *(row.id for row in ROWS)]
    assert page.post("/hearth/enlarge/begin", json={"id": boat.id, "times": 2, "enlarger": "starter"}).json() == {}
    task = desk.enlarging.tasks[boat.id]
    page.post("/hearth/enlarge/begin", json={"id": boat.id, "times": 4})  # pressed twice
    assert desk.enlarging.tasks == {boat.id: task}
    desk.keeper.board.post(task, Step(1, 4, 1.0, "tiles", 3.0, Reading()))
    assert page.get("/hearth/live").json()["enlarging"] == [{"id": boat.id, "share": 0.25}]
    finish(desk, task)
    until(lambda: not desk.enlarging.tasks)
    origin, larger = desk.keeper.shelf.list_of_job(boat.job)
    assert origin == boat and larger.request == boat.request and larger.path.parent == boat.path.parent and not larger.condition
    assert (larger.owner, larger.kind, larger.text, larger.rate) == (boat.owner, "picture", "a boat", 0)
    assert page.get("/hearth/live").json()["enlarging"] == [] and not desk.keeper.folder(task).exists()


def test_what_stops_or_fails_leaves_nothing_and_is_told(desk: Desk, boat: Creation) -> None:
    page = page_of(desk, OWNER)
    notices.take_all()
    for end, told in ((Stopped((), 1.0), 0), (Failed(say("x.y", "No room.")), 1)):
        page.post("/hearth/enlarge/begin", json={"id": boat.id, "times": 2})
        task = desk.enlarging.tasks[boat.id]
        if isinstance(end, Stopped):
            page.post("/hearth/enlarge/stop", json={"id": boat.id})  # it waits, and leaves the queue
        else:
            desk.keeper.board.post(task, end)
        until(lambda: not desk.enlarging.tasks)
        assert len(said := notices.take_all()) == told
    assert str(said[0]).endswith("was not enlarged. No room.") and desk.keeper.shelf.list_of_job(boat.job) == [boat]
    assert page.post("/hearth/enlarge/stop", json={"id": boat.id}).json() == {}


def test_what_cannot_be_enlarged_is_refused_at_once(desk: Desk, boat: Creation) -> None:
    page = page_of(desk, OWNER)

    def refuse(id_: int, **more: object) -> str:
        answer = page.post("/hearth/enlarge/begin", json={"id": id_, "times": 2, "enlarger": "starter", **more})
        assert answer.status_code in (400, 409) and not desk.enlarging.tasks
        return str(answer.json()["trouble"])

    spoken = keep_creation(desk, SpeechRequest("[S1] Hello."), "a.wav")
    assert "Only a picture" in refuse(spoken.id) and "not on the shelf" in refuse(999)
    assert "no enlarger" in refuse(boat.id, enlarger="none") and "times" in refuse(boat.id, times=3)
    Image.new("1", (6000, 6000)).save(boat.path)
    assert "24000 x 24000" in refuse(boat.id, times=4)
    boat.path.write_bytes(b"no picture")
    assert "damaged" in refuse(boat.id)
    assert page.post("/hearth/enlarge/burn", json={"id": boat.id}).status_code == 404
    assert page_of(desk, NOBODY).post("/hearth/enlarge/begin", json={"id": boat.id}).status_code in (403, 404)
