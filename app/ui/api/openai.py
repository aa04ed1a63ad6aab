"""Answer OpenAI's API (/v1): speech, voices, models; pictures and transcriptions stand beside."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from pydantic import Field
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.base.sentence import say
from app.base.trouble import BadRequest
from app.engine.jobs.events import Failed
from app.engine.jobs.outward import public_name
from app.engine.jobs.request import FORMATS, Actor, SpeechRequest, VoicePrompt
from app.engine.models.on_disk import locate
from app.engine.speech.kind import list_segments
from app.engine.speech.sound import heard_part, sound, stream_encoding
from app.engine.speech.sound.join_sound import Loudness, Segment, choose_ceiling
from app.engine.speech.text.cast_table import read_table
from app.engine.speech.text.cast_tags import list_names
from app.engine.speech.text.voices import is_brought, is_ready
from app.ui.access.program_answers import shape_error
from app.ui.api.following import follow, work
from app.ui.api.openai_pictures import PictureAsked, answer_edit, answer_generation
from app.ui.api.shared import EVENTS, begin_job, build_routes, find_model, no_such_model, run_job, stop_unheard, wait_while_heard
from app.ui.api.transcriptions import answer_transcription, refuse_translation
from app.ui.page.translate import join, language
from app.ui.state.asked import Asked, Harmless, Programs, Whole, Word, refuse_rest
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_for
from app.ui.state.person import OWNER, Person

TAG: Final = "[S1] "
DONE: Final = b'data: {"type": "speech.audio.done", "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}}\n\n'
STAND_INS: Final = {
    "alloy": "anna", "ash": "brian", "ballad": "callum", "cedar": "frank", "coral": "daisy", "echo": "callum", "fable": "edith", "marin": "heather",
    "nova": "daisy", "onyx": "george", "sage": "edith", "shimmer": "heather", "verse": "brian",
}  # fmt: skip
"""OpenAI's clients have to name one of its voices; the starter voice's here speak for them."""
HARMLESS: Final[Harmless] = {
    "instructions": ("",), "user": None, "normalization_options": None, "lang_code": ("", "a", "b", "en", "en-us", "en-gb"),
    "volume_multiplier": (1,), "return_download_link": (False,), "download_format": ("",),
}  # fmt: skip
"""OpenAI's clients and Kokoro-FastAPI's send these beside what Hearth knows."""


class SpeechAsked(Programs):
    input: str = ""
    model: str | None = None
    voice: Any = None
    """A program sends a name, or an object with the name as its id."""
    response_format: Word | None = None
    stream_format: Word | None = None
    streams: bool | None = Field(default=None, alias="stream")
    """False asks for the sound in one piece; Kokoro-FastAPI has it."""
    speed: float | None = None
    seed: Whole | None = None
    cast: dict[str, Any] | None = None
    """The voice of each name in the script stands here, as docs/cast.md says; it is Hearth's own."""


class ModelAsked(Asked):
    model: str


def routes(desk: Desk) -> list[Route]:
    return build_routes(
        desk,
        [
            ("/v1/audio/speech", "POST", answer_speech, SpeechAsked),
            ("/v1/audio/voices", "GET", list_voices, None),
            ("/v1/models", "GET", list_models, None),
            ("/v1/audio/models", "GET", list_voice_models, None),
            ("/v1/models/{model:path}", "GET", show_model, ModelAsked),
            ("/v1/images/generations", "POST", answer_generation, PictureAsked),
            ("/v1/images/edits", "POST", answer_edit, None),
            ("/v1/audio/transcriptions", "POST", answer_transcription, None),
            ("/v1/audio/translations", "POST", refuse_translation, None),
        ],
        "/v1/",
    )


async def answer_speech(desk: Desk, asked: Request, person: Person, given: SpeechAsked) -> Response:
    wanted = given.response_format or "mp3"
    stream_encoding.require_available(wanted)
    refuse_rest(given, HARMLESS)
    streaming = given.stream_format or "audio"
    if streaming not in ("audio", "sse"):
        raise BadRequest(
            say("api.stream", "stream_format {wanted} is not supported. Use audio or sse.", wanted=streaming), field="stream_format"
        )
    request = await work(speech_request, desk, given, wanted)
    if request.speed == 1.0 and given.streams is not False:  # another speed is made from the finished sound
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
    found = [(each.name, public_name(id_)) for _, id_ in installed for each in await work(desk.models.list_voices, id_, OWNER)]
    named = [{"id": name, "name": name} for name in dict.fromkeys(name for name, _ in found)]
    data = [{"id": name, "name": name, "object": "voice", "model": model} for name, model in found]
    return JSONResponse({"object": "list", "data": data, "voices": named})


async def list_voice_models(desk: Desk, asked: Request, person: Person) -> Response:
    """List the models that speak, as Open WebUI asks for them."""
    installed = await work(desk.models.list_choices, "speech")
    return JSONResponse({"models": [{"id": public_name(id_), "name": title} for title, id_ in installed]})


async def show_model(desk: Desk, asked: Request, person: Person, given: ModelAsked) -> Response:
    wanted = given.model
    if not any(public_name(each.id) == wanted and locate(desk.keeper.home, each) for each in desk.models.list_all()):
        raise no_such_model(wanted)
    return JSONResponse(model_entry(wanted))


def add_speaker_tag(text: str) -> str:
    """Tag plain text as one speaker's."""
    return text if not text.strip() or list_names(text) else TAG + text


