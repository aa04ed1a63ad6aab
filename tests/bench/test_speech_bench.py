"""hearth bench speech, run for real at one layer: its rows, its bounds, its comparison; and what it refuses."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.__main__ import main
from app.engine.speech.families.dia.codec import Codec
from app.engine.speech.run import sounding
from app.engine.speech.sound.sound import Samples
from bench.speech import BESIDE_LOOP, IN_LOOP, PLAIN, check_rows
from bench.speech_codec import FIRST_FRAMES
from tests.support.other_functions import set_in

pytestmark = pytest.mark.long

GIVEN = ["bench", "speech", "--layers", "1", "--rows", "20", "--rows", "40", "--rounds", "1", "--each", "2"]


@pytest.mark.slow
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


@pytest.mark.parametrize(("shortest", "longest", "kept"), [(0.085, 0.097, True), (0.088, 0.097, False), (0.085, 0.098, False)])
def test_a_row_in_bfloat16_is_held_to_plain_ones_time_and_to_its_own_at_the_longest(shortest: float, longest: float, kept: bool) -> None:
    halves = "Hearth, bfloat16"
    found = {
        (100, PLAIN): 0.1,
        (100, halves): shortest,
        (1000, PLAIN): 0.1,
        (1000, halves): 0.5,
        (3000, PLAIN): 0.2,
        (3000, halves): longest,
    }
    beside_plain, grown, frames = check_rows(found, [100, 1000, 3000])
    assert (beside_plain.value, beside_plain.most) == (shortest / 0.1, 0.87) and beside_plain.name.startswith(
        f"{halves}: a row at 100 rows"
    )
    assert (grown.value, grown.most) == (longest / shortest, 1.15) and grown.name.startswith(f"{halves}: a row at 3000 rows")
    assert (frames.value, frames.least) == (shortest / longest, 0.85)
    assert (beside_plain.kept and grown.kept) is kept


def test_what_was_not_measured_is_not_held_to_anything() -> None:
    """Without plain generate(), at one length, and in float32, which neither bound is for."""
    assert list(check_rows({(100, "Hearth, bfloat16"): 0.1}, [100])) == []
    grown, _ = check_rows({(100, "Hearth, bfloat16"): 0.1, (3000, "Hearth, bfloat16"): 0.1}, [100, 3000])
    assert grown.most == 1.15
    assert [each.least for each in check_rows({(20, "Hearth, float32"): 0.1, (40, "Hearth, float32"): 0.1}, [20, 40])] == [0.85]


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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_codec_in_the_loop_and_beside_it(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way makes all of the same sound, after a short part that warms up; the engine's thread makes it beside the loop, but for each first piece."""
    decode, made = Codec.decode, list[tuple[str, Samples]]()

    def note(codec: Codec, *given: Any) -> Samples:
        made.append((threading.current_thread().name.split("_")[0], decode(codec, *given)))
        return made[-1][1]

    monkeypatch.setattr(Codec, "decode", note)
    set_in(monkeypatch, sounding, "os", cpu_count=lambda: 2)
    given = ["bench", "speech", "--layers", "1", "--codec", "1", "--rounds", "1", "--home", str(tmp_path), "--json"]
    assert main(given) == 0
    values = json.loads(capsys.readouterr().out)
    within, beside = values["tables"]["codec"]
    assert list(values["tables"]) == ["codec"] and (within["way"], beside["way"]) == (IN_LOOP, BESIDE_LOOP)
    assert (within["frames"], within["layers"], within["beside_loop"]) == (86, 1, 1.0)
    assert 0 < beside["beside_loop"] == beside["seconds"] / within["seconds"] == values["bounds"][0]["value"]
    names, pieces = [name for name, _ in made], [piece for _, piece in made]
    assert names == ["MainThread"] * 5 + ["sounding"]
    half = len(made) // 2
    assert [len(pieces[0]), sum(map(len, pieces[1:half]))] == [FIRST_FRAMES * 512, 86 * 512]
    assert all(map(np.array_equal, pieces[:half], pieces[half:])) and not list((tmp_path / "scratch").iterdir())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_with_one_core_there_is_nothing_beside_the_loop(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_in(monkeypatch, sounding, "os", cpu_count=lambda: 1)
    assert main(["bench", "speech", "--layers", "1", "--codec", "1", "--home", str(tmp_path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert not values["tables"] and "no core to spare" in values["remarks"][0]
