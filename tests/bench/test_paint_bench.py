"""hearth bench paint, run for real on the starter painter: both ways in turn, their memory, a batch, a comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.__main__ import main

GIVEN = ["bench", "paint", "--model", "starter", "--size", "64", "--steps", "3", "--rounds", "1", "--json"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_each_way_in_turn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*GIVEN, "--home", str(tmp_path)]) == 0
    told = capsys.readouterr()
    steps = json.loads(told.out)["tables"]["steps"]
    assert [row["way"] for row in steps] == ["Hearth, float32", "plain diffusers", "plain diffusers again"]
    assert all(0 < row["least_s"] <= row["seconds"] and row["beside_plain"] > 0 and row["peak_bytes"] > 10**7 for row in steps)
    assert "starter, 64 px, plain diffusers" in told.err and not list((tmp_path / "scratch").iterdir())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_batch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*GIVEN, "--batch", "2", "--home", str(tmp_path)]) == 0
    batch = json.loads(capsys.readouterr().out)["tables"]["batch"]
    assert [row["way"] for row in batch] == ["Hearth, 2 of 3 steps", "plain diffusers, 2 of 3 steps"]
    assert all(row["ratio"] == row["batch_s"] / row["one_s"] > 0 for row in batch)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_each_quicker_setting_beside_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*GIVEN, "--quicker", "--home", str(tmp_path)]) == 0
    values = json.loads(capsys.readouterr().out)
    off, *others = values["tables"]["quicker"]
    assert [row["setting"] for row in (off, *others)] == ["off, 3 steps", "little, 3 steps", "much, 3 steps", "off, 2 steps"]
    assert off["psnr_db"] is None and all(row["psnr_db"] > 5 and row["beside_off"] > 0 for row in others)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("every_core")
@pytest.mark.filterwarnings("ignore")
def test_stable_diffusion_at_full_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A small picture by all of SD 1.5's weights: Hearth takes no longer than plain diffusers, and no more memory."""
    given = ["bench", "paint", "--model", "sd15", "--size", "256", "--rounds", "3", "--json", "--home", str(tmp_path)]
    assert main(given) == 0
    ours, plain, _ = json.loads(capsys.readouterr().out)["tables"]["steps"]
    assert ours["least_s"] < 1.1 * plain["least_s"] and ours["peak_bytes"] < 1.1 * plain["peak_bytes"]
