"""The page's routes: live state, sentences and styles, files that a person may access, actions on jobs."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import anyio
from pydantic import Field
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.base import notices
from app.base.languages import templates
from app.base.palette import PALETTE
from app.base.paths import assets
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.decide import parse_chunk
from app.engine.jobs.creation import Creation
from app.engine.jobs.gallery import NONE
from app.engine.jobs.request import KindName, to_json
from app.engine.keeper.recovery import fail_start
from app.engine.kinds import is_heard
from app.engine.pictures.files.encoded import ENDINGS, FORMATS, Format, Wanted, encode_picture
from app.engine.speech.sound.recode import recode
from app.engine.speech.text import subtitles
from app.engine.speech.text.chapter_names import name_chapter
from app.engine.speech.text.pronunciations import read_field
from app.ui import start_failure
from app.ui.live_view import guest_view, owner_view
from app.ui.page.bundle import FOLDERS, bundle, list_script_sentences
from app.ui.page.contact_sheet import contact_sheet
from app.ui.page.translate import join, language, translate
from app.ui.page.view_types.making import AlongView, SentenceView
from app.ui.state import listening
from app.ui.state.asked import TEXT_MOST, Asked, Id, Name, Word
from app.ui.state.desk import Desk
from app.ui.state.hearing_desk import find_cues
from app.ui.state.json_routes import owner_route, route
from app.ui.state.person import who
from app.ui.tabs import (
    book,
    edit_parts,
    hear_script,
    help,
    machine_view,
    paint_view,
    pronunciation_list,
    see_picture,
    speak_view,
    voice_shelf,
)
from app.ui.tabs.shelf import name_file

PAGE_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".svg": "image/svg+xml"}
RESULT_TYPES: Final = {
    ".wav": "audio/wav", ".flac": "audio/flac", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".opus": "audio/ogg",
    ".png": "image/png", ".jpg": "image/jpeg",
}  # fmt: skip
SHORT_TEXT_MOST: Final = 20_000
"""A prompt, and any text that a guest types, may be no longer."""
SHOWN_SMALLER: Final = ("text", "width", "height")
"""The page puts these fields of a retried request back into its form."""
FILE_NAME: Final = re.compile(r"[\w-]+\.\w+")


class LiveAsked(Asked):
    charts: str | None = None
    page: Word = ""
    """What the page calls itself: of several, one may be closed."""


class PlanAsked(Asked):
    model: str = ""
    machine: Word = Field("", alias="as")


class CheckAsked(Asked):
    kind: KindName = "speech"
    text: str = ""
    model: str | None = None
    negative: str = ""
    cast: str = ""
    says: str = ""
    """The cast and this come as the fields of Speak hold them."""
    speed: float = Field(1.0, ge=0.01, le=100)
    """The forecast alone needs it; what may be asked for, the request itself says."""


class JobFileAsked(Asked):
    job: Word
    name: Word


class CreationAsked(Asked):
    id: Id
    format: Word = ""
    download: str | None = None


class ResultAsked(Asked):
    id: Id


class KindAsked(Asked):
    kind: Word


class JobActAsked(Asked):
    job: Word
    act: Word


class VoiceAsked(Asked):
    id: Id
    name: Name = ""


class NoticeAsked(Asked):
    id: str


class ActAsked(Asked):
    act: Word


class ChunkAsked(Asked):
    size: Word = ""


class StaticAsked(Asked):
    name: Word


EARLIER_MOST, USED_MOST = 5, 100
Earlier = Annotated[list[str], Field(max_length=EARLIER_MOST)] | None


class DraftsAsked(Asked):
    """Fields whose text is saved while typing, and the texts that something else took the place of, the newest first."""

    speak_text: str | None = Field(None, alias="speak-text")
    paint_prompt: str | None = Field(None, alias="paint-prompt")
    paint_negative: str | None = Field(None, alias="paint-negative")
    speak_text_earlier: Earlier = Field(None, alias="speak-text-earlier")
    paint_prompt_earlier: Earlier = Field(None, alias="paint-prompt-earlier")
    paint_negative_earlier: Earlier = Field(None, alias="paint-negative-earlier")
    paint_prompt_used: Annotated[list[Annotated[str, Field(max_length=TEXT_MOST)]], Field(max_length=USED_MOST)] | None = Field(
        None, alias="paint-prompt-used"
    )


def routes(desk: Desk) -> list[Route]:
    return [
        Route("/hearth/words", send_sentences),
        route(desk, "/hearth/static/{name}", send_static, schema=StaticAsked),
        route(desk, "/hearth/help", help.send_help),
        Route("/hearth/manifest", send_manifest),
        route(desk, "/hearth/live", send_live, schema=LiveAsked),
        route(desk, "/hearth/check", check_text, ["POST"], CheckAsked),
        route(desk, "/hearth/made/{job}/{name}", send_job_file, schema=JobFileAsked),
        route(desk, "/hearth/heard/{job}/{part}", hear_script.send_heard, schema=hear_script.HeardAsked),
        route(desk, "/hearth/creation/{id}", send_creation, schema=CreationAsked),
        route(desk, "/hearth/along/{id}", send_along, schema=ResultAsked),
        route(desk, "/hearth/sheet", send_contact_sheet),
        route(desk, "/hearth/smaller/{kind}", retry_smaller, ["POST"], KindAsked),
        route(desk, "/hearth/queue/{job}/{act}", act_on_job, ["POST"], JobActAsked),
        owner_route(desk, "/hearth/notices", dismiss_notice, ["POST"], NoticeAsked),
        owner_route(desk, "/hearth/machine", send_plan, schema=PlanAsked),
        owner_route(desk, "/hearth/report", send_report),
        owner_route(desk, "/hearth/says", pronunciation_list.send_list, schema=pronunciation_list.ListAsked),
        owner_route(desk, "/hearth/says", pronunciation_list.take_list, ["POST"]),
        owner_route(desk, "/hearth/says/{act}", pronunciation_list.change_list, ["POST"], pronunciation_list.RowAsked),
        owner_route(desk, "/hearth/book", book.open_or_send, ["GET", "POST"]),
        owner_route(desk, "/hearth/book/{act}", book.use_book, ["POST"], book.BookAsked),
        owner_route(desk, "/hearth/listen/{act}", listen, ["POST"], ActAsked),
        owner_route(desk, "/hearth/pick", see_picture.pick, ["POST"], see_picture.PickAsked),
        owner_route(desk, "/hearth/describe", see_picture.describe, ["POST"], see_picture.SeeAsked),
        owner_route(desk, "/hearth/edit/{act}", edit_parts.edit_line, ["POST"], edit_parts.EditAsked),
        route(desk, "/hearth/cast", voice_shelf.send_cast, schema=voice_shelf.CastAsked),
        owner_route(desk, "/hearth/voices", voice_shelf.send_voices),
        owner_route(desk, "/hearth/voices", keep_voice, ["POST"], VoiceAsked),
        owner_route(desk, "/hearth/voice", voice_shelf.send_voice, schema=voice_shelf.VoiceAsked),
        owner_route(desk, "/hearth/voice", voice_shelf.take_voice, ["POST"]),
        owner_route(desk, "/hearth/voices/{act}", voice_shelf.act_on_voice, ["POST"], voice_shelf.VoiceActAsked),
        owner_route(desk, "/hearth/engine/{act}", restart_or_repair, ["POST"], ActAsked),
        owner_route(desk, "/hearth/chunk", set_chunk, ["POST"], ChunkAsked),
        owner_route(desk, "/hearth/drafts", keep_drafts, ["GET", "POST"], DraftsAsked),
    ]


def send_live(desk: Desk, request: Request, asked: LiveAsked) -> Response:
    person, spoken = who(request), language(request)
    if person.owner:
        desk.notifying.note_page(asked.page)
        return JSONResponse(owner_view(desk, person, spoken, with_charts=asked.charts is not None))
    return JSONResponse(guest_view(desk, person, spoken))


def send_plan(desk: Desk, request: Request, asked: PlanAsked) -> Response:
    return JSONResponse(machine_view.tab_view(desk, asked.model, asked.machine, language(request)))


def send_report(desk: Desk, request: Request) -> Response:
    """Send what a bug report needs, as text to be copied."""
    return PlainTextResponse(machine_view.write_report(desk))


def check_text(desk: Desk, request: Request, asked: CheckAsked) -> Response:
    """Check a script or prompt while it is typed; for a script also return its turns and its length."""
    person = who(request)
    model = desk.models.resolve(asked.kind, asked.model, person)
    most = SHORT_TEXT_MOST if asked.kind == "picture" or not person.owner else TEXT_MOST
    if asked.kind == "picture":
        view = paint_view.prompt_view(desk, asked.text[:most], asked.negative[:most], model, person, language(request))
    else:
        cast = desk.models.read_cast(asked.cast, model, person)
        view = speak_view.script_view(
            desk, asked.text[:most], model, person, language(request), speed=asked.speed, cast=cast, says=read_field(asked.says)
        )
    for each in view["problems"]:
        each["cure"] = desk.models.resolve_cure(each["cure"])
    return JSONResponse(view)


def send_job_file(desk: Desk, request: Request, asked: JobFileAsked) -> Response:
    """Send a file of a job's folder, and nothing else of others', to people who may see the job; one that has just moved to the shelf, from there."""
    if not desk.jobs.owns(asked.job, who(request)) or not FILE_NAME.fullmatch(asked.name):
        return Response(status_code=404)
    answer = send_file(desk.keeper.folder(asked.job) / asked.name)
    moved = desk.jobs.find_moved(asked.job, asked.name) if answer.status_code == 404 else None
    return send_file(moved) if moved else answer


def send_creation(desk: Desk, request: Request, asked: CreationAsked) -> Response:
    """Send a creation of the shelf, also in another format."""
    try:
        found = desk.jobs.find_creation(asked.id, who(request))
    except Trouble:
        return Response(status_code=404)
    title = desk.keeper.gallery.read_marks([found]).get(found.id, NONE).title if who(request).owner else ""
    kind, _, words = (asked.format or "").partition("-")
    if (wanted := next((each for each in subtitles.FORMATS if each == kind), None)) is not None:
        return send_subtitles(desk, found, wanted, words == "words")
    other = next((each for each in FORMATS if each == asked.format), None)
    if other is not None and who(request).owner and not is_heard(found.kind):
        return send_encoded(found.path, other, title)
    if not (asked.format and is_heard(found.kind)):
        return send_file(found.path, asked.download is not None, title)
    folder = desk.make_upload_folder()
    try:
        answer = send_file(recode(found, asked.format, folder, title or name_chapter(found.text)), True, title)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    answer.background = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    return answer


def send_encoded(path: Path, wanted: Format, title: str) -> Response:
    """Send a picture in another format, with its settings inside as A1111 writes them there."""
    if path.is_symlink() or not path.is_file():
        return Response(status_code=404)
    try:
        content = encode_picture(path, Wanted(wanted))
    except OSError:  # moved since, or another program's
        return Response(status_code=404)
    called = quote(name_file(path, title, f".{ENDINGS[wanted]}"), safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{called}", "X-Content-Type-Options": "nosniff"}
    return Response(content, media_type=f"image/{wanted}", headers=headers)


def send_subtitles(desk: Desk, found: Creation, wanted: subtitles.Format, words: bool) -> Response:
    """Send when each sentence of a creation is said, or each word."""
    cues = find_cues(found.path, desk.hearing.name_words(found)) if is_heard(found.kind) else []
    if not cues or (words and not cues[0].words):
        return Response(status_code=404)
    if not words:
        cues = [replace(each, words=()) for each in cues]
    named = f"attachment; filename*=UTF-8''{quote(found.path.with_suffix(f'.{wanted}').name)}"
    return Response(subtitles.write(cues, wanted), media_type=subtitles.MEDIA[wanted], headers={"Content-Disposition": named})


def send_along(desk: Desk, request: Request, asked: ResultAsked) -> Response:
    """Send when each sentence of a creation is said, and each word where that is known."""
    try:
        found = desk.jobs.find_creation(asked.id, who(request))
    except Trouble:
        return Response(status_code=404)
    cues = find_cues(found.path, desk.hearing.name_words(found)) if is_heard(found.kind) else []
    sentences: list[SentenceView] = [
        {
            "begin": each.begin_s,
            "end": each.end_s,
            "text": subtitles.strip_tags(each.text),
            "words": [(word.text, word.begin_s, word.end_s) for word in each.words],
        }
        for each in cues
    ]
    return JSONResponse(AlongView(sentences=sentences))


def send_contact_sheet(desk: Desk, request: Request) -> Response:
    """Send the last grid as one picture, with its values along the edges."""
    cells = paint_view.list_grid_files(desk, who(request))
    return Response(contact_sheet(*cells), media_type="image/png") if cells else Response(status_code=404)


def retry_smaller(desk: Desk, request: Request, asked: KindAsked) -> Response:
    """Retry a job that did not fit with smaller settings; answer with only these settings."""
    retried, change = desk.jobs.retry_smaller(asked.kind, who(request))
    fields = {name: value for name, value in to_json(retried).items() if name in SHOWN_SMALLER}
    return JSONResponse({"text": translate(change, language(request)), "request": fields})


def listen(desk: Desk, request: Request, asked: ActAsked) -> Response:
    """Have the parts of the last script heard, or those that went wrong spoken again, or end that; answer with what prevents it."""
    if (deed := listening.ACTIONS.get(asked.act)) is None:
        return Response(status_code=404)
    try:
        deed(desk.listening, who(request))
    except Trouble as trouble:
        return JSONResponse({"trouble": join(language(request), trouble.sentence, *trouble.objections), "cure": trouble.cure})
    return JSONResponse({})


def act_on_job(desk: Desk, request: Request, asked: JobActAsked) -> Response:
    """Remove, stop, move up, resume or discard a job; only for the person who made it."""
    person = who(request)
    act = desk.jobs.queue_actions(person).get(asked.act)
    if act is None or not desk.jobs.owns(asked.job, person):
        return Response(status_code=404)
    act(asked.job)
    return JSONResponse({})


def keep_voice(desk: Desk, request: Request, asked: VoiceAsked) -> Response:
    """Save the voice of a creation under a name."""
    desk.keep_voice(asked.id, asked.name)
    return JSONResponse({})


def restart_or_repair(desk: Desk, request: Request, asked: ActAsked) -> Response:
    """Start a failed engine again, or hand over to start.py, whose page repairs the environment."""
    if asked.act == "again":
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


def set_chunk(desk: Desk, request: Request, asked: ChunkAsked) -> Response:
    """Set the chunk size, as the Machine tab does."""
    desk.machine.set_chunk(parse_chunk(asked.size or None))
    return JSONResponse({})


def dismiss_notice(desk: Desk, request: Request, asked: NoticeAsked) -> Response:
    """Forget a notice that the owner has read."""
    notices.dismiss(asked.id)
    return JSONResponse({})


def keep_drafts(desk: Desk, request: Request, asked: DraftsAsked) -> Response:
    """Save the owner's typed text, field by field; return it after a restart."""
    if request.method == "POST":
        fresh = {
            name: text[:TEXT_MOST] if isinstance(text, str) else [each[:TEXT_MOST] for each in text]
            for name, text in asked.model_dump(by_alias=True).items()
            if text is not None
        }

        def merge(saved: dict[str, Any]) -> dict[str, Any]:
            def beside(name: str, text: str | list[str]) -> str | list[str]:
                most = USED_MOST if name.endswith("-used") else EARLIER_MOST
                return text if isinstance(text, str) else merge_texts(saved.get(name), text, most)

            return {**saved, **{name: beside(name, text) for name, text in fresh.items()}}

        desk.settings.change("drafts", {}, merge)
    return JSONResponse(desk.settings.get("drafts", {}))


