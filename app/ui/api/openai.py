"""The way in for programs that speak OpenAI's language: speech, models, pictures. Knows nothing of A1111's."""

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
from app.engine.files.outward import name
from app.engine.jobs.events import END, Event, Failed, Finished, Part, Stopped
from app.engine.jobs.request import FORMATS, PictureRequest, SpeechRequest
from app.engine.models.model import Kind
from app.engine.models.on_disk import located
from app.engine.text import voices
from app.sentence import Trouble, say
from app.ui.api.shared import carried_out, encoded, mask_from, picture_from, programmer, troubled, values_of
from app.ui.state.desk import Desk
from app.ui.state.person import Person
from app.ui.state.visitor_limits import redact_for

TAG: Final = "[S1] "
EVENTS: Final = "text/event-stream"
DONE: Final = (
    b'data: {"type": "speech.audio.done", "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}}\n\n'
)
Handler = Callable[[Request], Awaitable[Response]]


def routes(desk: Desk) -> list[Route]:
    async def speech(asked: Request) -> Response:
        person, given = programmer(asked), await values_of(asked)
        wanted = str(given.get("response_format") or "mp3")
        stream_encoding.available(wanted)
        request = SpeechRequest(
            spoken(str(given.get("input") or "")), model_for(desk, given.get("model"), "speech"), voice_for(desk, given.get("voice")),
            None if given.get("seed") is None else int(given["seed"]), speed=float(given.get("speed") or 1.0), format=wanted if wanted in FORMATS else "wav",
        )  # fmt: skip
        streaming = str(given.get("stream_format") or "")
        if streaming not in ("", "audio", "sse"):
            raise Trouble(say("api.stream", "stream_format is audio or sse, not {wanted}.", wanted=streaming))
        if streaming and request.speed == 1.0:  # Another speed is made of the whole.
            return await streamed(desk, request, person, wanted, events=streaming == "sse")
        _, (file, *_) = await carried_out(desk, request, person)
        if streaming != "sse" and wanted in FORMATS:
            return FileResponse(file, media_type=stream_encoding.MEDIA[wanted])
        sound = await run_in_threadpool(stream_encoding.whole, wanted, file)
        if streaming == "sse":
            return Response(delta(sound) + DONE, media_type=EVENTS)
        return Response(sound, media_type=stream_encoding.MEDIA[wanted])

    async def models(asked: Request) -> Response:
        programmer(asked)
        there = await run_in_threadpool(lambda: [each for each in desk.models.list_all() if located(desk.keeper.home, each)])
        return JSONResponse({"object": "list", "data": [described(name(each.id)) for each in there]})

    async def model(asked: Request) -> Response:
        programmer(asked)
        wanted = asked.path_params["model"]
        if not any(name(each.id) == wanted and located(desk.keeper.home, each) for each in desk.models.list_all()):
            raise Trouble(say("api.no-model", "There is no model called {model} here.", model=wanted))
        return JSONResponse(described(wanted))

    async def generations(asked: Request) -> Response:
        person, given = programmer(asked), await values_of(asked)
        return await painted(desk, asked, person, picture_request(desk, given), given)

    async def edits(asked: Request) -> Response:
        person = programmer(asked)
        async with asked.form(max_files=4, max_part_size=1 << 20) as form:
            given = {key: value for key, value in form.items() if isinstance(value, str)}
            first, second = [await sent(form.get(each) or form.get(f"{each}[]")) for each in ("image", "mask")]
        if first is None:
            raise Trouble(say("api.no-image", "An edit needs a picture to start from, as image."))
        image = await run_in_threadpool(picture_from, desk, first, "start.png")
        mask = None if second is None else str(await run_in_threadpool(mask_from, desk, second, True))
        return await painted(desk, asked, person, picture_request(desk, given, str(image), mask), given)

    table: list[tuple[str, str, Handler]] = [
        ("/v1/audio/speech", "POST", speech), ("/v1/models", "GET", models), ("/v1/models/{model:path}", "GET", model),
        ("/v1/images/generations", "POST", generations), ("/v1/images/edits", "POST", edits),
    ]  # fmt: skip
    return [Route(path, told(handler), methods=[method]) for path, method, handler in table]


def told(handler: Handler) -> Handler:
    """Every trouble as an answer that clients can read."""

    async def answering(asked: Request) -> Response:
        try:
            return await handler(asked)
        except Trouble as trouble:
            status = {"api.no-model": 404, "programs.owner": 401}.get(trouble.sentence.key, 400)
            return troubled(asked, trouble, status)
        except (ValueError, TypeError) as fault:
            return troubled(asked, Trouble(say("programs.value", "A value is not of the kind that is expected: {fault}.", fault=str(fault))))  # fmt: skip

    return answering


