"""The file of a machine's report: read it within bounds, check it by a schema, lay it out. Knows no fact by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from app.base.disk_faults import word_fault
from app.base.private_words import ROOT
from app.base.sentence import say, shorten_list
from app.base.start_command import name_command
from app.base.strict_json import parse_strictly
from app.base.trouble import Trouble

MOST_BYTES: Final = 4 << 20
"""A report takes some 20 KB, with the plans of all models less than a megabyte."""
LONGEST: Final = 1000
"""At most so many characters of a text are read: no machine has more to say."""
NAMED_MOST: Final = 6
_ROOTED: Final = re.compile(rf"(?:^|[^\w.@-]){ROOT}|^[A-Za-z]:")
T = TypeVar("T")


@cache
def read_report(file: str) -> dict[str, Any]:
    """Return a report's values; raise a Trouble for what is none. Read once: while Hearth runs, a machine stays as it was."""
    try:
        path = Path(file)
        if path.exists() and not path.is_file():  # a pipe never answers
            raise Trouble(say("report.no-file", "{file} is not a file. Give the file of a machine's report to --pretend.", file=file))
        with path.open("rb") as opened:
            raw = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise Trouble(say("report.missing", "There is no file {file}. Check its name and its folder.", file=file)) from None
    except (OSError, ValueError) as fault:
        raise Trouble(
            say(
                "report.unreadable",
                "{file} cannot be read: {fault}. See that your account may read it and that its disk works.",
                file=file,
                fault=word_fault(fault),
            )
        ) from fault
    if len(raw) > MOST_BYTES:
        raise Trouble(
            say(
                "report.large",
                "{file} is larger than {most} MB, so it is not a machine's report. Choose the file that {hearth} doctor --selftest --json wrote.",
                file=file,
                most=MOST_BYTES >> 20,
            )
        )
    try:
        values = _clean(parse_strictly(raw))  # UTF-16 too, as PowerShell writes it
        if not isinstance(values, dict) or not isinstance(values.get("machine"), dict):
            raise ValueError("no machine in it")
    except (ValueError, RecursionError) as fault:
        words, command = str(_clean(str(fault)))[:100], f"{name_command()} doctor --selftest --json > machine.json"
        raise Trouble(
            say(
                "report.damaged",
                "{file} is not a machine's report, or it is damaged ({fault}). Make one with: {command}",
                file=file,
                fault=words,
                command=command,
            )
        ) from fault
    return values


def check(file: str, schema: TypeAdapter[T], values: object, *within: str) -> T:
    """Return the values as the schema has them, unknown ones left out; raise a Trouble that names the wrong ones."""
    try:
        return schema.validate_python(values, strict=True)
    except ValidationError as fault:
        wrong = [error["loc"] for error in fault.errors(include_url=False, include_input=False)]
        names = dict.fromkeys(".".join(map(str, (*within, *keys))) for keys in wrong)
        raise Trouble(
            say(
                "report.wrong",
                "{file} cannot be used: these values are missing, or no machine has such ones: {names}.",
                file=file,
                names=shorten_list([*names], NAMED_MOST),
            )
        ) from fault


def lay_out(report: Mapping[str, Any]) -> str:
    """Write a report as JSON, one line for each fact, verdict or plan."""
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {_lay_out_value(each)}" for name, each in report.items()) + "\n}"


def _lay_out_value(value: Any) -> str:
    if value and isinstance(value, dict):
        return "{\n  " + ",\n  ".join(f"{json.dumps(name)}: {json.dumps(each, allow_nan=False)}" for name, each in value.items()) + "\n }"
    if value and isinstance(value, list):
        return "[\n  " + ",\n  ".join(json.dumps(each, allow_nan=False) for each in value) + "\n ]"
    return json.dumps(value, allow_nan=False)


def names_path(name: str) -> bool:
    """Tell whether a name holds a path from a root, as that of a local model does."""
    return _ROOTED.search(name) is not None


def _clean(value: Any) -> Any:
    """Keep what can be shown of all texts: no control characters, which a terminal would obey, and no half surrogate pairs."""
    if isinstance(value, str):
        return "".join(each if each.isprintable() else " " for each in value[:LONGEST])
    if isinstance(value, dict):
        return {_clean(name): _clean(each) for name, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list) else value
