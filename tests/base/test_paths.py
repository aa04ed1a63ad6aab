"""Hearth's folder: made for its owner alone, refused in a sentence where it cannot be one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.__main__ import EXIT_TROUBLE, main
from app.base.paths import home
from app.base.trouble import Trouble
from app.launcher.slots import data_folder
from app.launcher.supervisor import find_home

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="permissions and names of POSIX")


@pytest.fixture(params=[0o022, 0o000], ids=["usual", "none"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@POSIX
def test_a_new_folder_is_its_owners_alone(tmp_path: Path, umask: None) -> None:
    """Prompts, recordings and the keys of other machines lay there as the umask had it, for any account to read."""
    assert home(tmp_path / "new").create().root.stat().st_mode & 0o777 == 0o700
    (tmp_path / "shared").mkdir(0o755)
    (tmp_path / "shared").chmod(0o755)
    assert home(tmp_path / "shared").create().root.stat().st_mode & 0o777 == 0o755, "somebody wants it so"


@pytest.mark.parametrize("command", [["models"], ["speak", "a"], ["machines"], ["open", "--no-browser"]], ids=lambda words: words[0])
@pytest.mark.parametrize("name", [pytest.param(b"letters-\xff", marks=POSIX), b"file", b"file/within"])
def test_a_folder_that_cannot_be_one_is_a_sentence(
    command: list[str], name: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file was a Python traceback; a name that is not UTF-8 let every job fail."""
    (tmp_path / "file").write_text("")
    place = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    assert main([*command, "--home", place]) == EXIT_TROUBLE
    said = capsys.readouterr().err
    assert said.startswith("hearth: Hearth cannot use ") and "--home" in said and "Traceback" not in said


@POSIX
def test_a_folder_of_nobodys_is_a_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["models", "--home", "~no-such-account/x"]) == EXIT_TROUBLE
    assert "has no such account" in capsys.readouterr().err
    monkeypatch.setenv("HEARTH_HOME", "~no-such-account/x")
    assert data_folder().name == "x"


@POSIX
def test_a_name_in_another_encoding_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="not in UTF-8"):
        home(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).create()
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("words", "named"), [([], ""), (["--home", "x"], "x"), (["open", "--home=x y"], "x y"), (["--home"], ""), (["--homes", "x"], "")]
)
def test_the_launcher_knows_which_folder_is_named(words: list[str], named: str) -> None:
    """The report of a failed start lay in the usual folder, which such a Hearth never touches."""
    assert find_home(words) == named
