"""Hearth.bat without a Windows: its text by the rules of cmd, and what it does, in the cmd of wine."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pip
import pytest

from tests.support.places import TOP
from tests.support.waiting import until


def batch() -> list[str]:
    raw = (TOP / "Hearth.bat").read_bytes()
    assert raw.isascii() and raw.count(b"\r\n") == raw.count(b"\n") == raw.count(b"\r")
    return [line for line in raw.decode().split("\r\n") if not line.startswith("rem ")]


def test_the_batch_file_is_what_cmd_reads_rightly() -> None:
    """Labels that are there, quotes that close, and what may hold a space or an & only ever between quotes."""
    lines = batch()
    labels = [line[1:].lower() for line in lines if line.startswith(":")]
    assert len(labels) == len(set(labels)) and lines[0] == "@echo off"
    assert "setlocal EnableExtensions DisableDelayedExpansion" in lines, "with delayed expansion a ! in a path is eaten"
    for number, line in enumerate(lines, 1):
        assert len(line) < 8000
        for target in re.findall(r"\b(?:goto|call) :?(\w+)", line):
            assert target.lower() in labels, f"line {number}: no label {target}"
        assert line.count('"') % 2 == 0, f"line {number}: a quote is open"
        paths = r"%(?:PYTHON|TOP|DATA|AT|TRY|SYSTEM|USERPROFILE|LOCALAPPDATA|HEARTH_HOME|SystemRoot|~dp0)%?|%%~[A-Z]|%%~\$PATH:P"
        for found in re.finditer(paths, line):
            before = line[: found.start()]
            assert before.count('"') % 2 == 1, f"line {number}: {found[0]} may hold a space and is not quoted"
    for name, used in (
        ("set", r'\bset (?!")'),
        ("blocks end at a path's )", r"\($"),
        ("call expands a path twice", r"\bcall :\w+ \S"),
        ("a path out of another program is in another code page", r"in \(`"),
        ("start gives a batch file to cmd /k", r"start .*%~f0"),
    ):
        assert not [line for line in lines if re.search(used, line)], name


def test_the_batch_file_takes_the_systems_own_tools() -> None:
    """A tar of somebody else's on the PATH takes C: for another computer."""
    lines = "\n".join(batch())
    for tool in ("curl", "tar", "certutil", "choice"):
        assert f'"%SYSTEM%\\{tool}.exe"' in lines
        assert not re.search(rf"^\s*{tool}\b", lines, re.MULTILINE)


def test_the_batch_file_runs_nothing_that_it_did_not_check() -> None:
    lines = batch()
    at = {
        name: next(i for i, line in enumerate(lines) if name in line)
        for name in ("curl.exe", "certutil.exe", 'not "%GOT%"=="%UV_SUM%" goto not_it', "tar.exe", 'uv.exe" --no')
    }
    assert list(at.values()) == sorted(at.values()), "fetched, summed, compared, unpacked, run"


# What it does, in the cmd of Debian's wine. Its programs are stand-ins that write down their words and end with a code. wine 8
# differs from Windows in two places: `for /d` finds nothing by a quoted pattern, so that a Python of Hearth's own is never
# found here, and `exit /b` alone ends with 0.

SCRIPT_LAUNCHER = Path(pip.__file__).parent / "_vendor" / "distlib" / "t64.exe"
"""pip makes its own programs on Windows of it: it runs the command that is written behind it and ends as that does."""
DATA = r"C:\Zoë & co\Hearth"
PY = r"C:\fakes\py.exe"
SYSTEM = r"C:\windows\system32"
NAME = "a & b/it's ü! (neu)"
"""The checkout's folder is called so. It has no %, which the stand-ins' own cmd would read again."""
CASE = '"%~2 %~3"=='


def fitting(version: str, code: int = 0) -> str:
    """Python's launcher with one version that fits; whatever that runs ends with the code."""
    return f'if {CASE}"{version} -c" exit 0\nif "%~3"=="-c" exit 1\nexit {code}'


