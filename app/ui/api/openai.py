"""Answer OpenAI's API (/v1): speech, models, pictures; transcriptions stand beside."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, cast

from pydantic import field_validator
from starlette.background import BackgroundTask
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.base.sentence import say
from app.base.trouble import NoSuchModel, Trouble
from app.engine.jobs.events import Failed
from app.engine.jobs.outward import public_name
from app.engine.jobs.quicker import Quicker
from app.engine.jobs.request import FORMATS, Actor, KindName, PictureRequest, SpeechRequest
from app.engine.models.on_disk import locate
from app.engine.speech.sound import sound, stream_encoding
from app.engine.speech.text.cast_table import read_table
from app.engine.speech.text.cast_tags import list_names
from app.ui.api.following import follow, work
from app.ui.api.shared import begin_job, encode_base64, error_answer, require_owner, run_job, save_mask, save_picture, wait_while_heard
from app.ui.api.transcriptions import answer_transcription
from app.ui.state.asked import Asked, Whole, Word, fit, read_asked
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_for
from app.ui.state.person import OWNER, Person

TAG: Final = "[S1] "
EVENTS: Final = "text/event-stream"
DONE: Final = b'data: {"type": "speech.audio.done", "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}}\n\n'
Handler = Callable[..., Awaitable[Response]]
"""Takes desk, request, person and, if the route has a schema, what was asked."""
Row = tuple[str, str, Handler, type[Asked] | None]


class SpeechAsked(Asked):
    input: str = ""
    model: str | None = None
    voice: Any = None
    """A name; newer clients may send an object, which names no voice of Hearth's."""
    response_format: Word | None = None
    stream_format: Word | None = None
    speed: float | None = None
    seed: Whole | None = None
    cast: dict[str, Any] | None = None
    """Hearth's own: the voice of each name in the script, as docs/cast.md says."""


class PictureAsked(Asked):
    prompt: str = ""
    model: str | None = None
    negative_prompt: str | None = None
    size: Word | None = None
    n: Whole | None = None
    seed: Whole | None = None
    steps: Whole | None = None
    quicker: Word | None = None
    """Hearth's own: off, little or much."""
    response_format: Word | None = None

    @field_validator("n", "seed", "steps", mode="before")
    @classmethod
    def empty_is_none(cls, value: Any) -> Any:
        """Read a form's empty field as one that was left out."""
        return None if value == "" else value


class ModelAsked(Asked):
    model: str


def routes(desk: Desk) -> list[Route]:
    return build_routes(desk, [
        ("/v1/audio/speech", "POST", answer_speech, SpeechAsked), ("/v1/audio/voices", "GET", list_voices, None), ("/v1/models", "GET", list_models, None),
        ("/v1/models/{model:path}", "GET", show_model, ModelAsked), ("/v1/images/generations", "POST", answer_generation, PictureAsked),
        ("/v1/images/edits", "POST", answer_edit, None), ("/v1/audio/transcriptions", "POST", answer_transcription, None),
    ])  # fmt: skip


def build_routes(desk: Desk, table: list[Row]) -> list[Route]:
    """Serve each handler under its path, for the owner only, with every Trouble as JSON that clients can read."""

    def route(path: str, method: str, handler: Handler, schema: type[Asked] | None) -> Route:
        async def answer(asked: Request) -> Response:
            try:
                person = require_owner(asked)
                return await handler(desk, asked, person, *([await read_asked(asked, schema)] if schema else []))
            except Trouble as trouble:
                return error_answer(asked, trouble)

        return Route(path, answer, methods=[method])

    return [route(*row) for row in table]


async def answer_speech(desk: Desk, asked: Request, person: Person, given: SpeechAsked) -> Response:
    wanted = given.response_format or "mp3"
    stream_encoding.require_available(wanted)
    request = await work(speech_request, desk, given, wanted)
    streaming = given.stream_format or ""
    if streaming not in ("", "audio", "sse"):
        raise Trouble(say("api.stream", "stream_format {wanted} is not supported. Use audio or sse.", wanted=streaming))
    if streaming and request.speed == 1.0 and not request.cast:  # another speed is made from the finished sound, and so are volume and pace
        return await stream_speech(desk, asked, request, person, wanted, events=streaming == "sse")
    _, (file, *_) = await run_job(desk, asked, request, person)
    if streaming != "sse" and wanted in FORMATS:
        return FileResponse(file, media_type=stream_encoding.MEDIA[wanted])
    sound = await work(stream_encoding.encode_file, wanted, file)
    if streaming == "sse":
        return Response(audio_event(sound) + DONE, media_type=EVENTS)
    return Response(sound, media_type=stream_encoding.MEDIA[wanted])


