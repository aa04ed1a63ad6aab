"""The lines of a spoken script edited in the page: what its scripts ask for, and the script that they get back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.engine.speech.text.pronunciations import read_field, write_own
from app.ui.state.asked import TEXT_MOST, Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.editing import Edit, Editing, Script
from app.ui.state.person import OWNER, Person

DEEDS: Final[dict[str, Callable[[Editing, Edit, Person], Script]]] = {
    "words": Editing.change_words,
    "up": lambda editing, edit, person: editing.move(edit, person, later=False),
    "down": lambda editing, edit, person: editing.move(edit, person, later=True),
    "pause": Editing.set_pause,
    "speak": Editing.speak,
    "take": Editing.choose_take,
    "back": lambda editing, edit, person: editing.go_back(person),
    "script": lambda editing, edit, person: editing.read_script(person),
}  # fmt: skip


class EditAsked(Asked):
    act: Word
    text: str = Field("", max_length=TEXT_MOST)
    cast: str = Field("", max_length=64 << 10)
    part: int = Field(0, ge=0, le=100_000)
    words: str = Field("", max_length=20_000)
    seconds: float | None = Field(None, ge=0, le=30)
    take: int = Field(0, ge=0, le=100)
    says: str = Field("", max_length=64 << 10)


def edit_line(desk: Desk, request: Request, asked: EditAsked) -> Response:
    """Do what is asked for with a line of the script in the field; send that script, and where it comes back as it was, its cast."""
    spoken = desk.jobs.find_ended_script(OWNER)
    cast = desk.models.read_cast(asked.cast, spoken.request.model if spoken is not None else "", OWNER)
    edit = Edit(asked.text, cast, asked.part, asked.words, asked.seconds, asked.take, read_field(asked.says))
    if asked.act == "line":
        line = desk.editing.read_line(edit, OWNER)
        return JSONResponse({"words": line.words, "before": line.pause_before_s, "after": line.pause_after_s})
    if (deed := DEEDS.get(asked.act)) is None:
        return Response(status_code=404)
    script = deed(desk.editing, edit, OWNER)
    answer: dict[str, object] = {"text": script.text, "part": script.part}
    if script.request is not None:
        answer["cast"] = desk.models.write_cast(script.request, OWNER)[0]
        answer["says"] = write_own(desk.keeper.home, script.request.pronunciations)
    return JSONResponse(answer)
