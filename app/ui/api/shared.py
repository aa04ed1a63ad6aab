"""Run jobs and read and write pictures for other programs, with the window's queue, limits and guards."""

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
from app.ui.state.guest_limits import redact_for
from app.ui.state.person import Person, who


def require_owner(asked: Asked) -> Person:
    """Return the owner; guests have no API."""
    person = who(asked)
    if not person.owner:
        raise Trouble(say("programs.owner", "This API needs the owner's key. Send it as: Authorization: Bearer KEY"))
    return person


async def read_json(asked: Asked) -> dict[str, Any]:
    try:
        given = await asked.json()
    except ValueError as fault:
        raise Trouble(
            say("programs.json", "The request is not valid JSON: {fault}. Check its quotes, commas and brackets.", fault=str(fault))
        ) from fault
    if not isinstance(given, dict):
        raise Trouble(say("programs.object", "The request is not a JSON object. Send one."))
    return given


async def run_job(desk: Desk, request: Request, person: Person) -> tuple[str, tuple[Path, ...]]:
    """Queue a job, wait for its end, and return its id and files; a stopped job returns its finished files."""
    try:
        job = desk.jobs.begin(request, person)
    except Trouble as trouble:
        raise redact_for(person, trouble) from trouble
    try:
        end = await run_in_threadpool(wait_for_end, desk, job)
    except BaseException:
        desk.keeper.stop(job)  # the client is gone
        raise
    if isinstance(end, Failed):
        raise redact_for(person, Trouble(end.sentence, *end.objections, cure=end.cure))
    if not end.files:
        raise Trouble(say("programs.stopped", "The job was stopped before any part was finished. Send the request again."))
    return job, tuple(map(Path, end.files))


def wait_for_end(desk: Desk, job: str) -> Finished | Stopped | Failed:
    for event in desk.keeper.follow(job):
        if isinstance(event, END):
            return event
    raise Trouble(say("programs.gone", "The job ended without a result; Hearth may be closing. Start it again, then repeat the request."))


def save_picture(desk: Desk, data: bytes, name: str) -> Path:
    """Save an uploaded picture, or raise a Trouble; its content is checked before anything unpacks it."""
    path = desk.make_upload_folder() / name
    path.write_bytes(data)
    try:
        if not uploads.is_picture(path):
            raise Trouble(say("programs.picture", "{name} is not a picture that Hearth can read. Send PNG, JPEG or WebP.", name=name))
    except Trouble:
        path.unlink()
        raise
    return path


def decode_base64(text: Any) -> bytes:
    """Decode base64, with or without the prefix of a data URL."""
    try:
        return base64.b64decode(str(text).rpartition(",")[2], validate=True)
    except (binascii.Error, ValueError) as fault:
        raise Trouble(say("programs.base64", "The picture is not valid base64: {fault}.", fault=str(fault))) from fault


def encode_base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def save_mask(desk: Desk, data: bytes, transparent_is_new: bool) -> Path:
    """Save a mask that is white where to repaint. OpenAI marks those places by transparency, A1111 by white."""
    path = save_picture(desk, data, "mask.png")
    with Image.open(io.BytesIO(data)) as opened:
        if transparent_is_new:
            drawn = opened.convert("RGBA").getchannel("A").point(lambda alpha: 255 if alpha < 128 else 0)
        else:
            drawn = opened.convert("L")
    drawn.save(path, "PNG")
    return path


def error_answer(asked: Asked, trouble: Trouble, status: int = 400) -> JSONResponse:
    """Write an error so that both OpenAI's and A1111's clients can read it."""
    words = " ".join(translate(each, language(asked)) for each in (trouble.sentence, *trouble.objections))
    error = {"message": words, "type": "invalid_request_error", "code": trouble.sentence.key, "param": None}
    return JSONResponse({"error": error, "detail": words}, status_code=status)
