"""Store what was observed on this machine: one file of verdicts per torch, system and card. Imports no torch."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Required

from filelock import FileLock
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from app.base import atomic_write
from app.base.stored_json import read_stored
from app.compat.machine.hardware import Hardware
from app.compat.machine.report_file import check, read_report

_FORMAT: Final = 1
WITH_LORAS: Final = "loras-"
"""Folders whose names begin so lie in that of the verdicts, each for what was observed with certain LoRAs."""
Fault = Literal["numbers", "memory", "crash"]
"""Runs that fail in these ways are not the user's fault."""


@dataclass(frozen=True, slots=True)
class RunFailure:
    """Why a run of a model failed."""

    fault: Fault
    step: int | None = None
    """The run failed at this step; None: it failed while loading the model, or the step is unknown."""
    dtype: str = ""
    """The failing part computed in this dtype."""
    chunk_most: int | None = None
    """Attention may take at most so many queries at a time since then."""
    chunk_before: int | None = None
    """This was the limit before the failure; None: there was none."""


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """What a verdict is about, stored as "kind:name"; kinds of other versions stay unchanged."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Subject:
        kind, colon, name = text.partition(":")
        if not colon:
            raise ValueError(text)
        return cls(kind, name)

    @classmethod
    def row(cls, quirk: str) -> Subject:
        """Make the subject of a defect: does it occur here."""
        return cls("row", quirk)

    @classmethod
    def path(cls, option: str, dtype: str, metal: str = "") -> Subject:
        """Make the subject of a plan's option ("gqa/native") in this dtype: is it correct here. `metal`: for one of
        Metal's kernels."""
        name = f"{option}/{dtype}"
        return cls("path", f"{name}@{metal}" if metal else name)

    @classmethod
    def part(cls, part: str, dtype: str) -> Subject:
        """Make the subject of a starter's part ("denoiser"): is it right here, computed in this dtype."""
        return cls("part", f"{part}/{dtype}")

    @classmethod
    def way(cls, shape: str) -> Subject:
        """Make the subject of an attention shape; the verdict's words name its fastest exact way."""
        return cls("way", shape)

    @classmethod
    def quicker(cls, way: str, dtype: str) -> Subject:
        """Make the subject of packed weights ("int8") or a captured graph: do they make a row of speech sooner than the plain way."""
        return cls("quicker", f"{way}/{dtype}")

    @classmethod
    def fallback(cls, model: str, fallback: str) -> Subject:
        """Make the subject of a fallback that a model takes because one of its runs failed; stored as a "rung"."""
        return cls("rung", f"{model}/{fallback}")

    @property
    def matters(self) -> bool:
        """Whether it is a part or a path in a dtype that a plan may choose unasked: float64 is for comparing."""
        return self.kind in ("part", "path") and "float64" not in self.name

    @property
    def model(self) -> str:
        """Model whose run failed; for fallbacks only. A local model's name is a path, which may contain slashes."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Verdict:
    subject: Subject
    passed: bool
    """For a row: the defect did not occur, so the row is retired. For a path or a part: it is correct within its tolerance."""
    error: float = 0.0
    """It is the largest error relative to the reference's largest value, infinite for NaN. The reference is float64, for a part float32.
    For what is quicker it is the time as a share of the plain way's."""
    elapsed_s: float = 0.0
    words: str = ""
    """The machine raised an error with this message, if any."""
    seen: RunFailure | None = None
    """For a fallback it says why the run failed."""


Verdicts = Mapping[Subject, Verdict]


class StoredFailure(TypedDict, total=False):
    fault: Required[Fault]
    step: Annotated[int, Field(ge=0)] | None
    dtype: str
    chunk_most: Annotated[int, Field(ge=0)] | None
    chunk_before: Annotated[int, Field(ge=0)] | None


class StoredVerdict(TypedDict, total=False):
    subject: Required[Annotated[str, Field(pattern=":")]]
    passed: Required[bool]
    error: float | None
    elapsed_s: float
    words: str
    seen: StoredFailure | None


class StoredVerdicts(TypedDict, total=False):
    verdicts: list[StoredVerdict]


STORED: Final = TypeAdapter(StoredVerdicts)
GIVEN: Final = TypeAdapter(list[StoredVerdict])


