"""Test what the page asks of models that see: offered before it is asked, refused while something is made, sent as a mask, for the owner alone."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.base.sentence import say
from app.engine.jobs.events import Failed, Finished
from app.engine.jobs.tasks import Describe, Pick
from app.engine.models.picture_readers import DESCRIBER, PICKER
from app.ui import routes as page_routes
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, NOBODY, OWNER, Person
from tests.support.guests import desk_at
from tests.support.tiny_ears import place_for
from tests.support.tiny_readers import save_florence, save_sam


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "home") as desk:
        yield desk


def page_of(desk: Desk, person: Person = OWNER) -> TestClient:
    routes = Starlette(routes=page_routes.routes(desk))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = person
        await routes(scope, receive, send)

    return TestClient(app)


def encode(width: int = 64, height: int = 40, kind: str = "JPEG") -> str:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(file, kind)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"


def answer(desk: Desk, monkeypatch: pytest.MonkeyPatch, end: Failed | Image.Image | str) -> list[Pick | Describe]:
    """Answer each task at once, as the engine would; return what is asked."""
    asked = list[Pick | Describe]()
    start = desk.keeper.start_task

    def begin(task: Pick | Describe) -> str:
        asked.append(task)
        id_ = start(task)
        made = desk.keeper.folder(id_) / "made"
        made.parent.mkdir(parents=True)
        if isinstance(end, Image.Image):
            end.save(made, "PNG")
        elif isinstance(end, str):
            made.write_text(end, "utf-8")
        desk.keeper.board.post(id_, end if isinstance(end, Failed) else Finished((str(made),), 1.0, 0.0, "", 0))
        return id_

    monkeypatch.setattr(desk.keeper, "start_task", begin)
    return asked


def test_it_is_offered_before_it_is_asked(desk: Desk) -> None:
    came = page_of(desk).post("/hearth/pick", json={"picture": encode(), "x": 0.5, "y": 0.5})
    assert came.status_code == 409 and came.json()["cure"] == "get:slimsam" and "SlimSAM" in came.json()["trouble"]
    assert page_of(desk, NOBODY).post("/hearth/pick", json={"picture": encode(), "x": 0.5, "y": 0.5}).status_code == 404


def test_the_mask_is_opaque_where_the_thing_is(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    save_sam(place_for(desk.keeper.home, PICKER.id))
    found = Image.new("L", (64, 40))
    found.paste(255, (10, 10, 30, 30))
    asked, page = answer(desk, monkeypatch, found), page_of(desk)
    for x in (0.25, 0.5):
        came = page.post("/hearth/pick", json={"picture": encode(), "x": x, "y": 0.75})
        with Image.open(io.BytesIO(came.content)) as mask:
            assert list(mask.convert("RGBA").getchannel("A").get_flattened_data()) == list(found.get_flattened_data())
    points = [(each.x, each.y) for each in asked if isinstance(each, Pick)]
    assert points == [(0.25, 0.75), (0.5, 0.75)] and len({each.picture for each in asked}) == 1
    with Image.open(asked[0].picture) as kept:
        assert kept.format == "PNG" and kept.size == (64, 40)
    assert page.post("/hearth/pick", json={"picture": encode(48), "x": 0.5, "y": 0.5}).status_code == 200
    assert asked[2].picture != asked[0].picture
    assert not any(each.name.startswith("errand-") for each in desk.keeper.folder("x").parent.iterdir()), "no task leaves its folder"


def test_what_is_not_found_or_fails_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    save_sam(place_for(desk.keeper.home, PICKER.id))
    page, asked = page_of(desk), {"x": 0.5, "y": 0.5}
    for end, told in ((Image.new("L", (64, 40)), "Nothing was found"), (Failed(say("x.y", "No room.")), "No room.")):
        with monkeypatch.context() as patch:
            answer(desk, patch, end)
            came = page.post("/hearth/pick", json={"picture": encode(), **asked})
        assert came.status_code == 409 and told in came.json()["trouble"]
    for sent in ("data:image/png;base64,AAAA", "§", encode(1025, 8)):
        assert "cannot be read" in page.post("/hearth/pick", json={"picture": sent, **asked}).json()["trouble"]
    assert page.post("/hearth/pick", json={"picture": encode(), "x": 1.5, "y": 0.5}).status_code == 400


def test_a_job_that_runs_is_not_made_to_share_its_memory(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    save_sam(place_for(desk.keeper.home, PICKER.id))
    asked = answer(desk, monkeypatch, Image.new("L", (64, 40), 255))
    desk.keeper.status.set(job="7")
    came = page_of(desk).post("/hearth/pick", json={"picture": encode(), "x": 0.5, "y": 0.5})
    assert came.status_code == 409 and "at work" in came.json()["trouble"] and not asked


def test_words_are_sent_or_offered(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    page, sent = page_of(desk), {"picture": encode()}
    came = page.post("/hearth/describe", json=sent)
    assert came.status_code == 409 and came.json()["cure"] == "get:florence-2-base" and "Florence-2 base" in came.json()["trouble"]
    assert page_of(desk, NOBODY).post("/hearth/describe", json=sent).status_code == 404
    save_florence(place_for(desk.keeper.home, DESCRIBER.id))
    with monkeypatch.context() as patch:
        asked = answer(desk, patch, "A boat – red.")
        assert page.post("/hearth/describe", json=sent).json() == {"words": "A boat – red."}
    assert [type(each) for each in asked] == [Describe] and asked[0].model == DESCRIBER.id
    answer(desk, monkeypatch, "")
    assert "could not describe" in page.post("/hearth/describe", json=sent).json()["trouble"]
