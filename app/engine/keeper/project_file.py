"""A project as one file: an album with its work, voices and creations, written for another computer, and read from one whose maker nobody knows."""

from __future__ import annotations

import json
import tempfile
import time
import uuid
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Annotated, Any, Final, NotRequired

import soundfile
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from app.base import atomic_write
from app.base.bounded_json import Bounds, parse_json
from app.base.clean_words import clean_words
from app.base.foreign_formats import Archive, open_archive, open_picture
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.stored_json import is_right
from app.base.trouble import BadRequest, Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.creation import Creation, RunSummary
from app.engine.jobs.gallery import NAME_MOST, NONE, TAG_MOST, Gallery, Marks
from app.engine.jobs.journal import Job
from app.engine.jobs.outward import public_name, strip_paths
from app.engine.jobs.owners import OWNER
from app.engine.jobs.request import Request, from_json
from app.engine.jobs.shelf import Search, Shelf
from app.engine.speech.sound.arrived import is_speech
from app.engine.speech.sound.audiobook import draw_cover
from app.engine.speech.sound.sound import CODINGS
from app.engine.speech.text.pronunciations import choose_rows, read_field
from app.engine.speech.text.voice_files import FILE_BYTES as VOICE_BYTES
from app.engine.speech.text.voice_files import check_voice, export_voice, import_voice
from app.engine.speech.text.voices import Voice, is_same, list_voices

FORMAT: Final = 1
SUFFIX: Final = ".hearth.zip"
LIST: Final = "project.json"
LIST_BOUNDS: Final = Bounds(most_bytes=64 << 20, depth=16, values=500_000)
FILE_BYTES: Final = (4 << 30) - 1
"""A zip without extensions can hold no more."""
PACKED_TIMES, PACKED_BYTES = 8, 64 << 20
"""A file may become this many times as large, and this many bytes more: Hearth packs nothing but the list."""
CREATIONS_MOST, VOICES_MOST, BOOKS_MOST = 2000, 200, 20
LEFT_NAMED_MOST: Final = 10
"""So many of those that stay out are named."""
SIDE_MOST: Final = 16_384
LONGEST_S: Final = 86_400.0
COVER_BYTES: Final = 8 << 20
TITLE_MOST: Final = 500
PICTURE: Final = "png"

FindModel = Callable[[str, str], str]
"""It returns the id of an installed model, by its kind and name; empty for one that is not there."""
_Label = Annotated[str, Field(max_length=200)]


class StoredVoice(TypedDict):
    file: Annotated[str, Field(pattern=r"^voices/[0-9]{4}\.wav$")]
    clip: _Label
    """Requests name its clip so."""


class StoredCreation(TypedDict):
    file: Annotated[str, Field(pattern=rf"^creations/[0-9]{{4}}\.({'|'.join((PICTURE, *CODINGS))})$")]
    request: dict[str, Any]
    model: _Label
    seconds: Annotated[float, Field(ge=0, le=LONGEST_S)]
    made_s: Annotated[float, Field(ge=0, le=1e11)]
    whole: bool
    favourite: bool
    title: Annotated[str, Field(max_length=NAME_MOST)]
    tags: Annotated[list[Annotated[str, Field(min_length=1, max_length=TAG_MOST)]], Field(max_length=50)]


class StoredBook(TypedDict):
    title: Annotated[str, Field(max_length=TITLE_MOST)]
    author: Annotated[str, Field(max_length=TITLE_MOST)]
    words: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    cover: Annotated[str, Field(pattern=r"^(covers/[0-9]{4}\.jpg)?$")]
    places: Annotated[dict[_Label, Annotated[int, Field(ge=0, le=100_000)]], Field(max_length=CREATIONS_MOST)]
    """A creation's file leads to the place of its chapter."""


class StoredWork(TypedDict):
    drafts: dict[str, str]
    speak: dict[str, Any]
    paint: dict[str, Any]


class StoredProject(TypedDict):
    hearth_project: Annotated[int, Field(ge=1)]
    name: Annotated[str, Field(min_length=1, max_length=NAME_MOST)]
    work: StoredWork | None
    voices: Annotated[list[StoredVoice], Field(max_length=VOICES_MOST)]
    creations: Annotated[list[StoredCreation], Field(max_length=CREATIONS_MOST)]
    books: NotRequired[Annotated[list[StoredBook], Field(max_length=BOOKS_MOST)]]
    ordered: NotRequired[bool]
    """True: the album has an order of its own, that of its creations here."""


