"""The starting picture and its mask: the page sends files, which are decoded here, within bounds and by turns."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from PIL import Image

from app.base.foreign_formats import decode, on_white, open_picture, to_eight_bits, turn_upright
from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.owners import household_of
from app.ui.access import uploads
from app.ui.state.desk import Desk
from app.ui.state.person import Person

READ_AT_ONCE: Final = 2
"""So many pictures of guests are decoded at once, beside one of the owner; one of 40 million pixels takes up to 400 MB meanwhile."""
VISIBLE_ALPHA: Final = 16


class Turns:
    """Let the owner decode one picture at a time and guests READ_AT_ONCE, of each household one. No guest takes the owner's place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._households: set[str] = set()
        self._owner, self._guests = threading.Lock(), threading.Semaphore(READ_AT_ONCE)

    @contextmanager
    def take(self, person: Person) -> Iterator[None]:
        """Wait for a place; raise a Trouble for a guest whose household has one or waits for one."""
        if person.owner:
            with self._owner:
                yield
            return
        household = household_of(person.name)
        with self._lock:
            if household in self._households:
                raise Trouble(say_to_all("editor.reading", "Your last starting picture is still being read. Try again in a moment."))
            self._households.add(household)
        try:
            with self._guests:
                yield
        finally:
            with self._lock:
                self._households.discard(household)


TURNS: Final = Turns()
"""All servers of the process share them."""


def save_pictures(desk: Desk, sent: Sequence[str] | None, person: Person, name: str = "start") -> tuple[str | None, str | None]:
    """Save the picture and the mask that were sent as files of Hearth's own, which is how they reach the engine. `name`: what the picture is for."""
    if not sent:
        return None, None
    picture, *masks = sent
    if len(masks) > 1:
        raise Trouble(say_to_all("editor.layers", "A starting picture can have one mask, not {count}. Keep one layer.", count=len(masks)))
    with TURNS.take(person):
        return _save(desk, name, picture, *masks)


def _save(desk: Desk, name: str, start: str, layer: str | None = None) -> tuple[str, str | None]:
    _require_picture(start)
    if layer:
        _require_picture(layer)
    sides = _measure(start)
    if layer and not any(_has_shape(_measure(layer), each) for each in (sides, sides[::-1])):  # before either is decoded
        raise _strange_mask()
    painted = _read_mask(layer) if layer else None
    picture = on_white(to_eight_bits(turn_upright(_decode(start)))).convert("RGB")
    if painted is not None and not _has_shape(painted.size, picture.size):
        raise _strange_mask()
    folder = desk.make_upload_folder()  # last: nothing is written for what is refused
    own, mask = folder / f"{name}.png", folder / "mask.png"
    picture.save(own, compress_level=1)  # a photo of 12 million pixels takes a second; by Pillow's own level six, before the job even waits
    if painted is None:
        return str(own), None
    painted.resize(picture.size, Image.Resampling.NEAREST).save(mask)  # the page draws on a large picture as it shows it, smaller
    return str(own), str(mask)


def _has_shape(size: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether one is the other at another scale, its sides rounded to whole pixels."""
    long, short = (0, 1) if other[0] >= other[1] else (1, 0)
    return abs(size[short] - other[short] * size[long] / other[long]) <= 1


def _read_mask(layer: str) -> Image.Image | None:
    """Return white where something is painted; None where nothing is."""
    painted = _decode(layer).convert("RGBA").getchannel("A").point(lambda alpha: 255 if alpha > VISIBLE_ALPHA else 0)
    return None if painted.getextrema() == (0, 0) else painted


def _require_picture(path: str) -> None:
    """Raise a Trouble for what is no picture, or too large to decode."""
    if not uploads.is_picture(Path(path)):
        raise _unreadable()


def _measure(path: str) -> tuple[int, int]:
    """Return the sides that its header tells, as it lies there."""
    try:
        with open_picture(Path(path)) as opened:
            return opened.size
    except OSError as fault:
        raise _unreadable() from fault


def _decode(path: str) -> Image.Image:
    try:
        with open_picture(Path(path)) as opened:
            return decode(opened)
    except OSError as fault:
        raise _unreadable() from fault


def _strange_mask() -> Trouble:
    return Trouble(say_to_all("editor.mask-size", "The mask has another shape than the starting picture. Draw it again."))


def _unreadable() -> Trouble:
    return Trouble(say_to_all("editor.unreadable", "The starting picture cannot be read; it may be damaged. Choose another one."))
