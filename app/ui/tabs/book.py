"""The open book on Speak: its chapters with what each lasts, and what is done with those that are ticked."""

from __future__ import annotations

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.base.sentence import say
from app.base.trouble import BadRequest
from app.engine.speech.book.book import CHAPTERS_MOST
from app.engine.speech.text.script_characters import find_other_language
from app.ui.page.translate import Language, join, language
from app.ui.page.view_types.making import BookView
from app.ui.state.asked import TEXT_MOST, Asked, Word
from app.ui.state.book_desk import NAMES_MOST, VOICED_MOST
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER


class BookAsked(Asked):
    act: Word
    chapters: list[int] = Field([], max_length=CHAPTERS_MOST)
    names: list[Word] = Field([], max_length=NAMES_MOST)


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
    """Tick these chapters, to be spoken; give names of the book voices of their own; return the chapters as a script; or close the book."""
    if asked.act == "close":
        desk.book.close()
        return JSONResponse({})
    if asked.act == "voices":
        desk.book.give_voices(asked.names)
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