PROJECT: Final = TypeAdapter(StoredProject)


@dataclass(frozen=True, slots=True)
class BookRecord:
    """What an audiobook says, without the words of its chapters."""

    title: str
    author: str
    words: str
    """A hash of its chapters."""
    cover: bytes
    """It is empty where the book has none."""
    places: Mapping[str, int]
    """The job that spoke a chapter first leads to the chapter's place."""


FindBooks = Callable[[Collection[str]], Sequence[BookRecord]]
"""It returns the books of which these jobs spoke chapters."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What came with a project."""

    album: int
    name: str
    creations: int
    voices: int
    notes: tuple[Sentence, ...]
    books: tuple[BookRecord, ...] = ()


def _explain_stay(creation: Creation) -> Sentence | None:
    """Return why a project cannot hold a creation; None: it can."""
    if creation.condition:
        return (
            say("shelf.missing", "file missing") if creation.condition == "missing" else say("shelf.foreign", "changed by another program")
        )
    if not creation.settings or not _is_readable(creation):
        return say("project.why-settings", "settings cannot be read")
    if _ending(creation) not in ((PICTURE,) if creation.request.kind == "picture" else CODINGS):
        return say("project.why-file", "a file of another kind")
    return None


def explain_left_out(shelf: Shelf, gallery: Gallery, album_id: int) -> Sentence | None:
    """Say which creations of an album its project leaves out, and why; None: it has all."""
    found = shelf.find(Search(album=album_id, most=-1))
    left = [(each, why) for each in found if (why := _explain_stay(each)) is not None]
    if not left:
        return None
    marks = gallery.read_marks([each for each, _ in left])
    names = [
        say("project.left-one", "{name} ({why})", name=_name(each, marks.get(each.id, NONE)), why=why)
        for each, why in left[:LEFT_NAMED_MOST]
    ]
    if more := len(left) - len(names):
        names.append(say("project.left-more", "{count} more", count=more))
    return say(
        "project.left-out",
        "{count} of {total} {total:creation|creations} {count:is|are} not in the file: {names}.",
        count=len(left),
        total=len(found),
        names=tuple(names),
    )


def _name(creation: Creation, marks: Marks) -> str:
    return f"“{marks.title or ' '.join(creation.text.split())[:NAME_MOST] or creation.path.name}”"


def _ending(creation: Creation) -> str:
    return creation.path.suffix.lower().lstrip(".")


def write_project(home: Home, shelf: Shelf, gallery: Gallery, album_id: int, target: Path, find_books: FindBooks) -> str:
    """Write an album as one file; return its name. Paths of this computer stay out, and so does what is typed elsewhere."""
    album = gallery.get_album(album_id)
    found = [each for each in shelf.find(Search(album=album_id, most=-1)) if _explain_stay(each) is None]
    if len(found) > CREATIONS_MOST:
        raise Trouble(
            say(
                "project.many",
                "This album has more than {most} {most:creation|creations}, too many for one file. Divide it.",
                most=CREATIONS_MOST,
            )
        )
    ordered = bool(gallery.read_order(album_id))
    if not ordered:
        found.sort(key=lambda each: each.created_s)
    work = _publish_work(home, album.drafts) if album.drafts else None
    used = _list_voices(home, work, [each.request for each in found])
    marks = gallery.read_marks(found)
    creations, files = list[StoredCreation](), dict[str, Path]()
    for place, each in enumerate(found):
        own = marks.get(each.id)
        stored = StoredCreation(
            file=f"creations/{place:04}.{_ending(each)}",
            request=strip_paths(each.settings),
            model=public_name(each.model)[:200],
            seconds=each.seconds,
            made_s=each.created_s,
            whole=each.whole,
            favourite=each.favourite,
            title=own.title if own else "",
            tags=[*own.tags] if own else [],
        )
        creations.append(stored)
        files[stored["file"]] = each.path
    voices = [StoredVoice(file=f"voices/{place:04}.wav", clip=public_name(each.prompt.path)) for place, each in enumerate(used)]
    origins = {stored["file"]: shelf.find_origin(each.job) for stored, each in zip(creations, found, strict=True)}
    books, covers = _list_books(origins, find_books({*origins.values()}))
    project = StoredProject(
        hearth_project=FORMAT, name=album.name, work=work, voices=voices, creations=creations, books=books, ordered=ordered
    )
    try:
        with atomic_write.replacing(target) as unfinished, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED, allowZip64=False) as bundle:
            bundle.writestr(LIST, json.dumps(project, ensure_ascii=False), zipfile.ZIP_DEFLATED)
            for row, voice in zip(voices, used, strict=True):
                with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                    export_voice(voice, Path(folder, "voice.wav"))
                    bundle.write(Path(folder, "voice.wav"), row["file"])
            for name, cover in covers.items():
                bundle.writestr(name, cover)
            for name, path in files.items():
                bundle.write(path, name)
    except zipfile.LargeZipFile as fault:
        raise Trouble(say("project.large", "This album has more than 4 GB, too much for one file. Divide it.")) from fault
    return album.name


