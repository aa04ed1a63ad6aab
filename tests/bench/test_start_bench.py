"""hearth bench start and queue, through real processes: every stage is timed, and a queue costs what its jobs cost."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from app.__main__ import main
from app.base.paths import home
from bench.loading import measure_loading
from bench.report import Bound, Measured

EARLY = [
    ("hearth speak", "engine ready, model loading"), ("hearth speak", "first step"), ("hearth speak", "first sound"), ("hearth speak", "done"),
    ("hearth paint", "engine ready, model loading"), ("hearth paint", "first step"), ("hearth paint", "done"),
    ("ready engine, speak", "first step"), ("ready engine, speak", "first sound"), ("ready engine, speak", "done"),
    ("ready engine, paint", "first step"), ("ready engine, paint", "done"),
]  # fmt: skip
WINDOW = [("hearth open", "address told"), ("hearth open", "page served"), ("hearth open", "engine ready")]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_stage_from_the_command_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bench", "start", "--rounds", "1", "--no-loading", "--json", "--home", str(tmp_path)]) == 0
    told = capsys.readouterr()
    rows = json.loads(told.out)["tables"]["stages"]
    assert [(row["command"], row["stage"]) for row in rows] == WINDOW + EARLY
    for before, after in pairwise(rows):
        assert 0 < before["least_s"] <= before["seconds"] <= before["most_s"]
        assert before["command"] != after["command"] or before["seconds"] <= after["seconds"]
    assert "hearth open, page served" in told.err and not list((tmp_path / "scratch").iterdir())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_loading_takes_no_more_than_the_weights(tmp_path: Path) -> None:
    found = list(measure_loading(home(tmp_path / "home").create(), tmp_path))
    cases = [each.row for each in found if isinstance(each, Measured)]
    (bound,) = (each for each in found if isinstance(each, Bound))
    assert len(cases) == 6 and bound.kept and all(row["own_peak"] <= row["whole_peak"] for row in cases), cases


@pytest.mark.slow
def test_a_queue_of_a_few(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bench", "queue", "--jobs", "4", "--singles", "1", "--json", "--home", str(tmp_path)]) == 0
    values = json.loads(capsys.readouterr().out)
    one, many = values["tables"]["queue"]
    assert (one["jobs"], many["jobs"]) == ("one job, 1 time", "4 jobs at once")
    assert many["seconds"] == pytest.approx(4 * many["each_s"]) and 0 <= many["keeper_s"] < many["each_s"]
    assert [each["most"] for each in values["bounds"]] == [20, 1.1]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_jobs_cost_a_hundred_times_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bench", "queue", "--json", "--home", str(tmp_path)]) == 0
    values = json.loads(capsys.readouterr().out)
    assert all(each["kept"] for each in values["bounds"]), values
