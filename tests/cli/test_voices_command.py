"""hearth voices: saved voices listed, sent, taken, renamed and removed from the terminal."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from app.base.paths import home
from app.base.trouble import Trouble
from app.cli import voices as command
from app.engine.models.voice_limits import DIA
from app.engine.speech.text import voices

FIRST = voices.list_ready_voices()[0]


def run(folder: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.main(parser.parse_args([*words, "--home", str(folder)]))


def test_a_saved_voice_is_sent_taken_and_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = home(tmp_path / "home").create()
    voices.keep_voice(place, "Tom", Path(FIRST.prompt.path), FIRST.prompt.transcript, DIA)
    assert run(place.root, "export", "Tom", str(tmp_path / "tom.wav")) == 0
    run(place.root, "rename", "Tom", "Old Tom")
    run(place.root, "describe", "Old Tom", "an old sailor")
    run(place.root, "import", str(tmp_path / "tom.wav"))
    capsys.readouterr()
    run(place.root, "list", "--json")
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted((each["name"] for each in listed if each["saved"]), reverse=True) == ["Tom", "Old Tom"]
    assert "an old sailor" in [each["about"] for each in listed] and FIRST.name in [each["name"] for each in listed]
    run(place.root, "remove", "Old Tom")
    assert [each.name for each in voices.list_voices(place)] == ["Tom"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["export", "Nobody"], "export NAME FILE"),
        (["remove", "Nobody"], "no saved voice"),
        (["import", "none.wav"], "was not found"),
        (["rename"], "rename NAME NEW"),
    ],
)
def test_what_cannot_be_is_a_sentence(tmp_path: Path, words: list[str], told: str) -> None:
    with pytest.raises(Trouble, match=told):
        run(tmp_path, *words)
