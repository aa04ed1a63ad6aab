"""Check uploads by content, never by name; reject decompression bombs before anything unpacks them."""

from __future__ import annotations

import asyncio
import json
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Final

import soundfile
from PIL import Image
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.sentence import Sentence, Trouble, say
from app.ui.access.request_guard import refusal
from app.ui.state.person import who_in

PIXELS_MOST: Final = 40_000_000
SECONDS_MOST: Final = 600.0
PICTURES: Final = frozenset({"PNG", "JPEG", "WEBP"})
HEADER_MOST: Final = 32 << 20
"""Largest accepted header of a safetensors file."""
GUEST_HOLDS_BYTES: Final = 256 << 20
"""Upload space of one guest; files are deleted after a day."""
SPOOL_BYTES: Final = 1 << 20
UNFINISHED: Final = "tmp*"
"""Names of the files that Gradio is still writing."""
UPLOAD_PATH: Final = "/gradio_api/upload"


def check_upload(path: Path, weights: bool) -> None:
    """Raise a Trouble unless it is a picture, a sound or, if allowed, weights. Read headers only."""
    if path.is_symlink() or not path.is_file():
        raise Trouble(say("upload.none", "This file no longer exists. Send it again."))
    if is_picture(path) or is_sound(path) or (weights and is_safetensors(path)):
        return
    kinds = "PNG, JPEG, WebP, WAV, FLAC, MP3, OGG" + (", safetensors" if weights else "")
    raise Trouble(say("upload.kind", "{name} cannot be used here. Send one of: {kinds}.", name=path.name, kinds=kinds))


def is_picture(path: Path) -> bool:
    try:
        with Image.open(path, formats=sorted(PICTURES)) as opened:
            width, height = opened.size
    except Image.DecompressionBombError as fault:
        raise too_many_pixels(path) from fault
    except (OSError, ValueError, SyntaxError):
        return False
    if width * height > PIXELS_MOST:
        raise too_many_pixels(path)
    return True


def too_many_pixels(path: Path) -> Trouble:
    return Trouble(
        say(
            "upload.pixels",
            "{name} has more than {most} million pixels. Make it smaller first.",
            name=path.name,
            most=PIXELS_MOST // 1_000_000,
        )
    )


def is_sound(path: Path) -> bool:
    if zipfile.is_zipfile(path):
        return False  # an MP3 decoder finds frames in anything
    try:
        found = soundfile.info(str(path))
    except (soundfile.SoundFileError, OSError):
        return False
    if found.samplerate <= 0 or found.frames / found.samplerate > SECONDS_MOST or found.channels > 8:
        raise Trouble(
            say("upload.long", "{name} is longer than {most} minutes. Shorten it first.", name=path.name, most=round(SECONDS_MOST / 60))
        )
    return True


def is_safetensors(path: Path) -> bool:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(HEADER_MOST, path.stat().st_size - 8):
            return False
        try:
            return isinstance(json.loads(file.read(length)), dict)
        except ValueError:
            return False


class CheckUploads:
    """Middleware: let Gradio store an upload, then check it before answering with its path. Rejected files are deleted."""

    def __init__(self, app: ASGIApp, folder: Path, files_by_person: dict[str, set[str]]) -> None:
        self._app, self._folder, self._files_by_person = app, folder, files_by_person
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") != UPLOAD_PATH or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
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
                before = set(self._folder.glob(UNFINISHED))
                messages = await self._store(scope, body)
                if not succeeded(messages):
                    for path in set(self._folder.glob(UNFINISHED)) - before:
                        path.unlink(missing_ok=True)
        answer = b"".join(each.get("body", b"") for each in messages)
        rejected = self._reject(scope, answer) if succeeded(messages) else None
        if rejected is not None:
            await refusal(scope, 415, rejected)(scope, receive, send)
            return
        for message in messages:
            await send(message)

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

    def _reject(self, scope: Scope, body: bytes) -> Sentence | None:
        """Check the stored files; delete them and return the reason if one is not acceptable, else note whose they are."""
        person = who_in(scope)
        paths = [Path(each) for each in json.loads(body)]
        sent = self._files_by_person.setdefault(person.name, set())
        try:
            for path in paths:
                check_upload(path, weights=person.owner)
            if not person.owner and sum(map(size_of, {*sent, *map(str, paths)})) > GUEST_HOLDS_BYTES:
                raise Trouble(
                    say(
                        "upload.full",
                        "You have used your {most} MB of upload space. Use the files you sent, or come back tomorrow.",
                        most=GUEST_HOLDS_BYTES >> 20,
                    )
                )
        except Trouble as trouble:
            for path in paths:
                if self._folder.resolve() in path.resolve().parents:
                    path.unlink(missing_ok=True)
            return trouble.sentence
        sent.update(map(str, paths))
        return None


def size_of(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


def succeeded(messages: list[Message]) -> bool:
    return any(each.get("status") == 200 for each in messages)
