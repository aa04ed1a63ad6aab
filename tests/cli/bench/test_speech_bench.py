"""hearth bench speech, run for real at one layer: its rows, its bounds, its comparison; and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.__main__ import main

GIVEN = ["bench", "speech", "--layers", "1", "--rows", "20", "--rows", "40", "--rounds", "2", "--each", "2"]


@pytest.mark.filterwarnings("ignore")
def test_each_way_in_turn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = [*GIVEN, "--home", str(tmp_path), "--dtype", "float32", "--rows-only", "--json"]
    assert main(given) == 0
    told = capsys.readouterr()
    values = json.loads(told.out)
    ways = ["plain generate()", "plain generate() again", "Hearth, float32"]
    assert [(row["behind"], row["way"]) for row in values["tables"]["rows"]] == [
        (f"{rows} rows behind", way) for rows in (20, 40) for way in ways
    ]
    assert all(0 < row["least_s"] <= row["seconds"] and row["beside_plain"] > 0 for row in values["tables"]["rows"])
    share, same = values["bounds"]
    assert share["least"] == 0.85 and share["name"].startswith("Hearth, float32: frames a second at 40 rows")
    assert same == {"name": same["name"], "value": 40, "least": 40, "most": None, "kept": True}
    assert "20 rows behind, plain generate()" in told.err and not list((tmp_path / "scratch").iterdir())
    earlier = tmp_path / "earlier.json"
    earlier.write_text(told.out)
    assert main([*given, "--against", str(earlier)]) == 0
    again = json.loads(capsys.readouterr().out)
    assert len(again["against"]["rows"]) == 6 and all(each["ratios"]["seconds"] > 0 for each in again["against"]["rows"])
    assert again["command"] == values["command"] and str(tmp_path) not in json.dumps(again | {"against": None})


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
