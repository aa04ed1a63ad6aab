"""Albums, tags and names of creations, as the Shelf's scripts ask for them, and projects as files; only the owner has any."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from app.base.sentence import say
from app.base.stored_json import drop_wrong
from app.base.trouble import BadRequest, Trouble
from app.engine.jobs.creation import Creation
from app.engine.jobs.gallery import Gallery
from app.engine.jobs.outward import public_name
from app.engine.jobs.shelf import Search, Shelf
from app.engine.keeper.project_file import SUFFIX, Brought, explain_left_out, read_project, write_project
from app.ui.page.translate import Language, join, language, translate
from app.ui.state.asked import Asked, Id, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route
from app.ui.state.settings_schema import SETTINGS

AT_ONCE_MOST: Final = 2000
"""So many creations may be exported, put into an album, tagged or moved at once: as many as the chapters of a book."""
TAGS_MOST: Final = 20
WORK: Final = ("drafts", "speak", "paint")
"""A project is an album that keeps these of the window's settings: script, cast and its voices, prompt, and how each is made."""


class AlbumAsked(Asked):
    act: Word
    ids: str = ""
    album: Id = 0
    value: str = ""


class ProjectAsked(Asked):
    album: Id


@dataclass(frozen=True, slots=True)
class Deed:
    """What is to be done with which creations."""

    shelf: Shelf
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

    def order(self) -> None:
        """Give the album an order of its own, at first that in which its creations were made; with no value: take it away."""
        found = (*self._list_album(), *self._list_album(binned=True)) if self.value else ()
        self.gallery.arrange(self.album, sorted(found, key=lambda each: (each.created_s, each.id)))

    def shift(self) -> None:
        """Move one creation by so many places."""
        self._place(lambda ids, at: at + (int(self.value) if self.value in ("-1", "1") else 0))

    def place(self) -> None:
        """Move one creation to where another one is."""
        self._place(lambda ids, at: next((place for place, each in enumerate(ids) if str(each) == self.value), at))

    def _place(self, find: Callable[[list[int], int], int]) -> None:
        """Move one creation to the place that `find` returns of those that are shown and its own; what lies in the bin keeps its place."""
        shown, binned = self._list_album(), self._list_album(binned=True)
        of_album, ids = {each.id: each for each in (*shown, *binned)}, [each.id for each in shown]
        moved = next((each.id for each in self.creations), 0)
        if moved not in ids:
            return
        at = ids.index(moved)
        to = min(len(ids) - 1, max(0, find(ids, at)))

        def move(order: list[int]) -> list[Creation]:
            order = [each for each in dict.fromkeys([*order, *ids]) if each in of_album and each != moved]
            order.insert(order.index(ids[to]) + (to > at), moved)
            return [of_album[each] for each in order]

        if to != at:
            self.gallery.rearrange(self.album, move)

    def _list_album(self, binned: bool = False) -> list[Creation]:
        self.gallery.get_album(self.album)
        return self.shelf.find(Search(album=self.album, binned=binned, most=-1))


ACTIONS: Final[Mapping[str, Callable[[Deed], int | None]]] = {
    "make": Deed.make,
    "rename": lambda deed: deed.gallery.rename_album(deed.album, deed.value),
    "remove": lambda deed: deed.gallery.remove_album(deed.album),
    "put": lambda deed: deed.gallery.put(deed.creations, deed.album),
    "take": lambda deed: deed.gallery.take(deed.creations, deed.album),
    "tag": Deed.tag,
    "untag": lambda deed: deed.gallery.untag(deed.creations, deed.value),
    "name": Deed.name,
    "order": Deed.order,
    "shift": Deed.shift,
    "place": Deed.place,
}

MOVES: Final[Mapping[str, Callable[[Shelf, int], None]]] = {"delete": Shelf.delete, "restore": Shelf.restore}


@contextmanager
def saying_what_stays() -> Iterator[None]:
    """Raise a Trouble for a file that cannot be moved."""
    try:
        yield
    except OSError as fault:
        words = say(
            "shelf.not-moved",
            "The file could not be moved: {fault}. Close it in other programs, check its folder, and try again.",
            fault=os.strerror(fault.errno) if fault.errno else type(fault).__name__,
        )
        raise Trouble(words) from fault


def routes(desk: Desk) -> list[Route]:
    return [
        owner_route(desk, "/hearth/albums/{act}", act, ["POST"], AlbumAsked),
        owner_route(desk, "/hearth/project", send_project, schema=ProjectAsked),
        owner_route(desk, "/hearth/project", take_project, ["POST"]),
    ]


