"""Answer OpenAI's API for pictures: /v1/images/generations and /v1/images/edits, whole or as a stream of events."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from pydantic import Field, field_validator
from starlette.background import BackgroundTask
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.base.sentence import say
from app.base.trouble import BadRequest, Trouble
from app.engine.jobs.events import Failed
from app.engine.jobs.progress import Progress
from app.engine.jobs.quicker import Quicker
from app.engine.jobs.request import PictureRequest
from app.engine.models.painted_tiles import find_larger
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.encoded import FORMATS, QUALITY, Wanted, encode_picture
from app.ui.access.program_answers import shape_error
from app.ui.api.answered_pictures import fit_size, refuse_unused, write_size
from app.ui.api.following import follow, work
from app.ui.api.shared import EVENTS, begin_job, encode_base64, find_model, run_job, save_mask, save_picture, stop_unheard, wait_while_heard
from app.ui.page.translate import join, language
from app.ui.state.asked import Harmless, Programs, Whole, Word, fit, refuse_rest
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_for
from app.ui.state.person import Person

HARMLESS: Final[Harmless] = {
    "user": None, "moderation": None, "quality": ("", "auto", "standard"), "style": ("", "vivid"), "background": ("", "auto", "opaque"),
    "input_fidelity": ("", "low"),
}  # fmt: skip
"""OpenAI's clients send these beside what Hearth knows."""
LINKED: Final = ("dall-e-2", "dall-e-3")
"""These models answer with links where nothing else is asked for."""
PARTIAL_MOST: Final = 3
FILES_MOST: Final = 17
NO_TOKENS: Final = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


class PictureAsked(Programs):
    prompt: str = ""
    model: str | None = None
    negative_prompt: str | None = None
    size: Word | None = None
    n: Whole | None = None
    seed: Whole | None = None
    steps: Whole | None = None
    guidance: float | None = None
    strength: float | None = None
    quicker: Word | None = None
    """It may be off, little or much; it is Hearth's own, as are the five before it but n."""
    response_format: Word | None = None
    output_format: Word | None = None
    output_compression: Whole | None = None
    streams: bool | None = Field(default=None, alias="stream")
    partial_images: Whole | None = None

    @field_validator("*", mode="before")
    @classmethod
    def empty_is_none(cls, value: Any) -> Any:
        """Read a form's empty field as one that was left out."""
        return None if value == "" else value

    @field_validator("prompt", mode="before")
    @classmethod
    def no_prompt(cls, value: Any) -> Any:
        return "" if value is None else value


@dataclass(frozen=True, slots=True)
class Answer:
    """How an answer is written."""

    noun: str
    """Its events are called by it: image_generation or image_edit."""
    wanted: Wanted
    links: bool
    partial: int
    """At most so many pictures are sent before the last one."""


async def answer_generation(desk: Desk, asked: Request, person: Person, given: PictureAsked) -> Response:
    return await paint(desk, asked, person, given, "image_generation")


async def answer_edit(desk: Desk, asked: Request, person: Person) -> Response:
    try:
        async with asked.form(max_files=FILES_MOST, max_part_size=1 << 20) as form:
            given = fit(PictureAsked, {key: value for key, value in form.items() if isinstance(value, str)})
            images, masks = [
                [await each.read() for name in (name, f"{name}[]") for each in form.getlist(name) if isinstance(each, UploadFile)]
                for name in ("image", "mask")
            ]
    except (LookupError, ValueError, HTTPException) as fault:  # an unknown charset, a part that breaks off
        said = fault.detail if isinstance(fault, HTTPException) else str(fault)
        raise Trouble(say("api.form", "The form cannot be read ({fault}). Send it as multipart/form-data.", fault=said)) from fault
    if not images:
        raise Trouble(say("api.no-image", "An edit needs a picture to start from. Send it as image."), field="image")
    for name, files in (("image", images), ("mask", masks)):
        if len(files) > 1:
            raise BadRequest(
                say(
                    "api.one-image",
                    "An edit starts from one picture; this request has {count} as {name}. Send one.",
                    count=len(files),
                    name=name,
                ),
                field=name,
            )
    image = await work(save_picture, desk, images[0], "start.png")
    mask = str(await work(save_mask, desk, masks[0], True)) if masks else None
    return await paint(desk, asked, person, given, "image_edit", image=str(image), mask=mask)


async def paint(
    desk: Desk, asked: Request, person: Person, given: PictureAsked, noun: str, *, image: str | None = None, mask: str | None = None
) -> Response:
    refuse_rest(given, HARMLESS)
    request, size = await work(lambda: fit_size(desk, picture_request(desk, given, image, mask)))
    await work(refuse_unused, desk, request, given.strength is not None)
    answer = Answer(noun, read_wanted(given, size), wants_links(given), read_partial(given))
    if answer.links and answer.wanted != Wanted():
        raise BadRequest(
            say("api.linked", "A link leads to the picture as it was painted, a PNG. Ask for b64_json, which has every size and format."),
            field="response_format",
        )
    if given.streams:
        return await stream_pictures(desk, asked, request, person, answer)
    job, files = await run_job(desk, asked, request, person)
    return JSONResponse(await work(write_pictures, desk, asked, job, files, answer))


