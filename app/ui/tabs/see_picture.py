"""What the page asks of models that see: the thing in a starting picture that a point lies on, and what a picture shows."""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

from PIL import Image
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.base import atomic_write
from app.base.foreign_formats import decode, open_picture
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.events import END, Failed, Finished
from app.engine.jobs.tasks import Describe, MaintenanceTask, Pick, is_journalled
from app.engine.keeper.keeper import Keeper
from app.engine.models.model import Model
from app.engine.models.on_disk import locate
from app.engine.models.picture_readers import DESCRIBER, PICKER
from app.ui.page.view_types.making import DescribedView
from app.ui.state.asked import Asked
from app.ui.state.desk import Desk

SIDE_MOST: Final = 1024
"""The longer side of a picture as the page sends it: models that see look at no more."""
SENT_MOST: Final = 3 << 20
Share = Annotated[float, Field(ge=0, le=1)]
Ask = Callable[[Path], MaintenanceTask]
"""It makes a task of where a picture is kept."""


class SeeAsked(Asked):
    picture: Annotated[str, Field(max_length=SENT_MOST)]
    """A data address, or its base64 alone."""


class PickAsked(SeeAsked):
    x: Share
    y: Share
    """The point, as shares of the picture's sides."""


def require_here(keeper: Keeper, model: Model, none: Sentence) -> None:
    """Raise a Trouble that offers a model which is not here, or says that something is made just now: no picture is looked at meanwhile, as that
    would wait for long, and take memory from it."""
    if locate(keeper.home, model) is None:
        raise Trouble(none, cure=f"get:{model.id}")
    if keeper.state.job and is_journalled(keeper.state.job):
        raise Trouble(
            say("see.busy", "Hearth is at work, and looking at a picture would take memory from that work. Try again when it is done.")
        )


def look(keeper: Keeper, ask: Ask, sent: str) -> bytes:
    """Run what looks at a picture ahead of the jobs that wait; return its answer's file."""
    task = keeper.start_task(ask(keep(keeper, sent)))
    try:
        end = next((event for event in keeper.follow(task) if isinstance(event, END)), None)
        if isinstance(end, Failed):
            raise end.trouble
        if not isinstance(end, Finished):
            raise Trouble(say("see.stopped", "Looking at the picture was stopped before it finished. Try again."))
        return Path(end.files[0]).read_bytes()
    finally:
        shutil.rmtree(keeper.folder(task), ignore_errors=True)


def keep(keeper: Keeper, sent: str) -> Path:
    """Keep a picture under its content's name, by which the engine knows it again, as a file of Hearth's own."""
    try:
        raw = base64.b64decode(sent.rpartition(",")[2], validate=True)
        path = keeper.home.scratch / "uploads" / hashlib.sha256(raw).hexdigest()[:32] / "seen.png"
        if path.is_file():
            return path
        with open_picture(raw) as opened:
            if max(opened.size) > SIDE_MOST:
                raise ValueError("the page sends smaller ones")
            picture = decode(opened, "RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as fault:
        raise Trouble(say("see.unreadable", "The picture cannot be read; it may be damaged. Choose another one.")) from fault
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write.replacing(path) as unfinished:
        picture.save(unfinished, "PNG")
    return path


def pick(desk: Desk, request: Request, asked: PickAsked) -> Response:
    """Send the thing's mask: opaque where it is, as large as the picture that was sent."""
    advice = say("owner.picker", "Download it in Models, or paint over the thing with the brush.")
    require_here(
        desk.keeper,
        PICKER,
        say(
            "pick.none",
            "To find a thing in a picture, Hearth needs {model}, which is not here yet. {advice}",
            model=PICKER.words,
            advice=advice,
        ),
    )
    answer = look(desk.keeper, lambda picture: Pick(PICKER.id, str(picture), asked.x, asked.y), asked.picture)
    with open_picture(answer, ("PNG",)) as opened:
        found = decode(opened, "L")
    if found.getextrema() == (0, 0):
        raise Trouble(
            say(
                "pick.nothing",
                "Nothing was found at this point. Choose a point nearer the middle of the thing, or paint over it with the brush.",
            )
        )
    mask, file = Image.new("LA", found.size), io.BytesIO()
    mask.putalpha(found)
    mask.save(file, "PNG")
    return Response(file.getvalue(), media_type="image/png", headers={"Cache-Control": "no-store"})


def describe(desk: Desk, request: Request, asked: SeeAsked) -> Response:
    """Send in English what a picture shows."""
    advice = say("owner.describer", "Download it in Models.")
    none = say(
        "describe.none",
        "To say what a picture shows, Hearth needs {model}, which is not here yet. {advice}",
        model=DESCRIBER.words,
        advice=advice,
    )
    require_here(desk.keeper, DESCRIBER, none)
    words = look(desk.keeper, lambda picture: Describe(DESCRIBER.id, str(picture)), asked.picture).decode("utf-8")
    if not words:
        raise Trouble(say("describe.nothing", "Hearth could not describe this picture. Choose another one, or write the words yourself."))
    return JSONResponse(DescribedView(words=words))
