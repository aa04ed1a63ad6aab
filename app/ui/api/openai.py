"""Answer OpenAI's API (/v1): speech, models, pictures."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import soundfile
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.engine.files import stream_encoding
from app.engine.files.outward import public_name
from app.engine.jobs.events import END, Event, Failed, Finished, PartDone, Stopped
from app.engine.jobs.request import FORMATS, PictureRequest, SpeechRequest
from app.engine.models.model import Kind
from app.engine.models.on_disk import locate
from app.engine.text import voices
from app.sentence import Trouble, say
from app.ui.api.shared import encode_base64, error_answer, read_json, require_owner, run_job, save_mask, save_picture
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_for
from app.ui.state.person import Person

TAG: Final = "[S1] "
EVENTS: Final = "text/event-stream"
DONE: Final = b'data: {"type": "speech.audio.done", "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}}\n\n'
STATUS: Final = {"api.no-model": 404, "programs.owner": 401}
"""HTTP status by the sentence; any other error is 400."""
PartOrEnd = PartDone | Finished | Stopped | Failed
Handler = Callable[[Desk, Request, Person], Awaitable[Response]]


def routes(desk: Desk) -> list[Route]:
    return build_routes(desk, [
        ("/v1/audio/speech", "POST", answer_speech), ("/v1/models", "GET", list_models), ("/v1/models/{model:path}", "GET", show_model),
        ("/v1/images/generations", "POST", answer_generation), ("/v1/images/edits", "POST", answer_edit),
    ])  # fmt: skip


def build_routes(desk: Desk, table: list[tuple[str, str, Handler]]) -> list[Route]:
    """Serve each handler under its path, for the owner only, with every Trouble as JSON that clients can read."""

    def route(path: str, method: str, handler: Handler) -> Route:
        async def answer(asked: Request) -> Response:
            try:
                return await handler(desk, asked, require_owner(asked))
            except Trouble as trouble:
                return error_answer(asked, trouble, STATUS.get(trouble.sentence.key, 400))
            except (ValueError, TypeError) as fault:
                return error_answer(
                    asked, Trouble(say("programs.value", "A value in the request has the wrong type: {fault}.", fault=str(fault)))
                )

        return Route(path, answer, methods=[method])

    return [route(*row) for row in table]


async def answer_speech(desk: Desk, asked: Request, person: Person) -> Response:
    given = await read_json(asked)
    wanted = str(given.get("response_format") or "mp3")
    stream_encoding.require_available(wanted)
    request = speech_request(desk, given, wanted)
    streaming = str(given.get("stream_format") or "")
    if streaming not in ("", "audio", "sse"):
        raise Trouble(say("api.stream", "stream_format {wanted} is not supported. Use audio or sse.", wanted=streaming))
    if streaming and request.speed == 1.0:  # another speed is made from the finished sound
        return await stream_speech(desk, request, person, wanted, events=streaming == "sse")
    _, (file, *_) = await run_job(desk, request, person)
    if streaming != "sse" and wanted in FORMATS:
        return FileResponse(file, media_type=stream_encoding.MEDIA[wanted])
    sound = await run_in_threadpool(stream_encoding.encode_file, wanted, file)
    if streaming == "sse":
        return Response(audio_event(sound) + DONE, media_type=EVENTS)
    return Response(sound, media_type=stream_encoding.MEDIA[wanted])


async def list_models(desk: Desk, asked: Request, person: Person) -> Response:
    names = await run_in_threadpool(lambda: [public_name(each.id) for each in desk.models.list_all() if locate(desk.keeper.home, each)])
    return JSONResponse({"object": "list", "data": [model_entry(each) for each in names]})


async def show_model(desk: Desk, asked: Request, person: Person) -> Response:
    wanted = asked.path_params["model"]
    if not any(public_name(each.id) == wanted and locate(desk.keeper.home, each) for each in desk.models.list_all()):
        raise no_such_model(wanted)
    return JSONResponse(model_entry(wanted))


async def answer_generation(desk: Desk, asked: Request, person: Person) -> Response:
    given = await read_json(asked)
    return await paint(desk, asked, person, picture_request(desk, given), given)


async def answer_edit(desk: Desk, asked: Request, person: Person) -> Response:
    async with asked.form(max_files=4, max_part_size=1 << 20) as form:
        given = {key: value for key, value in form.items() if isinstance(value, str)}
        first, second = [await read_upload(form.get(each) or form.get(f"{each}[]")) for each in ("image", "mask")]
    if first is None:
        raise Trouble(say("api.no-image", "An edit needs a picture to start from. Send it as image."))
    image = await run_in_threadpool(save_picture, desk, first, "start.png")
    mask = None if second is None else str(await run_in_threadpool(save_mask, desk, second, True))
    return await paint(desk, asked, person, picture_request(desk, given, str(image), mask), given)


async def read_upload(part: Any) -> bytes | None:
    return await part.read() if isinstance(part, UploadFile) else None


def add_speaker_tag(text: str) -> str:
    """Tag plain text as one speaker's."""
    return text if not text.strip() or text.lstrip().startswith("[S") else TAG + text


