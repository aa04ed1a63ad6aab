"""hearth bench speech, run for real at one layer: its rows, its bounds, its comparison; and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.__main__ import main

GIVEN = ["bench", "speech", "--layers", "1", "--rows", "20", "--rows", "40", "--rounds", "2", "--each", "2"]


@pytest.mark.filterwarnings("ignore")
def test_each_way_in_turn_beside_an_earlier_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The earlier one took half a second for every row behind which 20 lie, and measured no others."""
    ways = ["plain generate()", "plain generate() again", "Hearth, float32"]
    rows = [{"behind": "20 rows behind", "way": way, "seconds": 0.5, "beside_plain": 1.0} for way in ways]
    earlier = tmp_path / "earlier.json"
    about = {"machine": "another one", "device": "cpu"}
    earlier.write_text(json.dumps({"form": 1, "bench": "speech", "command": "hearth bench", "about": about, "tables": {"rows": rows}}))
    given = [*GIVEN, "--home", str(tmp_path), "--dtype", "float32", "--rows-only", "--json", "--against", str(earlier)]
    assert main(given) == 0
    told = capsys.readouterr()
    values = json.loads(told.out)
    rows = values["tables"]["rows"]
    assert [(row["behind"], row["way"]) for row in rows] == [(f"{count} rows behind", way) for count in (20, 40) for way in ways]
    assert all(0 < row["least_s"] <= row["seconds"] and row["beside_plain"] > 0 for row in rows)
    share, same = values["bounds"]
    assert share["least"] == 0.85 and share["name"].startswith("Hearth, float32: frames a second at 40 rows")
    assert same == {"name": same["name"], "value": 40, "least": 40, "most": None, "kept": True}
    assert "20 rows behind, plain generate()" in told.err and not list((tmp_path / "scratch").iterdir())
    ratios = [each["ratios"] for each in values["against"]["rows"]]
    assert ratios == [{"seconds": row["seconds"] / 0.5, "beside_plain": row["beside_plain"]} for row in rows[:3]]
    assert "Divided by the earlier run (hearth bench)" in told.err and "It ran on: " in told.err
    assert str(tmp_path) not in json.dumps(values | {"against": None})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_memory_is_flat_and_the_first_sound_is_timed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = [
        "bench",
        "speech",
        "--layers",
        "1",
        "--rows",
        "20",
        "--rows",
        "600",
        "--rounds",
        "1",
        "--each",
        "1",
        "--home",
        str(tmp_path),
        "--json",
    ]
    assert main(given) == 0
    values = json.loads(capsys.readouterr().out)
    calls = [row["call"] for row in values["tables"]["attention memory"]]
    assert calls == ["a step over 20 rows", "a step over 600 rows", "a prompt of 20 rows", "a prompt of 600 rows"]
    stages = [row["stage"] for row in values["tables"]["first sound"]]
    assert stages == [f"{stage}, from the request on" for stage in ("first step", "first sound", "done")]
    assert all(each["kept"] for each in values["bounds"] if each["name"].startswith("MiB"))
