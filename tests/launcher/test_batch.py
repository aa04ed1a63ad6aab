"""Hearth.bat without a Windows: its text by the rules of cmd, and what it does, read by a cmd as small as it needs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.support.places import TOP


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
    for name, used in (("set", r'\bset (?!")'), ("blocks end at a path's )", r"\($"), ("call expands a path twice", r"\bcall :\w+ \S"),
                       ("a path out of another program is in another code page", r"in \(`"), ("start gives a batch file to cmd /k", r"start .*%~f0")):  # fmt: skip
        assert not [line for line in lines if re.search(used, line)], name


def test_the_batch_file_takes_the_systems_own_tools() -> None:
    """A tar of somebody else's on the PATH takes C: for another computer."""
    lines = "\n".join(batch())
    for tool in ("curl", "tar", "certutil", "choice"):
        assert f'"%SYSTEM%\\{tool}.exe"' in lines
        assert not re.search(rf"^\s*{tool}\b", lines, re.MULTILINE)


def test_the_batch_file_runs_nothing_that_it_did_not_check() -> None:
    lines = batch()
    at = {name: next(i for i, line in enumerate(lines) if name in line) for name in ("curl.exe", "certutil.exe", 'not "%GOT%"=="%UV_SUM%" goto not_it', "tar.exe", 'uv.exe" --no')}  # fmt: skip
    assert list(at.values()) == sorted(at.values()), "fetched, summed, compared, unpacked, run"


class Cmd:
    """As much of cmd as Hearth.bat needs, by Microsoft's rules: %x% first and once, quotes hide & and >, a : line is a label.

    Programs are functions from their words to an exit code; files are names. What it does not know it refuses."""

    def __init__(
        self, programs: dict[str, Callable[[list[str]], int]], files: set[str], path: dict[str, str], **env: str
    ) -> None:
        self.lines = [line for line in batch() if line]
        self.programs, self.files, self.path, self.ran = programs, files, path, list[list[str]]()
        self.env = {
            "SystemRoot": r"C:\Windows",
            "USERPROFILE": r"C:\Users\Zoë & co",
            "LOCALAPPDATA": r"C:\Users\Zoë & co\AppData\Local",
            **env,
        }
        self.level, self.words = 0, list[str]()

    def open(self, batch_file: str, *words: str) -> int:
        self.words = [batch_file, *words]
        return self.go_on(0)

    def go_on(self, at: int) -> int:
        while at < len(self.lines):
            line = self.lines[at]
            at += 1
            if line.startswith((":", "@")):
                continue
            went = self.line(self.expanded(line))
            if isinstance(went, int):
                return went
            if went:
                at = next(n for n, each in enumerate(self.lines) if each.lower() == f":{went.lower()}") + 1
        return self.level

    def expanded(self, line: str) -> str:
        top = self.words[0].rpartition("\\")[0] + "\\"
        line = (
            line.replace("%~dp0", top)
            .replace("%*", " ".join(self.words[1:]))
            .replace("%~1", (self.words[1:] or [""])[0].strip('"'))
        )
        line = line.replace("%%", "\0")
        cut = re.sub(r"%(\w+): =%", lambda found: self.env.get(found[1], "").replace(" ", ""), line)
        return re.sub(
            r"%(\w+)%", lambda found: str(self.level) if found[1] == "errorlevel" else self.env.get(found[1], ""), cut
        ).replace("\0", "%")

    def line(self, line: str) -> int | str | None:
        """None to go on, a label to go to, a number to end with."""
        for each in split(line):
            went = self.one(each.strip())
            if went is not None:
                return went
        return None

    def one(self, line: str) -> int | str | None:
        if found := re.fullmatch(
            r"if (not )?(defined (\w+)|exist \"(.*?)\"|errorlevel (\d)|(/i )?(not )?\"(.*?)\"==\"(.*?)\") (.*)", line
        ):
            name, file, level, one, other = found[3], found[4], found[5], found[8], found[9]
            holds = (
                name in self.env if name else self.there(file) if file else self.level >= int(level) if level
                else (one.lower() == other.lower()) != bool(found[7])
            )  # fmt: skip
            return self.line(found[10]) if holds != bool(found[1]) else None
        if found := re.fullmatch(r"for (/d |/f \".*?\" )?%([A-Z]) in \((.*?)\) do (.*)", line):
            return self.each(found[1] or "", found[2], found[3], found[4])
        if found := re.fullmatch(r'set "(\w+)=(.*)"', line):
            self.env.pop(found[1], None)
            if found[2]:
                self.env[found[1]] = found[2]
            return None
        if found := re.fullmatch(r"goto (\w+)", line):
            return found[1]
        if found := re.fullmatch(r"call :(\w+)", line):
            self.go_on(next(n for n, each in enumerate(self.lines) if each.lower() == f":{found[1].lower()}") + 1)
            return None
        if found := re.fullmatch(r"exit /b(?: (\d+))?", line):
            return int(found[1]) if found[1] else self.level
        if line.split()[0] in ("echo", "echo.", "setlocal", "title", "pause", "del", "mkdir"):
            return None
        bare = re.sub(r"\d?>(nul|\"[^\"]*\")", "", line)
        words = [one or other for one, other in re.findall(r'"([^"]*)"|(\S+)', bare)]
        if words[0] == "start":
            words = words[words.index("/d") + 2 :]
        self.ran.append(words)
        self.level = self.programs[words[0]](words[1:])
        return None

    def each(self, how: str, letter: str, over: str, do: str) -> int | str | None:
        names = [one or other for one, other in re.findall(r'"([^"]*)"|(\S+)', over)]
        if how.startswith("/d"):
            beginning = names[0].removesuffix("*")
            names = sorted(
                {
                    beginning + file.removeprefix(beginning).partition("\\")[0]
                    for file in self.files
                    if file.startswith(beginning)
                }
            )
        for name in names:
            went = self.line(
                do.replace(f"%~$PATH:{letter}", self.path.get(name, ""))
                .replace(f"%~{letter}", name)
                .replace(f"%{letter}", name)
            )
            if went is not None:
                return went
        return None

    def there(self, file: str) -> bool:
        return any(each == file or each.startswith(file + "\\") for each in self.files)