def _list_books(origins: Mapping[str, str], kept: Sequence[BookRecord]) -> tuple[list[StoredBook], dict[str, bytes]]:
    """Return the books with the places of the creations that are chapters of them, and their covers by name. `origins`: by creation's file the job."""
    books, covers = list[StoredBook](), dict[str, bytes]()
    for each in kept[-BOOKS_MOST:]:
        cover = f"covers/{len(covers):04}.jpg" if each.cover else ""
        if cover:
            covers[cover] = each.cover
        places = {file: each.places[job] for file, job in origins.items() if job in each.places}
        books.append(
            StoredBook(title=each.title[:TITLE_MOST], author=each.author[:TITLE_MOST], words=each.words, cover=cover, places=places)
        )
    return books, covers


def _is_readable(creation: Creation) -> bool:
    try:
        return bool(creation.request)
    except Trouble:  # settings of a newer Hearth
        return False


def _publish_work(home: Home, kept: Mapping[str, Any]) -> StoredWork:
    """Return texts and settings without paths, and with the words that are said differently everywhere and stand in the script."""
    drafts, speak, paint = (dict(kept[name]) if isinstance(kept.get(name), dict) else {} for name in ("drafts", "speak", "paint"))
    texts = {name: words for name, words in drafts.items() if isinstance(words, str)}
    for settings in (speak, paint):
        if settings.get("model"):
            settings["model"] = public_name(str(settings["model"]))
    cast = _read_cast(speak)
    for row in cast.values():
        if row.get("model"):
            row["model"] = public_name(str(row["model"]))
    own = read_field(str(speak.get("says") or ""))
    said = dict((*choose_rows(home, texts.get("speak-text", ""), own, tuple(cast)), *own))
    return StoredWork(drafts=texts, speak=speak | _write_cast(cast) | _write("says", said), paint=paint)