def find_voice(desk: Desk, wanted: Any, model: str) -> VoicePrompt | None:
    """Find a voice that the model can speak with by name, whatever its capitals; one of OpenAI's names gets one of the model's ready voices, or
    none where it has none: a new voice. Raise a Trouble for any other name."""
    name = wanted.get("id") if isinstance(wanted, dict) else wanted
    if name is None or name == "":
        return None
    offered = desk.models.list_voices(model, OWNER)
    named = {called.lower(): each.prompt for each in reversed(offered) for called in each.formerly}
    named |= {each.name.lower(): each.prompt for each in reversed(offered)}
    if not isinstance(name, str) or (name.lower() not in named and name.lower() not in STAND_INS):
        words = say(
            "api.no-voice", "There is no voice {voice} here. GET /v1/audio/voices lists those that there are.", voice=str(name)[:60]
        )
        raise BadRequest(words, field="voice")
    if name.lower() in named:
        return named[name.lower()]
    limits = desk.models.read_limits(model)[1]
    ready = [each.prompt for each in offered if is_ready(each.prompt) or is_brought(each.prompt, limits)]
    place = [*STAND_INS].index(name.lower())
    return named.get(STAND_INS[name.lower()], ready[place % len(ready)] if ready else None)


def model_entry(id_: str) -> dict[str, Any]:
    return {"id": id_, "object": "model", "created": 0, "owned_by": "hearth"}


def speech_request(desk: Desk, given: SpeechAsked, wanted: str) -> SpeechRequest:
    model = find_model(desk, given.model, "speech")
    cast = read_cast(desk, given.cast, model) if given.cast else ()
    return SpeechRequest(
        given.input if cast else add_speaker_tag(given.input),
        model,
        find_voice(desk, given.voice, model),
        given.seed,
        speed=given.speed or 1.0,
        format=wanted if wanted in FORMATS else "wav",
        cast=cast,
    )


def read_cast(desk: Desk, table: dict[str, Any], model: str) -> tuple[Actor, ...]:
    """Read the cast of a program; a model that it names has to be here."""

    def find(name: str) -> str:
        if found := find_model(desk, name, "speech"):
            return found
        raise no_such_model(name)  # a stand-in: two of them would be one voice

    return read_table(table, model, find, lambda id_: desk.models.list_voices(id_, OWNER))


async def stream_speech(desk: Desk, asked: Request, request: SpeechRequest, person: Person, wanted: str, events: bool) -> Response:
    """Send each part once spoken, before the whole speech is levelled. A job that fails at once gets an error
    answer."""
    job = await begin_job(desk, request, person)
    progress = await wait_while_heard(desk, asked, job, lambda progress: bool(progress.parts))
    if not progress.parts and isinstance(progress.end, Failed):
        raise redact_for(person, progress.end.trouble)
    body = encode_parts(desk, job, request, wanted)
    kind, pieces = (EVENTS, as_events(body, asked)) if events else (stream_encoding.MEDIA[wanted], body)
    return StreamingResponse(pieces, media_type=kind, background=BackgroundTask(stop_unheard, desk, job))


async def encode_parts(desk: Desk, job: str, request: SpeechRequest, wanted: str) -> AsyncGenerator[bytes]:
    """Encode each spoken part once, in the script's order, after the pause that the script has there: several models, and other computers, finish
    them in another one."""
    split = await work(desk.jobs.split_script, job, request)
    coder: stream_encoding.Encoder | None = None
    sent: set[int] = set()
    gains, spoken = dict[int, float](), list[tuple[Segment, Loudness]]()

    def choose_way(file: Path, index: int) -> tuple[float, float, float]:
        """Choose a part's gain, pace and ceiling, by what was sent so far."""
        nonlocal gains
        (segment,) = list_segments(split, {index: file})
        spoken.append((segment, heard_part.measure_file(file)))
        gains = heard_part.choose_gains(gains, spoken, segment, True, request.loudness_lufs)
        return gains[segment.voice] * segment.volume, segment.pace, choose_ceiling(request.loudness_lufs)

    async with aclosing(follow(desk.keeper, job)) as following:
        async for progress in following:
            if isinstance(progress.end, Failed):
                raise SpeechBrokeOff(redact_for(OWNER, progress.end.trouble))
            for part in sorted(progress.parts, key=lambda each: each.index):
                if part.index in sent:
                    continue
                if part.index != len(sent) and progress.end is None:
                    break
                if coder is None:
                    coder = await work(stream_encoding.open_encoder, wanted, sound.measure(Path(part.path)).rate)
                known = split[part.index] if part.index < len(split) else None
                pause_s = known.pause_before_s if sent and known is not None else 0.0
                way = await work(choose_way, Path(part.path), part.index) if known is not None else ()
                yield await work(stream_encoding.encode_part, coder, Path(part.path), pause_s, *way)
                sent.add(part.index)
    if coder is not None:
        yield await work(coder.end)


class SpeechBrokeOff(Exception):
    """Ends a stream without its proper end, so that a client sees that sound is missing."""


async def as_events(pieces: AsyncGenerator[bytes], asked: Request) -> AsyncGenerator[bytes]:
    """Wrap encoded sound in OpenAI's server-sent events."""
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                if piece:
                    yield audio_event(piece)
        except SpeechBrokeOff as broken:
            (trouble,) = broken.args
            words = join(language(asked), trouble.sentence, *trouble.objections)
            yield f"event: error\ndata: {json.dumps(shape_error(asked.url.path, words, 400, trouble.code))}\n\n".encode()
            return
        yield DONE


def audio_event(piece: bytes) -> bytes:
    event = {"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode()}
    return f"data: {json.dumps(event)}\n\n".encode()
