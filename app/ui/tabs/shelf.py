"""Shelf: search creations, mark favourites, use the bin, reuse settings, export several as a zip with what each was made by."""

from __future__ import annotations

import json
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Final, Literal

import gradio as gr
from pydantic import Field
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from app.base.other_disk import is_away
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.creation import Creation
from app.engine.jobs.gallery import NONE, Marks
from app.engine.jobs.outward import strip_paths
from app.engine.jobs.request import to_json
from app.engine.jobs.shelf import Search, Shelf
from app.engine.keeper.made_from import read_request
from app.engine.kinds import is_heard
from app.engine.models.catalog import list_credits, name_model
from app.engine.models.model_names import word_name
from app.engine.speech.book.book import TITLE_MOST, Book
from app.engine.speech.sound.audiobook import Labels, Spoken, write_audiobook
from app.engine.speech.sound.recode import add_cover, recode
from app.engine.speech.sound.sound import Chapter
from app.engine.speech.text.chapter_names import cut_words, name_chapter
from app.ui.page import views
from app.ui.page.translate import Language, language, text, translate
from app.ui.page.view_types.live import MadeView
from app.ui.page.view_types.making import AlbumView, CreationView, FoundView, KeptPartsView, NamedModelView, OwnerOnlyView, ShelfView
from app.ui.state.asked import Asked, Id, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route, route
from app.ui.state.person import Person, who
from app.ui.tabs import albums, enlarge
from app.ui.tabs.file_manager import reveal

PAGE: Final = 60
TAGS_SHOWN: Final = 200
FILE_LETTERS: Final = 80
FILE_BYTES: Final = 240
"""File systems take 255; a number in front has room."""
ID: Final = re.compile(r"[0-9]{1,18}")
FORBIDDEN: Final = re.compile(r"[^\w\s'(),.-]|^\.+|\.+$")
"""Some file systems take these in no name."""
OF_THE_MACHINE: Final[OwnerOnlyView] = {"title": "", "speed": "", "highest": 0, "maker": "", "named": "", "tags": (), "albums": ()}
"""A guest is not told these of their own creations."""
ACTIONS: Final[dict[str, Callable[[Shelf, int], object]]] = {
    "favourite": lambda shelf, id_: shelf.set_favourite(id_, True),
    "plain": lambda shelf, id_: shelf.set_favourite(id_, False),
    "delete": lambda shelf, id_: shelf.delete(id_),
    "restore": lambda shelf, id_: shelf.restore(id_),
    "reveal": lambda shelf, id_: reveal(shelf.get(id_).path),
}

OF_GUESTS: Final = ("delete", "restore")
"""Guests may do these with what they made: it goes to the owner's bin, and comes back."""


def build(desk: Desk) -> None:
    gr.HTML('<section id="h-shelf"></section>', apply_default_css=False)


class FoundAsked(Asked):
    words: Word = ""
    kind: Word = ""
    model: str = ""
    favourite: str | None = None
    binned: str | None = None
    album: Id = 0
    tag: Word = ""
    since: float = Field(0.0, ge=0, le=1e11)
    until: float = Field(0.0, ge=0, le=1e11)
    """They count seconds since 1970."""


class SearchAsked(FoundAsked):
    skip: Id = 0
    earlier: Id = 0
    """It asks for what this creation's script made before it was edited."""


class ActAsked(Asked):
    id: Id
    act: Word


class ExportAsked(Asked):
    ids: str = ""
    album: Id = 0
    """What is of this album goes in its own order, numbered by its place in it, if it has one."""
    audiobook: str | None = None
    mp3: str | None = None
    """The one sound that is selected becomes an MP3, with the picture selected beside it as its cover."""
    each: Literal["", "mp3", "flac"] = ""
    """Each sound becomes a file of this format, numbered, as chapters of one book."""
    settings: str | None = None
    title: Word = ""


def guest_routes(desk: Desk) -> list[Route]:
    """Return the routes of the shelf that guests have too, each for what is theirs."""
    return [route(desk, "/hearth/shelf", search, schema=SearchAsked), route(desk, "/hearth/shelf/{id}/{act}", act, ["POST"], ActAsked)]


def routes(desk: Desk) -> list[Route]:
    return [
        owner_route(desk, "/hearth/shelf/empty", empty_bin, ["POST"]),
        owner_route(desk, "/hearth/shelf/all", list_all, schema=FoundAsked),
        *guest_routes(desk),
        owner_route(desk, "/hearth/export", export, schema=ExportAsked),
        *albums.routes(desk),
        *enlarge.routes(desk),
    ]