def _read_cast(speak: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the rows of the cast that the window keeps; none where they cannot be read."""
    try:
        table = json.loads(str(speak.get("cast") or "{}"))
    except (ValueError, RecursionError):
        return {}
    return {name: row for name, row in table.items() if isinstance(row, dict)} if isinstance(table, dict) else {}


def _write_cast(cast: Mapping[str, Any]) -> dict[str, str]:
    return _write("cast", cast)


def _write(name: str, values: Mapping[str, Any]) -> dict[str, str]:
    return {name: json.dumps(values, ensure_ascii=False)} if values else {}


def _list_voices(home: Home, work: StoredWork | None, requests: Sequence[Request]) -> list[Voice]:
    """List the kept voices that the work names, or the creations were spoken with."""
    speak: Mapping[str, Any] = work["speak"] if work else {}
    named = {str(speak.get("voice", "")).casefold(), *(str(row.get("voice", "")).casefold() for row in _read_cast(speak).values())}
    prompts = {prompt for each in requests for prompt in each.prompts}
    kept = (each for each in list_voices(home) if each.name.casefold() in named or any(is_same(each, prompt) for prompt in prompts))
    return [*kept][:VOICES_MOST]


def read_project(home: Home, shelf: Shelf, gallery: Gallery, file: IO[bytes], called: str, find_model: FindModel) -> Brought:
    """Take a project in as a new album. Everything is looked at before anything is kept; raise a Trouble for what is no such file. `called`: its
    name where it comes from."""
    home.scratch.mkdir(parents=True, exist_ok=True)
    size = file.seek(0, 2)
    with tempfile.TemporaryDirectory(prefix="project-", dir=home.scratch) as name:
        folder = Path(name)
        try:
            with open_archive(file, min(FILE_BYTES, PACKED_TIMES * size + PACKED_BYTES)) as archive:
                project = _read_list(archive, called)
                _check_members(archive, project)
                for place, voice in enumerate(project["voices"]):
                    archive.save(voice["file"], folder / f"voice-{place}.wav", VOICE_BYTES)
                for place, creation in enumerate(project["creations"]):
                    archive.save(creation["file"], _place(folder, place, creation), FILE_BYTES)
                covers = [_read_cover(archive, each) for each in project.get("books", ())]
        except OSError as fault:
            if fault.errno is not None:  # of the disk
                raise
            raise _refuse(called) from fault
        for place, _ in enumerate(project["voices"]):
            check_voice(folder / f"voice-{place}.wav", called)
        requests = [_check_creation(_place(folder, place, each), each) for place, each in enumerate(project["creations"])]
        return _take_in(home, shelf, gallery, folder, project=project, requests=requests, covers=covers, find_model=find_model)


def _place(folder: Path, place: int, creation: StoredCreation) -> Path:
    return folder / f"{place}{PurePath(creation['file']).suffix}"


def _read_cover(archive: Archive, book: StoredBook) -> bytes:
    """Read a book's cover, as small as it is kept; raise a Trouble for what is no picture."""
    data = archive.read(book["cover"], COVER_BYTES) if book["cover"] else b""
    cover, _ = draw_cover(data)
    if data and not cover:
        raise _refuse_member(book["cover"], say("word.picture", "picture"))
    return cover


def _read_list(archive: Archive, called: str) -> StoredProject:
    if LIST not in archive.names:
        raise _refuse(called)
    try:
        values = parse_json(archive.read(LIST, LIST_BOUNDS.most_bytes), LIST_BOUNDS)
    except ValueError as fault:
        raise _refuse(called) from fault
    if isinstance(values, dict) and isinstance(values.get("hearth_project"), int) and values["hearth_project"] > FORMAT:
        raise BadRequest(say("project.newer", "{file} was written by a newer Hearth. Update this one, then open it again.", file=called))
    if not is_right(PROJECT, values) or not values["name"].strip() or clean_words(values["name"]) != values["name"]:
        raise _refuse(called)
    project: StoredProject = values
    return project


def _check_members(archive: Archive, project: StoredProject) -> None:
    """Raise a Trouble for a file that the list does not name, names twice, or names in vain."""
    covers = [each["cover"] for each in project.get("books", ()) if each["cover"]]
    listed = [LIST, *(each["file"] for each in project["voices"]), *(each["file"] for each in project["creations"]), *covers]
    if odd := sorted(archive.names - set(listed)):
        raise BadRequest(
            say(
                "project.odd",
                "{file} does not belong into a project, so nothing was taken in. Have it saved anew by Hearth.",
                file=odd[0][:100],
            )
        )
    if (lost := sorted(set(listed) - archive.names)) or len(set(listed)) < len(listed):
        raise BadRequest(
            say(
                "project.lost",
                "{file} is missing in the project, so nothing was taken in. Have it sent again.",
                file=(lost or listed)[0][:100],
            )
        )


def _check_creation(file: Path, stored: StoredCreation) -> Request:
    """Return the request of a creation; raise a Trouble unless its file is what it should be."""
    request = from_json(strip_paths(stored["request"]))
    ending = file.suffix.lstrip(".")
    try:
        if (ending == PICTURE) != (request.kind == "picture"):
            raise OSError("of another kind")
        if ending != PICTURE:
            fits = is_speech(file, ending, LONGEST_S)
        else:
            with open_picture(file, ("PNG",)) as picture:
                fits = max(picture.size) <= SIDE_MOST
    except (OSError, soundfile.LibsndfileError):
        fits = False
    if not fits:
        raise _refuse_member(stored["file"], say("word.picture", "picture") if ending == PICTURE else say("word.sound", "sound"))
    return request


def _refuse_member(file: str, kind: Sentence) -> BadRequest:
    return BadRequest(
        say(
            "project.broken",
            "{file} in the project is no {kind} that Hearth made, so nothing was taken in. Have it sent again.",
            file=file,
            kind=kind,
        )
    )


def _take_in(
    home: Home,
    shelf: Shelf,
    gallery: Gallery,
    folder: Path,
    *,
    project: StoredProject,
    requests: Sequence[Request],
    covers: Sequence[bytes],
    find_model: FindModel,
) -> Brought:
    clips, renamed, jobs, kept = dict[str, Voice](), dict[str, str](), dict[str, str](), list[Creation]()
    for place, each in enumerate(project["voices"]):
        file = folder / f"voice-{place}.wav"
        name = check_voice(file, each["clip"])
        made = _find_kept(home, file, name) or import_voice(home, file, each["clip"])
        clips[each["clip"]], renamed[name.casefold()] = made, made.name
    album = gallery.make_album(_find_name(gallery, project["name"]))
    for place, (stored, request) in enumerate(zip(project["creations"], requests, strict=True)):
        asked = request.with_files(lambda path: clips[path].prompt.path if path in clips else path)
        made_s = min(stored["made_s"], time.time())
        job = Job(uuid.uuid4().hex, OWNER, asked, Choice(), "finished", 0, "", made_s, made_s)
        summary = RunSummary(stored["model"], stored["seconds"], whole=stored["whole"], made_s=made_s)
        jobs[stored["file"]] = job.id
        creations = shelf.keep(job, [_place(folder, place, stored)], summary)
        gallery.put(creations, album)
        gallery.tag(creations, stored["tags"])
        if stored["title"].strip():
            gallery.name(creations[0], stored["title"])
        if stored["favourite"]:
            shelf.set_favourite(creations[0].id, True)
        kept += creations
    if project.get("ordered"):
        gallery.arrange(album, kept)
    notes = list[Sentence]()
    if project["work"] is not None:
        gallery.keep_drafts(album, dict(_fit_work(project["work"], renamed, find_model, notes)))
    books = tuple(
        BookRecord(
            clean_words(each["title"]),
            clean_words(each["author"]),
            each["words"],
            cover,
            {jobs[file]: place for file, place in each["places"].items() if file in jobs},
        )
        for each, cover in zip(project.get("books", ()), covers, strict=True)
        if not jobs.keys().isdisjoint(each["places"])
    )
    return Brought(album, gallery.get_album(album).name, len(requests), len(clips), tuple(notes), books)


def _find_kept(home: Home, file: Path, name: str) -> Voice | None:
    """Find the voice that an earlier project, or this one before, brought: it has the same words and lasts as long."""
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        for each in list_voices(home):
            if each.name.casefold() == name.casefold():
                export_voice(each, again := Path(folder, "voice.wav"))
                return each if again.read_bytes() == file.read_bytes() else None
    return None


def _find_name(gallery: Gallery, wanted: str) -> str:
    """Return a name that no album has yet."""
    wanted = " ".join(wanted.split())
    taken = {each.name.casefold() for each in gallery.list_albums()}
    names = (wanted, *(f"{wanted[: NAME_MOST - 5].rstrip()} {number}" for number in range(2, 10_000)))
    return next(each for each in names if each.casefold() not in taken)


def _fit_work(work: StoredWork, renamed: Mapping[str, str], find_model: FindModel, notes: list[Sentence]) -> StoredWork:
    """Name voices and models as they are called here."""
    speak, paint, cast = dict(work["speak"]), dict(work["paint"]), _read_cast(work["speak"])

    def fit(kind: str, row: dict[str, Any]) -> None:
        if name := str(row.get("model") or ""):
            row["model"] = find_model(kind, name)
            if not row["model"]:
                notes.append(say("owner.model", "This was made with {model}. Choose the model to use.", model=name))
        voice = str(row.get("voice") or "")
        if voice.casefold() in renamed:
            row["voice"] = renamed[voice.casefold()]

    fit("speech", speak)
    fit("picture", paint)
    for row in cast.values():
        fit("speech", row)
    return StoredWork(drafts=work["drafts"], speak=speak | _write_cast(cast), paint=paint)


def _refuse(called: str) -> BadRequest:
    return BadRequest(
        say(
            "project.no-file",
            "{file} is no project that Hearth saved, or it is damaged. Choose a file that ends in {ending}, or have it sent again.",
            file=called,
            ending=SUFFIX,
        )
    )
