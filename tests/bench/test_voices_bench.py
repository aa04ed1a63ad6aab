"""hearth bench voices, run for real at one layer: each way in turn, its bounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.__main__ import main

pytestmark = [pytest.mark.long, pytest.mark.slow]


@pytest.mark.filterwarnings("ignore")
def test_each_way_in_turn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = [
        "bench",
        "voices",
        "--layers",
        "1",
        "--frames",
        "16",
        "--rounds",
        "1",
        "--dtype",
        "float32",
        "--dtype",
        "bfloat16",
        "--quantised",
        "int8",
        "--model",
        "phonon",
    ]
    assert main([*given, "--home", str(tmp_path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    rows = values["tables"]["parts"]
    assert [row["way"] for row in rows] == [
        "plain generate(), float32",
        "plain generate() again, float32",
        "Hearth, float32",
        "Hearth, int8",
        "plain generate(), bfloat16",  # begun once those before it were shown
        "plain generate() again, bfloat16",
        "Hearth, bfloat16",
    ]
    for row in rows:
        assert 0 < row["first_s"] <= 4 * row["seconds"] and row["cpu_s"] > 0 and row["beside_plain"] > 0 and row["peak_bytes"] > 10_000_000
        assert row["times"] == pytest.approx(16 / 12.5 / row["seconds"])
    (bound,) = values["bounds"]
    assert bound["most"] == 0.7 and bound["value"] == rows[2]["beside_plain"]
    assert not list((tmp_path / "scratch").iterdir())
