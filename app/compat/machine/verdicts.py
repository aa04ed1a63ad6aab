"""What this machine was seen to do: verdicts by subject, kept in one file per torch + system + card. Imports no torch."""

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
RUNG: Final = "rung:"


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """`subject` is "row:<quirk id>" (does the defect show here?) or "path:<field>/<option>/<dtype>" (is this option right here?),
    or "way:<shape>" (the quickest exact way of attention, in the words), or "rung:<model>/<rung id>" (a run of this model broke and
    went on with this rung of the ladder)."""

    subject: str
    passed: bool
    """For a row: the defect did not show, so the row is retired. For a path: right within its dtype's tolerance."""
    error: float = 0.0
    """The worst seen, relative to the float64 reference's largest value; infinite where NaN came out."""
    elapsed_s: float = 0.0
    words: str = ""
    """The machine's own words where it raised."""
    seen: RunFailure | None = None
    """For a rung: what the run broke of."""


Verdicts = Mapping[str, Verdict]


def verdict_file(folder: Path, hardware: Hardware) -> Path:
    """Another torch, system or card is another machine: what was seen there says nothing here."""
    # A patch of the system comes every other week and changes nothing here.
    system = ".".join(hardware.system_version.split(".")[:2])
    told = (hardware.torch or "torch", hardware.system, system, hardware.name, hardware.pretended)
    return folder / (re.sub(r"[^A-Za-z0-9.+]+", "-", " ".join(filter(None, told))).strip("-") + ".json")


def load(folder: Path, hardware: Hardware) -> dict[str, Verdict]:
    """What was seen on this machine; nothing where nobody looked. A file that cannot be read is set aside, to be looked at."""
    path = verdict_file(folder, hardware)
    try:
        told = json.loads(path.read_text("utf-8"))
        return {each.subject: each for each in map(_read, told["verdicts"])}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        path.replace(path.with_suffix(".unreadable"))
        return {}


def store(folder: Path, hardware: Hardware, verdicts: Verdicts) -> Path:
    """All of them at once: a crash leaves the old file or the new one, never half of one."""
    path = verdict_file(folder, hardware)
    told = {
        "format": _FORMAT, "machine": hardware.name, "torch": hardware.torch,
        "system": f"{hardware.system} {hardware.system_version}",
        # JSON has no infinity.
        "verdicts": [
            {**asdict(each), "error": each.error if math.isfinite(each.error) else None}
            for _, each in sorted(verdicts.items())
        ],
    }  # fmt: skip
    atomic_write.text(path, json.dumps(told, indent=1, allow_nan=False))
    return path


def learn(folder: Path, hardware: Hardware, *found: Verdict) -> dict[str, Verdict]:
    """Add what was seen to what is known by now, whichever process learned or forgot it."""
    with _lock(folder, hardware):
        known = load(folder, hardware) | {each.subject: each for each in found}
        store(folder, hardware, known)
    return known


def forget(folder: Path, hardware: Hardware, model: str = "") -> tuple[str, ...]:
    """Which rungs were forgotten: those of this model, or without one those of all. Its next run begins as if it had never broken."""
    with _lock(folder, hardware):
        known = load(folder, hardware)
        gone = tuple(each for each in known if each.startswith(RUNG) and model in ("", each[len(RUNG) :].rpartition("/")[0]))
        if gone:
            store(folder, hardware, {subject: each for subject, each in known.items() if subject not in gone})
    return gone


def _lock(folder: Path, hardware: Hardware) -> FileLock:
    """Held from reading to writing, so that no process undoes what another did in between. The system frees it when its holder dies."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(verdict_file(folder, hardware).with_suffix(".lock"))


def _seen(told: dict[str, Any]) -> RunFailure:
    seen = RunFailure(**told)
    counts = (seen.step, seen.chunk_most, seen.chunk_before)
    if seen.fault not in get_args(Fault) or any(each is not None and (type(each) is not int or each < 0) for each in counts):
        raise ValueError(told)
    return seen


def _read(told: dict[str, Any]) -> Verdict:
    error, seen = told.get("error", 0), told.get("seen")
    verdict = Verdict(
        str(told["subject"]), told["passed"], math.inf if error is None else float(error),
        float(told.get("elapsed_s", 0)), str(told.get("words", "")), _seen(seen) if seen else None,
    )  # fmt: skip
    if not isinstance(verdict.passed, bool):
        raise TypeError(verdict.passed)
    return verdict