async def list_models(desk: Desk, asked: Request, person: Person) -> Response:
    names = await work(lambda: [public_name(each.id) for each in desk.models.list_all() if locate(desk.keeper.home, each)])
    return JSONResponse({"object": "list", "data": [model_entry(each) for each in names]})


async def list_voices(desk: Desk, asked: Request, person: Person) -> Response:
    """List the voices of every installed voice model, as `voice` and `cast` name them."""
    installed = await work(desk.models.list_choices, "speech")
    data = [
        {"id": each.name, "object": "voice", "model": public_name(id_)}
        for _, id_ in installed
        for each in await work(desk.models.list_voices, id_, OWNER)
    ]
    return JSONResponse({"object": "list", "data": data})


async def show_model(desk: Desk, asked: Request, person: Person, given: ModelAsked) -> Response:
    wanted = given.model
    if not any(public_name(each.id) == wanted and locate(desk.keeper.home, each) for each in desk.models.list_all()):
        raise no_such_model(wanted)
    return JSONResponse(model_entry(wanted))


async def answer_generation(desk: Desk, asked: Request, person: Person, given: PictureAsked) -> Response:
    return await paint(desk, asked, person, await work(picture_request, desk, given), given)


async def answer_edit(desk: Desk, asked: Request, person: Person) -> Response:
    try:
        async with asked.form(max_files=4, max_part_size=1 << 20) as form:
            given = fit(PictureAsked, {key: value for key, value in form.items() if isinstance(value, str)})
            first, second = [await read_upload(form.get(each) or form.get(f"{each}[]")) for each in ("image", "mask")]
    except (LookupError, ValueError, HTTPException) as fault:  # an unknown charset, a part that breaks off
        said = fault.detail if isinstance(fault, HTTPException) else str(fault)
        raise Trouble(say("api.form", "The form cannot be read ({fault}). Send it as multipart/form-data.", fault=said)) from fault
    if first is None:
        raise Trouble(say("api.no-image", "An edit needs a picture to start from. Send it as image."))
    image = await work(save_picture, desk, first, "start.png")
    mask = None if second is None else str(await work(save_mask, desk, second, True))
    return await paint(desk, asked, person, await work(picture_request, desk, given, str(image), mask), given)


async def read_upload(part: Any) -> bytes | None:
    return await part.read() if isinstance(part, UploadFile) else None


def add_speaker_tag(text: str) -> str:
    """Tag plain text as one speaker's."""
    return text if not text.strip() or list_names(text) else TAG + text


def find_model(desk: Desk, wanted: Any, kind: KindName) -> str:
    """Find an installed model by name. Clients have to name some model, so an unknown one gives "", the best installed; one of the other
    kind is refused as a job."""
    named = [each for each in desk.models.list_all() if public_name(each.id) == wanted and locate(desk.keeper.home, each)]
    return next((each.id for each in sorted(named, key=lambda each: each.kind != kind)), "")


def find_voice(desk: Desk, wanted: Any, model: str) -> Any:
    """Find a voice that the model can speak with by name; any other name, such as alloy, gives None, a new voice."""
    return next((each.prompt for each in desk.models.list_voices(model, OWNER) if each.name == wanted), None)


def model_entry(id_: str) -> dict[str, Any]:
    return {"id": id_, "object": "model", "created": 0, "owned_by": "hearth"}


def no_such_model(wanted: str) -> Trouble:
    return NoSuchModel(say("api.no-model", "No model called {model} is installed. GET /v1/models lists those that are.", model=wanted))


