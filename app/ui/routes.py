"""The page's routes: live state, sentences and styles, files that a person may access, actions on jobs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Final

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from app.engine.files.recode import recode
from app.engine.jobs.request import to_json
from app.engine.process.recovery import fail_start
from app.languages import templates
from app.paths import assets
from app.sentence import Trouble, say
from app.ui import start_failure
from app.ui.live_view import guest_view, owner_view
from app.ui.page.bundle import FOLDERS, bundle, list_script_sentences
from app.ui.page.contact_sheet import contact_sheet
from app.ui.page.translate import language, translate
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route, refuse, route
from app.ui.state.person import who
from app.ui.tabs import machine_view, paint_view, speak_view

PAGE_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".svg": "image/svg+xml"}
RESULT_TYPES: Final = {
    ".wav": "audio/wav", ".flac": "audio/flac", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".opus": "audio/ogg",
    ".png": "image/png", ".jpg": "image/jpeg",
}  # fmt: skip
TEXT_MOST: Final = 200_000
"""Longest text, in characters, that is checked or saved while typing."""
SHOWN_SMALLER: Final = ("text", "width", "height")
"""Fields of a retried request that the page puts back into its form."""
DRAFTS: Final = ("speak-text", "paint-prompt", "paint-negative")
"""Fields whose text is saved while typing."""
FILE_NAME: Final = re.compile(r"[\w-]+\.\w+")


def routes(desk: Desk) -> list[Route]:
    return [
        Route("/hearth/words", send_sentences), Route("/hearth/static/{name}", send_static), route(desk, "/hearth/live", send_live),
        route(desk, "/hearth/check", check_text, ["POST"]), route(desk, "/hearth/made/{job}/{name}", send_job_file),
        route(desk, "/hearth/creation/{id:int}", send_creation), route(desk, "/hearth/sheet", send_contact_sheet),
        route(desk, "/hearth/smaller/{kind}", retry_smaller, ["POST"]), route(desk, "/hearth/queue/{job}/{act}", act_on_job, ["POST"]),
        owner_route(desk, "/hearth/machine", send_plan), owner_route(desk, "/hearth/voices", keep_voice, ["POST"]),
        owner_route(desk, "/hearth/engine/{act}", restart_or_repair, ["POST"]), owner_route(desk, "/hearth/drafts", keep_drafts, ["GET", "POST"]),
    ]  # fmt: skip


def send_live(desk: Desk, request: Request) -> Response:
    person, spoken = who(request), language(request)
    if person.owner:
        return JSONResponse(owner_view(desk, person, spoken, with_charts="charts" in request.query_params))
    return JSONResponse(guest_view(desk, person, spoken))


def send_plan(desk: Desk, request: Request) -> Response:
    asked = request.query_params
    try:
        view = machine_view.tab_view(desk, asked.get("model", ""), asked.get("as", ""), language(request))
    except Trouble as trouble:
        return refuse(trouble, request, status=400)
    return JSONResponse(view)


async def check_text(desk: Desk, request: Request) -> Response:
    """Check a script or prompt while it is typed; for a script also return its turns and its length."""
    asked, person = await request.json(), who(request)
    kind = "picture" if asked.get("kind") == "picture" else "speech"
    view_of = paint_view.prompt_view if kind == "picture" else speak_view.script_view
    model = desk.models.resolve(kind, asked.get("model"), person)
    view = view_of(desk, str(asked.get("text", ""))[:TEXT_MOST], model, language(request))
    for each in view["problems"]:
        each["cure"] = desk.models.resolve_cure(each["cure"])
    return JSONResponse(view)


def send_job_file(desk: Desk, request: Request) -> Response:
    """Send a file of a job's folder, and nothing outside it, to people who may see the job."""
    job, name = request.path_params["job"], request.path_params["name"]
    if not desk.jobs.owns(job, who(request)) or not FILE_NAME.fullmatch(name):
        return Response(status_code=404)
    return send_file(desk.keeper.folder(job) / name)


