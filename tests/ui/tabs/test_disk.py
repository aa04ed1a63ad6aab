"""The disk on the Machine tab, through its routes: looked at, moved, brought back, deleted; for the owner alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.base.other_disk import find_target
from app.ui.state.person import KEY, OWNER, Person
from app.ui.tabs import disk
from tests.support.guests import desk_at
from tests.support.waiting import until


def client_of(desk: Any, person: Person) -> TestClient:
    routes = Starlette(routes=disk.routes(desk))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = person
        await routes(scope, receive, send)

    return TestClient(app)


def test_the_shelf_goes_to_another_disk_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_at(tmp_path / "home") as desk:
        shelf, page, other = desk.keeper.home.creations, client_of(desk, OWNER), tmp_path / "other disk"
        (shelf / "a.png").write_bytes(b"a")
        (desk.keeper.home.loras / "b.safetensors").parent.mkdir()
        (desk.keeper.home.loras / "b.safetensors").write_bytes(b"b")
        other.mkdir()

        def act(what: str, **given: str) -> dict[str, Any]:
            said: dict[str, Any] = page.post(f"/hearth/disk/{what}", json=given).json()
            return said

        def rest() -> bool:
            view = page.get("/hearth/disk").json()
            return view["moving"] is None and not (view["looking"] or view["comparing"])

        look = desk.disk.look

        def ask_between() -> None:
            rested.append(rest())
            look()

        act("look")
        until(rest)
        assert "There is no folder" in act("move", name="creations", place=str(tmp_path / "nowhere"))["trouble"]
        rested = list[bool]()
        monkeypatch.setattr(desk.disk, "look", ask_between)
        act("move", name="creations", place=f' "{other}" ')
        until(rest)
        assert rested == [False], "not before it looks anew"
        monkeypatch.undo()
        view = page.get("/hearth/disk").json()
        (row,) = (each for each in view["uses"] if each["name"] == "creations")
        assert view["told"] == "The shelf is moved." and not view["failed"]
        assert row["target"] == str(other / "Hearth/creations") == str(find_target(shelf)) and not row["movable"]
        other.rename(tmp_path / "drawer")
        assert "which is not connected" in act("back", name="creations")["trouble"]
        act("look")
        until(rest)
        (row,) = (each for each in page.get("/hearth/disk").json()["uses"] if each["name"] == "creations")
        assert "Connect it: nothing is lost" in row["away"] and not row["deletes"]
        for nowhere in (str(tmp_path), "~nobodyatall/disk", "drawer", str(tmp_path / ("x" * 300))):
            assert "there is nothing that was in" in act("here", name="creations", place=nowhere)["trouble"]
            if nowhere != str(tmp_path):
                assert "There is no folder" in act("move", name="loras", place=nowhere)["trouble"]
        assert act("here", name="creations", place=f' "{tmp_path / "drawer"}" ')["told"] == "The shelf is there again."
        assert find_target(shelf) == tmp_path / "drawer/Hearth/creations"
        until(rest)
        act("back", name="creations")
        until(rest)
        assert find_target(shelf) is None and (shelf / "a.png").read_bytes() == b"a"
        desk.disk.close()


def test_only_what_no_person_made_is_deleted_there(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        page, home = client_of(desk, OWNER), desk.keeper.home
        (home.root / "settings.json.2026-01-01-000000.damaged").write_text("{")
        (home.creations / "a.png").write_bytes(b"a")
        assert page.post("/hearth/disk/delete", json={"name": "damaged"}).status_code == 200
        assert not [*home.root.glob("*.damaged")]
        said = page.post("/hearth/disk/delete", json={"name": "creations"})
        assert said.status_code == 409 and "Hearth does not delete this here" in said.json()["trouble"]
        assert (home.creations / "a.png").exists()
        assert page.post("/hearth/disk/nonsense", json={}).status_code == 404
        assert page.post("/hearth/disk/delete", content=b"name=bin", headers={"Content-Type": "text/plain"}).status_code in (400, 415)
        until(lambda: not (desk.disk.looking or desk.disk.comparing))
        desk.disk.close()


def test_a_guest_sees_nothing_of_it(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        guest = client_of(desk, Person("guest-1", False))
        assert guest.get("/hearth/disk").status_code == 404
        assert all(guest.post(f"/hearth/disk/{act}", json={"name": "bin"}).status_code == 404 for act in disk.ACTIONS)