def speech_request(desk: Desk, given: SpeechAsked, wanted: str) -> SpeechRequest:
    model = find_model(desk, given.model, "speech")
    cast = read_cast(desk, given.cast, model) if given.cast else ()
    return SpeechRequest(
        given.input if cast else add_speaker_tag(given.input), model, find_voice(desk, given.voice, model), given.seed,
        speed=given.speed or 1.0, format=wanted if wanted in FORMATS else "wav", cast=cast,
    )  # fmt: skip


def read_cast(desk: Desk, table: dict[str, Any], model: str) -> tuple[Actor, ...]:
    """Read the cast of a program; a model that it names has to be here."""

    def find(name: str) -> str:
        if found := find_model(desk, name, "speech"):
            return found
        raise no_such_model(name)

    return read_table(table, model, find, lambda id_: desk.models.list_voices(id_, OWNER))


def picture_request(desk: Desk, given: PictureAsked, image: str | None = None, mask: str | None = None) -> PictureRequest:
    width, height = None, None
    if (size := given.size or "auto") != "auto":
        try:
            width, height = map(int, size.split("x"))
        except ValueError as fault:
            raise Trouble(say("api.size", "{size} is not a valid size. Write it as 512x512, or auto.", size=size)) from fault
    return PictureRequest(
        given.prompt, find_model(desk, given.model, "picture"), given.negative_prompt or "", width=width, height=height, steps=given.steps,
        seed=given.seed, batch=given.n or 1, image=image, mask=mask, quicker=cast(Quicker, given.quicker or "off"),
    )  # fmt: skip


async def paint(desk: Desk, asked: Request, person: Person, request: PictureRequest, given: PictureAsked) -> Response:
    job, files = await run_job(desk, asked, request, person)
    if given.response_format == "url":
        here = f"{asked.url.scheme}://{asked.url.netloc}"
        data = [{"url": f"{here}/hearth/creation/{each.id}"} for each in desk.keeper.shelf.list_of_job(job)]
    else:
        data = [{"b64_json": await work(encode_base64, file)} for file in files]
    return JSONResponse({"created": int(time.time()), "data": data})


async def stream_speech(desk: Desk, asked: Request, request: SpeechRequest, person: Person, wanted: str, events: bool) -> Response:
    """Send each part once spoken, before the whole speech is levelled. A job that fails at once gets an error
    answer."""
    job = await begin_job(desk, request, person)
    progress = await wait_while_heard(desk, asked, job, lambda progress: bool(progress.parts))
    if not progress.parts and isinstance(progress.end, Failed):
        raise redact_for(person, progress.end.trouble)
    body = encode_parts(desk, job, request, wanted)
    kind, pieces = (EVENTS, as_events(body)) if events else (stream_encoding.MEDIA[wanted], body)
    return StreamingResponse(pieces, media_type=kind, background=BackgroundTask(stop_unheard, desk, job))


async def stop_unheard(desk: Desk, job: str) -> None:
    """Stop a job whose listener went away before its end."""
    if desk.keeper.get_progress(job).end is None:
        await work(desk.keeper.stop, job)


async def encode_parts(desk: Desk, job: str, request: SpeechRequest, wanted: str) -> AsyncGenerator[bytes]:
    """Encode each spoken part once, as it arrives, after the pause that the script has there."""
    split = await work(desk.jobs.split_script, job, request)
    coder: stream_encoding.Encoder | None = None
    sent: set[int] = set()
    async with aclosing(follow(desk.keeper, job)) as following:
        async for progress in following:
            for part in progress.parts:
                if part.index in sent:
                    continue
                if coder is None:
                    coder = await work(stream_encoding.open_encoder, wanted, sound.measure(Path(part.path)).rate)
                pause_s = split[part.index].pause_before_s if sent and part.index < len(split) else 0.0
                yield await work(stream_encoding.encode_part, coder, Path(part.path), pause_s)
                sent.add(part.index)
    if coder is not None:
        yield await work(coder.end)


async def as_events(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Wrap encoded sound in OpenAI's server-sent events."""
    async with aclosing(pieces):
        async for piece in pieces:
            if piece:
                yield audio_event(piece)
        yield DONE


def audio_event(piece: bytes) -> bytes:
    event = {"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode()}
    return f"data: {json.dumps(event)}\n\n".encode()