def send_creation(desk: Desk, request: Request) -> Response:
    """Send a creation of the shelf; speech also in another format."""
    try:
        found = desk.jobs.find_creation(int(request.path_params["id"]), who(request))
    except Trouble:
        return Response(status_code=404)
    wanted = request.query_params.get("format", "")
    if not wanted or found.kind != "speech":
        return send_file(found.path, download="download" in request.query_params)
    folder = desk.make_upload_folder()
    try:
        answer = send_file(recode(found, wanted, folder), download=True)
        answer.background = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
        return answer
    except Trouble as trouble:
        return refuse(trouble, request)


def send_contact_sheet(desk: Desk, request: Request) -> Response:
    """Send the last grid as one picture, with its values along the edges."""
    cells = paint_view.list_grid_files(desk, who(request))
    return Response(contact_sheet(*cells), media_type="image/png") if cells else Response(status_code=404)


def retry_smaller(desk: Desk, request: Request) -> Response:
    """Retry a job that did not fit with smaller settings; answer with only these settings."""
    try:
        retried, change = desk.jobs.retry_smaller(request.path_params["kind"], who(request))
    except Trouble as trouble:
        return refuse(trouble, request)
    fields = {name: value for name, value in to_json(retried).items() if name in SHOWN_SMALLER}
    return JSONResponse({"text": translate(change, language(request)), "request": fields})


def act_on_job(desk: Desk, request: Request) -> Response:
    """Remove, move up, resume or discard a job; only for the person who made it."""
    job, person = request.path_params["job"], who(request)
    act = desk.jobs.queue_actions(person).get(request.path_params["act"])
    if act is None or not desk.jobs.owns(job, person):
        return Response(status_code=404)
    act(job)
    return JSONResponse({})


async def keep_voice(desk: Desk, request: Request) -> Response:
    """Save the voice of a creation under a name."""
    asked = await request.json()
    try:
        desk.keep_voice(int(asked.get("id", -1)), str(asked.get("name", "")))
    except Trouble as trouble:
        return refuse(trouble, request)
    return JSONResponse({})


def restart_or_repair(desk: Desk, request: Request) -> Response:
    """Start a failed engine again, or hand over to start.py, whose page repairs the environment."""
    if request.path_params["act"] == "again":
        desk.keeper.retry_start()
    elif not start_failure.is_supervised():
        line = say(
            "engine.line",
            "Quit Hearth, run this command in a terminal, then start Hearth again: {line}",
            line=start_failure.repair_command(),
        )
        return JSONResponse({"text": translate(line, language(request))})
    else:
        start_failure.hand_over(desk.keeper.home, fail_start(desk.keeper.home.logs / "engine.log", desk.keeper.state.trouble))
        desk.leaving.set()
    return JSONResponse({"text": ""})


async def keep_drafts(desk: Desk, request: Request) -> Response:
    """Save the owner's typed text, field by field; return it after a restart."""
    if request.method == "POST":
        asked = await request.json()
        fresh = {name: str(asked[name])[:TEXT_MOST] for name in DRAFTS if name in asked}

        def merge(saved: dict[str, Any]) -> dict[str, Any]:
            return {**saved, **fresh}

        await run_in_threadpool(desk.settings.change, "drafts", {}, merge)
    return JSONResponse(desk.settings.get("drafts", {}))


def send_file(path: Path, download: bool = False) -> Response:
    media_type = RESULT_TYPES.get(path.suffix)
    if media_type is None or path.is_symlink() or not path.is_file():
        return Response(status_code=404)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, max-age=3600"}
    return FileResponse(path, media_type=media_type, headers=headers, filename=path.name if download else None)


def send_sentences(request: Request) -> Response:
    """Send the scripts' sentences in this person's language; their English is in the scripts."""
    known = templates(language(request))
    return JSONResponse({key: known[key] for key in list_script_sentences() if key in known})


def send_static(request: Request) -> Response:
    name = request.path_params["name"]
    for kind in (".js", ".css"):
        if name == bundle(kind).name:
            forever = {"Cache-Control": "max-age=31536000, immutable"}
            return Response(bundle(kind).content, media_type=PAGE_TYPES[kind], headers=forever)
    for folder in (FOLDERS[".js"], FOLDERS[".css"], assets() / "icons"):
        path = folder / name
        if path.parent == folder and path.is_file() and path.suffix in PAGE_TYPES:
            return FileResponse(path, media_type=PAGE_TYPES[path.suffix], headers={"Cache-Control": "no-cache"})
    return Response(status_code=404)
