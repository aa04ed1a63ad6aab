"""Check uploads by content, never by name; reject decompression bombs before anything unpacks them."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Final
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
import soundfile
from PIL import Image
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.base.bounded_json import parse_json
from app.base.disk_faults import is_disk_full
from app.base.foreign_formats import find_sound_kind, open_picture
from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.owners import household_of
from app.engine.models.safetensors import HEADER
from app.engine.speech.sound.convert_sound import can_convert
from app.engine.speech.sound.sound import measure, require_short, require_usual
from app.ui.access.request_guard import refusal
from app.ui.state.guest_files import GuestFiles
from app.ui.state.guest_limits import redact_for
from app.ui.state.person import who_in

PIXELS_MOST: Final = 40_000_000
PROMISES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp", ".wav", ".flac", ".mp3", ".ogg"})
"""A name that ends so promises a picture or a sound."""
SPOOL_BYTES: Final = 1 << 20
CHECKS_AT_ONCE, CHECK_S = 2, 30.0
"""So many threads check uploads, apart from those that serve the page; one check may take so long."""
UNFINISHED: Final = "tmp*"
"""While Gradio writes a file, its name looks so."""
UPLOAD_PATH: Final = "/gradio_api/upload"


def check_upload(path: Path, owner: bool) -> None:
    """Raise a Trouble unless it is a picture, a sound or, from the owner, a sound to convert or weights. Read headers only."""
    if path.is_symlink() or not path.is_file():
        raise Trouble(say_to_all("upload.none", "This file no longer exists. Send it again."))
    if is_picture(path) or is_sound(path, owner) or (owner and is_safetensors(path)):
        return
    if path.suffix.lower() in PROMISES | ({".safetensors"} if owner else set()):
        raise Trouble(
            say_to_all("upload.broken", "{name} is damaged, incomplete or not what its name says. Choose another file.", name=path.name)
        )
    kinds = "PNG, JPEG, WebP, WAV, FLAC, MP3, OGG" + (", safetensors" if owner else "")
    raise Trouble(say_to_all("upload.kind", "{name} cannot be used here. Send one of: {kinds}.", name=path.name, kinds=kinds))


def is_picture(path: Path) -> bool:
    try:
        with open_picture(path) as opened:
            width, height = opened.size
    except Image.DecompressionBombError as fault:
        raise too_many_pixels(path) from fault
    except (OSError, ValueError):
        return False
    if width * height > PIXELS_MOST:
        raise too_many_pixels(path)
    return True


def too_many_pixels(path: Path) -> Trouble:
    return Trouble(
        say_to_all(
            "upload.pixels",
            "{name} has more than {most} million pixels. Make it smaller first.",
            name=path.name,
            most=PIXELS_MOST // 1_000_000,
        )
    )


def is_sound(path: Path, owner: bool) -> bool:
    kind = find_sound_kind(path)
    if kind is None or not (owner or kind.guests):
        return False
    try:
        found = measure(path)
    except (soundfile.SoundFileError, OSError):
        return owner and can_convert(kind)
    require_usual(path.name, found.channels, found.rate)
    require_short(path.name, found.seconds)
    return True


def is_safetensors(path: Path) -> bool:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(HEADER.most_bytes, path.stat().st_size - 8):
            return False
        try:
            return isinstance(parse_json(file.read(length), HEADER), dict)
        except ValueError:
            return False


class Arrivals:
    """Files that came with requests whose check is not over. Gradio names uploads by their content, so two requests may send
    one file: it goes only if all of them are refused and it was not there before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[Path] = Counter()

    def hold(self, paths: Iterable[Path], before: Collection[Path]) -> list[Path]:
        """Count one more request for the files that are new or still checked for another one; return these."""
        with self._lock:
            held = [path for path in paths if path not in before or self._requests[path] > 0]
            self._requests.update(held)
        return held

    def accept(self, held: Iterable[Path]) -> None:
        """Keep the files, whatever becomes of other requests that sent them."""
        with self._lock:
            for path in held:
                self._requests.pop(path, None)

    def refuse(self, held: Iterable[Path]) -> None:
        """Remove the files that no other request sent."""
        with self._lock:
            for path in held:
                if path in self._requests:
                    self._requests[path] -= 1
                    if self._requests[path] <= 0:
                        del self._requests[path]
                        path.unlink(missing_ok=True)