def act(desk: Desk, request: Request, asked: AlbumAsked) -> Response:
    """Change what is in an album or on creations; answer with the album, or with what was moved and how many are gone."""
    if asked.act == "keep":
        desk.keeper.gallery.keep_drafts(asked.album, {name: desk.settings.get(name, {}) for name in WORK})
        return JSONResponse({"album": asked.album})
    if asked.act == "left":
        left = explain_left_out(desk.keeper.shelf, desk.keeper.gallery, asked.album)
        return JSONResponse({"album": asked.album, "note": translate(left, language(request)) if left else ""})
    if asked.act == "open":
        return JSONResponse({"album": asked.album, "drafts": open_work(desk, asked.album)})
    if asked.act == "back":
        return JSONResponse({"album": 0, "drafts": bring_back(desk)})
    action = ACTIONS.get(asked.act)
    if action is None and asked.act not in MOVES:
        return Response(status_code=404)
    ids = [int(each) for each in asked.ids.split(",") if each.isascii() and each.isdecimal() and len(each) < 19]
    refuse_many(ids)
    shelf = desk.keeper.shelf
    creations = shelf.get_all(ids)
    if action is None:
        return JSONResponse({"gone": len({*ids}) - len(creations), **move(shelf, creations, asked.act, language(request))})
    if ids and not creations:
        shelf.get(ids[0])  # it says what is gone
    made = action(Deed(shelf, desk.keeper.gallery, creations, asked.album, asked.value))
    return JSONResponse({"album": made or asked.album})


def move(shelf: Shelf, creations: Iterable[Creation], act: str, spoken: Language) -> dict[str, Any]:
    """Move creations into the bin, or out of it, and tell which were moved: one that cannot be leaves the others to it."""
    moved, trouble = list[int](), ""
    for each in creations:
        if each.binned == (act == "delete"):
            continue
        try:
            with saying_what_stays():
                MOVES[act](shelf, each.id)
            moved.append(each.id)
        except Trouble as refused:
            trouble = join(spoken, refused.sentence, *refused.objections)
    return {"moved": moved, **({"trouble": trouble} if trouble else {})}


def refuse_many(ids: Sized) -> None:
    if len(ids) > AT_ONCE_MOST:
        raise Trouble(
            say(
                "album.many",
                "These are {count} {count:creation|creations}; at most {most} can be used or changed at once. Select fewer.",
                count=len(ids),
                most=AT_ONCE_MOST,
            )
        )


def open_work(desk: Desk, album: int) -> dict[str, Any]:
    """Put what an album keeps into the settings of Speak and Paint, and keep what they held before; return its texts, which the page fills in."""
    found = desk.keeper.gallery.get_album(album)
    kept = {name: dict(values) for name in WORK if isinstance(values := found.drafts.get(name), dict)}
    drop_wrong(SETTINGS, kept)  # it may come from a stranger's file
    return exchange_work(desk, kept, found.name)


def bring_back(desk: Desk) -> dict[str, Any]:
    """Put back what Speak and Paint held before a project was opened; what they hold now is kept in its place."""
    before = desk.settings.get("before")
    if not before:
        raise Trouble(say("album.no-before", "There is nothing from before a project was opened. Open one first."))
    return exchange_work(desk, {name: before.get(name, {}) for name in WORK}, before.get("kept", ""), whole=True)


def exchange_work(desk: Desk, work: Mapping[str, dict[str, Any]], name: str, whole: bool = False) -> dict[str, Any]:
    """Put a work into the settings, and that of now in its place. `whole`: nothing of now stays among it."""
    now = {each: dict(desk.settings.get(each) or {}) for each in WORK}
    texts = {each: words for each, words in work.get("drafts", {}).items() if isinstance(words, str)}
    now["drafts"] = {each: words for each, words in now["drafts"].items() if isinstance(words, str)}
    before = {"kept": (desk.settings.get("before") or {}).get("now", ""), "now": name, **now}
    settings = {each: work[each] if whole else {**now[each], **work[each]} for each in ("speak", "paint") if each in work}
    desk.settings.put({**settings, "before": before})
    return texts


def send_project(desk: Desk, request: Request, asked: ProjectAsked) -> Response:
    """Send an album as one file; it is deleted once it is sent."""
    target = desk.make_upload_folder() / "project.zip"
    keeper = desk.keeper
    try:
        name = write_project(keeper.home, keeper.shelf, keeper.gallery, asked.album, target, desk.book.find_records)
    except BaseException:
        shutil.rmtree(target.parent, ignore_errors=True)
        raise
    clean_up = BackgroundTask(shutil.rmtree, target.parent, ignore_errors=True)
    return FileResponse(target, filename=f"{name}{SUFFIX}", media_type="application/zip", background=clean_up)


async def take_project(desk: Desk, request: Request) -> Response:
    """Take in the project of a file that a form brings."""
    async with request.form(max_files=1, max_fields=1) as form:
        given = form.get("file")
        if not isinstance(given, UploadFile):
            raise BadRequest(say("project.none-came", "No file came with the request. Choose the project again."))
        brought = await run_in_threadpool(_take, desk, given.file, Path(given.filename or "").name)
    spoken = language(request)
    words = say(
        "project.taken",
        "The album {name} is here, with {count} {count:creation|creations} and {voices} {voices:voice|voices}.",
        name=brought.name,
        count=brought.creations,
        voices=brought.voices,
    )
    return JSONResponse({"album": brought.album, "note": " ".join(translate(each, spoken) for each in (words, *brought.notes))})


def _take(desk: Desk, file: IO[bytes], called: str) -> Brought:
    keeper = desk.keeper

    def find_model(kind: str, name: str) -> str:
        ids = [id_ for _, id_ in desk.models.list_choices(kind) if public_name(id_) == name]
        return ids[0] if len(ids) == 1 else ""

    brought = read_project(keeper.home, keeper.shelf, keeper.gallery, file, called, find_model)
    for each in brought.books:
        desk.book.keep_record(each, brought=True)
    return brought
