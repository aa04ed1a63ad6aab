"""Compare a report with an earlier run's: the figures of both as ratios, row by row. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.base.bounded_json import read_json
from app.base.sentence import say
from app.base.trouble import Trouble
from bench.report import FORM, Report, Table, format_machine

SAME: Final = ("machine", "device", "cores", "threads", "torch", "transformers", "diffusers")
"""These should be equal if a ratio is to tell about Hearth."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A run that was stored with --json."""

    command: str
    about: Mapping[str, Any]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]


def read_earlier(path: Path, bench: str) -> Earlier:
    """Read an earlier run; raise a Trouble if the file is none of this bench."""
    try:
        values = read_json(path)
        if values["form"] != FORM or values["bench"] != bench:
            raise ValueError(f"form {values['form']} of bench {values['bench']}")
        tables = {str(name): [dict(row) for row in rows] for name, rows in values["tables"].items()}
        return Earlier(str(values["command"]), dict(values["about"]), tables)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise Trouble(
            say(
                "bench.against",
                "{path} holds no run of '{hearth} bench {bench}' to compare with ({fault}). Store one with: {hearth} bench {bench} --json > FILE",
                path=str(path),
                bench=bench,
                fault=f"{type(fault).__name__}: {fault}",
            )
        ) from fault


def compare(report: Report, earlier: Earlier) -> list[dict[str, Any]]:
    """Return, for each row that both runs have, each compared figure divided by the earlier one."""
    found: list[dict[str, Any]] = []
    for name, table in report.kinds.items():
        before = {table.name_row(row): row for row in earlier.tables.get(name, ()) if _has_keys(table, row)}
        for row in report.tables[name]:
            old = before.get(table.name_row(row), {})
            ratios = {
                each.field: row[each.field] / old[each.field] for each in table.columns if each.compared and _both(row, old, each.field)
            }
            if ratios:
                found.append({"table": name, "row": table.name_row(row), "ratios": ratios})
    return found


def _has_keys(table: Table, row: Mapping[str, Any]) -> bool:
    return all(key in row for key in table.keys)


def _both(row: Mapping[str, Any], old: Mapping[str, Any], field: str) -> bool:
    """Tell whether both runs have this figure, the earlier one more than nothing."""
    figures = (row.get(field), old.get(field))
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in figures) and bool(figures[1])


def format_comparison(report: Report, earlier: Earlier, ratios: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield f"Divided by the earlier run ({earlier.command}):"
    differing = [f"{name} {earlier.about.get(name)}" for name in SAME if earlier.about.get(name) != report.about.get(name)]
    if differing:
        yield f"The earlier run differs in: {', '.join(differing)}. It ran on: {_word_machine(earlier.about)}"
    if not ratios:
        yield "No row of this run is in the earlier one."
    for each in ratios:
        table = report.kinds[each["table"]]
        headings = {column.field: column.heading for column in table.columns}
        yield f"{each['row']:<{table.width}} " + ", ".join(f"{headings[name]} {ratio:.2f}x" for name, ratio in each["ratios"].items())


def _word_machine(about: Mapping[str, Any]) -> str:
    try:
        return format_machine(about)
    except KeyError:
        return "a machine that it does not describe"
