"""The report of a machine, in one JSON form: doctor prints it, --pretend reads it. Facts, verdicts, timings; nothing private. No torch."""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, Required

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from app import __version__
from app.base.private_words import hide_private
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.machine.chunk_curve import Curve
from app.compat.machine.hardware import Hardware, Kind, System
from app.compat.machine.report_file import check, names_path, read_report
from app.compat.machine.verdicts import Verdict, Verdicts, read_given

FORMAT: Final = 1
"""It is raised when a field changes its meaning; a new field needs no new format."""
_DIGITS: Final = 3
_NAME_MOST: Final = 40

Text = Annotated[str, Field(max_length=200)]
Bytes = Annotated[int, Field(ge=0, le=1 << 50)]
Version = Annotated[int, Field(ge=0, le=99)]


class StoredMachine(TypedDict, total=False):
    """Fields as in Hardware; those of an older report that are missing have Hardware's defaults."""

    kind: Required[Kind]
    name: Required[Text]
    capability: Annotated[list[Version], Field(min_length=2, max_length=2)] | None
    memory_bytes: Required[Bytes]
    free_bytes: Required[Bytes]
    unified: Required[bool]
    ram_bytes: Bytes
    system: Required[System]
    system_version: Text
    processor: Text
    cores: Annotated[int, Field(ge=1, le=1 << 20)]
    driver: Text
    cudnn: Text
    gfx: Text
    torch: Required[Text]
    arch_list: Annotated[list[Text], Field(max_length=100)]
    fast_bf16: bool
    limit_bytes: Bytes
    unseen_card: Text
    packages: Annotated[list[Text], Field(max_length=100)] | None


MACHINE: Final = TypeAdapter(StoredMachine)


def read_machine(file: str) -> Hardware:
    """Return the facts of a report's machine under the file's name, so that it is never taken for the real one; raise a Trouble for
    what is no report. Its verdicts come with `read_given`."""
    whole = os.path.abspath(os.path.expanduser(file))  # noqa: PTH100, PTH111 - never raises; the current folder changes
    read = read_report(whole)
    if isinstance(written := read.get("format"), int) and written > FORMAT:
        raise Trouble(say("report.newer", "{file} was written by a newer Hearth. Update this one to read it: {hearth} update", file=file))
    stored = check(whole, MACHINE, read["machine"], "machine")
    facts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    hardware = Hardware(**facts, pretended=name_of_file(whole), report=whole)
    read_given(hardware)  # a wrong one is told before anything starts
    return hardware


def name_of_file(file: str) -> str:
    """Return the name of a machine that comes from a file: with an ending, which those of the list have not."""
    return re.sub(r"[^\w.+ -]", "-", Path(file).stem)[:_NAME_MOST] + ".json"


def describe_report(hardware: Hardware, verdicts: Verdicts, curves: Iterable[Curve] = ()) -> dict[str, Any]:
    """Return the report's form. What names a folder stays out: verdicts and curves of local models."""
    return {
        "format": FORMAT,
        "hearth": __version__,
        "python": platform.python_version(),
        "machine": describe_facts(hardware),
        "verdicts": [
            _describe_verdict(each, bool(hardware.pretended)) for _, each in sorted(verdicts.items()) if not names_path(each.subject.name)
        ],
        "curves": [
            {"model": each.model, "knee": each.knee, "points": [[point.chunk, _round(point.seconds)] for point in each.points]}
            for each in curves
            if not names_path(each.model)
        ],
    }


def describe_facts(hardware: Hardware) -> dict[str, Any]:
    return {name: value for name, value in asdict(hardware).items() if name != "report"}


def _describe_verdict(verdict: Verdict, simulated: bool) -> dict[str, Any]:
    """Return a verdict without what is not known. A simulated machine has no times of its own. JSON has no infinity: null
    means that NaN came out."""
    error = _round(verdict.error) if math.isfinite(verdict.error) else None
    return (
        {"subject": str(verdict.subject), "passed": verdict.passed, "error": error}
        | ({} if simulated else {"elapsed_s": _round(verdict.elapsed_s)})
        | ({"words": hide_private(verdict.words)} if verdict.words else {})
        | ({"seen": asdict(verdict.seen)} if verdict.seen else {})
    )


def _round(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
