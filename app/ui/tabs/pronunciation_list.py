"""The list of words that are said differently: searched, changed, heard at once, and as CSV from elsewhere and to there."""

from __future__ import annotations

import bisect
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
from app.engine.jobs.request import SpeechRequest, VoicePrompt
from app.engine.jobs.tasks import name_lent
from app.engine.kinds import admit
from app.engine.models.on_disk import resolve
from app.engine.speech.kind import list_takes
from app.engine.speech.text import pronunciations
from app.engine.speech.text.cast_tags import find_tags
from app.engine.speech.text.pronunciations import CSV_BYTES, SKIPPED_TOLD, WORD_MOST
from app.engine.speech.text.script_edits import find_places
from app.ui.page.translate import language, translate
from app.ui.page.view_types.making import PronunciationsView, PronunciationView
from app.ui.state.asked import TEXT_MOST, Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs.speak_view import name_sign

SHOWN: Final = 50
"""So many are shown; more are found by a search."""
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
    """The word takes the place of this one."""
    near: str = Field("", max_length=400)
    """The word is heard in this sentence."""
    text: str = Field("", max_length=TEXT_MOST)
    """The sentence stands in this script."""
    at: int = Field(0, ge=0, le=TEXT_MOST)
    """The word stands there in it."""
    cast: str = Field("", max_length=64 << 10)


def send_list(desk: Desk, request: Request, asked: ListAsked) -> Response:
    rows = pronunciations.read_everywhere(desk.keeper.home)
    if asked.download is not None:
        head = {"Content-Disposition": 'attachment; filename="pronunciations.csv"'}
        return Response(pronunciations.write_csv(rows).encode("utf-8-sig"), media_type="text/csv", headers=head)
    wanted = asked.words.casefold().strip()
    found = [(word, spoken) for word, spoken in rows.items() if wanted in word.casefold() or wanted in spoken.casefold()]
    found.sort(key=lambda row: row[0].casefold())
    shown: list[PronunciationView] = [{"word": word, "spoken": spoken} for word, spoken in found[:SHOWN]]
    return JSONResponse(PronunciationsView(rows=shown, found=len(found), all=len(rows)))


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
        "says.taken",
        "{new} {new:word|words} added, {changed} changed.",
        new=len(rows.keys() - before.keys()),
        changed=sum(before.get(word, spoken) != spoken for word, spoken in rows.items()),
    )
    left = say(
        "says.skipped",
        "{count} {count:line was|lines were} left out, for no word or spelling was read there: {lines}.",
        count=len(skipped),
        lines=tuple(skipped[:SKIPPED_TOLD]),
    )
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


def find_voice(desk: Desk, asked: RowAsked) -> tuple[str, VoicePrompt | None]:
    """Return the model and the voice that speak where a word stands in the script, by its cast; those of the fields where it stands in none."""
    model, chosen = desk.models.resolve("speech", None, OWNER), desk.settings.get("speak", {}).get("voice")
    voice = next((each.prompt for each in desk.models.list_voices(model, OWNER) if each.name == chosen), None)
    if not asked.text.strip():
        return model, voice
    request = resolve(desk.keeper.home, SpeechRequest(asked.text, model, voice, cast=desk.models.read_cast(asked.cast, model, OWNER)))
    parsed, names = desk.jobs.parse(request), [each.name for each in request.cast]
    places = find_places(request.text, parsed.parts, names)
    part = bisect.bisect_right([place.begin for place in places], asked.at) - 1
    if part < 0:
        return model, voice
    tags = [tag.name for tag in find_tags(request.text, names) if tag.begin <= asked.at]
    speakers = [*dict.fromkeys(turn.name or f"S{turn.speaker}" for turn in parsed.parts[part].turns)]
    used = list_takes(parsed, request, desk.jobs.find_limits)[part][1]
    speaks, sound = used[speakers.index(tags[-1]) if tags and tags[-1] in speakers else 0]
    if isinstance(sound, str):  # a sign of the model's own
        name = name_sign(sound, desk.jobs.find_limits(speaks))
        return speaks, next((each.prompt for each in desk.models.list_voices(speaks, OWNER) if each.name == name), None)
    return speaks, sound


def hear(desk: Desk, asked: RowAsked) -> bytes:
    """Have a word said in its sentence by the voice that speaks there, beside the queue: nothing of it comes to the shelf."""
    row = pronunciations.check_row(asked.word, asked.spoken)
    keeper = desk.keeper
    if keeper.running or keeper.journal.count_waiting() or not _hearing.acquire(blocking=False):
        raise Trouble(say("says.busy", "Hearth is at work. The word can be heard when that is done."))
    try:
        model, voice = find_voice(desk, asked)
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