def read_search(asked: FoundAsked, person: Person, skip: int = 0) -> Search:
    return Search(
        asked.words,
        asked.kind,
        asked.model,
        asked.favourite is not None,
        asked.binned is not None,
        most=PAGE + 1,
        skip=skip,
        album=asked.album,
        tag=asked.tag,
        since_s=asked.since,
        until_s=asked.until,
        owner="" if person.owner else person.name,
        latest=asked.favourite is None and asked.binned is None and not (asked.album or asked.tag),
    )


def list_all(desk: Desk, request: Request, asked: FoundAsked) -> Response:
    """Name all that is found, of all pages, so that it can be selected."""
    found = desk.keeper.shelf.list_all(read_search(asked, who(request)))
    return JSONResponse(FoundView(creations=[{"id": id_, "kind": kind} for id_, kind in found]))


def search(desk: Desk, request: Request, asked: SearchAsked) -> Response:
    spoken, person = language(request), who(request)
    wanted, most = read_search(asked, person, asked.skip), albums.AT_ONCE_MOST
    shelf = desk.keeper.shelf
    found = shelf.list_earlier(desk.jobs.find_creation(asked.earlier, person)) if asked.earlier else shelf.find(wanted)
    earlier = shelf.count_earlier(found) if wanted.latest and not asked.earlier else {}
    more, found = len(found) > PAGE, found[:PAGE]
    count = shelf.count(wanted) if more or wanted.skip else len(found)
    if not person.owner:
        own: list[CreationView] = [{**creation_view(desk, each, spoken, earlier.get(each.id, 0)), **OF_THE_MACHINE} for each in found]
        return JSONResponse(ShelfView(creations=own, more=more, count=count, at_once=most, models=[], albums=[], tags=[]))
    gallery = desk.keeper.gallery
    marks = gallery.read_marks(found)
    creations = [creation_view(desk, each, spoken, earlier.get(each.id, 0), marks.get(each.id, NONE)) for each in found]
    models: list[NamedModelView] = [{"id": each, "title": translate(word_name(name_model(each)), spoken)} for each in shelf.list_models()]
    shelved: list[AlbumView] = [
        {"id": each.id, "name": each.name, "count": count, "kept": bool(each.drafts), "ordered": bool(gallery.read_order(each.id))}
        for each, count in shelf.list_albums()
    ]
    parts = desk.keeper.measure_parts()
    kept: KeptPartsView = {"scripts": parts.scripts, "bytes": parts.bytes, "most_bytes": parts.most_bytes}
    before = (desk.settings.get("before") or {}).get("kept")
    tags = gallery.list_tags()[:TAGS_SHOWN]
    return JSONResponse(
        ShelfView(
            creations=creations, more=more, count=count, at_once=most, models=models, kept=kept, albums=shelved, tags=tags, before=before
        )
    )


def act(desk: Desk, request: Request, asked: ActAsked) -> Response:
    person = who(request)
    action = ACTIONS.get(asked.act) if person.owner or asked.act in OF_GUESTS else None
    if action is None or not (person.owner or desk.jobs.made(asked.id, person)):
        return Response(status_code=404)
    with albums.saying_what_stays():
        action(desk.keeper.shelf, asked.id)
    return JSONResponse({})


def empty_bin(desk: Desk, request: Request) -> Response:
    stayed = desk.book.empty_bin()
    if stayed:
        raise Trouble(say("shelf.in-use", "Still in the bin: {n}. Close what another program has open, and empty the bin again.", n=stayed))
    return JSONResponse({})


def export(desk: Desk, request: Request, asked: ExportAsked) -> Response:
    """Send the selected creations as one zip, with a text of the settings beside each if that is asked for, or, of speech, one audiobook, one MP3 or a
    zip of chapters; it is deleted once it is sent."""
    ids, title = [int(each) for each in asked.ids.split(",") if ID.fullmatch(each)], asked.title.strip()[:TITLE_MOST]
    albums.refuse_many(ids)
    target = desk.make_upload_folder() / ("hearth.zip" if asked.audiobook is None else "audiobook.m4b")
    try:
        if asked.mp3 is not None:
            target = export_mp3(desk, ids, target.parent, title)
        elif asked.each:
            export_chapters(desk, ids, target, asked.each, title)
        elif asked.audiobook is None:
            places = number_album(desk, asked.album)
            ids.sort(key=lambda each: places.get(each, len(places) + 1))
            spoken, names = language(request), name_files(desk, ids, places)
            told = None if asked.settings is None else lambda each: describe(desk, each, spoken, names[each.id])
            desk.keeper.shelf.export(ids, target, names, told)
        else:
            export_audiobook(desk, ids, target, title)
    except BaseException:
        shutil.rmtree(target.parent, ignore_errors=True)
        raise
    clean_up = BackgroundTask(shutil.rmtree, target.parent, ignore_errors=True)
    return FileResponse(target, filename=name_file(target, title, target.suffix), background=clean_up)


