"""Read Hearth's own JSON files by a schema: a wrong value alone falls back to its default, and the old file is kept."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from app.base import atomic_write, notices
from app.base.disk_faults import word_fault
from app.base.put_aside import put_aside
from app.base.sentence import Sentence, say, shorten_list

MOST_BYTES: Final = 64 << 20
"""None of these files may be larger; a script has up to 4 MB."""
NAMED_MOST: Final = 8
ROUNDS: Final = 20
"""Each round removes all that is wrong. A removal may leave something else wrong, such as a record that lacks a field: that goes in the next."""
_unreadable: Final[dict[Path, Sentence]] = {}
"""These files could not be read when last tried; the notice of each says so."""
Keys = tuple[str | int, ...]


def read_stored(file: Path, schema: TypeAdapter[Any], depth: int | None = None) -> dict[str, Any]:
    """Return the values of a file without those that are wrong, and unknown ones of a newer Hearth as they are; {} if
    there is no file. A damaged file is put aside and told, and never stops anything. Raise OSError for a file that cannot
    be read now, as one without permission or in a lock: it may be whole, so it stays, and nobody may write in its place.
    `depth`: how deep a wrong value may lie to go alone; None: as deep as it does."""
    try:
        text = read_text(file)
        if text is None:
            return {}
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError(f"{type(values).__name__} in place of an object")
    except (IsADirectoryError, ValueError, RecursionError) as fault:
        notices.tell(
            say(
                "stored.unreadable",
                "{file} could not be read ({fault}), so what it held is back at its default. The damaged file is kept as {aside}.",
                file=str(file),
                fault=str(fault)[:200],
                aside=str(_put_aside(file)),
            )
        )
        return {}
    wrong = drop_wrong(schema, values, depth)
    if wrong:
        aside = file
        with suppress(OSError, ValueError), atomic_write.replacing(file) as unfinished:  # no room, or half a surrogate pair: it stays
            unfinished.write_text(json.dumps(values, ensure_ascii=False, indent=1), "utf-8")
            aside = put_aside(file)
        names = shorten_list([".".join(map(str, keys)) for keys in wrong], NAMED_MOST)
        notices.tell(
            say(
                "stored.wrong",
                "These values of {file} were wrong and are back at their defaults: {names}. The old file is kept as {aside}.",
                file=str(file),
                names=names,
                aside=str(aside),
            )
        )
    return values


def read_text(file: Path) -> str | None:
    """Return a file's text; None if there is no file. Raise IsADirectoryError for a folder or a pipe in its place, ValueError for what is no
    text or too large, and OSError, told once, for a file that cannot be read now."""
    try:
        strange = file.exists() and not file.is_file()  # Windows says of a folder that permission is missing; a pipe never answers
        if not strange and (size := file.stat().st_size) > MOST_BYTES:
            raise ValueError(f"it has {size} bytes")
        text = None if strange else file.read_text("utf-8")
    except FileNotFoundError:
        return None
    except OSError as fault:
        _tell_unreadable(file, fault)
        raise
    if text is None:
        raise IsADirectoryError(errno.EISDIR, "it is not a file", str(file))
    if file in _unreadable:
        notices.dismiss(str(_unreadable.pop(file)))
    return text


def _tell_unreadable(file: Path, fault: OSError) -> None:
    if file not in _unreadable:
        _unreadable[file] = say(
            "stored.not-now",
            "{file} cannot be read now ({fault}). It stays as it is, and until it can be read, what it holds is missing and nothing is saved in it. "
            "See that your account may read it, that no other program holds it, and that its disk works.",
            file=str(file),
            fault=word_fault(fault),
        )
        notices.tell(_unreadable[file])


def drop_wrong(schema: TypeAdapter[Any], values: Any, depth: int | None = None) -> list[Keys]:
    """Remove from `values` what the schema does not allow, and no more around it than has to go; return the keys that led to each. Everything
    goes if the outermost value is wrong, or if ROUNDS rounds were not enough."""
    dropped: list[Keys] = []
    for _ in range(ROUNDS):
        try:
            schema.validate_python(values, strict=True)
            return dropped
        except ValidationError as fault:
            places = dict.fromkeys(_deepest(values, error["loc"][:depth]) for error in fault.errors(include_url=False, include_input=False))
        places = {keys: None for keys in places if not any(keys[:length] in places for length in range(len(keys)))}
        for keys in reversed(places):  # the later ones of a list first, so that the others keep their places
            if not keys:
                values.clear()
            else:
                inner = values
                for key in keys[:-1]:
                    inner = inner[key]
                del inner[keys[-1]]
        dropped += places
    values.clear()
    return [*dropped, ()]


def is_right(schema: TypeAdapter[Any], values: Any) -> bool:
    """Tell whether a value is as the schema says."""
    try:
        schema.validate_python(values, strict=True)
    except ValidationError:
        return False
    return True


def _deepest(values: Any, location: Sequence[str | int]) -> Keys:
    """Return as much of an error's location as exists: its end may name a missing field or one kind of several."""
    keys: list[str | int] = []
    for key in location:
        if (isinstance(values, dict) and key in values) or (isinstance(values, list) and isinstance(key, int) and key < len(values)):
            keys.append(key)
            values = values[key]  # type: ignore[index]
        else:
            break
    return tuple(keys)


def _put_aside(file: Path) -> Path:
    try:
        return put_aside(file)
    except OSError:  # Nobody may rename it, or another process just did.
        return file
