"""hearth bench where Hearth was installed without its checkout: one sentence, whatever was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import __main__
from app.cli import bench


@pytest.mark.parametrize("words", [[], ["start"], ["speech", "--rounds", "3"]], ids=len)
def test_without_a_checkout_it_says_where_measuring_is(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "START", tmp_path / "start.py")
    assert __main__.main(["bench", *words]) == __main__.EXIT_TROUBLE
    assert "python3 start.py bench" in capsys.readouterr().err