def find_model(desk: Desk, wanted: Any, kind: Kind) -> str:
    """Find an installed model by name. Clients have to name some model, so an unknown one gives "", the best installed."""
    for each in desk.models.list_all():
        if each.kind == kind and public_name(each.id) == wanted and locate(desk.keeper.home, each):
            return each.id
    return ""


def find_voice(desk: Desk, wanted: Any) -> Any:
    """Find a saved voice by name; any other name, such as alloy, gives None, a new voice."""
    return next((each.prompt for each in voices.list_voices(desk.keeper.home) if each.name == wanted), None)


def model_entry(id_: str) -> dict[str, Any]:
    return {"id": id_, "object": "model", "created": 0, "owned_by": "hearth"}


def no_such_model(wanted: str) -> Trouble:
    return Trouble(say("api.no-model", "No model called {model} is installed. GET /v1/models lists those that are.", model=wanted))


def speech_request(desk: Desk, given: dict[str, Any], wanted: str) -> SpeechRequest:
    return SpeechRequest(
        add_speaker_tag(str(given.get("input") or "")), find_model(desk, given.get("model"), "speech"), find_voice(desk, given.get("voice")),
        None if given.get("seed") is None else int(given["seed"]), speed=float(given.get("speed") or 1.0), format=wanted if wanted in FORMATS else "wav",
    )  # fmt: skip


def picture_request(desk: Desk, given: dict[str, Any], image: str | None = None, mask: str | None = None) -> PictureRequest:
    width, height = None, None
    if (size := str(given.get("size") or "auto")) != "auto":
        try:
            width, height = map(int, size.split("x"))
        except ValueError as fault:
            raise Trouble(say("api.size", "{size} is not a valid size. Write it as 512x512, or auto.", size=size)) from fault
    seed, steps = (int(given[key]) if given.get(key) not in (None, "") else None for key in ("seed", "steps"))
    return PictureRequest(
        str(given.get("prompt") or ""), find_model(desk, given.get("model"), "picture"), str(given.get("negative_prompt") or ""), width=width,
        height=height, steps=steps, seed=seed, batch=int(given.get("n") or 1), image=image, mask=mask,
    )  # fmt: skip


async def paint(desk: Desk, asked: Request, person: Person, request: PictureRequest, given: dict[str, Any]) -> Response:
    job, files = await run_job(desk, request, person)
    if given.get("response_format") == "url":
        here = f"{asked.url.scheme}://{asked.url.netloc}"
        data = [{"url": f"{here}/hearth/creation/{each.id}"} for each in desk.keeper.shelf.list_of_job(job)]
    else:
        data = [{"b64_json": await run_in_threadpool(encode_base64, file)} for file in files]
    return JSONResponse({"created": int(time.time()), "data": data})


async def stream_speech(desk: Desk, request: SpeechRequest, person: Person, wanted: str, events: bool) -> Response:
    """Send each part once spoken, before the whole speech is levelled. A job that fails at once gets an error
    answer."""
    try:
        job = desk.jobs.begin(request, person)
    except Trouble as trouble:
        raise redact_for(person, trouble) from trouble
    following = desk.keeper.follow(job)
    first = await run_in_threadpool(next_part, following)
    if isinstance(first, Failed):
        raise redact_for(person, Trouble(first.sentence, *first.objections))
    body = encode_parts(desk, job, wanted, first, following)
    if events:
        return StreamingResponse(as_events(body), media_type=EVENTS)
    return StreamingResponse(body, media_type=stream_encoding.MEDIA[wanted])


async def encode_parts(desk: Desk, job: str, wanted: str, first: PartOrEnd, following: Iterator[Event]) -> AsyncGenerator[bytes]:
    """Encode each spoken part as it arrives; stop the job if the listener goes away."""
    event = first
    coder: stream_encoding.Encoder | None = None
    try:
        while isinstance(event, PartDone):
            if coder is None:
                coder = await run_in_threadpool(stream_encoding.open_encoder, wanted, soundfile.info(event.path).samplerate)
            yield await run_in_threadpool(stream_encoding.encode_part, coder, Path(event.path))
            event = await run_in_threadpool(next_part, following)
        if coder is not None:
            yield await run_in_threadpool(coder.end)
    finally:
        if not isinstance(event, END):
            desk.keeper.stop(job)


async def as_events(pieces: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """Wrap encoded sound in OpenAI's server-sent events."""
    try:
        async for piece in pieces:
            if piece:
                yield audio_event(piece)
        yield DONE
    finally:
        await pieces.aclose()


def audio_event(piece: bytes) -> bytes:
    event = {"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode()}
    return f"data: {json.dumps(event)}\n\n".encode()


def next_part(events: Iterator[Event]) -> PartOrEnd:
    return next(each for each in events if isinstance(each, PartDone | Finished | Stopped | Failed))