def split(line: str) -> list[str]:
    """At each & outside of quotes; what stands behind if and for belongs to them."""
    if line.startswith(("if ", "for ")):
        return [line]
    return re.findall(r'(?:[^&"]|"[^"]*")+', line)


TOPS = [r"C:\a & b\it's ü! 100%x (neu)\Hearth.bat", r"\\server\share\Hearth.bat", r"D:\Hearth.bat"]
PY, OWN = r"C:\Windows\py.exe", r"C:\Users\Zoë & co\AppData\Local\Hearth\python\cpython-3.12.11\python.exe"


@pytest.mark.parametrize("top", TOPS)
def test_what_the_batch_file_does(top: str) -> None:
    """Read by a small cmd: which Python it takes, that it asks once for an entry in the Start menu, and what it opens."""
    script = top.removesuffix("Hearth.bat") + "start.py"

    def fits(*versions: str) -> Callable[[list[str]], int]:
        return lambda words: 0 if "-c" not in words or set(versions) & set(words) else 9009

    choice: dict[str, Callable[[list[str]], int]] = {r"C:\Windows\System32\choice.exe": lambda words: 1}
    first = Cmd({PY: fits("-3.11"), **choice}, {PY}, {"py.exe": PY})
    assert first.open(top) == 0
    asked = [words for words in first.ran if "-c" not in words]
    assert asked[0] == [PY, "-3.11", script, "--version"] and asked[1][0].endswith("choice.exe")
    assert asked[2] == [PY, "-3.11", script, "install-app"] and asked[3] == [PY, "-3.11", script]

    made = Cmd(
        {OWN: lambda words: 0}, {OWN, top.removesuffix("Hearth.bat") + r".venv\current"}, {}, WITH="-3.0", TRY="x"
    )
    assert made.open(top) == 0
    assert [words for words in made.ran if "-c" not in words] == [[OWN, script, "--version"], [OWN, script]], (
        "not asked again"
    )

    declined = Cmd({PY: fits("-3.13"), r"C:\Windows\System32\choice.exe": lambda words: 2}, {PY}, {"py.exe": PY})
    assert declined.open(top) == 0 and not [words for words in declined.ran if "install-app" in words]
    broken = Cmd({PY: lambda words: 0 if "-c" in words else 2}, {PY}, {"py.exe": PY})
    assert broken.open(top) == 1 and [words for words in broken.ran if "-c" not in words] == [[PY, "-3.13", script, "--version"]]  # fmt: skip
    command = Cmd({PY: lambda words: 0 if "-c" in words else 7}, {PY}, {"py.exe": PY})
    assert command.open(top, "speak", '"a & b"') == 7 and command.ran[-1] == [PY, "-3.13", script, "speak", "a & b"]


def test_an_update_may_put_another_file_in_its_place() -> None:
    """cmd reads the next line from where it was in the file, whatever stands there by then."""

    def update(words: list[str]) -> int:
        if "-c" not in words:
            command.lines[:] = ["exit /b 9"] * len(command.lines)
            return 7
        return 0

    command = Cmd({PY: update}, {PY}, {"py.exe": PY})
    assert command.open(TOPS[0], "update") == 7


def test_the_batch_file_brings_a_python_where_there_is_none() -> None:
    system, files = r"C:\Windows\System32", set[str]()
    data = r"C:\Users\Zoë & co\AppData\Local\Hearth"

    def curl(words: list[str]) -> int:
        return 6

    alone = Cmd({rf"{system}\curl.exe": curl}, files, {})
    assert alone.open(TOPS[0]) == 1 and [words[0] for words in alone.ran] == [], "its folder could not be made"
    offline = Cmd({rf"{system}\curl.exe": curl}, {rf"{data}\uv-{pinned()}\x"}, {})
    assert offline.open(TOPS[0]) == 1 and [words[0] for words in offline.ran] == [rf"{system}\curl.exe"]
    there = {rf"{data}\uv-{pinned()}\uv.exe"}

    def uv(words: list[str]) -> int:
        there.add(OWN)
        return 0

    brought = Cmd(
        {rf"{data}\uv-{pinned()}\uv.exe": uv, OWN: lambda words: 0, rf"{system}\choice.exe": lambda words: 2}, there, {}
    )
    assert brought.open(TOPS[0]) == 0 and brought.ran[-1][0] == OWN and brought.env["UV_PYTHON_INSTALL_DIR"] == rf"{data}\python"  # fmt: skip


def pinned() -> str:
    return next(line for line in batch() if line.startswith('set "UV='))[8:-1]