def verdict_file(folder: Path, hardware: Hardware) -> Path:
    """Return the file for this torch, system, card and driver: verdicts of others do not apply."""
    # A system's patch version changes every other week and has no effect here.
    system = ".".join(hardware.system_version.split(".")[:2])
    facts = (hardware.torch or "torch", hardware.system, system, hardware.name, hardware.driver, hardware.pretended)
    return folder / (re.sub(r"[^A-Za-z0-9.+]+", "-", " ".join(filter(None, facts))).strip("-") + ".json")


def load(folder: Path, hardware: Hardware) -> dict[Subject, Verdict]:
    """Read the verdicts of this machine; empty if there are none, or they cannot be read now. A damaged one goes alone, and
    the old file is kept. On a pretended machine from a file, what the real one was seen to do goes before what was learned here."""
    return _load_if_readable(folder, hardware) | read_given(hardware)


def read_given(hardware: Hardware) -> dict[Subject, Verdict]:
    """Read the verdicts of the file that a pretended machine came from; raise a Trouble for wrong ones. Nothing is stored there."""
    if not hardware.report:
        return {}
    given = check(hardware.report, GIVEN, read_report(hardware.report).get("verdicts", []), "verdicts")
    return {each.subject: each for each in map(_read, given)}


def _load_if_readable(folder: Path, hardware: Hardware) -> dict[Subject, Verdict]:
    try:
        return _load(folder, hardware)
    except OSError:
        return {}


def reload(folder: Path, hardware: Hardware, known: Verdicts) -> dict[Subject, Verdict]:
    """Read the verdicts of this machine; those already known where they cannot be read now."""
    try:
        return _load(folder, hardware)
    except OSError:
        return dict(known)


def _load(folder: Path, hardware: Hardware) -> dict[Subject, Verdict]:
    stored = read_stored(verdict_file(folder, hardware), STORED, depth=2)
    return {each.subject: each for each in map(_read, stored.get("verdicts", ()))}


def store(folder: Path, hardware: Hardware, verdicts: Verdicts) -> Path:
    """Store all verdicts atomically."""
    path = verdict_file(folder, hardware)
    record = {
        "format": _FORMAT,
        "machine": hardware.name,
        "torch": hardware.torch,
        "system": f"{hardware.system} {hardware.system_version}",
        "verdicts": [as_json(each) for _, each in sorted(verdicts.items())],
    }
    atomic_write.write_text(path, json.dumps(record, indent=1, allow_nan=False))
    return path


def learn(folder: Path, hardware: Hardware, *found: Verdict) -> dict[Subject, Verdict]:
    """Add verdicts to those on disk, including any that another process has just stored or removed. Those that cannot be
    read now are not overwritten."""
    new = {each.subject: each for each in found}
    with _lock(folder, hardware):
        try:
            verdicts = _load(folder, hardware) | new
        except OSError:
            return new | read_given(hardware)
        store(folder, hardware, verdicts)
    return verdicts | read_given(hardware)


def forget(folder: Path, hardware: Hardware, model: str = "") -> tuple[Subject, ...]:
    """Forget the fallbacks of this model, or of all models, also those taken with LoRAs, and return them. The next run starts as if none had
    failed."""
    with_loras = [subject for inner in sorted(folder.glob(f"{WITH_LORAS}*")) for subject in forget(inner, hardware, model)]
    with _lock(folder, hardware):
        verdicts = _load_if_readable(folder, hardware)
        gone = tuple(each for each in verdicts if each.kind == "rung" and model in ("", each.model))
        if gone:
            store(folder, hardware, {subject: each for subject, each in verdicts.items() if subject not in gone})
    return (*gone, *with_loras)


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as it is stored and printed. JSON has no infinity: null means that NaN came out."""
    error = verdict.error if math.isfinite(verdict.error) else None
    return {**asdict(verdict), "subject": str(verdict.subject), "error": error}


def _lock(folder: Path, hardware: Hardware) -> FileLock:
    """Lock from reading to writing, so that processes do not overwrite each other. The system releases a dead one's
    lock."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(verdict_file(folder, hardware).with_suffix(".lock"))


def _read(stored: Mapping[str, Any]) -> Verdict:
    """Read a verdict that has the schema; fields of a newer Hearth are left out."""
    error, seen = stored.get("error", 0), stored.get("seen")
    known = {each.name for each in fields(RunFailure)}
    return Verdict(
        Subject.parse(stored["subject"]),
        stored["passed"],
        math.inf if error is None else float(error),
        float(stored.get("elapsed_s", 0)),
        stored.get("words", ""),
        RunFailure(**{name: value for name, value in seen.items() if name in known}) if seen else None,
    )
