"""Answer OpenAI's API for what is said in a sound: /v1/audio/transcriptions; and say that /v1/audio/translations is not offered."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

from pydantic import Field
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from app.base.sentence import say
from app.base.trouble import BadRequest, NotThere
from app.engine.hearing.heard import Heard, join_words
from app.engine.hearing.heard import Word as HeardWord
from app.engine.models.recognisers import LANGUAGES
from app.engine.speech.sound.sound import make_readable
from app.engine.speech.text import subtitles
from app.engine.speech.text.subtitles import Cue
from app.ui.access import uploads
from app.ui.api.following import work
from app.ui.api.shared import wait_while_heard
from app.ui.state.asked import Asked, Word, fit
from app.ui.state.desk import Desk
from app.ui.state.hearing_desk import name_store, require_heard
from app.ui.state.person import Person

FORMATS: Final = ("json", "text", "srt", "verbose_json", "vtt")
GRANULARITIES: Final = ("segment", "word")
STILL_S: Final = 0.6
SEGMENT_MOST_S: Final = 12.0
"""A segment ends with a sentence, in a pause as long, or where it would be longer."""


class TranscriptionAsked(Asked):
    """What a form says beside its file; the model is the best installed one that hears the language, whichever it names."""

    language: Word | None = None
    response_format: Word | None = None
    streams: bool = Field(False, alias="stream")
    granularities: list[Word] = Field(default_factory=list, alias="timestamp_granularities")


async def answer_transcription(desk: Desk, asked: Request, person: Person) -> Response:
    path = (await work(desk.make_upload_folder)) / "sound"
    try:
        given = await take_form(asked, path)
        wanted, spoken = given.response_format or "json", (given.language or "").lower().partition("-")[0]
        if spoken == "auto":
            spoken = ""
        check(wanted, given.granularities, given.streams, spoken)
        if not path.is_file() or not path.stat().st_size:
            raise BadRequest(say("api.no-sound", "There is no sound to hear. Send it as file."), field="file")
        if not await work(uploads.is_sound, path, True):
            raise BadRequest(
                say("api.sound", "The file is not a sound that Hearth can read. Send WAV, FLAC, MP3, OGG or Opus."), field="file"
            )
        readable = await work(make_readable, path)
        task = await work(desk.hearing.begin, [readable], languages=[spoken])
        heard = require_heard((await wait_while_heard(desk, asked, task, lambda _: False)).end, name_store(readable))
    finally:
        shutil.rmtree(path.parent, ignore_errors=True)
    if spoken and heard.spoken not in ("", spoken):  # the recogniser's own list lacks it
        raise no_such_language(spoken)
    return write(heard, wanted, given.granularities)


async def take_form(asked: Request, path: Path) -> TranscriptionAsked:
    """Write the sound of a form to `path`, which may be too large to hold; return what the form says beside it."""
    try:
        async with asked.form(max_files=2, max_part_size=1 << 20) as form:
            sent = form.get("file")
            if isinstance(sent, UploadFile):
                with path.open("wb") as file:
                    await work(shutil.copyfileobj, sent.file, file)
            said = {key: value for key, value in form.items() if isinstance(value, str) and not key.startswith("timestamp_")}
            wishes = [str(each) for name in ("timestamp_granularities[]", "timestamp_granularities") for each in form.getlist(name)]
            return fit(TranscriptionAsked, {**said, "timestamp_granularities": wishes})
    except (LookupError, ValueError, HTTPException) as fault:  # an unknown charset, a part that breaks off
        told = fault.detail if isinstance(fault, HTTPException) else str(fault)
        raise BadRequest(say("api.form", "The form cannot be read ({fault}). Send it as multipart/form-data.", fault=told)) from fault


async def refuse_translation(desk: Desk, asked: Request, person: Person) -> Response:
    raise NotThere(
        say(
            "api.no-translation",
            "Hearth does not translate what is said. POST /v1/audio/transcriptions writes it down in the language that it is said in.",
        )
    )


def check(wanted: str, wishes: list[str], streams: bool, spoken: str) -> None:
    """Raise a Trouble for what this API does not have."""
    if wanted not in FORMATS:
        words = say(
            "api.transcript-format", "response_format {wanted} is not supported. Use one of: {known}.", wanted=wanted, known=FORMATS
        )
        raise BadRequest(words, field="response_format")
    if strange := [each for each in wishes if each not in GRANULARITIES]:
        words = say("api.granularity", "timestamp_granularities {wanted} is not supported. Use word or segment.", wanted=strange[0])
        raise BadRequest(words, field="timestamp_granularities")
    if wishes and wanted != "verbose_json":
        words = say("api.granularity-format", "timestamp_granularities need response_format verbose_json.")
        raise BadRequest(words, field="timestamp_granularities")
    if spoken and spoken not in LANGUAGES:
        raise no_such_language(spoken)
    if streams:
        raise BadRequest(say("api.no-stream", "Transcriptions are not streamed. Leave stream out."), field="stream")


def no_such_language(wanted: str) -> BadRequest:
    words = say("api.language", "The language {wanted} is not supported. Use an ISO 639-1 code, such as en or de.", wanted=wanted)
    return BadRequest(words, field="language")


def write(heard: Heard, wanted: str, wishes: list[str]) -> Response:
    segments = list_segments(heard.words)
    if wanted == "text":
        return PlainTextResponse(f"{heard.text}\n")
    if wanted == "srt" or wanted == "vtt":
        cues = [Cue(each[0].begin_s, each[-1].end_s, say_segment(each)) for each in segments]
        return Response(subtitles.write(cues, "srt" if wanted == "srt" else "vtt"), media_type=f"{subtitles.MEDIA[wanted]}; charset=utf-8")
    usage = {"type": "duration", "seconds": round(heard.seconds)}
    if wanted == "json":
        return JSONResponse({"text": heard.text, "usage": usage})
    told: dict[str, Any] = {
        "task": "transcribe",
        "language": LANGUAGES.get(heard.spoken, ""),
        "duration": heard.seconds,
        "text": heard.text,
        "usage": usage,
    }
    if "word" in wishes:
        told["words"] = [{"word": each.text, "start": each.begin_s, "end": each.end_s} for each in heard.words]
    if "segment" in wishes or not wishes:
        told["segments"] = [
            {"id": number, "start": each[0].begin_s, "end": each[-1].end_s, "text": f" {say_segment(each)}"}
            for number, each in enumerate(segments)
        ]
    return JSONResponse(told)


def say_segment(words: list[HeardWord]) -> str:
    return join_words([each.text for each in words])


def list_segments(words: tuple[HeardWord, ...]) -> list[list[HeardWord]]:
    """Gather words to what is shown at once."""
    made: list[list[HeardWord]] = []
    for word in words:
        last = made[-1] if made else None
        ends = last is None or last[-1].text.endswith((".", "?", "!", "\u3002", "\uff1f", "\uff01"))
        if last is None or ends or word.begin_s - last[-1].end_s > STILL_S or word.end_s - last[0].begin_s > SEGMENT_MOST_S:
            made.append([word])
        else:
            last.append(word)
    return made
