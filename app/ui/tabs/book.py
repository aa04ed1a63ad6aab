"""The open book on Speak: its chapters with what each lasts, and what is done with those that are ticked."""

from __future__ import annotations

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.base.sentence import say
from app.base.trouble import BadRequest
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.book.book import CHAPTERS_MOST
from app.engine.speech.text import voices
from app.engine.speech.text.script_characters import find_other_language
from app.engine.speech.text.turns import ScriptPart
from app.ui.page.translate import Language, join, language
from app.ui.page.view_types.making import BookView, RevoicedChapterView, RevoicedView
from app.ui.state.asked import TEXT_MOST, Asked, Word
from app.ui.state.book_desk import NAMES_MOST, VOICED_MOST
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs.speak_view import forecast_parts


class BookAsked(Asked):
    act: Word
    chapters: list[int] = Field([], max_length=CHAPTERS_MOST)
    names: list[Word] = Field([], max_length=NAMES_MOST)
    model: Word | None = None
    voice: Word = ""
    cast: str = Field("", max_length=64 << 10)


def book_view(desk: Desk, spoken: Language) -> BookView:
    """Return the book, nothing where none is open. What each chapter lasts is forecast for the model that is chosen."""
    book = desk.book.book
    if book is None:
        return {}
    model = desk.models.resolve("speech", None, OWNER)
    limits = desk.models.read_limits(model)[1]
    chapters = zip(book.chapters, desk.book.measure(model), desk.book.list_spoken(), strict=True)
    return {
        "title": book.title,
        "author": book.author,
        "note": join(
            spoken, *filter(None, (book.note, find_other_language(max((each.script for each in book.chapters), key=len), limits)))
        ),
        "most": TEXT_MOST,
        "chapters": [
            {
                "title": each.title or each.text[:60],
                "seconds": seconds,
                "letters": len(each.script),
                "ticked": place in desk.book.ticked,
                "state": spoken.state,
                "creation": spoken.creation,
            }
            for place, (each, seconds, spoken) in enumerate(chapters)
        ],
        "names": [{"name": name, "count": count, "voiced": name in desk.book.voiced} for name, count in desk.book.speakers.items()],
        "voiced_most": VOICED_MOST,
        "invents": limits.imitates and not (limits.usual or limits.brought),
    }


def request_voices(desk: Desk, asked: BookAsked) -> SpeechRequest:
    """Return a request with the voices that the fields of the page have."""
    model = desk.models.resolve("speech", asked.model, OWNER)
    chosen = voices.find_named(asked.voice, desk.models.list_voices(model, OWNER))
    return SpeechRequest("?", model, chosen.prompt if chosen is not None else None, cast=desk.models.read_cast(asked.cast, model, OWNER))


def revoiced_view(desk: Desk, asked: SpeechRequest) -> RevoicedView:
    """Return what these voices change in spoken chapters, and how long it takes to speak that anew."""
    chapters, parts = list[RevoicedChapterView](), list[ScriptPart]()
    for each in desk.book.list_revoiced(asked):
        chapters.append({"place": each.place, "fresh": len(each.fresh), "parts": each.parts})
        parts += each.fresh
    return {"chapters": chapters, "takes_s": forecast_parts(desk, parts, *desk.models.read_limits(asked.model), OWNER)}


async def open_or_send(desk: Desk, request: Request) -> Response:
    """Open the book that a form brings; send the one that is open."""
    if request.method == "POST":
        async with request.form(max_files=1, max_fields=1) as form:
            given = form.get("file")
            if not isinstance(given, UploadFile):
                raise BadRequest(say("book.no-file", "No file came with the request. Choose the book again."))
            await run_in_threadpool(desk.book.open, given.file, given.filename or "")
    return JSONResponse(await run_in_threadpool(book_view, desk, language(request)))


def use_book(desk: Desk, request: Request, asked: BookAsked) -> Response:
    """Tick these chapters, to be spoken; give names of the book voices of their own; tell what other voices change in spoken chapters, or speak that anew;
    return the chapters as a script; or close the book."""
    if asked.act == "close":
        desk.book.close()
        return JSONResponse({})
    if asked.act == "voices":
        desk.book.give_voices(asked.names)
        return JSONResponse(book_view(desk, language(request)))
    if asked.act == "revoiced":
        return JSONResponse(revoiced_view(desk, request_voices(desk, asked)))
    if asked.act == "revoice":
        desk.book.speak_revoiced(request_voices(desk, asked))
        return JSONResponse(book_view(desk, language(request)))
    desk.book.tick(asked.chapters)
    if asked.act != "script":
        return JSONResponse({})
    words = "\n\n".join(desk.book.list_scripts())
    if len(words) > TEXT_MOST:
        raise BadRequest(
            say(
                "book.script-long",
                "The ticked chapters have {count} {count:character|characters}; the script takes {most}. Untick some, or speak chapters.",
                count=len(words),
                most=TEXT_MOST,
            )
        )
    return JSONResponse({"words": words})
