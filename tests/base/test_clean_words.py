"""Words of foreign files reach a terminal without the signs that steer it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from app.base.clean_words import CleanFormatter, clean_words
from app.base.sentence import say
from app.base.trouble import Trouble
from tests.support.places import TOP

NASTY = "\x1b]0;PWNED\x07\x1b[2J\x9b1mname\u202etxt.exe\u2066\x7f\0\r"
STEERING = set("\x1b\x07\x9b\u202e\u2066\x7f\0\r")


def test_what_steers_a_terminal_goes_and_all_else_stays() -> None:
    assert not STEERING & set(clean_words(NASTY)) and "PWNED" in clean_words(NASTY)
    plain = "Zażółć, 小船 \N{SAILBOAT}\ufe0f, नमस्ते, می\u200cخواهم, one\r\ntwo\tthree"
    assert clean_words(plain) == plain


def test_every_sentence_is_clean_of_it() -> None:
    sentence = say(
        "test.key", "{name} of {names} in {inner}", name=NASTY, names=(NASTY, "b"), inner=say("test.inner", "<{name}>", name=NASTY)
    )
    for words in (str(sentence), str(Trouble(sentence)), sentence.translate({"test.key": "{inner}, {names}: {name}"})):
        assert not STEERING & set(words) and words.count("PWNED") == 3


def test_logs_are_clean_of_it() -> None:
    record = logging.LogRecord("hearth", logging.WARNING, "file", 1, "read %s", (NASTY,), None)
    assert not STEERING & set(CleanFormatter("%(name)s %(message)s").format(record))


@pytest.mark.skipif(sys.platform == "win32", reason="its file names have no such signs")
def test_a_model_whose_files_hold_it(tmp_path: Path) -> None:
    """From end to end: the name of a folder, and a library that its index names."""
    model = tmp_path / "model\x1b]0;PWNED\x07"
    model.mkdir()
    index = {"_class_name": f"Nasty{NASTY}", "unet": [f"library{NASTY}", f"Class{NASTY}"], "vae": ["diffusers", "AutoencoderKL"]}
    (model / "model_index.json").write_text(json.dumps(index))
    command = [sys.executable, "-m", "app", "models", "list", str(model), "--home", str(tmp_path / "home"), "--pretend", "t4"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert "PWNED" in said and not STEERING & set(said)
