"""A bench's report: the form of its JSON, its tables, its command without paths, and the comparison with an earlier run."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from app.__main__ import main
from app.base.start_command import name_command
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.engine.session.machine_check import SKIPPED
from bench import command
from bench.against import compare, format_comparison, read_earlier
from bench.report import Bound, Column, Measured, Remark, Report, Table, describe_machine, format_machine, word_command

TABLE = Table("rows", "a row", ("behind", "way"), (Column("seconds", "ms", ".1f", 1e3, compared=True), Column("note", "note")))
ABOUT = describe_machine(Hardware(name="Tiny", cores=2, ram_bytes=8 << 30, torch="2.13.0"), 2)


def make_report(seconds: float = 0.25) -> Report:
    report = Report("speech", "hearth bench speech", ABOUT)
    for found in (
        Measured(TABLE, {"behind": 100, "way": "ours", "seconds": seconds, "note": None}),
        Measured(TABLE, {"behind": 100, "way": "theirs", "seconds": None, "note": "none"}),
        Bound("share", 0.9, least=0.85),
        Bound("peak", 1.2, most=1.1),
        Remark("a word"),
    ):
        list(report.add(found))
    return report


def test_the_form_of_the_json() -> None:
    assert make_report().to_json() == {
        "form": 1,
        "bench": "speech",
        "command": "hearth bench speech",
        "about": dict(ABOUT),
        "tables": {
            "rows": [
                {"behind": 100, "way": "ours", "seconds": 0.25, "note": None},
                {"behind": 100, "way": "theirs", "seconds": None, "note": "none"},
            ]
        },
        "bounds": [
            {"name": "share", "value": 0.9, "least": 0.85, "most": None, "kept": True},
            {"name": "peak", "value": 1.2, "least": None, "most": 1.1, "kept": False},
        ],
        "remarks": ["a word"],
    }
    names = ["machine", "device", "cores", "memory_gib", "system", "torch", "threads", "hearth", "transformers", "diffusers"]
    assert list(ABOUT) == names and format_machine(ABOUT).startswith("Tiny (cpu), 2 cores, 8 GiB, linux; torch 2.13.0, ")


def test_the_table_to_read() -> None:
    report = Report("speech", "hearth bench speech", ABOUT)
    lines = [
        *report.add(Measured(TABLE, {"behind": 100, "way": "ours", "seconds": 0.25, "note": None})),
        *report.add(Bound("peak", 1.2, most=1.1)),
    ]
    assert [line.split() for line in lines] == [
        ["a", "row", "ms", "note"],
        ["100,", "ours", "250.0", "-"],
        ["peak:", "1.20", "(at", "most", "1.1:", "missed)"],
    ]


def test_the_command_names_no_path_of_this_machine() -> None:
    given = ["bench", "speech", "--home", "/secret", "--layers", "2", "--against=/secret/a.json", "--json", "--home=/secret"]
    assert word_command(given) == "hearth bench speech --layers 2"


def test_an_earlier_run_divides_this_one(tmp_path: Path) -> None:
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps(make_report(0.5).to_json()))
    report, earlier = make_report(0.25), read_earlier(path, "speech")
    ratios = compare(report, earlier)
    assert ratios == [{"table": "rows", "row": "100, ours", "ratios": {"seconds": 0.5}}]
    told = "\n".join(format_comparison(report, earlier, ratios))
    assert "ms 0.50x" in told and "differs" not in told


def test_an_earlier_run_elsewhere_is_told(tmp_path: Path) -> None:
    values = make_report().to_json()
    values["about"]["machine"], values["tables"]["rows"][0]["way"] = "Other", "before"
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps(values))
    earlier = read_earlier(path, "speech")
    told = "\n".join(format_comparison(make_report(), earlier, compare(make_report(), earlier)))
    assert "differs in: machine Other" in told and "No row of this run" in told


@pytest.mark.parametrize("damage", ["form", "bench", "tables", "no json", "not there"])
def test_what_is_no_earlier_run_is_refused(tmp_path: Path, damage: str) -> None:
    values, path = copy.deepcopy(make_report().to_json()), tmp_path / "earlier.json"
    if damage in values:
        values[damage] = 7 if damage != "tables" else {"rows": [3]}
    if damage != "not there":
        path.write_text("{" if damage == "no json" else json.dumps(values))
    with pytest.raises(Trouble, match=f"holds no run of '{name_command()} bench speech'"):
        read_earlier(path, "speech")


def test_a_report_names_the_words_that_were_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Through the command line, where they were once left behind and no bench ran."""
    said: list[str] = []
    monkeypatch.setenv(SKIPPED, "1")  # as the bench sets it
    monkeypatch.setattr(command, "silence_libraries", lambda: None)
    monkeypatch.setattr(command, "Report", lambda what, words, machine: said.append(words) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["bench", "queue", "--jobs", "1", "--home", str(tmp_path)])
    assert said == ["hearth bench queue --jobs 1"]