ARRIVALS: Final = Arrivals()
"""All servers of the process have this one, as they share the folder of uploads."""


class CheckUploads:
    """Middleware: let Gradio store an upload, then check it before answering with its path. What a refused request wrote is deleted."""

    def __init__(self, app: ASGIApp, folder: Path, files_by_person: dict[str, set[str]], guest_files: GuestFiles | None = None) -> None:
        """`files_by_person`: what each login may use. `guest_files`: what all guests hold; none for the owner."""
        self._app, self._folder, self._files_by_person, self._guest_files = app, folder, files_by_person, guest_files
        self._one_at_a_time = asyncio.Lock()
        self._checks = anyio.CapacityLimiter(CHECKS_AT_ONCE)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Each household whose files are being checked has one, so that nobody holds all threads."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") != UPLOAD_PATH or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            with self._guest_files.receiving(household(scope)) if self._guest_files else nullcontext():
                await self._receive(scope, receive, send)
        except OSError as fault:
            if not is_disk_full(fault):
                raise
            await refusal(scope, 507, say_to_all("upload.no-room", "The disk is full, so the file could not be stored. Try again later."))(
                scope, receive, send
            )
        except Trouble as trouble:
            await refusal(scope, trouble.status or 415, redact_for(who_in(scope), trouble).sentence)(scope, receive, send)

    async def _receive(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES, dir=str(self._folder)) as body:
            more = True
            while more:  # read it all before Gradio does, so that an aborted upload leaves no file
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                body.write(message.get("body", b""))
                more = message.get("more_body", False)
            body.seek(0)
            async with self._one_at_a_time:
                before = await self._list_files()
                messages = await self._store(scope, body)
                if not succeeded(messages):
                    for path in set(self._folder.resolve().glob(UNFINISHED)) - before:
                        path.unlink(missing_ok=True)
                    paths = []
                else:
                    paths = [Path(each) for each in json.loads(b"".join(each.get("body", b"") for each in messages))]
                own = (each.resolve() for each in paths)
                held = ARRIVALS.hold([each for each in own if self._folder.resolve() in each.parents], before)
        try:
            await self._check_in_time(scope, paths)
        except BaseException:
            ARRIVALS.refuse(held)
            raise
        ARRIVALS.accept(held)
        for message in messages:
            await send(message)

    async def _list_files(self) -> set[Path]:
        """List what lies in the folder, in a thread: it may be much."""
        folder = self._folder.resolve()
        return await anyio.to_thread.run_sync(lambda: {*folder.glob(UNFINISHED), *folder.glob("*/*")}, limiter=self._checks)

    async def _store(self, scope: Scope, body: IO[bytes]) -> list[Message]:
        """Return Gradio's answer once its handler has ended: it moves the files into place after answering."""
        messages: list[Message] = []

        async def again() -> Message:
            piece = body.read(SPOOL_BYTES)
            return {"type": "http.request", "body": piece, "more_body": len(piece) == SPOOL_BYTES}

        async def hold(message: Message) -> None:
            messages.append(message)

        await self._app(scope, again, hold)
        return messages

    async def _check_in_time(self, scope: Scope, paths: list[Path]) -> None:
        """Check in a thread, so that nobody's page waits. Every reader bounds what it reads; a disk that does not answer ends with the deadline."""
        turn = self._turns.setdefault(household(scope), asyncio.Lock())
        try:
            with anyio.fail_after(CHECK_S):
                async with turn:
                    await anyio.to_thread.run_sync(self._check, scope, paths, abandon_on_cancel=True, limiter=self._checks)
        except TimeoutError as late:
            raise Trouble(
                say_to_all("upload.slow", "This file could not be checked in time. Send it again, or send a smaller one.")
            ) from late

    def _check(self, scope: Scope, paths: list[Path]) -> None:
        """Check the stored files and note whose they are; raise Trouble if one is not acceptable."""
        person = who_in(scope)
        for path in paths:
            check_upload(path, person.owner)
        if self._guest_files:
            self._guest_files.add(household(scope), paths)
        self._files_by_person.setdefault(person.name, set()).update(map(str, paths))


def household(scope: Scope) -> str:
    return household_of(who_in(scope).name)


def succeeded(messages: list[Message]) -> bool:
    return any(each.get("status") == 200 for each in messages)
