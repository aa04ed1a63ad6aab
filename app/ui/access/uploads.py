"""What comes in as a file: known by its content, never by its name; a bomb is refused before anything unpacks it."""

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
from app.ui.access.request_guard import answered
from app.ui.state.person import who_in

PIXELS_MOST: Final = 40_000_000
SECONDS_MOST: Final = 600.0
PICTURES: Final = frozenset({"PNG", "JPEG", "WEBP"})
HEADER_MOST: Final = 32 << 20
"""Of a safetensors file, before its weights."""
VISITOR_HOLDS_BYTES: Final = 256 << 20
"""All that lies here of one visitor's at a time; what is a day old is gone."""
SPOOL_BYTES: Final = 1 << 20
HALF: Final = "tmp*"
"""How the files are called that Gradio is still writing."""
UPLOAD: Final = "/gradio_api/upload"


def check(path: Path, weights: bool) -> None:
    """A picture, a sound or, from the owner, weights; else a Trouble. Reads headers only."""
    if path.is_symlink() or not path.is_file():
        raise Trouble(say("upload.none", "There is no such file."))
    if picture(path) or sound(path) or (weights and safetensors(path)):
        return
    kinds = "PNG, JPEG, WebP, WAV, FLAC, MP3, OGG" + (", safetensors" if weights else "")
    raise Trouble(say("upload.kind", "{name} is none of what Hearth takes: {kinds}.", name=path.name, kinds=kinds))


def picture(path: Path) -> bool:
    try:
        with Image.open(path, formats=sorted(PICTURES)) as opened:
            width, height = opened.size
    except Image.DecompressionBombError as fault:
        raise large_picture(path) from fault
    except (OSError, ValueError, SyntaxError):
        return False
    if width * height > PIXELS_MOST:
        raise large_picture(path)
    return True


def large_picture(path: Path) -> Trouble:
    return Trouble(say("upload.pixels", "{name} would unpack to more than {most} million pixels. Make it smaller first.", name=path.name, most=PIXELS_MOST // 1_000_000))  # fmt: skip


def sound(path: Path) -> bool:
    if zipfile.is_zipfile(path):
        return False  # An MP3 decoder finds frames in anything.
    try:
        found = soundfile.info(str(path))
    except (soundfile.SoundFileError, OSError):
        return False
    if found.samplerate <= 0 or found.frames / found.samplerate > SECONDS_MOST or found.channels > 8:
        raise Trouble(say("upload.long", "{name} is longer than {most} minutes. Cut it first.", name=path.name, most=round(SECONDS_MOST / 60)))  # fmt: skip
    return True


def safetensors(path: Path) -> bool:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(HEADER_MOST, path.stat().st_size - 8):
            return False
        try:
            return isinstance(json.loads(file.read(length)), dict)
        except ValueError:
            return False


class Uploads:
    """Gradio stores what was sent; here it is looked at before anybody is told where. What is refused is deleted."""

    def __init__(self, app: ASGIApp, folder: Path, mine: dict[str, set[str]]) -> None:
        """`mine`: by a person's name, the files that they sent."""
        self._app, self._folder, self._mine = app, folder, mine
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") != UPLOAD or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES, dir=str(self._folder)) as body:
            more = True
            while more:  # The whole of it first: of what is cut off on the way, nothing may stay.
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                body.write(message.get("body", b""))
                more = message.get("more_body", False)
            body.seek(0)
            async with self._turn:
                before = set(self._folder.glob(HALF))
                held = await self._stored(scope, body)
                if not ok(held):
                    for path in set(self._folder.glob(HALF)) - before:
                        path.unlink(missing_ok=True)
        refused = self._taken(scope, b"".join(each.get("body", b"") for each in held)) if ok(held) else None
        if refused is not None:
            await answered(scope, 415, refused)(scope, receive, send)
            return
        for message in held:
            await send(message)

    async def _stored(self, scope: Scope, body: IO[bytes]) -> list[Message]:
        """Gradio's answer, once it is through: it moves the files into place after it has answered."""
        held: list[Message] = []

        async def again() -> Message:
            piece = body.read(SPOOL_BYTES)
            return {"type": "http.request", "body": piece, "more_body": len(piece) == SPOOL_BYTES}

        async def hold(message: Message) -> None:
            held.append(message)

        await self._app(scope, again, hold)
        return held

    def _taken(self, scope: Scope, body: bytes) -> Sentence | None:
        person = who_in(scope)
        paths = [Path(each) for each in json.loads(body)]
        mine = self._mine.setdefault(person.name, set())
        try:
            for path in paths:
                check(path, weights=person.owner)
            if not person.owner and sum(map(size, {*mine, *map(str, paths)})) > VISITOR_HOLDS_BYTES:
                raise Trouble(say("upload.full", "You have sent {most} MB already, which is what there is room for. Use what you sent, or come back tomorrow.", most=VISITOR_HOLDS_BYTES >> 20))  # fmt: skip
        except Trouble as trouble:
            for path in paths:
                if self._folder.resolve() in path.resolve().parents:
                    path.unlink(missing_ok=True)
            return trouble.sentence
        mine.update(map(str, paths))
        return None


def size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


def ok(held: list[Message]) -> bool:
    return any(each.get("status") == 200 for each in held)
