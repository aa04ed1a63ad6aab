"""Albums, tags and names of creations, as the Shelf's scripts ask for them; only the owner has any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.creation import Creation
from app.engine.jobs.gallery import Gallery
from app.ui.state.asked import Asked, Id, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route

MARKED_MOST: Final = 500
"""Creations that are put into an album, or tagged, at once."""
TAGS_MOST: Final = 20
WORK: Final = ("drafts", "speak", "paint")
"""The window's settings that an album keeps which is a project: the script, the cast and its voices, the prompt, and how each is made."""


class AlbumAsked(Asked):
    act: Word
    ids: str = ""
    album: Id = 0
    value: str = ""


@dataclass(frozen=True, slots=True)
class Deed:
    """What is to be done with which creations."""

    gallery: Gallery
    creations: list[Creation]
    album: int
    value: str

    def make(self) -> int:
        album = self.gallery.make_album(self.value)
        self.gallery.put(self.creations, album)
        return album

    def tag(self) -> None:
        tags = [each for each in (" ".join(word.split()) for word in self.value.replace("，", ",").split(",")) if each]
        self.gallery.tag(self.creations, tags[:TAGS_MOST])

    def name(self) -> None:
        for each in self.creations[:1]:
            self.gallery.name(each, self.value)


ACTIONS: Final[Mapping[str, Callable[[Deed], int | None]]] = {
    "make": Deed.make,
    "rename": lambda deed: deed.gallery.rename_album(deed.album, deed.value),
    "remove": lambda deed: deed.gallery.remove_album(deed.album),
    "put": lambda deed: deed.gallery.put(deed.creations, deed.album),
    "take": lambda deed: deed.gallery.take(deed.creations, deed.album),
    "tag": Deed.tag,
    "untag": lambda deed: deed.gallery.untag(deed.creations, deed.value),
    "name": Deed.name,
}


def routes(desk: Desk) -> list[Route]:
    return [owner_route(desk, "/hearth/albums/{act}", act, ["POST"], AlbumAsked)]


def act(desk: Desk, request: Request, asked: AlbumAsked) -> Response:
    """Change what is in an album or on creations; answer with the album."""
    if asked.act == "keep":
        desk.keeper.gallery.keep_drafts(asked.album, {name: desk.settings.get(name, {}) for name in WORK})
        return JSONResponse({"album": asked.album})
    if asked.act == "open":
        return JSONResponse({"album": asked.album, "drafts": open_work(desk, asked.album)})
    action = ACTIONS.get(asked.act)
    if action is None:
        return Response(status_code=404)
    ids = [int(each) for each in asked.ids.split(",") if each.isascii() and each.isdecimal() and len(each) < 19]
    if len(ids) > MARKED_MOST:
        raise Trouble(
            say(
                "album.many",
                "These are {count} {count:creation|creations}; at most {most} can be changed at once. Select fewer.",
                count=len(ids),
                most=MARKED_MOST,
            )
        )
    made = action(Deed(desk.keeper.gallery, [desk.keeper.shelf.get(each) for each in ids], asked.album, asked.value))
    return JSONResponse({"album": made or asked.album})


def open_work(desk: Desk, album: int) -> dict[str, Any]:
    """Put what an album keeps into the settings of Speak and Paint; return its texts, which the page fills in where they can be undone."""
    kept = desk.keeper.gallery.get_album(album).drafts
    desk.settings.put(
        {name: {**desk.settings.get(name, {}), **kept[name]} for name in ("speak", "paint") if isinstance(kept.get(name), dict)}
    )
    drafts = kept.get("drafts")
    return {name: words for name, words in drafts.items() if isinstance(words, str)} if isinstance(drafts, dict) else {}