def merge_texts(saved: object, given: list[str], most: int) -> list[str]:
    """Keep behind a window's texts those that it does not know, of which another window may have kept some meanwhile: twice what one sends."""
    unknown = [text for text in saved if text not in given] if isinstance(saved, list) else []
    return [*given, *unknown][: 2 * most]


def send_file(path: Path, download: bool = False, title: str = "") -> Response:
    """Send a file that Hearth made; a download may have a name of its own."""
    media_type = RESULT_TYPES.get(path.suffix)
    if media_type is None or path.is_symlink() or not path.is_file():
        return Response(status_code=404)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, max-age=3600"}
    try:
        called = name_file(path, title, path.suffix)
        return HeldFile(path, media_type=media_type, headers=headers, filename=called if download else None)
    except FileNotFoundError:  # moved since
        return Response(status_code=404)


def send_sentences(request: Request) -> Response:
    """Send the scripts' sentences in this person's language; their English is in the scripts."""
    known = templates(language(request))
    return JSONResponse({key: known[key] for key in list_script_sentences() if key in known})


def send_manifest(request: Request) -> Response:
    """Say what a phone calls the page on its home screen, and what it shows there."""
    icons = [{"src": f"static/icon-{side}.png", "sizes": f"{side}x{side}", "type": "image/png"} for side in (192, 512)]
    light, _ = PALETTE["ground"]
    about = {"name": "Hearth", "short_name": "Hearth", "id": "../", "start_url": "../", "scope": "../", "display": "standalone"}
    shown = {**about, "background_color": light, "theme_color": light, "icons": icons}
    return JSONResponse(shown, media_type="application/manifest+json")


def send_static(desk: Desk, request: Request, asked: StaticAsked) -> Response:
    name = asked.name
    for kind in (".js", ".css"):
        if name == bundle(kind).name:
            forever = {"Cache-Control": "max-age=31536000, immutable"}
            return Response(bundle(kind).content, media_type=PAGE_TYPES[kind], headers=forever)
    for folder in (FOLDERS[".js"], FOLDERS[".css"], assets() / "icons"):
        path = folder / name
        if path.parent == folder and path.is_file() and path.suffix in PAGE_TYPES:
            return FileResponse(path, media_type=PAGE_TYPES[path.suffix], headers={"Cache-Control": "no-cache"})
    return Response(status_code=404)


class HeldFile(FileResponse):
    """Starlette's own opens the file only after it has promised its length; a file that has gone by then breaks the answer off."""

    def __init__(self, path: Path, **options: Any) -> None:
        self._held = path.open("rb")
        super().__init__(path, stat_result=os.fstat(self._held.fileno()), **options)

    @asynccontextmanager
    async def _open_file(self) -> AsyncIterator[anyio.AsyncFile[bytes]]:
        try:
            yield anyio.wrap_file(self._held)
        finally:
            self._held.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._held.close()  # also after an answer of headers alone
