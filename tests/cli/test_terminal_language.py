"""What a terminal shows, in the system's language: help, progress, tables; what programs read stays as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.__main__ import EXIT_TROUBLE, main
from app.base.commands import COMMANDS, STARTS, WORDS
from app.base.languages import ENGLISH, languages, templates
from app.base.terminal_lines import count_places
from app.cli.progress import format_event, format_step
from app.compat.machine.meter import Reading
from app.compat.planning.plan_words import OPTIONS
from app.engine.jobs.events import Event, Failed, Finished, PartDone, Step, Stopped
from tests.support.places import TOP
from tests.support.sentences import find_english

OTHERS = [code for code in languages() if code != ENGLISH]
SHORT = 16
"""So long a sentence is not found in another one by accident."""


def show(code: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setenv("LC_ALL", f"{code}_XX.UTF-8")
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("command", [None, *(each for each in WORDS if each not in ("bench", *STARTS))])
def test_help_is_in_the_systems_language(
    command: str | None, code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # so that no sentence is broken into lines
    words = [command, "--help"] if command is not None else ["--help"]
    shown, english = show(code, words, monkeypatch, capsys), show("C", words, monkeypatch, capsys)
    sentences = templates(code)
    for key in ("argparse.usage", "argparse.options", "argparse.help"):
        assert sentences[key].strip() in shown and find_english()[key].strip() in english
    said = {key: each for key, each in find_english().items() if key.startswith("usage.") and len(each) > SHORT and "{" not in each}
    assert not [key for key, each in said.items() if each in shown or (each in english and sentences[key] not in shown)]


def test_the_help_says_what_it_is_in_english_where_the_language_is_none_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "speak a script into a sound file" in show("nb", ["--help"], monkeypatch, capsys)


def test_lines_of_help_fit_though_characters_are_wide(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = show("ja", ["disk", "--help"], monkeypatch, capsys).splitlines()
    assert len(lines) > 10 and all(count_places(line) <= 80 for line in lines)


def test_the_list_of_commands_needs_nothing_large() -> None:
    code = "import sys; from app.__main__ import read; from app.base.start_command import START\ntry: read(['--help'], {})\nexcept SystemExit: pass\n"
    code += "print(sorted({'torch', 'gradio', 'numpy', 'transformers', 'diffusers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("[]\n") and all(name in done.stdout for name in COMMANDS), done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("open --browser --no-browser", "Argument --no-browser: geht nicht zusammen mit --browser"),
        ("paint x --g 2", "--g ist nicht eindeutig, es könnte eines von diesen sein: --gui"),
        ("paint x --json=2", "nimmt keinen Wert, also nicht '2'"),
        ("completion", "es fehlt: shell"),
    ],
)
def test_argparse_refuses_in_that_language_too(
    words: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert main(words.split()) == EXIT_TROUBLE and told in capsys.readouterr().err


def test_progress_is_in_that_language(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Reading(3 << 30, highest_bytes=4 << 30)
    step = Step(12, 24, 86.04, "frames", 65.0, memory, realtime=1.5, part=1, parts=3)
    assert format_step(step).startswith(
        "part 2 of 3  [############............]  86.0 frames/s  1.5x realtime  about 1 min 10 s left  3.0 GB"
    )
    together = Step(1, 4, 0.5, "steps", None, memory, part=0, parts=8, at_once=4)
    assert format_step(together).startswith("parts 1 to 4 of 8  [######..................]  0.5 steps/s  3.0 GB")
    ends: dict[Event, tuple[str, str]] = {
        Finished((), 4.2, 1.0, "frames", 0, 7.5): ("done, 4.2 s for 7.5 s of sound", "fertig, 4,2 s für 7,5 s Ton"),
        Finished((), 4.2, 1.0, "steps", 0): ("done, 4.2 s", "fertig, 4,2 s"),
        Stopped((), 4.2): ("stopped; finished parts are kept, 4.2 s", "angehalten; fertige Teile bleiben erhalten, 4,2 s"),
        PartDone(1, 3, "", "", 5, 24.0): ("part 2 of 3 is done, 24 s", "Teil 2 von 3 ist fertig, 24 s"),
    }
    assert [*map(format_event, ends)] == [english for english, _ in ends.values()]
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert format_step(step).startswith("Teil 2 von 3  [############............]  86,0 Frames/s  1,5× Echtzeit  noch etwa 1 min 10 s")
    assert [*map(format_event, ends)] == [german for _, german in ends.values()]
    assert format_event(Failed(OPTIONS["chunk_most/none"])) == "hearth: keine Grenze"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["doctor", "models"])
def test_tables_are_in_that_language_and_json_in_none(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(code: str, *options: str) -> str:
        monkeypatch.setenv("LC_ALL", f"{code}_XX.UTF-8")
        assert main([command, "--pretend", "t4", "--home", str(tmp_path), *options]) == 0
        return capsys.readouterr().out

    german, japanese, english = told("de"), told("ja"), told("C")
    assert told("de", "--json") == told("C", "--json") == told("ja", "--json") != ""
    if command == "models":
        assert "Startstimme, passt, installiert, 13,0 MB" in german and "Starter voice, fits, installed, 13.0 MB" in english
        assert "スターターボイス、余裕あり、インストール済み、13.0 MB" in japanese
        return
    for key in ("doctor.any", "doctor.memory-row", "doctor.system-row", "doctor.selftest", "doctor.to-report"):
        assert templates("de")[key] in german and templates("ja")[key] in japanese and find_english()[key] in english
    assert "[Hearths Regel]" in german and "14,7 GiB; 14,2 GiB frei" in german
