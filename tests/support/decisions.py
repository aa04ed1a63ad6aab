"""Print what Hearth decides by an error or a sentence: statuses, what a guest hears, whether a job waits. Never a key, so that keys can change."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from app.compat.machine.pretended import machine
from app.compat.planning.types import Choice
from app.engine.jobs.events import Event, Failed, Note
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.keeper.disk_room import DiskRoom
from app.engine.keeper.job_end import JobEnds
from app.engine.keeper.recovery import explain_database_fault
from app.engine.models import catalog
from app.engine.models.planned import make_plan
from app.engine.models.voice_limits import DIA, read_limits
from app.engine.pictures.kind import PictureKind
from app.engine.session.run_errors import describe_failure
from app.engine.speech.text import script
from app.machines import wanted_models
from app.ui.access import guesses
from app.ui.access.login import LoginRequired, Logins, digest_password
from app.ui.access.uploads import UPLOAD_PATH, CheckUploads
from app.ui.api import openai, shared
from app.ui.live_view import guest_view, owner_view
from app.ui.page.translate import translate
from app.ui.state import guest_files
from app.ui.state.asked import fit
from app.ui.state.desk import Desk
from app.ui.state.json_routes import answer_not_stored, refuse
from app.ui.state.person import KEY, OWNER, Person
from app.ui.tabs.curve_view import explain_chunk
from app.ui.tabs.machine_view import plan_view
from tests.support.guests import desk_at, page_of

GUEST = Person("visitor-ada", owner=False)
FULL = OSError(errno.ENOSPC, "No space left on device")


def trouble_of(run: Callable[[], object]) -> Exception:
    try:
        run()
    except Exception as trouble:
        return trouble
    raise AssertionError("it was not refused")


def asked_by(person: Person) -> Request:
    return Request({"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"", KEY: person})


def seen(answer: Response) -> list[Any]:
    return [answer.status_code, json.loads(bytes(answer.body)), answer.headers.get("retry-after")]


def answers(desk: Desk) -> Iterator[tuple[str, object]]:
    """Status, words and code of what routes refuse, each for the owner and a guest."""
    database = explain_database_fault(desk.keeper.home.database, ValueError("x")).sentence
    given = {
        "schema": trouble_of(lambda: fit(openai.SpeechAsked, {"input": 7 * ["x"]})),
        "no script": trouble_of(lambda: SpeechRequest("")),
        "not on the shelf": trouble_of(lambda: desk.keeper.shelf.get(7)),
        "not in the queue": trouble_of(lambda: desk.keeper.journal.get("none")),
        "no model": shared.no_such_model("none"),
        "no key": trouble_of(lambda: shared.require_owner(asked_by(GUEST))),
        "smaller": trouble_of(lambda: PictureKind().shrink(desk.keeper.home, PictureRequest("a", "sd15", width=64, height=64))),
        "settings": trouble_of(lambda: store_settings(desk)),
        "database": trouble_of(lambda: submit_without_database(desk)),
        "queue": trouble_of(lambda: fill_queue(desk)),
    }
    yield "the database's own words", str(database)
    for name, trouble in given.items():
        for person in (OWNER, GUEST):
            yield f"page, {name}, {person.name}", seen(refuse(cast(Any, trouble), asked_by(person)))
        yield f"program, {name}", seen(shared.error_answer(asked_by(OWNER), cast(Any, trouble)))
    yield "page, full disk", seen(answer_not_stored(asked_by(OWNER), FULL))
    for person in (OWNER, GUEST):
        page = page_of(desk, person)
        yield f"page, creation, {person.name}", [(each := page.get("/hearth/creation/7")).status_code, each.text]
        yield f"page, check, {person.name}", page.post("/hearth/check", json={"kind": "speech", "text": "[S1] Well. (laughs) 漢字"}).json()


def store_settings(desk: Desk) -> None:
    (folder := desk.keeper.home.settings).unlink(missing_ok=True)
    folder.mkdir()
    try:
        desk.settings.put({"a": 1})
    finally:
        folder.rmdir()


def submit_without_database(desk: Desk) -> None:
    with mock.patch.object(type(desk.keeper.journal), "queue", side_effect=sqlite3.OperationalError("x")):
        desk.keeper.submit(SpeechRequest("[S1] Hello there, all of you."))


def fill_queue(desk: Desk) -> None:
    with mock.patch.object(type(desk.keeper.journal), "count_waiting", return_value=10**6):
        desk.jobs.check_turn(OWNER)


def logins() -> Iterator[tuple[str, object]]:
    now_s = [0.0]
    people = Logins(digest_password("a b"), owner=False, until_s=3600.0, clock=lambda: now_s[0])
    page = TestClient(LoginRequired(Starlette(), people))
    yield "login, wrong", page.post("/hearth/login", data={"password": "x"}).status_code
    with mock.patch.object(guesses, "HELD_OF_ONE", 0):
        yield "login, too many", page.post("/hearth/login", data={"password": "x"}).status_code
    now_s[0] = 4000.0
    yield "login, over", page.post("/hearth/login", data={"password": "a b"}).status_code


def uploads(folder: Path) -> Iterator[tuple[str, object]]:
    async def store(request: Request) -> Response:
        (path := folder / "of-ada" / "words.txt").parent.mkdir(exist_ok=True)
        path.write_bytes(b"words")
        return Response(json.dumps([str(path)]))

    for name, places in (("kind", guest_files.UNDER_WAY), ("busy", 0)):
        checked = CheckUploads(Starlette(routes=[Route(UPLOAD_PATH, store, methods=["POST"])]), folder, {}, guest_files.GuestFiles(folder))
        with mock.patch.object(guest_files, "UNDER_WAY", places):
            answer = TestClient(checked).post(UPLOAD_PATH, content=b"x")
        yield f"upload, {name}", [answer.status_code, answer.text]


def ends(desk: Desk, folder: Path) -> Iterator[tuple[str, object]]:
    """How a job ends: whether it waits, and what its owner and a guest are told."""
    faults = {"disk": FULL, "quota": OSError(errno.EDQUOT, "Disk quota exceeded"), "memory": MemoryError("x"), "other": ValueError("x")}
    for name, fault in faults.items():
        end = describe_failure(fault, folder)
        room, job = DiskRoom(desk.keeper.home, waits=True), desk.keeper.journal.queue(SpeechRequest("[S1] Hello."), Choice(), "owner").id
        full = JobEnds(desk.keeper.stores, desk.keeper.board, patient=True).find_lack(job, end)
        if full is not None:
            room.note_full(full)
        yield f"{name}: the queue", ["waits" if full is not None else "ends", str(room.find_obstacle())]
        yield f"{name}: the page", told(desk, end)
    for text in ("[S1] Hello. [S3] Who is there?", "[S1] ..."):
        trouble = cast(Any, trouble_of(partial(script.require_speakable, text)))
        yield f"refused: {text}", told(desk, Failed(trouble.sentence, trouble.objections, trouble.cure))


def told(desk: Desk, end: Failed) -> list[Any]:
    views = []
    for person, view in ((OWNER, lambda: owner_view(desk, OWNER, "en", False)), (GUEST, lambda: guest_view(desk, GUEST, "zh"))):
        for job in desk.keeper.journal.list_waiting():
            desk.keeper.stop(job.id)
        job = desk.keeper.journal.queue(SpeechRequest("[S1] Hello."), Choice(), person.name)
        desk.jobs.latest[person.name, "speech"] = job.id
        notes: list[Event] = [Note(each.sentence) for each in script.parse_script("Hello. [S5] (pause x) Ho.", DIA).problems]
        for event in (*notes, end):
            desk.keeper.board.post(job.id, event)
        shown = view()["speech"]
        views += [shown["end"], shown["said"]]
    return views


def plans(folder: Path) -> Iterator[tuple[str, object]]:
    """Why another chunk runs than was asked for, what stands first, why nothing can be spoken."""
    m1, model = machine("m1-8gb"), catalog.find("pixart-sigma")
    tight = replace(m1, free_bytes=int(m1.free_bytes * 0.4))
    place = SimpleNamespace(models=folder, root=folder)
    for chunk in (64, 4096):
        plan = make_plan(cast(Any, place), tight, model, chunk=chunk, yields=True)
        yield f"chunk {chunk}", [explain_chunk(plan, asked, "en") for asked in (64, 4096, "auto")]
    for name, dtype in (("cpu", "float16"), ("gtx-1060", None)):
        plan = make_plan(cast(Any, place), machine(name), model, Choice(dtype=cast(Any, dtype)))
        view = plan_view(plan, "en")
        yield f"plan of {name}", [[row["field"] for row in view["rows"] if row["first"]], view["warnings"]]
    english = read_limits(Path(catalog.find("starter-voice").path))
    yield "nothing to read", [[each.severity, translate(each.sentence, "zh")] for each in script.parse_script("漢字", english).problems]


def models(desk: Desk) -> Iterator[tuple[str, object]]:
    downloads = cast(Any, SimpleNamespace(list_status=list))
    for name in ("sd15", "none"):
        wanted = wanted_models.WantedModels(cast(Any, desk.keeper), downloads, lambda *_, **__: None, True)
        with mock.patch.object(wanted_models, "FREE_BYTES", 1 << 60):
            wanted.want(json.dumps({"model": name}))
        yield f"wanted: {name}", wanted.fetching.lack


def decisions(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    with desk_at(folder / "home") as desk:
        (folder / "job").mkdir()
        (folder / "uploads").mkdir()
        little = shutil._ntuple_diskusage(1 << 40, 0, 5 << 20)
        for each in (answers(desk), logins(), uploads(folder / "uploads"), plans(folder), models(desk)):
            found |= dict(each)
        with mock.patch.object(shutil, "disk_usage", return_value=little):
            found |= dict(ends(desk, folder / "job"))
    return json.loads(json.dumps(found).replace(str(folder), "FOLDER"))


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    with tempfile.TemporaryDirectory() as made:
        json.dump(decisions(Path(made)), sys.stdout)
