"""Store what this machine was seen to do: verdicts by subject, one file per torch, system and card. Imports no torch."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from filelock import FileLock

from app import atomic_write
from app.compat.machine.hardware import Hardware

_FORMAT: Final = 1
Fault = Literal["numbers", "memory", "crash"]
"""How a run can break through no fault of the person."""


@dataclass(frozen=True, slots=True)
class RunFailure:
    """What a run of a model broke of."""

    fault: Fault
    step: int | None = None
    """None: while the model was loading, or nobody knows."""
    dtype: str = ""
    """What broke computed in it."""
    chunk_most: int | None = None
    """How many queries at a time attention may take since."""
    chunk_before: int | None = None
    """How many it might take until then; None: as many as it liked."""


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """What a verdict is about, written as "kind:name" on disk; kinds of other versions are kept as they are."""

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
        """Whether this defect shows here."""
        return cls("row", quirk)

    @classmethod
    def path(cls, option: str, dtype: str) -> Subject:
        """Whether this option of a plan ("gqa/native") is right here in this dtype."""
        return cls("path", f"{option}/{dtype}")

    @classmethod
    def way(cls, shape: str) -> Subject:
        """The quickest exact way for attention of this shape, in the verdict's words."""
        return cls("way", shape)

    @classmethod
    def rung(cls, model: str, rung: str) -> Subject:
        """A run of this model broke, and went on with this rung of the ladder."""
        return cls("rung", f"{model}/{rung}")

    @property
    def model(self) -> str:
        """Whose run broke; only of a rung. A local model's name is a path, with slashes of its own."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Verdict:
    subject: Subject
    passed: bool
    """For a row: the defect did not show, so the row is retired. For a path: right within its dtype's tolerance."""
    error: float = 0.0
    """The worst seen, relative to the float64 reference's largest value; infinite where NaN came out."""
    elapsed_s: float = 0.0
    words: str = ""
    """The machine's own words where it raised."""
    seen: RunFailure | None = None
    """For a rung: what the run broke of."""


Verdicts = Mapping[Subject, Verdict]


def verdict_file(folder: Path, hardware: Hardware) -> Path:
    """Another torch, system or card is another machine: what was seen there says nothing here."""
    # A patch of the system comes every other week and changes nothing here.
    system = ".".join(hardware.system_version.split(".")[:2])
    facts = (hardware.torch or "torch", hardware.system, system, hardware.name, hardware.pretended)
    return folder / (re.sub(r"[^A-Za-z0-9.+]+", "-", " ".join(filter(None, facts))).strip("-") + ".json")


def load(folder: Path, hardware: Hardware) -> dict[Subject, Verdict]:
    """What was seen on this machine; nothing where nobody looked. A file that cannot be read is set aside, to be looked at."""
    path = verdict_file(folder, hardware)
    try:
        stored = json.loads(path.read_text("utf-8"))
        return {each.subject: each for each in map(_read, stored["verdicts"])}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        path.replace(path.with_suffix(".unreadable"))
        return {}


def store(folder: Path, hardware: Hardware, verdicts: Verdicts) -> Path:
    """All of them at once: a crash leaves the old file or the new one, never half of one."""
    path = verdict_file(folder, hardware)
    record = {
        "format": _FORMAT, "machine": hardware.name, "torch": hardware.torch,
        "system": f"{hardware.system} {hardware.system_version}",
        "verdicts": [as_json(each) for _, each in sorted(verdicts.items())],
    }  # fmt: skip
    atomic_write.write_text(path, json.dumps(record, indent=1, allow_nan=False))
    return path


def learn(folder: Path, hardware: Hardware, *found: Verdict) -> dict[Subject, Verdict]:
    """Add what was seen to what is known by now, whichever process learned or forgot it."""
    with _lock(folder, hardware):
        known = load(folder, hardware) | {each.subject: each for each in found}
        store(folder, hardware, known)
    return known


def forget(folder: Path, hardware: Hardware, model: str = "") -> tuple[Subject, ...]:
    """Which rungs were forgotten: those of this model, or without one those of all. Its next run begins as if it had never broken."""
    with _lock(folder, hardware):
        known = load(folder, hardware)
        gone = tuple(each for each in known if each.kind == "rung" and model in ("", each.model))
        if gone:
            store(folder, hardware, {subject: each for subject, each in known.items() if subject not in gone})
    return gone


def as_json(verdict: Verdict) -> dict[str, Any]:
    """As it is stored and printed. JSON has no infinity: null means that NaN came out."""
    error = verdict.error if math.isfinite(verdict.error) else None
    return {**asdict(verdict), "subject": str(verdict.subject), "error": error}


def _lock(folder: Path, hardware: Hardware) -> FileLock:
    """Held from reading to writing, so that no process undoes what another did in between. The system frees it when its holder dies."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(verdict_file(folder, hardware).with_suffix(".lock"))


def _read_failure(stored: dict[str, Any]) -> RunFailure:
    failure = RunFailure(**stored)
    counts = (failure.step, failure.chunk_most, failure.chunk_before)
    if failure.fault not in get_args(Fault) or any(
        each is not None and (type(each) is not int or each < 0) for each in counts
    ):
        raise ValueError(stored)
    return failure


def _read(stored: dict[str, Any]) -> Verdict:
    error, seen = stored.get("error", 0), stored.get("seen")
    verdict = Verdict(
        Subject.parse(stored["subject"]), stored["passed"], math.inf if error is None else float(error),
        float(stored.get("elapsed_s", 0)), str(stored.get("words", "")), _read_failure(seen) if seen else None,
    )  # fmt: skip
    if not isinstance(verdict.passed, bool):
        raise TypeError(verdict.passed)
    return verdict