class Wine:
    """A fresh Windows with one checkout in it, and the words of every program that ran there."""

    def __init__(self, prefix: Path) -> None:
        self.drive, self.top = prefix / "drive_c", prefix / "drive_c" / NAME
        self.env = {
            **os.environ, "WINEPREFIX": str(prefix), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "certutil.exe=n;mscoree,mshtml,winemenubuilder.exe=",
            "LC_ALL": "C.UTF-8", "WINEPATH": r"C:\fakes", "HEARTH_HOME": DATA,
        }  # fmt: skip
        self.env.pop("DISPLAY", None)

    def clear(self) -> None:
        for each in ("fakes", "a & b", "Zoë & co"):
            shutil.rmtree(self.drive / each, ignore_errors=True)
        (self.drive / "ran.txt").unlink(missing_ok=True)
        for tool in ("choice", "curl", "certutil", "tar"):
            (self.drive / f"windows/system32/{tool}.exe").unlink(missing_ok=True)
        self.top.mkdir(parents=True)
        shutil.copy(TOP / "Hearth.bat", self.top)

    def path(self, name: str) -> Path:
        return self.drive / name.removeprefix("C:\\").replace("\\", "/")

    def add(self, name: str, does: str) -> None:
        """Put a program there that notes its words, then does this in cmd's language."""
        file = self.path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        batch_file = self.drive / "fakes" / f"{file.stem}.does.bat"
        batch_file.parent.mkdir(exist_ok=True)
        batch_file.write_bytes(f"@echo off\necho %*>>C:\\ran.txt\n{does}\n".replace("\n", "\r\n").encode("cp437"))
        nothing = io.BytesIO()
        zipfile.ZipFile(nothing, "w").close()
        command = rf"#!{SYSTEM}\cmd.exe /c C:\fakes\{batch_file.name}"
        file.write_bytes(SCRIPT_LAUNCHER.read_bytes() + f"{command}\r\n".encode() + nothing.getvalue())

    def open(self, *words: str, **env: str) -> tuple[int, str]:
        """Its exit code, and what the person read."""
        command = ["wine", "cmd", "/c", "Hearth.bat", *words]
        done = subprocess.run(command, cwd=self.top, env={**self.env, **env}, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return done.returncode, done.stdout.decode("cp1252")

    def ran(self, probes: bool = False) -> list[list[str]]:
        file = self.drive / "ran.txt"
        lines = file.read_bytes().decode("cp1252").splitlines() if file.exists() else []
        found = [[one or other for one, other in re.findall(r'"([^"]*)"|(\S+)', line)] for line in lines]
        return [words for words in found if probes or "-c" not in words]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if shutil.which("wine") is None:
        pytest.skip("Hearth.bat is run by wine's cmd, and wine is not installed: apt-get install --no-install-recommends wine wine64")
    folder = tmp_path_factory.mktemp("wine")
    env = Wine(folder).env
    subprocess.run(["wine", "cmd", "/c", "ver"], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=True)
    yield folder
    subprocess.run(["wineserver", "-k"], env=env, check=False)


@pytest.fixture
def wine(prefix: Path) -> Wine:
    made = Wine(prefix)
    made.clear()
    return made


SCRIPT = "C:\\" + NAME.replace("/", "\\") + "\\start.py"
CHOICE = rf"{SYSTEM}\choice.exe"


@pytest.mark.slow
def test_the_first_start_asks_once_and_opens(wine: Wine) -> None:
    wine.add(PY, fitting("-3.11"))
    wine.add(CHOICE, "exit 1")
    code, _ = wine.open()
    until(lambda: len(wine.ran()) == 4)  # what start began goes on by itself
    assert code == 0 and [words[1] for words in wine.ran(probes=True)[:3]] == ["-3.13", "-3.12", "-3.11"]
    asked = wine.ran()
    assert asked[0] == [PY, "-3.11", SCRIPT, "--version"] and asked[1][0].lower() == CHOICE.lower()
    assert asked[2] == [PY, "-3.11", SCRIPT, "install-app"] and asked[3] == [PY, "-3.11", SCRIPT]


@pytest.mark.slow
def test_a_start_with_an_environment_asks_nothing(wine: Wine) -> None:
    wine.add(PY, fitting("-3.13"))
    (wine.top / ".venv").mkdir()
    (wine.top / ".venv" / "current").touch()
    assert wine.open(WITH="-3.0", TRY="x")[0] == 0
    until(lambda: len(wine.ran()) == 2)
    assert wine.ran() == [[PY, "-3.13", SCRIPT, "--version"], [PY, "-3.13", SCRIPT]]


@pytest.mark.slow
def test_a_declined_entry_is_not_made(wine: Wine) -> None:
    wine.add(PY, fitting("-3.13"))
    wine.add(CHOICE, "exit 2")
    assert wine.open()[0] == 0
    until(lambda: len(wine.ran()) == 3)
    assert wine.ran()[2] == [PY, "-3.13", SCRIPT]


@pytest.mark.slow
def test_a_start_that_fails_is_told(wine: Wine) -> None:
    wine.add(PY, fitting("-3.13", code=2))
    code, said = wine.open()
    assert code == 1 and "Hearth could not start" in said and wine.ran() == [[PY, "-3.13", SCRIPT, "--version"]]


@pytest.mark.slow
def test_an_update_may_put_another_file_in_its_place(wine: Wine) -> None:
    """cmd reads the next line from where it was in the file, whatever stands there by then."""
    assert '"%PYTHON%" %WHICH% "%TOP%start.py" %* & exit /b' in batch(), "one line, which ends as the command did"
    place = SCRIPT.replace("start.py", "Hearth.bat")
    replaces = f'copy /y C:\\fakes\\other.txt "{place}"'
    wine.add(PY, f'if "%~3"=="-c" exit 0\n{replaces}\nexit 7')
    (wine.drive / "fakes" / "other.txt").write_bytes(b"exit /b 9\r\n" * 400)
    assert wine.open("update", "a & b")[0] != 9 and wine.ran() == [[PY, "-3.13", SCRIPT, "update", "a & b"]]
    assert (wine.top / "Hearth.bat").read_bytes().startswith(b"exit /b 9"), "it was replaced"


@pytest.mark.slow
def test_a_python_is_brought_where_there_is_none(wine: Wine) -> None:
    at, total = rf"{DATA}\uv-{pinned('UV')}", pinned("UV_SUM")
    wine.path(DATA).parent.mkdir()
    wine.path(DATA).touch()
    code, said = wine.open()
    assert code == 1 and "cannot be created" in said and not wine.ran(), "its folder could not be made"
    wine.path(DATA).unlink()

    wine.add(rf"{SYSTEM}\curl.exe", "exit 6")
    code, said = wine.open()
    assert code == 1 and "The download failed" in said and [words[0].lower() for words in wine.ran()] == [rf"{SYSTEM}\curl.exe".lower()]

    for sum_, tools in (("0" * 64, ["curl", "certutil"]), (total, ["curl", "certutil", "tar", "uv"])):
        (wine.drive / "ran.txt").unlink()
        wine.add(r"C:\fakes\uv.exe", "exit 0")
        wine.add(rf"{SYSTEM}\curl.exe", rf'copy C:\fakes\uv.exe "{at}\uv.zip"' + "\nexit 0")
        wine.add(rf"{SYSTEM}\certutil.exe", f"echo SHA256 hash of it:\necho {sum_}\necho CertUtil: done.\nexit 0")
        wine.add(rf"{SYSTEM}\tar.exe", rf'copy C:\fakes\uv.exe "{at}\uv.exe"' + "\nexit 0")
        _, said = wine.open()
        assert [words[0].lower().rpartition("\\")[2] for words in wine.ran()] == [f"{each}.exe" for each in tools]
        assert not wine.path(rf"{at}\uv.zip").exists() and ("was deleted" in said) == (sum_ != total)
    assert wine.ran()[-1][1:] == ["--no-config", "python", "install", "--no-bin", "3.12"]


def pinned(name: str) -> str:
    return next(line for line in batch() if line.startswith(f'set "{name}=')).partition("=")[2].rstrip('"')
