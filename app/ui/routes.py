"""What the page asks for by itself: how things stand, its words, its face, and the files a person may have."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from app.engine.files.recode import recoded
from app.engine.jobs.events import Failed
from app.engine.jobs.request import to_json
from app.engine.process.recovery import no_start
from app.paths import assets
from app.sentence import Trouble, say
from app.ui import start_failure
from app.ui.page import views
from app.ui.page.bundle import FOLDERS, STATIC, bundle
from app.ui.page.contact_sheet import contact_sheet
from app.ui.page.translate import Language, catalog, language, text, translate
from app.ui.state.desk import Desk
from app.ui.state.person import Person, who
from app.ui.state.visitor_limits import NOT_MADE, redact_for
from app.ui.tabs import machine_view, paint_view, speak_view

KINDS: Final = {".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".svg": "image/svg+xml"}
MADE_KINDS: Final = {
    ".wav": "audio/wav", ".flac": "audio/flac", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".opus": "audio/ogg",
    ".png": "image/png", ".jpg": "image/jpeg",
}  # fmt: skip
CHARTED: Final = 120
"""Points of the live charts; they travel only while somebody looks at them."""
SCRIPT_MOST: Final = 200_000
LESSER: Final = ("text", "width", "height")
DRAFTS: Final = ("speak-text", "paint-prompt", "paint-negative")
"""Fields whose text is kept while it is typed."""
NAME: Final = re.compile(r"[\w-]+\.\w+")
SCRIPT_SENTENCE: Final = re.compile(r"""\bt\(\s*"([^"]+)",\s*"((?:[^"\\]|\\.)*)\"""")


def routes(desk: Desk) -> list[Route]:
    def live(request: Request) -> Response:
        spoken, state, person = language(request), desk.keeper.state, who(request)
        if not person.owner:
            return JSONResponse(visitor_view(desk, person, spoken))
        progress = desk.keeper.progress(state.job) if state.job else None
        answer: views.View = {"strip": views.strip_view(state, progress, desk.models.find_title(state.model), spoken)}
        if job := desk.jobs.find_current("speech", person):
            answer["speech"] = speak_view.job_view(desk, job, spoken)
        if job := desk.jobs.find_current("picture", person):
            answer["picture"] = paint_view.seen(desk, job, spoken)
        if grid := paint_view.grid_view(desk, person, spoken):
            answer["grid"] = grid
        for kind in ("speech", "picture"):
            if "cure" in (end := answer.get(kind, {}).get("end") or {}):
                end["cure"] = desk.models.resolve_cure(end["cure"])
        answer["queue"] = desk.jobs.list_queue(person)
        answer["standing"] = views.blocker_view(state, spoken)
        answer["interrupted"] = [{"id": job.id, "text": views.title_of(job.request)} for job in desk.keeper.interrupted]
        looked_at = list(desk.keeper.history)[-CHARTED:] if "charts" in request.query_params else []
        answer["charts"] = views.charts_view(looked_at)
        if desk.measuring.job:
            answer["errand"] = machine_view.measuring_view(desk, spoken)
        return JSONResponse(answer)

    def machine(request: Request) -> Response:
        if not who(request).owner:
            return Response(status_code=404)
        asked = request.query_params
        try:
            return JSONResponse(machine_view.tab_view(desk, asked.get("model", ""), asked.get("as", ""), language(request)))
        except Trouble as trouble:
            return JSONResponse({"trouble": translate(trouble.sentence, language(request))}, status_code=400)

    async def check(request: Request) -> Response:
        """A script or a prompt as it is typed: its problems; of a script also its turns, and how long it will be."""
        asked, person = await request.json(), who(request)
        painted = asked.get("kind") == "picture"
        seen = paint_view.prompt_view if painted else speak_view.script_view
        model = desk.models.resolve("picture" if painted else "speech", asked.get("model"), person)
        view = seen(desk, str(asked.get("text", ""))[:SCRIPT_MOST], model, language(request))
        for each in view["problems"]:
            each["cure"] = desk.models.resolve_cure(each["cure"])
        return JSONResponse(view)

    def made(request: Request) -> Response:
        """What lies in the folder of a job: only its maker's, and nothing outside of it."""
        job, name = request.path_params["job"], request.path_params["name"]
        if not desk.jobs.owns(job, who(request)) or not NAME.fullmatch(name):
            return Response(status_code=404)
        return send_file(desk.keeper.folder(job) / name)

    def creation(request: Request) -> Response:
        try:
            kept = desk.jobs.find_creation(int(request.path_params["id"]), who(request))
        except Trouble:
            return Response(status_code=404)
        wanted = request.query_params.get("format", "")
        if not wanted or kept.kind != "speech":
            return send_file(kept.path, download="download" in request.query_params)
        folder = desk.make_upload_folder()
        try:
            answer = send_file(recoded(kept, wanted, folder), download=True)
            answer.background = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
            return answer
        except Trouble as trouble:
            return refuse(trouble, request)

    def smaller(request: Request) -> Response:
        """What did not fit, asked for again with less; the page shows what is less of it, and gets nothing else."""
        kind, spoken = request.path_params["kind"], language(request)
        try:
            lesser, words = desk.jobs.retry_smaller(kind, who(request))
        except Trouble as trouble:
            return refuse(trouble, request)
        fields = {name: value for name, value in to_json(lesser).items() if name in LESSER}
        return JSONResponse({"text": translate(words, spoken), "request": fields})

    async def drafts(request: Request) -> Response:
        """What is being written, field by field, kept while it is typed: the owner's, and still there after a restart."""
        if not who(request).owner:
            return Response(status_code=404)
        if request.method == "POST":
            asked = await request.json()
            fresh = {name: str(asked[name])[:SCRIPT_MOST] for name in DRAFTS if name in asked}
            await run_in_threadpool(desk.settings.change, "drafts", {}, lambda kept: {**kept, **fresh})
        return JSONResponse(desk.settings.get("drafts", {}))

    def queue(request: Request) -> Response:
        """A waiting job taken out or brought forward, an interrupted one gone on with or let go: only by whoever made it."""
        job, person = request.path_params["job"], who(request)
        act = desk.jobs.queue_actions(person).get(request.path_params["act"])
        if act is None or not desk.jobs.owns(job, person):
            return Response(status_code=404)
        act(job)
        return JSONResponse({})

    def engine(request: Request) -> Response:
        """An engine that does not start: tried again now, or handed to start.py, whose page makes everything anew."""
        if not who(request).owner:
            return Response(status_code=404)
        if request.path_params["act"] == "again":
            desk.keeper.start_again()
        elif not start_failure.watched():
            line = say("engine.line", "Quit Hearth, run this command in a terminal, then start Hearth again: {line}", line=start_failure.line())  # fmt: skip
            return JSONResponse({"text": translate(line, language(request))})
        else:
            start_failure.handed(desk.keeper.home, no_start(desk.keeper.home.logs / "engine.log", desk.keeper.state.trouble))
            desk.leaving.set()
        return JSONResponse({"text": ""})

    async def keep_voice(request: Request) -> Response:
        """The voice of something that was spoken, kept under a name."""
        asked = await request.json()
        if not who(request).owner:
            return Response(status_code=404)
        try:
            desk.keep_voice(int(asked.get("id", -1)), str(asked.get("name", "")))
        except Trouble as trouble:
            return JSONResponse({"trouble": translate(trouble.sentence, language(request))}, status_code=409)
        return JSONResponse({})

    def sheet(request: Request) -> Response:
        """The last grid as one picture, with its values along the edges."""
        cells = paint_view.list_grid_files(desk, who(request))
        return Response(contact_sheet(*cells), media_type="image/png") if cells else Response(status_code=404)

    return [
        Route("/hearth/queue/{job}/{act}", queue, methods=["POST"]), Route("/hearth/voices", keep_voice, methods=["POST"]),
        Route("/hearth/sheet", sheet), Route("/hearth/live", live), Route("/hearth/words", words), Route("/hearth/static/{name}", static),
        Route("/hearth/machine", machine), Route("/hearth/check", check, methods=["POST"]), Route("/hearth/made/{job}/{name}", made),
        Route("/hearth/creation/{id:int}", creation), Route("/hearth/smaller/{kind}", smaller, methods=["POST"]),
        Route("/hearth/engine/{act}", engine, methods=["POST"]), Route("/hearth/drafts", drafts, methods=["GET", "POST"]),
    ]  # fmt: skip


def visitor_view(desk: Desk, person: Person, spoken: Language) -> views.View:
    """What a visitor sees: their own work, and whether the engine is busy; nothing of the machine or of others."""
    state = desk.keeper.state
    own = state.job if state.job and desk.jobs.owns(state.job, person) else ""
    strip = views.strip_view(replace(state, job=own), desk.keeper.progress(own) if own else None, "", spoken)
    if state.job and not own:
        strip["doing"] = text("visitor.busy", "busy with another person's job", spoken)
    answer: views.View = {
        "strip": {**strip, "memory": None, "machine": "", "chunk": "", "plan": ""}, "queue": desk.jobs.list_queue(person),
    }  # fmt: skip
    for kind, seen in (("speech", speak_view.job_view), ("picture", paint_view.seen)):
        if job := desk.jobs.find_current(kind, person):
            view = seen(desk, job, spoken)
            view["said"] = []  # Adjustments are told in terms of the machine.
            if view["end"] and view["end"]["kind"] == "failed":
                end = desk.keeper.progress(job).end
                trouble = redact_for(person, Trouble(end.sentence, *end.objections)) if isinstance(end, Failed) else Trouble(NOT_MADE)
                words = " ".join(translate(each, spoken) for each in (trouble.sentence, *trouble.objections))
                view["end"] = {**view["end"], "text": words, "cure": ""}
            answer[kind] = view
    return answer


def refuse(trouble: Trouble, request: Request) -> Response:
    """As whoever asked may hear it."""
    heard = redact_for(who(request), trouble)
    return JSONResponse({"trouble": translate(heard.sentence, language(request)), "cure": heard.cure}, status_code=409)


def send_file(path: Path, download: bool = False) -> Response:
    kind = MADE_KINDS.get(path.suffix)
    if kind is None or path.is_symlink() or not path.is_file():
        return Response(status_code=404)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, max-age=3600"}
    return FileResponse(path, media_type=kind, headers=headers, filename=path.name if download else None)


def words(request: Request) -> Response:
    """What the scripts say, in Chinese where that is asked for; their English stands in the scripts."""
    chinese = language(request) == "zh"
    return JSONResponse({key: catalog()[key] for key in list_script_sentences() if key in catalog()} if chinese else {})


def list_script_sentences() -> dict[str, str]:
    """Every t("key", "English") of the scripts."""
    return {
        key: english for file in sorted(STATIC.rglob("*.js")) for key, english in SCRIPT_SENTENCE.findall(file.read_text("utf-8"))
    }


def static(request: Request) -> Response:
    name = request.path_params["name"]
    for kind in (".js", ".css"):
        if name == bundle(kind).name:
            for_good = {"Cache-Control": "max-age=31536000, immutable"}
            return Response(bundle(kind).content, media_type=KINDS[kind], headers=for_good)
    for folder in (FOLDERS[".js"], FOLDERS[".css"], assets() / "icons"):
        path = folder / name
        if path.parent == folder and path.is_file() and path.suffix in KINDS:
            return FileResponse(path, media_type=KINDS[path.suffix], headers={"Cache-Control": "no-cache"})
    return Response(status_code=404)
