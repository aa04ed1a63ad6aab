"""Read a cast as people and programs write it: a table with a row for each name, as TOML or JSON; and write it. The window keeps its own so."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from app.base.disk_faults import word_fault
from app.base.path_checks import is_file, size_bytes
from app.base.regular_file import open_regular
from app.base.sentence import say, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.request import Actor, SpeechRequest, VoicePrompt
from app.engine.speech.text.voices import Voice, find_named, is_same

FILE_BYTES: Final = 1 << 20
ListVoices = Callable[[str], Sequence[Voice]]
"""It lists the voices that a model can speak with, by its id."""


class Row(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid", strict=False, allow_inf_nan=False)  # type: ignore[misc]
    voice: str
    transcript: str
    model: str
    volume: float
    pace: float


TABLE: Final = TypeAdapter(dict[str, Row | str])
"""A row that is a word names a voice."""


def read_file(path: Path) -> dict[str, Any]:
    try:
        if size_bytes(path) > FILE_BYTES:
            raise ValueError(f"{size_bytes(path) >> 20} MB")
        with open_regular(path) as file:
            return tomllib.loads(file.read(FILE_BYTES).decode())
    except (OSError, ValueError, RecursionError) as fault:  # broken TOML and UTF-8 are ValueErrors
        raise Trouble(
            say(
                "cast.file",
                "The cast {file} cannot be read ({fault}). Write it as docs/cast.md says.",
                file=str(path),
                fault=word_fault(fault),
            )
        ) from fault


def read_table(
    values: object, model: str, find_model: Callable[[str], str], list_voices: ListVoices, folder: Path | None = None, lenient: bool = False
) -> tuple[Actor, ...]:
    """Return the cast of a table. `model`: whose voices are meant where a row names none. `find_model`: the id of a model, by the name that people
    give it. `folder`: where the recordings lie that rows may name; None: they may name none. `lenient`: a voice that is gone counts as none."""
    try:
        table = TABLE.validate_python(values)
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(str(each) for each in first["loc"] if each not in ("str", "Row"))
        raise Trouble(
            say_to_all(
                "cast.table",
                "The cast cannot be read at {where}: {fault}. Each name has a voice, or a row of voice, model, volume and pace.",
                where=where or "-",
                fault=first["msg"],
            )
        ) from fault
    rows = {name: Row(voice=row) if isinstance(row, str) else row for name, row in table.items()}
    actors = []
    for name, row in rows.items():
        own = find_model(row["model"]) if row.get("model") else ""
        voice = _find_voice(name, row, list_voices(own or model), folder, lenient)
        actors.append(Actor(name, voice, own, row.get("volume", 0.0), row.get("pace", 1.0)))
    return tuple(actors)


def _find_voice(name: str, row: Row, offered: Sequence[Voice], folder: Path | None, lenient: bool) -> VoicePrompt | None:
    wanted = row.get("voice", "")
    if not wanted:
        return None
    if "transcript" not in row:
        found = find_named(wanted, offered)
        if found is not None or lenient:
            return found.prompt if found is not None else None
    if folder is not None and is_file(folder / wanted):
        return VoicePrompt(str((folder / wanted).resolve()), row.get("transcript", ""))
    raise Trouble(
        say(
            "cast.voice",
            "{name} should have the voice {voice}, which is not there. There are: {voices}.",
            name=name,
            voice=wanted,
            voices=tuple(each.name for each in offered) or "-",
        )
    )


def write_table(request: SpeechRequest, list_voices: ListVoices) -> tuple[str, tuple[VoicePrompt, ...]]:
    """Return a request's cast as JSON, and the voices that have no name any more."""
    table, gone = dict[str, Row](), list[VoicePrompt]()
    for each in request.cast:
        row = Row()
        if each.voice is not None:
            offered = list_voices(each.model or request.model)
            voice = next((known.name for known in offered if is_same(known, each.voice)), None)
            if voice is None:
                gone.append(each.voice)
            else:
                row["voice"] = voice
        if each.model:
            row["model"] = each.model
        if each.volume_db:
            row["volume"] = each.volume_db
        if each.pace != 1.0:
            row["pace"] = each.pace
        table[each.name] = row
    return json.dumps(table, ensure_ascii=False) if table else "", tuple(gone)
