"""The list of words that are said differently: searched, changed, heard at once, and as CSV from elsewhere and to there."""

from __future__ import annotations

import re
import shutil
import threading
from typing import Final

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.base.sentence import say
from app.base.trouble import BadRequest, Trouble
from app.engine.jobs.events import END, Failed
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.tasks import name_lent
from app.engine.kinds import admit
from app.engine.speech.text import pronunciations
from app.engine.speech.text.pronunciations import CSV_BYTES, SKIPPED_TOLD, WORD_MOST
from app.ui.page.translate import language, translate
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER

SHOWN: Final = 50
"""More are found by a search."""
HEARD: Final = "a word that is said differently"
_hearing: Final = threading.Lock()
_TAGS: Final = re.compile(r"\[[^\[\]]{0,40}\]|\([^()]{0,40}\)")


class ListAsked(Asked):
    words: str = Field("", max_length=WORD_MOST)
    download: str | None = None


class RowAsked(Asked):
    act: Word
    word: str = Field("", max_length=1000)
    spoken: str = Field("", max_length=1000)
    before: str = Field("", max_length=1000)
    """The word that this one takes the place of."""
    near: str = Field("", max_length=400)
    """The sentence in which it is heard."""


def send_list(desk: Desk, request: Request, asked: ListAsked) -> Response:
    rows = pronunciations.read_everywhere(desk.keeper.home)
    if asked.download is not None:
        head = {"Content-Disposition": 'attachment; filename="pronunciations.csv"'}
        return Response(pronunciations.write_csv(rows).encode("utf-8-sig"), media_type="text/csv", headers=head)
    wanted = asked.words.casefold().strip()
    found = [(word, spoken) for word, spoken in rows.items() if wanted in word.casefold() or wanted in spoken.casefold()]
    found.sort(key=lambda row: row[0].casefold())
    shown = [{"word": word, "spoken": spoken} for word, spoken in found[:SHOWN]]
    return JSONResponse({"rows": shown, "found": len(found), "all": len(rows)})


async def take_list(desk: Desk, request: Request) -> Response:
    """Add the rows of a CSV file that a form brings; words that are listed already get its spelling."""
    async with request.form(max_files=1, max_fields=1) as form:
        given = form.get("file")
        if not isinstance(given, UploadFile):
            raise BadRequest(say("says.none-came", "No file came with the request. Choose the list again."))
        rows, skipped = await run_in_threadpool(pronunciations.read_csv, await given.read(CSV_BYTES + 1))
    home = desk.keeper.home
    before = pronunciations.read_everywhere(home)
    await run_in_threadpool(pronunciations.store_everywhere, home, {**before, **rows})
    told = say(
        "says.taken", "{new} {new:word|words} added, {changed} changed.",
        new=len(rows.keys() - before.keys()), changed=sum(before.get(word, spoken) != spoken for word, spoken in rows.items()),
    )  # fmt: skip
    left = say(
        "says.skipped", "{count} {count:line was|lines were} left out, for no word or spelling was read there: {lines}.",
        count=len(skipped), lines=tuple(skipped[:SKIPPED_TOLD]),
    )  # fmt: skip
    spoken = language(request)
    return JSONResponse({"text": " ".join(translate(each, spoken) for each in ((told, left) if skipped else (told,)))})


def change_list(desk: Desk, request: Request, asked: RowAsked) -> Response:
    home = desk.keeper.home
    if asked.act == "hear":
        return Response(hear(desk, asked), media_type="audio/wav", headers={"Cache-Control": "no-store"})
    if asked.act == "check":  # for a script's own words, which the page keeps
        word, spoken = pronunciations.check_row(asked.word, asked.spoken)
        return JSONResponse({"word": word, "spoken": spoken})
    if asked.act == "back":
        pronunciations.take_back(home)
        return JSONResponse({})
    rows = dict(pronunciations.read_everywhere(home))
    if asked.act == "remove":
        rows.pop(asked.word, None)
    elif asked.act == "put":
        rows.pop(asked.before, None)
        word, spoken = pronunciations.check_row(asked.word, asked.spoken)
        rows[word] = spoken
    else:
        return Response(status_code=404)
    pronunciations.store_everywhere(home, rows)
    return JSONResponse({})


def hear(desk: Desk, asked: RowAsked) -> bytes:
    """Have the current voice say a word in its sentence, beside the queue: nothing of it comes to the shelf."""
    row = pronunciations.check_row(asked.word, asked.spoken)
    keeper, saved = desk.keeper, desk.settings.get("speak", {})
    if keeper.running or keeper.journal.count_waiting() or not _hearing.acquire(blocking=False):
        raise Trouble(say("says.busy", "Hearth is at work. The word can be heard when that is done."))
    try:
        model = desk.models.resolve("speech", None, OWNER)
        voice = next((each.prompt for each in desk.models.list_voices(model, OWNER) if each.name == saved.get("voice")), None)
        near = " ".join(_TAGS.sub(" ", asked.near).split())
        text = near if pronunciations.find_said(near, (row,)) else row[0]
        request = admit(SpeechRequest(text, model, voice, pronunciations=(row,)), keeper.home)
        folder = keeper.folder(name_lent(HEARD))
        shutil.rmtree(folder, ignore_errors=True)
        end = next((event for event in keeper.follow(keeper.run_lent(HEARD, request)) if isinstance(event, END)), None)
        if isinstance(end, Failed):
            raise end.trouble
        sound = (folder / "speech.wav").read_bytes()
        shutil.rmtree(folder, ignore_errors=True)
        return sound
    finally:
        _hearing.release()
