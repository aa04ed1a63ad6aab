"""A cast as people and programs write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.base.trouble import Trouble
from app.engine.jobs.request import Actor, SpeechRequest, VoicePrompt
from app.engine.speech.text.cast_table import read_file, read_table, write_table
from app.engine.speech.text.voices import Voice

VOICES = {
    "": [Voice("Marius", VoicePrompt("m.ogg", "Oh."), 5.0, "")],
    "pocket": [Voice("Zoe", VoicePrompt("z.safetensors", ""), 0.0, None)],
}


def read(values: object, folder: Path | None = None, lenient: bool = False) -> tuple[Actor, ...]:
    return read_table(values, "", lambda name: {"Pocket": "pocket"}[name], VOICES.__getitem__, folder, lenient)


def test_a_toml_file_names_voices_models_and_recordings(tmp_path: Path) -> None:
    (tmp_path / "clip.wav").write_bytes(b"RIFF")
    (tmp_path / "cast.toml").write_text(
        'Ben = "marius"\n[Anna]\nmodel = "Pocket"\nvoice = "Zoe"\nvolume = -3\npace = 1.1\n["\u5c0f\u660e"]\nvoice = "clip.wav"\ntranscript = "Hi."\n',
        "utf-8",
    )
    ben, anna, ming = read(read_file(tmp_path / "cast.toml"), tmp_path)
    assert ben == Actor("Ben", VoicePrompt("m.ogg", "Oh.")) and anna == Actor("Anna", VoicePrompt("z.safetensors", ""), "pocket", -3.0, 1.1)
    assert ming.name == "\u5c0f\u660e" and ming.voice == VoicePrompt(str((tmp_path / "clip.wav").resolve()), "Hi.")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "cannot be read"), ({"Anna": 3}, "at Anna"), ({"Anna": {"voices": "x"}}, "Anna.voices"), ({"Anna": {"pace": "fast"}}, "Anna.pace"),
        ({"Anna": {"pace": 9}}, "pace is 9"), ({"Anna": "Nobody"}, "which is not there. There are: Marius"), ({"A]": "Marius"}, "cannot be the name"),
        ({"Anna": {"voice": "../../etc/passwd"}}, "not there"),
    ],
)  # fmt: skip
def test_an_odd_cast_is_a_sentence(values: Any, words: str) -> None:
    with pytest.raises(Trouble, match=words):
        read(values)


@pytest.mark.parametrize("content", [b"[Anna", b"\xff\xfe", b'A = "x"\nA = "y"', b"#" * (2 << 20)])
def test_a_file_that_is_no_cast_is_a_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "cast.toml").write_bytes(content)
    with pytest.raises(Trouble, match="cannot be read"):
        read_file(tmp_path / "cast.toml")
    with pytest.raises(Trouble, match="cannot be read"):
        read_file(tmp_path)


def test_a_request_gives_its_table_back_and_names_what_is_gone() -> None:
    cast = (
        Actor("Ben", VoicePrompt("m.ogg", "Oh.")),
        Actor("Anna", VoicePrompt("z.safetensors", ""), "pocket", -3.0, 1.1),
        Actor("Eva", VoicePrompt("e.wav", "")),
    )
    table, gone = write_table(SpeechRequest("Hi.", cast=cast), VOICES.__getitem__)
    assert json.loads(table) == {
        "Ben": {"voice": "Marius"},
        "Anna": {"voice": "Zoe", "model": "pocket", "volume": -3.0, "pace": 1.1},
        "Eva": {},
    }
    assert gone == (VoicePrompt("e.wav", ""),)
    assert read_table(json.loads(table), "", lambda name: name, VOICES.__getitem__) == (*cast[:2], Actor("Eva"))
    assert read({"Ben": "Nobody"}, lenient=True) == (Actor("Ben"),), "the window shows that it is gone"