def picture_request(desk: Desk, given: PictureAsked, image: str | None = None, mask: str | None = None) -> PictureRequest:
    width, height = None, None
    if (size := given.size or "auto") != "auto":
        try:
            width, height = map(int, size.split("x"))
        except ValueError as fault:
            raise BadRequest(
                say("api.size", "{size} is not a valid size. Write it as 512x512, or auto.", size=size), field="size"
            ) from fault
    more: dict[str, Any] = {} if given.strength is None else {"strength": given.strength}
    return PictureRequest(
        given.prompt,
        find_model(desk, given.model, "picture"),
        given.negative_prompt or "",
        width=width,
        height=height,
        steps=given.steps,
        guidance=given.guidance,
        seed=given.seed,
        batch=1 if given.n is None else given.n,
        image=image,
        mask=mask,
        quicker=cast(Quicker, given.quicker or "off"),
        **more,
    )


def read_wanted(given: PictureAsked, size: tuple[int, int] | None) -> Wanted:
    wanted, quality = given.output_format or "png", given.output_compression
    if wanted not in FORMATS:
        raise BadRequest(
            say("api.picture-format", "output_format {wanted} is not supported. Use one of: {known}.", wanted=wanted, known=FORMATS),
            field="output_format",
        )
    if quality is not None and not 0 <= quality <= 100:
        raise BadRequest(say("api.compression", "output_compression must be from 0 to 100."), field="output_compression")
    return Wanted(wanted, QUALITY if quality is None else quality, size)


def wants_links(given: PictureAsked) -> bool:
    wanted = given.response_format or ("url" if given.model in LINKED and not given.streams else "b64_json")
    if wanted not in ("url", "b64_json") or (given.streams and wanted == "url"):
        words = say(
            "api.picture-answer", "response_format {wanted} is not supported here. Use url, or b64_json, as streams do.", wanted=wanted
        )
        raise BadRequest(words, field="response_format")
    return wanted == "url"


def read_partial(given: PictureAsked) -> int:
    wanted = given.partial_images or 0
    if not 0 <= wanted <= PARTIAL_MOST:
        raise BadRequest(say("api.partial", "partial_images must be from 0 to {most}.", most=PARTIAL_MOST), field="partial_images")
    return wanted


def write_pictures(desk: Desk, asked: Request, job: str, files: Sequence[Path], answer: Answer) -> dict[str, Any]:
    if answer.links:
        here = f"{asked.url.scheme}://{asked.url.netloc}"
        data = [{"url": f"{here}/hearth/creation/{each.id}"} for each in desk.keeper.shelf.list_of_job(job)]
    else:
        data = [{"b64_json": encode(each, answer.wanted)} for each in files]
    return {"created": int(time.time()), "data": data, **describe(files[0], answer.wanted), "usage": NO_TOKENS}


def encode(path: Path, wanted: Wanted) -> str:
    return base64.b64encode(encode_picture(path, wanted)).decode()


def describe(file: Path, wanted: Wanted) -> dict[str, Any]:
    """Say what the picture is, whatever was asked for."""
    request = picture_settings.read(file).request
    size = wanted.size or find_larger((request.width or 0, request.height or 0), request.upscale)
    return {"size": write_size(size), "quality": "auto", "background": "opaque", "output_format": wanted.format}


async def stream_pictures(desk: Desk, asked: Request, request: PictureRequest, person: Person, answer: Answer) -> Response:
    """Send previews and pictures as events. A job that fails before its first step gets an error answer."""
    job = await begin_job(desk, request, person)
    progress = await wait_while_heard(desk, asked, job, lambda progress: progress.step is not None)
    if isinstance(progress.end, Failed):
        raise redact_for(person, progress.end.trouble)
    body = list_events(desk, asked, job, person, answer)
    return StreamingResponse(body, media_type=EVENTS, background=BackgroundTask(stop_unheard, desk, job))


async def list_events(desk: Desk, asked: Request, job: str, person: Person, answer: Answer) -> AsyncGenerator[bytes]:
    sent = 0
    async with aclosing(follow(desk.keeper, job)) as following:
        async for progress in following:
            if sent < answer.partial and (preview := find_preview(progress, sent, answer.partial)) is not None:
                told = {"b64_json": await work(encode_base64, preview), "partial_image_index": sent, "created_at": int(time.time())}
                yield write_event(
                    f"{answer.noun}.partial_image", told | {"output_format": "jpeg", "background": "opaque", "quality": "auto"}
                )
                sent += 1
    end = progress.end
    if isinstance(end, Failed):
        trouble = redact_for(person, end.trouble)
        words = join(language(asked), trouble.sentence, *trouble.objections)
        yield write_event("error", shape_error(asked.url.path, words, 400, trouble.code))
        return
    for file in map(Path, end.files if end is not None else ()):
        told = {"b64_json": await work(encode, file, answer.wanted), "created_at": int(time.time()), "usage": NO_TOKENS}
        yield write_event(f"{answer.noun}.completed", told | await work(describe, file, answer.wanted))


def find_preview(progress: Progress, sent: int, most: int) -> Path | None:
    """Return the preview to send next, so that they lie evenly between start and end."""
    step, preview = progress.step, progress.preview
    if step is None or preview is None or preview.step * (most + 1) < step.total * (sent + 1):
        return None
    path = Path(preview.path)
    return path if path.is_file() else None


def write_event(name: str, told: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **told})}\n\n".encode()
