"""A creation: a finished file, how it is named, and its row with request, plan, speed and memory."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.engine.jobs.database import read_number, read_text
from app.engine.jobs.journal import Job
from app.engine.jobs.request import Request, from_json, to_json

BIN = ".bin"
NOWHERE = Path(os.devnull)
"""No file lies below it."""
NAME_LETTERS = 32
NAMED_FROM_LETTERS = 1000
"""A script may have a million letters; its name comes from the first of them."""


@dataclass(frozen=True, slots=True)
class Creation:
    id: int
    job: str
    owner: str
    kind: str
    model: str
    text: str
    path: Path
    seconds: float
    rate: float
    unit: str
    elapsed_s: float
    highest_bytes: int
    whole: bool
    """False: it was stopped before its end."""
    favourite: bool
    created_s: float
    binned: bool
    condition: str
    """It is "" while intact, and "missing" or "foreign" if the file is gone or was replaced by another."""
    settings: dict[str, Any]
    plan: dict[str, Any]

    @property
    def request(self) -> Request:
        return from_json(self.settings)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run went, for its row."""

    model: str
    seconds: float = 0.0
    rate: float = 0.0
    unit: str = ""
    elapsed_s: float = 0.0
    highest_bytes: int = 0
    whole: bool = True
    plan: str = "{}"
    machines: Mapping[str, str] = field(default_factory=dict)
    """Names of some files lead to the machines that made them; nothing else of how they were made is known here."""
    made_s: float | None = None
    """It was made then, if that was elsewhere; None stands for now."""

    def of_file(self, name: str) -> RunSummary:
        """Return what holds for one of the run's files."""
        machine = self.machines.get(name)
        return (
            self
            if machine is None
            else RunSummary(self.model, self.seconds, whole=self.whole, plan=json.dumps({"machine": machine}), made_s=self.made_s)
        )


def make_file_name(text: str, suffix: str, when_s: float) -> str:
    """Name a file by date and words, so that people can find it and every file system accepts it: by all of them where they are few, else
    by the first sentence or heading, else by the words that fit."""
    said = re.sub(r"\[[^\[\]]{1,40}\]|\([^()]*+\)", " ", text[:NAMED_FROM_LETTERS])
    # "Mr." ends no sentence; a heading ends without a full stop
    first = re.split(r"(?<=\w\w\w)[.!?\u3002\uff01\uff1f]|(?<=\w)\n\s*\n", said, maxsplit=1)[0]
    words, sentence = (" ".join(re.sub(r"[^\w\s-]", " ", each).split()) for each in (said, first))
    if len(words) > NAME_LETTERS:
        words = sentence if len(sentence) <= NAME_LETTERS else sentence[: NAME_LETTERS + 1].rsplit(" ", 1)[0][:NAME_LETTERS]
    return f"{time.strftime('%Y-%m-%d %H%M', time.localtime(when_s))} {words or 'untitled'}{suffix}"


def name_after(job: Job, file: Path) -> str:
    return make_file_name(job.request.words, file.suffix, time.time())


def make_row(job: Job, file: Path, path: Path, made: RunSummary) -> tuple[object, ...]:
    """Return the values of a row, in the order of the columns, for a file that will lie at `path`."""
    settings, made = to_json(job.request), made.of_file(file.name)
    return (
        job.id,
        job.owner,
        settings["kind"],
        made.model,
        job.request.words,
        json.dumps(settings),
        made.plan,
        str(path),
        file.stat().st_size,
        made.seconds,
        made.rate,
        made.unit,
        made.elapsed_s,
        made.highest_bytes,
        int(made.whole),
        time.time() if made.made_s is None else made.made_s,
    )


def is_own(path: Path, folder: Path) -> bool:
    """Tell whether a path lies in a shelf's folder or its bin, and is no link that leads out of them. The folder itself may be a link."""
    try:
        real = Path(os.path.realpath(folder))
        return Path(os.path.realpath(path)).parent in (real, real / BIN)
    except (OSError, ValueError):  # a damaged row may hold any name
        return False


def read_creation(row: sqlite3.Row | Mapping[str, Any], folder: Path) -> Creation:
    """Read a row of the shelf with this folder; raise TypeError or ValueError if it is damaged. Unreadable settings leave the creation without
    any. A file elsewhere is missing, and its path leads nowhere: a database from a stranger may name any file of this computer."""
    path = Path(row["path"])
    if not is_own(path, folder):
        path = NOWHERE / path.name
    try:
        condition = "" if path.stat().st_size == row["bytes"] else "foreign"
    except OSError:
        condition = "missing"
    return Creation(
        row["id"],
        read_text(row["job"]),
        read_text(row["owner"]),
        read_text(row["kind"]),
        str(row["model"]),
        str(row["text"]),
        path,
        read_number(row["seconds"]),
        read_number(row["rate"]),
        str(row["unit"]),
        read_number(row["elapsed_s"]),
        int(read_number(row["highest_bytes"])),
        bool(row["whole"]),
        bool(row["favourite"]),
        read_number(row["created_s"]),
        row["binned_s"] is not None,
        condition,
        _read_values(row["request"]),
        _read_values(row["plan"]),
    )


def _read_values(text: object) -> dict[str, Any]:
    try:
        values = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