def number_album(desk: Desk, album: int) -> dict[int, int]:
    """Return each creation's place in an album, as it is shown there, from 1; none of one without an order of its own."""
    if not (album and desk.keeper.gallery.read_order(album)):
        return {}
    return {id_: place for place, (id_, _) in enumerate(desk.keeper.shelf.list_all(Search(album=album)), 1)}


def name_files(desk: Desk, ids: Iterable[int], places: Mapping[int, int]) -> dict[int, str]:
    """Name each creation's file by the name that its owner gave it, if there is one, behind its place if it has one; no two of them alike on any
    system."""
    made = [desk.keeper.shelf.get(each) for each in dict.fromkeys(ids)]
    marks, names, taken = desk.keeper.gallery.read_marks(made), {}, set[str]()
    for each in made:
        wanted, ending = name_file(each.path, marks.get(each.id, NONE).title, ""), each.path.suffix
        if each.id in places:
            wanted = f"{places[each.id]:0{max(2, len(str(len(places))))}} {wanted}"
        apart = chain([wanted], (f"{wanted} {number}" for number in count(2)))
        names[each.id] = next(name for one in apart if (name := f"{one}{ending}").casefold() not in taken)
        taken.add(names[each.id].casefold())
    return names


def describe(desk: Desk, creation: Creation, spoken: Language, file: str) -> str:
    """Say in lines how a creation was made, for whoever reads its file elsewhere. `file`: its name there."""
    marks = desk.keeper.gallery.read_marks([creation]).get(creation.id, NONE)
    request = strip_paths(to_json(read_request(creation))) if creation.settings else {}
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(creation.created_s))
    told = {
        text("describe.file", "File", spoken): file, text("describe.named", "Name", spoken): marks.title,
        text("describe.tags", "Tags", spoken): ", ".join(marks.tags), text("describe.made", "Made", spoken): when,
        text("shelf.model", "Model", spoken): translate(word_name(name_model(creation.model)), spoken),
        text("describe.credit", "Credit", spoken): list_credits({"model": creation.model} | creation.settings),
    }  # fmt: skip
    head = [f"{name}: {value}" for name, value in told.items() if value]
    rest = [
        f"{name}: {value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)}"
        for name, value in request.items()
        if value not in (None, "", [], {}, False) and value != creation.text
    ]
    return "\n".join([*head, "", creation.text, "", *rest, ""])


def export_audiobook(desk: Desk, ids: Iterable[int], target: Path, title: str = "") -> None:
    """Join spoken creations in their order, each a chapter. The cover is the picture that is selected with them; their book lends its author, and
    title and cover where there are none."""
    spoken, drawn, book = choose_sounds(desk, ids)
    if not spoken:
        raise Trouble(say("shelf.no-chapters", "Nothing spoken is selected. Select the chapters of the audiobook."))
    chapters = [Spoken(name_chapter(each.text), each.path) for each in spoken]
    credit = ", ".join(dict.fromkeys(filter(None, (list_credits({"model": each.model} | each.settings) for each in spoken))))
    author, cover = (book.author, book.cover) if book else ("", b"")
    labels = Labels(title or (book.title if book else chapters[0].title), author, credit, drawn or cover)
    write_audiobook(chapters, labels, target)


def export_chapters(desk: Desk, ids: Iterable[int], target: Path, kind: str, title: str) -> None:
    """Write a zip of spoken creations in their order, a file each with its number, its title and the book's. What has the format already goes as it is."""
    spoken, _, book = choose_sounds(desk, ids)
    if not spoken:
        raise Trouble(say("shelf.no-chapters", "Nothing spoken is selected. Select the chapters of the audiobook."))
    names = [name_chapter(each.text) for each in spoken]
    whole, author = title or (book.title if book else names[0]), book.author if book else ""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as bundle:
        for number, (each, name) in enumerate(zip(spoken, names, strict=True), 1):
            made = recode(each, kind, target.parent, name, Chapter(whole, author, number))
            bundle.write(made, f"{number:0{len(str(len(spoken)))}} {name_file(made, name, f'.{kind}')}")
            if made != each.path:
                made.unlink()


