"""A bench's report: tables that grow row by row, bounds kept or missed, one line about the machine; as text and as JSON. No torch."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from app import __version__
from app.compat.machine.hardware import Hardware

FORM: Final = 1
"""The JSON has this form; an earlier run of another form is not compared."""
GIB: Final = 1 << 30
LIBRARIES: Final = ("transformers", "diffusers")
PRIVATE: Final = ("--home", "--against")
"""The values of these options are paths of this machine."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    field: str
    heading: str
    form: str = ".2f"
    scale: float = 1.0
    compared: bool = False
    """A comparison with an earlier run divides it by that run's."""

    def format(self, row: Row) -> str:
        value = row[self.field]
        if value is None:
            return "-"
        return value if isinstance(value, str) else format(value * self.scale, self.form)


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    title: str
    keys: tuple[str, ...]
    """These fields name a row."""
    columns: tuple[Column, ...]
    width: int = 46
    """The names of its rows take so many characters."""

    def name_row(self, row: Row) -> str:
        return ", ".join(str(row[key]) for key in self.keys if row[key] not in (None, ""))

    def format_head(self) -> str:
        return f"{self.title:<{self.width}} " + " ".join(f"{each.heading:>{self._measure(each)}}" for each in self.columns)

    def format_row(self, row: Row) -> str:
        return f"{self.name_row(row):<{self.width}} " + " ".join(f"{each.format(row):>{self._measure(each)}}" for each in self.columns)

    def _measure(self, column: Column) -> int:
        return max(9, len(column.heading))


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of a table."""

    table: Table
    row: Row


@dataclass(frozen=True, slots=True)
class Remark:
    text: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A promise, and what was measured."""

    name: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def kept(self) -> bool:
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    def format(self) -> str:
        limit = f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"
        return f"{self.name}: {self.value:.2f} ({limit}: {'kept' if self.kept else 'missed'})"


Found = Measured | Remark | Bound


@dataclass(slots=True)
class Report:
    """What a bench found. `take` is told each finding and yields the lines to print for it."""

    bench: str
    command: str
    about: Mapping[str, Any]
    tables: dict[str, list[Row]] = field(default_factory=dict)
    bounds: list[Bound] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    kinds: dict[str, Table] = field(default_factory=dict)

    def add(self, found: Found) -> Iterator[str]:
        if isinstance(found, Measured):
            if found.table.name not in self.tables:
                self.kinds[found.table.name] = found.table
                self.tables[found.table.name] = []
                yield from (*([""] if len(self.tables) > 1 else []), found.table.format_head())
            self.tables[found.table.name].append(found.row)
            yield found.table.format_row(found.row)
        elif isinstance(found, Bound):
            self.bounds.append(found)
            yield found.format()
        else:
            self.remarks.append(found.text)
            yield found.text

    def to_json(self) -> dict[str, Any]:
        return {
            "form": FORM,
            "bench": self.bench,
            "command": self.command,
            "about": dict(self.about),
            "tables": {name: [dict(row) for row in rows] for name, rows in self.tables.items()},
            "bounds": [{**asdict(each), "kept": each.kept} for each in self.bounds],
            "remarks": self.remarks,
        }


def describe_machine(hardware: Hardware, threads: int) -> dict[str, Any]:
    """Return what the figures depend on; nothing that names its owner."""
    return {
        "machine": hardware.name,
        "device": hardware.kind,
        "cores": hardware.cores,
        "memory_gib": round(hardware.ram_bytes / GIB),
        "system": hardware.system,
        "torch": hardware.torch,
        "threads": threads,
        "hearth": __version__,
        **{name: found for name in LIBRARIES if (found := _find_version(name))},
    }


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def format_machine(about: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {about[name]}" for name in ("torch", *LIBRARIES, "hearth") if name in about)
    threads = f"{about['threads']} thread{'s' if about['threads'] != 1 else ''}"
    return f"{about['machine']} ({about['device']}), {about['cores']} cores, {about['memory_gib']} GiB, {about['system']}; {versions}; {threads}"


def word_command(given: Sequence[str]) -> str:
    """Return the command that makes this report, without paths of this machine."""
    kept: list[str] = []
    words = iter(given)
    for word in words:
        if word in PRIVATE:
            next(words, None)
        elif word != "--json" and not word.startswith(tuple(f"{each}=" for each in PRIVATE)):
            kept.append(word)
    return shlex.join(["hearth", *kept])