async def sent(part: Any) -> bytes | None:
    return await part.read() if isinstance(part, UploadFile) else None


def spoken(text: str) -> str:
    """Plain text is one voice's."""
    return text if not text.strip() or text.lstrip().startswith("[S") else TAG + text


def model_for(desk: Desk, wanted: Any, kind: Kind) -> str:
    """Clients name OpenAI's models because they must; what we do not know is the best that is here."""
    for each in desk.models.list_all():
        if each.kind == kind and name(each.id) == wanted and located(desk.keeper.home, each):
            return each.id
    return ""


def voice_for(desk: Desk, wanted: Any) -> Any:
    """A voice that was kept under this name; any other name, such as alloy, is a fresh one."""
    return next((each.prompt for each in voices.list_voices(desk.keeper.home) if each.name == wanted), None)


def described(id_: str) -> dict[str, Any]:
    return {"id": id_, "object": "model", "created": 0, "owned_by": "hearth"}


def picture_request(
    desk: Desk, given: dict[str, Any], image: str | None = None, mask: str | None = None
) -> PictureRequest:
    width, height = None, None
    if (size := str(given.get("size") or "auto")) != "auto":
        try:
            width, height = map(int, size.split("x"))
        except ValueError as fault:
            raise Trouble(say("api.size", "{size} is no size. Write it as 512x512, or auto.", size=size)) from fault
    seed, steps = (int(given[key]) if given.get(key) not in (None, "") else None for key in ("seed", "steps"))
    return PictureRequest(
        str(given.get("prompt") or ""), model_for(desk, given.get("model"), "picture"), str(given.get("negative_prompt") or ""), width=width,
        height=height, steps=steps, seed=seed, batch=int(given.get("n") or 1), image=image, mask=mask,
    )  # fmt: skip


async def painted(
    desk: Desk, asked: Request, person: Person, request: PictureRequest, given: dict[str, Any]
) -> Response:
    job, files = await carried_out(desk, request, person)
    if given.get("response_format") == "url":
        here = f"{asked.url.scheme}://{asked.url.netloc}"
        data = [{"url": f"{here}/hearth/creation/{each.id}"} for each in desk.keeper.shelf.of_job(job)]
    else:
        data = [{"b64_json": await run_in_threadpool(encoded, file)} for file in files]
    return JSONResponse({"created": int(time.time()), "data": data})


async def streamed(desk: Desk, request: SpeechRequest, person: Person, wanted: str, events: bool) -> Response:
    """Each part as soon as it is spoken, before the whole is levelled. The first event that matters decides whether it is an answer at all."""
    try:
        job = desk.jobs.begin(request, person)
    except Trouble as trouble:
        raise redact_for(person, trouble) from trouble
    heard_of = desk.keeper.follow(job)
    first = await run_in_threadpool(lambda: heard(heard_of))
    if isinstance(first, Failed):
        raise redact_for(person, Trouble(first.sentence, *first.objections))

    async def body() -> AsyncGenerator[bytes]:
        event: Part | Finished | Stopped | Failed = first
        packing: stream_encoding.Coder | None = None
        try:
            while isinstance(event, Part):
                if packing is None:
                    packing = await run_in_threadpool(stream_encoding.coder, wanted, soundfile.info(event.path).samplerate)
                yield await run_in_threadpool(stream_encoding.part, packing, Path(event.path))
                event = await run_in_threadpool(lambda: heard(heard_of))
            if packing is not None:
                yield await run_in_threadpool(packing.end)
        finally:
            if not isinstance(event, END):
                desk.keeper.stop(job)  # The listener went away.

    if events:
        return StreamingResponse(as_events(body()), media_type=EVENTS)
    return StreamingResponse(body(), media_type=stream_encoding.MEDIA[wanted])


async def as_events(pieces: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for piece in pieces:
            if piece:
                yield delta(piece)
        yield DONE
    finally:
        await pieces.aclose()


def delta(piece: bytes) -> bytes:
    event = {"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode()}
    return f"data: {json.dumps(event)}\n\n".encode()


def heard(events: Iterator[Event]) -> Part | Finished | Stopped | Failed:
    """The next part, or the end."""
    return next(each for each in events if isinstance(each, Part | Finished | Stopped | Failed))
