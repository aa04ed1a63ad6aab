"""Run jobs and read and write pictures for other programs, with the window's queue, limits and guards."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.foreign_formats import decode, open_picture
from app.base.sentence import Sentence, say
from app.base.trouble import Closing, NeedsKey, NoSuchModel, NotThere, Trouble
from app.engine.jobs.events import Failed, Note
from app.engine.jobs.outward import public_name
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import KindName, Request
from app.engine.models.on_disk import locate
from app.ui.access import uploads
from app.ui.access.program_answers import shape_error
from app.ui.api import pacing
from app.ui.api.following import WORKERS, stay, wait_for, work
from app.ui.page.translate import join, language
from app.ui.state.asked import Asked as Schema
from app.ui.state.asked import read_asked
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_for, redact_sentences
from app.ui.state.person import Person, who

EVENTS: Final = "text/event-stream"
Handler = Callable[..., Awaitable[Response]]
"""It takes desk, request, person and, if the route has a schema, what was asked."""
Row = tuple[str, str, Handler, type[Schema] | None]
STAND_INS: Final = re.compile(r"^(?:tts-1|gpt-|chatgpt-|dall-e-)|kokoro", re.IGNORECASE)
"""The programs that were made for OpenAI's API, or for Kokoro-FastAPI's, name a model so, whatever is installed."""
RETRY: Final = {"Retry-After": "10"}
"""A job takes longer than these seconds, but clients give up after a few tries."""


def require_owner(asked: Asked) -> Person:
    """Return the owner; guests have no API."""
    person = who(asked)
    if not person.owner:
        raise NeedsKey(say("programs.owner", "This API needs the owner's key. Send it as: Authorization: Bearer KEY"))
    return person


async def run_job(desk: Desk, asked: Asked, request: Request, person: Person) -> tuple[str, tuple[Path, ...]]:
    """Queue a job, wait for its end, and return its id and files; a stopped job returns its finished files."""
    job = await begin_job(desk, request, person)
    end = (await wait_while_heard(desk, asked, job, lambda progress: False)).end
    if isinstance(end, Failed):
        raise redact_for(person, end.trouble)
    if end is None or not end.files:
        raise Trouble(say("programs.stopped", "The job was stopped before any part was finished. Send the request again."))
    return job, tuple(map(Path, end.files))


async def begin_job(desk: Desk, request: Request, person: Person) -> str:
    """Queue a program's job: it is in the journal when this returns its id."""
    try:
        job = await work(desk.jobs.begin, request, person, by_program=True)
    except Trouble as trouble:
        raise redact_for(person, trouble) from trouble
    pacing.leave()
    return job


async def wait_while_heard(desk: Desk, asked: Asked, job: str, enough: Callable[[Progress], bool]) -> Progress:
    """Wait until there is enough of a job, or its end; stop it if the client that waits for it goes away. The end of Hearth
    interrupts it: the window offers to resume it."""
    try:
        return await stay(asked, wait_for(desk.keeper, job, enough))
    except asyncio.CancelledError as ending:  # by the server, which ends
        closed = say("programs.closed", "Hearth was closed while the job was waiting or running. Start Hearth, which keeps the job.")
        raise Closing(closed) from ending
    except BaseException:
        WORKERS.submit(desk.keeper.stop, job)
        raise


def read_notes(desk: Desk, job: str, person: Person) -> tuple[Sentence, ...]:
    """Return what a run told its person: of a setting that had no effect, of words that were cut."""
    said = desk.keeper.get_progress(job).said
    return redact_sentences(person, *(each.sentence for each in said if isinstance(each, Note)))


def save_picture(desk: Desk, data: bytes, name: str) -> Path:
    """Save an uploaded picture, or raise a Trouble; its content is checked before anything unpacks it."""
    path = desk.make_upload_folder() / name
    path.write_bytes(data)
    try:
        if not uploads.is_picture(path):
            raise not_a_picture(name)
    except Trouble:
        path.unlink()
        raise
    return path


def not_a_picture(name: str) -> Trouble:
    return Trouble(say("programs.picture", "{name} is not a picture that Hearth can read. Send PNG, JPEG or WebP.", name=name))


def decode_base64(text: str) -> bytes:
    """Decode base64, with or without the prefix of a data URL."""
    try:
        return base64.b64decode(text.rpartition(",")[2], validate=True)
    except (binascii.Error, ValueError) as fault:
        raise Trouble(
            say("programs.base64", "The picture is not valid base64: {fault}. Send the file's bytes in base64.", fault=str(fault))
        ) from fault


def encode_base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def save_mask(desk: Desk, data: bytes, transparent_is_new: bool) -> Path:
    """Save a mask that is white where to repaint. OpenAI marks those places by transparency, A1111 by white."""
    path = save_picture(desk, data, "mask.png")
    try:
        with open_picture(data) as opened:  # its pixels were counted above
            if transparent_is_new:
                drawn = decode(opened, "RGBA").getchannel("A").point(lambda alpha: 255 if alpha < 128 else 0)
            else:
                drawn = decode(opened, "L")
    except OSError as fault:
        raise not_a_picture("mask.png") from fault
    drawn.save(path, "PNG")
    return path


def error_answer(asked: Asked, trouble: Trouble) -> JSONResponse:
    """Write an error as the API that was asked does, so that its clients can read it, and know whether to try again later."""
    status = trouble.status or 400
    words = join(language(asked), trouble.sentence, *trouble.objections)
    return JSONResponse(shape_error(asked.url.path, words, status, trouble.code, trouble.field), status, RETRY if status == 503 else None)


async def stop_unheard(desk: Desk, job: str) -> None:
    """Stop a job whose listener went away before its end."""
    if desk.keeper.get_progress(job).end is None:
        await work(desk.keeper.stop, job)


def build_routes(desk: Desk, table: list[Row], below: str) -> list[Route]:
    """Serve each handler under its path, for the owner only, with every Trouble as JSON that clients can read; so is what is not there `below`."""

    def route(path: str, method: str, handler: Handler, schema: type[Schema] | None) -> Route:
        async def answer(asked: Asked) -> Response:
            try:
                person = require_owner(asked)
                return await handler(desk, asked, person, *([await read_asked(asked, schema)] if schema else []))
            except Trouble as trouble:
                return error_answer(asked, trouble)

        return Route(path, answer, methods=[method])

    async def miss(desk: Desk, asked: Asked, person: Person) -> Response:
        method, path = asked.method, asked.url.path
        raise NotThere(say("programs.none", "Hearth does not have {method} {path}. Check the address.", method=method, path=path[:200]))

    rest = route(f"{below}{{rest:path}}", "GET", miss, None)
    rest.methods = {"GET", "POST", "PUT", "PATCH", "DELETE"}
    return [*(route(*row) for row in table), rest]


def find_model(desk: Desk, wanted: str | None, kind: KindName) -> str:
    """Find an installed model by name. Clients have to name some model, so one of OpenAI's or Kokoro's gives "", the best installed; one of the
    other kind is refused as a job. Raise a Trouble for any other name."""
    named = [each for each in desk.models.list_all() if public_name(each.id) == wanted and locate(desk.keeper.home, each)]
    found = next((each.id for each in sorted(named, key=lambda each: each.kind != kind)), "")
    if wanted and not found and not STAND_INS.search(wanted):
        raise no_such_model(wanted[:80])
    return found


def no_such_model(wanted: str, lists: str = "/v1/models") -> Trouble:
    return NoSuchModel(
        say("api.no-model", "No model called {model} is installed. GET {lists} lists those that are.", model=wanted, lists=lists)
    )