def export_mp3(desk: Desk, ids: Iterable[int], folder: Path, title: str) -> Path:
    """Make an MP3 of one sound with a title and, of a picture that is selected with it, a cover."""
    spoken, drawn, _ = choose_sounds(desk, ids)
    if len(spoken) != 1:
        raise Trouble(say("shelf.one-sound", "An MP3 with a cover is made of one sound. Select one sound and one picture."))
    marks = desk.keeper.gallery.read_marks(spoken)
    named = title or marks.get(spoken[0].id, NONE).title or name_chapter(spoken[0].text)
    made = recode(spoken[0], "mp3", folder, named)
    if made == spoken[0].path:  # an MP3 already: the creation itself stays as it is
        made = Path(shutil.copy2(made, folder))
    add_cover(made, drawn, named)
    return made


def choose_sounds(desk: Desk, ids: Iterable[int]) -> tuple[list[Creation], bytes, Book | None]:
    """Return the sounds among the selected creations in the order of their book's chapters, else in the order they were first made; the picture, if
    it is one; and the book, if all are of one."""
    shelf = desk.keeper.shelf
    chosen = [each for each in map(shelf.get, ids) if each.path.is_file()]
    spoken, pictures = [each for each in chosen if is_heard(each.kind)], [each for each in chosen if not is_heard(each.kind)]
    book, places = desk.book.find_book(spoken)
    spoken.sort(key=lambda each: (places.get(each.id, 0), min([each.id, *(one.id for one in shelf.list_earlier(each))])))
    return spoken, pictures[0].path.read_bytes() if len(pictures) == 1 else b"", book


def name_file(path: Path, title: str, ending: str) -> str:
    """Name a file that is sent by its title, as far as every system takes that; else by its own name."""
    name = cut_words(" ".join(FORBIDDEN.sub(" ", title).split()), FILE_LETTERS)
    room = FILE_BYTES - len(ending.encode())
    return f"{name.encode()[:room].decode(errors='ignore').rstrip() or path.stem}{ending}"


def machine_text(creation: Creation, spoken: Language) -> str:
    """Say which other computers made it."""
    if not (machine := creation.plan.get("machine")):
        return ""
    if creation.plan.get("partly"):
        return translate(say("shelf.made-partly", "made partly on {machine}", machine=str(machine)), spoken)
    return translate(say("shelf.made-on", "made on {machine}", machine=str(machine)), spoken)


def creation_view(desk: Desk, creation: Creation, spoken: Language, earlier: int = 0, marks: Marks = NONE) -> CreationView:
    """Show a creation. `earlier`: how many takes of the same lie behind it."""
    conditions = {
        "missing": text("shelf.away", "cannot be reached now", spoken)
        if is_away(desk.keeper.shelf.folder)
        else text("shelf.missing", "file missing", spoken),
        "foreign": text("shelf.foreign", "changed by another program", spoken),
    }
    speed = views.rate_text(creation.rate, creation.unit, spoken) if creation.rate else ""
    heard = is_heard(creation.kind)
    made: MadeView = {} if heard or creation.condition else views.read_made(str(creation.path))
    peaks = views.read_peaks(str(creation.path)) if heard and not creation.condition else ()
    return {
        "id": creation.id,
        "kind": creation.kind,
        "title": translate(word_name(name_model(creation.model)), spoken),
        "text": creation.text,
        "name": creation.path.name,
        "url": f"hearth/creation/{creation.id}",
        "gone": creation.condition == "missing",
        "favourite": creation.favourite,
        "binned": creation.binned,
        "seconds": creation.seconds,
        "speed": speed,
        "highest": creation.highest_bytes,
        "created_s": creation.created_s,
        "maker": desk.jobs.word_maker(creation.owner, spoken),
        "machine": machine_text(creation, spoken),
        "named": marks.title,
        "tags": marks.tags,
        "albums": marks.albums,
        **made,
        "whole": creation.whole,
        "condition": conditions.get(creation.condition, ""),
        "subtitles": heard and creation.condition != "missing" and views.has_cues(str(creation.path)),
        "earlier": earlier,
        "parts": heard and desk.keeper.has_parts(creation.job),
        "peaks": peaks,
    }
