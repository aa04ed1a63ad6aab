"""Events as JSON between machines. What comes from another machine is checked, field by field: it may say anything. A preview's picture goes
along as a small JPEG, and is believed only as pixels, which are encoded anew."""

from __future__ import annotations

import base64
import io
import string
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from PIL import Image
from pydantic import TypeAdapter, ValidationError

from app.base.foreign_formats import decode, open_picture
from app.base.sentence import Sentence
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, Loading, Note, Preview, Step, Stopped, Unloaded

SENT: Final[dict[str, type]] = {each.__name__: each for each in (Loading, Unloaded, Step, Adjusted, Note, Finished, Stopped, Failed)}
"""These events travel. The others name files of the machine where they happen; results travel as files."""
_SCHEMAS: Final[dict[str, TypeAdapter[Any]]] = {name: TypeAdapter(each) for name, each in SENT.items()}
TEXT_LETTERS: Final = 2000
_DEPTH_MOST: Final = 12
NUMBER_MOST: Final = 2**53
"""This is larger than any number of bytes, steps or seconds, and still exact as a float."""
_LEAST: Final = {"total": 1, "parts": 1, "at_once": 1}
"""The page divides by these, so they are no less; all other numbers of an event are 0 or more."""
SIDE: Final = 256
"""A preview is sent with a longest side of so many pixels."""
SIDE_MOST: Final = 512
PREVIEW_BYTES: Final = 48 << 10
STEP_MOST: Final = 10_000


def to_json(event: Event) -> dict[str, Any] | None:
    """Return an event without its paths; None for one that does not travel."""
    if isinstance(event, Preview):
        return _preview_to_json(event)
    name = type(event).__name__
    if name not in SENT:
        return None
    values = asdict(event)
    if "files" in values:
        values["files"] = ()
    return {"event": name, **values}


def from_json(given: object) -> Event | None:
    """Return the event that another machine sent; None if it is none that may be believed. Its mark that all may hear a sentence is
    believed: the one guest who hears it gets what that machine makes, and so whatever it wants to tell them. A class only says how a
    job's end is worded here; none of these ends holds the queue."""
    if not isinstance(given, dict) or not _is_modest(given, _DEPTH_MOST) or str(given.get("event")) not in SENT:
        return None
    try:
        event = _SCHEMAS[str(given["event"])].validate_python({key: value for key, value in given.items() if key != "event"})
    except (ValidationError, RecursionError):
        return None
    if not _counts(asdict(event)):
        return None
    sentences = [getattr(event, "sentence", None), *getattr(event, "objections", ())]
    plain = all(_is_plain(each) for each in sentences if each is not None)
    return event if plain and not getattr(event, "files", ()) else None


def _is_modest(value: object, depth: int) -> bool:
    """Tell whether texts are short and nothing is nested deep."""
    match value:
        case str():
            return len(value) <= TEXT_LETTERS
        case dict():
            return depth > 0 and all(isinstance(key, str) and _is_modest(each, depth - 1) for key, each in value.items())
        case list() | tuple():
            return depth > 0 and len(value) <= TEXT_LETTERS and all(_is_modest(each, depth - 1) for each in value)
    return value is None or (isinstance(value, bool | int | float) and -NUMBER_MOST <= value <= NUMBER_MOST)  # which NaN is not


def _counts(values: Mapping[str, Any]) -> bool:
    """Tell whether an event's numbers are some that can be; those of a sentence are its own."""
    for name, value in values.items():
        if isinstance(value, dict) and "english" not in value and not _counts(value):
            return False
        if isinstance(value, int | float) and value < _LEAST.get(name, 0):
            return False
    return True


def _is_plain(sentence: Sentence) -> bool:
    """Tell whether a template only names values that it has, or chooses words by them: `{a.b}` would look into them, and
    `{a:9999999}` fill the memory."""
    values = dict(sentence.values)
    try:
        parts = [(name, form, turn) for _, name, form, turn in string.Formatter().parse(sentence.english) if name is not None]
    except ValueError:
        return False
    within = [part for each in values.values() for part in (each if isinstance(each, tuple) else (each,))]
    inner = all(_is_plain(each) for each in within if isinstance(each, Sentence))
    return inner and all(name in values and name.isidentifier() and (not form or "|" in form) and not turn for name, form, turn in parts)


def _preview_to_json(event: Preview) -> dict[str, Any] | None:
    """Return a preview with its picture; None if it is gone by now, or is too large."""
    try:
        with open_picture(Path(event.path)) as picture:
            small = _encode(picture)
    except OSError:
        return None
    return (
        {"event": Preview.__name__, "step": event.step, "jpeg": base64.b64encode(small).decode()} if len(small) <= PREVIEW_BYTES else None
    )


def read_picture(given: object) -> tuple[int, bytes] | None:
    """Return the step and the picture of a preview that another machine sent; None if it is none that may be shown."""
    if not isinstance(given, dict) or given.get("event") != Preview.__name__:
        return None
    step, text = given.get("step"), given.get("jpeg")
    if type(step) is not int or not 0 <= step <= STEP_MOST or not isinstance(text, str) or len(text) > 2 * PREVIEW_BYTES:
        return None
    try:
        with open_picture(base64.b64decode(text, validate=True), ("JPEG",)) as picture:
            if max(picture.size) > SIDE_MOST:
                return None
            return step, _encode(decode(picture, "RGB"))
    except (OSError, ValueError, Image.DecompressionBombError):
        return None


def _encode(picture: Image.Image) -> bytes:
    """Encode the pixels, and nothing else that a file may carry."""
    plain = Image.new("RGB", picture.size)
    plain.paste(picture.convert("RGB"))
    plain.thumbnail((SIDE, SIDE))
    made = io.BytesIO()
    plain.save(made, "JPEG", quality=75)
    return made.getvalue()
