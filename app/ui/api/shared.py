"""What all ways in for other programs share: a job carried out, pictures as text, troubles as answers. Same queue, limits and guards as the window."""

from __future__ import annotations

import base64
import binascii
import io
from pathlib import Path
from typing import Any

from PIL import Image
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse

from app.engine.jobs.events import END, Failed, Finished, Stopped
from app.engine.jobs.request import Request
from app.sentence import Trouble, say
from app.ui.access import uploads
from app.ui.page.translate import language, translate
from app.ui.state.desk import Desk
from app.ui.state.person import Person, who
from app.ui.state.visitor_limits import redact_for


def programmer(asked: Asked) -> Person:
    """Whoever the guards let in; visitors have no programs."""
    person = who(asked)
    if not person.owner:
        raise Trouble(say("programs.owner", "Programs need the owner's key."))
    return person


async def values_of(asked: Asked) -> dict[str, Any]:
    try:
        given = await asked.json()
    except ValueError as fault:
        raise Trouble(say("programs.json", "This is not JSON: {fault}.", fault=str(fault))) from fault
    if not isinstance(given, dict):
        raise Trouble(say("programs.object", "A JSON object was expected."))
    return given


async def carried_out(desk: Desk, request: Request, person: Person) -> tuple[str, tuple[Path, ...]]:
    """The job and its files. Waits its turn like every job; one that was stopped gives what is there."""
    try:
        job = desk.jobs.begin(request, person)
    except Trouble as trouble:
        raise redact_for(person, trouble) from trouble
    try:
        end = await run_in_threadpool(ended, desk, job)
    except BaseException:
        desk.keeper.stop(job)  # Nobody waits for it any more.
        raise
    if isinstance(end, Failed):
        raise redact_for(person, Trouble(end.sentence, *end.objections, cure=end.cure))
    if not end.files:
        raise Trouble(say("programs.stopped", "It was stopped before there was anything."))
    return job, tuple(map(Path, end.files))


def ended(desk: Desk, job: str) -> Finished | Stopped | Failed:
    for event in desk.keeper.follow(job):
        if isinstance(event, END):
            return event
    raise Trouble(say("programs.gone", "The job ended without a word. Hearth is closing, perhaps."))


def picture_from(desk: Desk, data: bytes, name: str) -> Path:
    """Looked at by its content before anything unpacks it."""
    path = desk.make_upload_folder() / name
    path.write_bytes(data)
    try:
        if not uploads.picture(path):
            raise Trouble(
                say("programs.picture", "{name} is not a picture that Hearth takes: PNG, JPEG or WebP.", name=name)
            )
    except Trouble:
        path.unlink()
        raise
    return path


def decoded(text: Any) -> bytes:
    """Base64, with or without what a data URL puts before it."""
    try:
        return base64.b64decode(str(text).rpartition(",")[2], validate=True)
    except (binascii.Error, ValueError) as fault:
        raise Trouble(say("programs.base64", "A picture was expected as base64: {fault}.", fault=str(fault))) from fault


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def mask_from(desk: Desk, data: bytes, clear_is_new: bool) -> Path:
    """White where it is painted anew. OpenAI marks that by transparency, A1111 by white."""
    path = picture_from(desk, data, "mask.png")
    with Image.open(io.BytesIO(data)) as opened:
        if clear_is_new:
            drawn = opened.convert("RGBA").getchannel("A").point(lambda alpha: 255 if alpha < 128 else 0)
        else:
            drawn = opened.convert("L")
    drawn.save(path, "PNG")
    return path


def troubled(asked: Asked, trouble: Trouble, status: int = 400) -> JSONResponse:
    """As both families of clients read it."""
    words = " ".join(translate(each, language(asked)) for each in (trouble.sentence, *trouble.objections))
    error = {"message": words, "type": "invalid_request_error", "code": trouble.sentence.key, "param": None}
    return JSONResponse({"error": error, "detail": words}, status_code=status)
