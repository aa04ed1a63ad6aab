"""start.py for real, on a checkout and packages small enough to be made in seconds: made, finished, moved, updated, refused."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import app.base.paths
import start
from app.base.commands import COMMANDS, EXTRAS, STARTS, WORDS
from app.base.sentence import say
from app.base.start_command import name_command
from app.launcher import command, console, install, machine_facts, new_environment, pip_command, proof, slots
from app.launcher.torch_build import ComputerFacts
from tests.support.checkout import Checkout, wheel
from tests.support.places import TOP
from tests.support.source_trees import parse_source

pytestmark = pytest.mark.long

INSTALLING = say("start.installs", "Installing")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A clone, as most people have it, started by two at once who know nothing of each other."""
    folder = tmp_path_factory.mktemp("made")
    checkout = Checkout(folder)
    origin = checkout.top.rename(folder / "origin")
    (origin / ".gitignore").write_text("/.venv/\n__pycache__/\n")
    checkout.git("init", "-q", "-b", "main", at=origin)
    checkout.git("add", ".", at=origin)
    checkout.git("commit", "-q", "-m", "one", at=origin)
    checkout.git("clone", "-q", str(origin), str(checkout.top), at=folder)
    with slots.lock(checkout.top / ".venv"):  # as a third that makes it: both have come by the time that it ends
        two = [checkout.begin("speak", "--to", "ü b.wav") for _ in "ab"]
        waits = [each.stderr.readline() for each in two if each.stderr]
    checkout.told = [(each.communicate(timeout=200), each.returncode) for each in two]
    assert waits == ["Another start of Hearth is making the environment; waiting for it.\n"] * 2
    yield checkout


def test_the_first_start_makes_it_and_passes_the_words_on(made: Checkout) -> None:
    for (out, err), code in made.told:
        assert code == 0, err
        said = json.loads(out)  # nothing else on stdout
        assert said["words"] == ["speak", "--to", "ü b.wav"]
        assert Path(said["at"]) == made.elsewhere and Path(said["prefix"]) == made.slot and said["utf8"] == 1
        assert Path(said["file"]) == made.top / "app" / "__main__.py"
    one, two = sorted(err for (_, err), _ in made.told)
    assert one == "", "two at once make it once"
    for sentence in ("Making Hearth's environment", "the build for the processor", "Tested on cpu: torch 0.0.1", "Ready after"):
        assert sentence in two
    assert json.loads((made.slot / "hearth.json").read_text())["build"] == ""


def test_it_is_ready_once_nothing_is_installed_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()
    monkeypatch.setattr(install, "make_environment", lambda *_: told.append("made"))
    monkeypatch.setattr(install, "add", lambda slot, want, name: told.append(name))
    monkeypatch.setattr(install, "tell", lambda sentence: told.append(str(sentence)))
    install.make_beside(tmp_path, slots.read_requirements(), (), None)
    made, window, ready = told
    assert (made, window) == ("made", "window") and ready.startswith("Ready after")


def test_help_makes_no_environment(checkout: Checkout, made: Checkout) -> None:
    for word in ("-h", "--help"):
        told = checkout.start(word)
        assert told.returncode == 0 and "python3 start.py repair" in told.stdout and not checkout.slot.parent.exists(), told.stderr
        assert all(name in told.stdout for name in COMMANDS)
        assert json.loads(made.start(word).stdout)["words"] == [word], "where there is one, Hearth's own"


def test_help_without_an_environment_is_in_the_systems_language(checkout: Checkout) -> None:
    for words, said in ((["--help"], "die Umgebung neu anlegen"), (["speak", "--help"], "ein Skript in eine Audiodatei sprechen")):
        told = checkout.start(*words, LC_ALL="de_DE.UTF-8", PYTHONIOENCODING="utf-8")
        assert told.returncode == 0 and said in told.stdout and "speak a script" not in told.stdout, told.stderr


@pytest.mark.parametrize("verb", [*command.OWN, *COMMANDS])
def test_help_with_a_command_makes_no_environment(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEARTH_ENV", str(tmp_path))
    for name in ("make_environment", "pip_install"):
        monkeypatch.setattr(install, name, lambda *_: pytest.fail("something was made"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("something was run"))
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("something was run"))
    for words in ([verb, "-h"], [verb, "x", "--help"]):
        assert command.main(words) == 0 and capsys.readouterr().out.startswith(f"{name_command()} {verb}")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_help_and_unknown_words_leave_an_environment_as_it_is(made: Checkout) -> None:
    def look() -> list[tuple[str, int]]:
        return sorted((str(file), file.stat().st_mtime_ns) for file in (made.top / ".venv").rglob("*") if "__pycache__" not in file.parts)

    before = look()
    for verb in command.OWN:
        assert made.start(verb, "--help").returncode == 0
    for verb in command.OWN.keys() - {"test"}:
        told = made.start(verb, "nonsense")
        assert told.returncode == 2 and told.stderr.startswith(f"hearth: {name_command()} {verb}"), told
        assert verb == "add" or "takes no other words (nonsense). Nothing was done." in told.stderr
    assert json.loads(made.start("speak", "--help").stdout)["words"] == ["speak", "--help"], "where there is one, Hearth's own"
    assert look() == before


@pytest.mark.parametrize(("typed", "told"), [("opne", "Similar ones: open."), ("qqq", "only these: add, back")])
def test_a_mistyped_command_makes_no_environment(checkout: Checkout, typed: str, told: str) -> None:
    started = checkout.start(typed)
    assert started.returncode == 2 and not checkout.slot.exists(), started.stderr
    assert f'hearth: There is no command "{typed}"' in started.stderr and told in started.stderr


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("speak", "[S1] Hi.", "--hlep"), "speak does not know --hlep. It knows: --help"),
        (("--prot", "7860"), "open does not know --prot. It knows: --port"),
        pytest.param(("models", "lsit"), "models does not know lsit. It knows: list", marks=pytest.mark.slow),
        pytest.param(("paint", "a boat", "-x"), "paint does not know -x.", marks=pytest.mark.slow),
    ],
)
def test_a_mistyped_option_makes_no_environment(checkout: Checkout, typed: tuple[str, ...], told: str) -> None:
    started = checkout.start(*typed)
    assert started.returncode == 2 and not checkout.slot.exists(), started.stderr
    assert f"hearth: {told}" in started.stderr


def test_what_a_command_knows_is_no_mistake() -> None:
    for words in (["-5 degrees"], ["-5"], ["--mod=x"], ["--no such thing"], ["--", "--hlep"], ["--help"], ["-oout.wav"], []):
        command.refuse_mistyped("speak", words)
    command.refuse_mistyped("install-app", ["--whatever"])


@pytest.mark.parametrize("verb", WORDS)
def test_the_words_of_a_command_are_its_parsers(verb: str) -> None:
    parser = argparse.ArgumentParser(prog=f"hearth {verb}")
    importlib.import_module(COMMANDS[verb][0]).add_arguments(parser)
    assert set(WORDS[verb].split()) == {*list_words(parser)} - {"-h", "--help"}


def list_words(parser: argparse.ArgumentParser) -> Iterator[str]:
    for each in parser._actions:
        yield from each.option_strings or map(str, each.choices or ())
        for below in each.choices.values() if isinstance(each, argparse._SubParsersAction) else ():
            yield from list_words(below)


def test_the_extras_are_those_of_pyproject() -> None:
    listed = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {*EXTRAS} == {*listed} - {"test"} and [*EXTRAS] == sorted(EXTRAS)


def test_every_command_is_known_before_there_is_an_environment() -> None:
    documented = re.findall(rf"^  {name_command()} ([\w-]+)", command.help_with_all(), re.MULTILINE)
    assert sorted(documented) == sorted({*STARTS, *COMMANDS} - {"open"})
    for name in (*command.OWN, *COMMANDS):
        command.refuse_unknown(name)


def test_the_next_start_does_nothing_and_quickly(made: Checkout) -> None:
    def seconds(*command: str) -> float:
        """Of the processor, so that a busy machine does not count; in microseconds, where os.times counts in hundredths."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=made.env, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    again = made.start("speak")
    assert again.returncode == 0 and again.stderr == ""
    ways = (
        (str(slots.python_of(made.slot)), "-I", "-m", "app"),
        (sys.executable, str(made.top / "start.py")),
        (sys.executable, "-I", "-c", "import hashlib, json, subprocess"),
    )
    turns = [[seconds(*way) for way in ways] for _ in range(5)]  # in turn, so that a slow spell slows all three
    bare, whole, python = map(min, zip(*turns, strict=True))
    assert whole - bare < 6 * python, f"{whole - bare:.3f} s of its own, where Python itself takes {python:.3f} s"


def test_exit_codes_pass_through(made: Checkout) -> None:
    assert made.start("--crash").returncode == 7


def test_tests_get_what_they_need_and_their_words_and_exit_code(made: Checkout) -> None:
    for added in (True, False):
        done = made.start("test", "-k", "a b")
        assert done.returncode == 5, done.stderr
        assert json.loads(done.stdout) == {"words": ["-k", "a b"], "at": str(made.top)}
        assert ("Making" in done.stderr) is False
        assert json.loads((made.slot / "hearth.json").read_text())["extras"] == {"test": ["pytest"]}, added
    workers = str(min(4, (os.cpu_count() or 1) + 1))
    assert json.loads(made.start("test").stdout)["words"] == ["-n", workers, "--dist", "loadfile"], "all of them, a worker more than cores"


def test_the_tests_of_a_room_are_named_by_it_and_checks_end_with_the_first_that_fails(made: Checkout) -> None:
    for room in ("engine/jobs", "ui/tabs", "ui/a room", "engine/a room"):
        (made.top / "tests" / room).mkdir(parents=True, exist_ok=True)
    asked = {"jobs": "tests/engine/jobs", "ui/tabs": "tests/ui/tabs", "a room": "a room", "nowhere": "nowhere"}
    assert json.loads(made.start("test", "-x", *asked).stdout)["words"] == ["-x", *asked.values()]
    ruff = made.packages / "ruff"
    ruff.mkdir()
    for failing in ("check", "format", ""):
        (ruff / "__main__.py").write_text(f"import sys; print('ruff', sys.argv[1]); sys.exit(3 * (sys.argv[1] == {failing!r}))")
        done = made.start("lint")
        assert done.returncode == (3 if failing else 5), done.stderr
        assert done.stdout.startswith(
            {"check": "ruff check\n", "format": "ruff check\nruff format\n", "": "ruff check\nruff format\n{"}[failing]
        )
        assert ("test_house" in done.stdout) is (not failing)


@pytest.mark.slow
def test_an_extra_is_added_and_stays_over_a_repair(made: Checkout) -> None:
    for wrong in ((), ("everything",)):
        told = made.start("add", *wrong)
        assert told.returncode == 2 and "bell, test, tone, void" in told.stderr
    missing = made.start("add", "void")
    assert missing.returncode == 2 and "void" in missing.stderr and "Traceback" not in missing.stderr
    added = made.start("add", "tone", "bell")
    assert added.returncode == 0 and "Installed: tone, bell" in added.stderr
    old = made.slot
    (made.wheels / "bell-1.0-py3-none-any.whl").unlink()
    repaired = made.start("repair")
    assert repaired.returncode == 0 and made.slot != old
    assert f"Continuing without bell; {name_command()} add bell tries again" in repaired.stderr
    assert (made.packages / "tone-1.0.dist-info").is_dir()
    assert made.start().stderr == "", "with nothing left to do"


@pytest.mark.skipif(sys.platform == "win32", reason="its launcher is another process than the one that holds")
def test_an_open_hearth_keeps_its_environment(made: Checkout) -> None:
    slot, pipe = made.slot, subprocess.PIPE
    opened = [str(slots.python_of(slot)), "-I", "-m", "app", "--hold"]
    hearth = subprocess.Popen(opened, cwd=made.elsewhere, env=made.env, stdin=pipe, stdout=pipe, text=True)
    assert hearth.stdout is not None and hearth.stdout.readline() == "open\n"
    for verb in ("repair", "update", "back"):
        told = made.start(verb)
        assert told.returncode == 2 and f"hearth: Hearth is open (process {hearth.pid})" in told.stderr, told
        assert made.slot == slot and slots.read_stamp(slot) and not slots.other_slot(slot).exists()
    hearth.communicate(timeout=60)


def test_what_an_open_hearth_kept_from_being_removed_goes_at_a_later_start(made: Checkout) -> None:
    old = slots.other_slot(made.slot)
    old.mkdir()
    (old / "hearth.json").write_text("{}")
    assert made.start().stderr == "" and not old.exists()


def test_a_checkout_that_was_moved_starts_as_before(made: Checkout) -> None:
    moved = made.top.with_name("moved ß")
    old, made.top = made.top, made.top.rename(moved)
    try:
        done = made.start()
        assert done.returncode == 0 and "Making" not in done.stderr
        assert Path(json.loads(done.stdout)["file"]) == moved / "app" / "__main__.py"
    finally:
        made.top = made.top.rename(old)
        made.start()


@pytest.mark.slow
def test_what_is_asked_anew_and_cannot_be_had_leaves_the_old_one_working(made: Checkout) -> None:
    made.wants("nowhere==1.0")
    try:
        done = made.start()
        assert done.returncode == 0 and "continuing with the old one" in done.stderr and "Traceback" not in done.stderr
        assert "failed. ERROR" in done.stderr and "nowhere" in done.stderr, done.stderr
        assert "install.log" in done.stderr
    finally:
        made.wants("small==1.0")
    assert made.start().stderr == ""


@pytest.mark.slow
def test_a_half_made_one_is_made_anew(made: Checkout) -> None:
    (made.slot / "hearth.json").unlink()
    (made.slot / "leftover").write_text("")
    done = made.start()
    assert done.returncode == 0 and "installation was interrupted" in done.stderr
    assert not (made.slot / "leftover").exists() and made.start().stderr == ""


def test_one_whose_python_went_away_counts_as_none(made: Checkout) -> None:
    config = made.slot / "pyvenv.cfg"
    text = config.read_text()
    assert slots.read_stamp(made.slot)
    config.write_text(re.sub(r"home = .*", "home = /gone/bin", text))
    assert not slots.read_stamp(made.slot)
    config.write_text(text)


def test_a_checkout_that_cannot_be_written_keeps_its_environment_in_the_users_data(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEARTH_ENV", raising=False)
    monkeypatch.delenv("HEARTH_HOME", raising=False)
    for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "data"))
    assert slots.find_folder(checkout.top) == checkout.top / ".venv"
    shutil.rmtree(checkout.top / ".venv")
    (checkout.top / ".venv").write_text("in the way, for root too")
    there = slots.find_folder(checkout.top)
    assert there.parent == slots.data_folder() and tmp_path / "data" in there.parents and there.is_dir()
    assert slots.find_folder(tmp_path / "another checkout") != there
    if sys.platform == "win32":  # where platformdirs asks the system, not the environment
        monkeypatch.undo()
    assert slots.data_folder() == app.base.paths.home().root


@pytest.mark.parametrize(("told", "enabled"), [({"LongPathsEnabled": 1}, True), ({"LongPathsEnabled": 0}, False), ({}, False)])
def test_windows_is_asked_whether_it_takes_long_paths(told: dict[str, int], enabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def value(key: object, name: str) -> tuple[int, int]:
        if name not in told:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        return told[name], 4

    registry = SimpleNamespace(HKEY_LOCAL_MACHINE=1, OpenKey=lambda *_: contextlib.nullcontext(), QueryValueEx=value)
    monkeypatch.setitem(sys.modules, "winreg", registry)
    assert slots.allows_long_paths() is enabled


def test_a_checkout_that_lies_too_deep_for_windows_keeps_its_environment_in_the_users_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEARTH_ENV", raising=False)
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(slots, "WINDOWS", True)
    monkeypatch.setattr(slots, "allows_long_paths", lambda: False)
    monkeypatch.setattr(slots, "LONGEST", slots.DEEPEST + len(str(tmp_path)) + 31)
    fits, deep = (tmp_path / ("h" * length) for length in (24, 25))
    for top in (fits, deep):
        top.mkdir()
    assert slots.find_folder(fits) == fits / ".venv", "as long as it may be"
    there = slots.find_folder(deep)
    assert there.parent == tmp_path / "data" and there.is_dir() and not (deep / ".venv").exists()
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "data of a person"))
    with pytest.raises(console.Refused, match="longer than Windows allows"):
        slots.find_folder(deep)
    monkeypatch.setattr(slots, "allows_long_paths", lambda: True)
    assert slots.find_folder(deep) == deep / ".venv"


@pytest.mark.slow
def test_nothing_that_is_installed_lies_deeper_than_place_counts_with() -> None:
    """Under the longest name of torch's builds; another version of it may bring a deeper folder."""
    files = (file for each in importlib.metadata.distributions() for file in each.files or ())
    folders = {re.sub(r"^(torch-[\d.]+)(\+\w+)?\.", r"\1+cu130.", file.parent.as_posix()) for file in files}
    deepest = max(folders, key=len)
    assert len("/a/Lib/site-packages/" + deepest) <= slots.DEEPEST, deepest


@pytest.mark.parametrize(
    ("noise", "reason"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "The disk is full"),
        ("Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "no network connection"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]", "secure connection"),
        ("ERROR: No matching distribution found for torch==2.13.0", "does not support this Python"),
        (
            "ERROR: Could not install packages due to an OSError: [WinError 206] The filename or extension is too long",
            "longer than Windows allows",
        ),
        ("ERROR: something new\nnotice", "ERROR: something new"),
    ],
)
def test_pips_noise_becomes_a_sentence(noise: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(console.Refused, match="Installing failed") as refused:
        pip_command.run([sys.executable, "-c", f"print({noise!r}); raise SystemExit(1)"], tmp_path / "log", INSTALLING)
    assert reason in str(refused.value) and str(tmp_path / "log") in str(refused.value)


def test_progress_says_what_pip_is_doing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("Collecting torch==2.13.0\n  Downloading https://here/torch-2.13.0.whl (180 MB)\nProgress 41943040 of 188743680\n")
    (words,) = pip_command.describe_progress(log)
    assert str(words) == "downloading torch-2.13.0.whl, 40 of 180 MB"
    log.write_text(log.read_text() + "Collecting numpy\n")
    (words,) = pip_command.describe_progress(log)
    assert str(words) == "downloading numpy", "what was counted before was of another file"
    log.write_text(log.read_text() + "Installing collected packages: torch\n")
    (words,) = pip_command.describe_progress(log)
    assert str(words) == "installing packages"


@pytest.mark.skipif(sys.platform == "win32", reason="its consoles are no files")
def test_progress_keeps_to_one_line_of_a_narrow_window(tmp_path: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    code = (
        "import sys; from pathlib import Path; from app.launcher import pip_command; from app.base.sentence import say\n"
        f"pip_command.run([sys.executable, '-c', 'import time; time.sleep(1.2)'], Path({str(tmp_path / 'log')!r}), say('start.installs', 'Installing' * 9))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=TOP, stderr=theirs, check=True)
    written = os.read(ours, 4096).decode()
    assert "  1 s         Installing" in written and "\n" not in written
    assert {len(each) for each in written.split("\r") if each} == {39}
    os.close(ours)
    os.close(theirs)


def test_a_build_that_does_not_drive_the_card_makes_way_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """cu130 has no kernels for the card, cu126 cannot be installed, the plain build is right."""
    proofs = [{"kind": "cuda", "trouble": "no kernel image"}, {"kind": "cpu", "trouble": ""}]
    installed: list[str] = []

    def pip(slot: Path, log: Path, what: str, *words: str) -> None:
        installed.extend(word for word in words if word.startswith("torch=="))
        if installed and "cu126" in installed[-1]:
            raise console.Refused(say("start.failed", "Installing failed."))

    monkeypatch.setattr(
        machine_facts, "detect_facts", lambda: ComputerFacts("Linux", "x86_64", machine_facts.parse_cards("Tesla T4, 580.1, 7.5"))
    )
    monkeypatch.setattr(machine_facts, "is_offered", lambda build, version: build != "cpu")
    monkeypatch.setattr(new_environment, "run", lambda *_: (tmp_path / "a").mkdir(exist_ok=True))
    monkeypatch.setattr(new_environment, "pip_install", pip)
    monkeypatch.setattr(new_environment, "brings_cuda", lambda slot, torch: True)
    monkeypatch.setattr(new_environment, "prove_torch", lambda slot: {"name": "Tesla T4", "torch": "2.13.0", **proofs.pop(0)})
    monkeypatch.setattr(slots, "write_stamp", lambda slot, **what: installed.append(f"stamp {what['build']!r}"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40))
    new_environment.make_environment(tmp_path / "a", slots.read_requirements())
    pin = slots.read_requirements().torch
    assert installed == [f"torch=={pin}+cu130", f"torch=={pin}+cu126", f"torch=={pin}", "stamp ''"]
    said = capsys.readouterr().err
    assert "The cu130 build does not work with this card: no kernel image" in said
    assert "3 GB to download and 9 GB on disk" in said, "told before, not after"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 << 30))
    with pytest.raises(console.Refused, match=r"about 9 GB.*only 5\.0 GB are free"):
        new_environment.make_environment(tmp_path / "a", slots.read_requirements())


@pytest.fixture
def installing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would be installed on a machine with room and every build, pip and the proof being stand-ins."""
    installed: list[str] = []
    monkeypatch.setattr(machine_facts, "is_offered", lambda build, version: True)
    monkeypatch.setattr(new_environment, "run", lambda *_: (tmp_path / "a").mkdir(exist_ok=True))
    monkeypatch.setattr(
        new_environment, "pip_install", lambda *words: installed.extend(each for each in words[3:] if each.startswith("torch=="))
    )
    monkeypatch.setattr(install, "pip_install", lambda *words: None)
    monkeypatch.setattr(new_environment, "brings_cuda", lambda slot, torch: False)
    monkeypatch.setattr(new_environment, "prove_torch", lambda slot: {"name": "the card", "torch": "2", "kind": "cuda", "trouble": ""})
    monkeypatch.setattr(slots, "write_stamp", lambda slot, **what: None)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40))
    return installed


def pretend(monkeypatch: pytest.MonkeyPatch, system: str, machine: str, told: str = "", **facts: Any) -> None:
    found = ComputerFacts(system, machine, machine_facts.parse_cards(told), **facts)
    monkeypatch.setattr(machine_facts, "detect_facts", lambda: found)


def test_an_update_keeps_the_last_torch_that_drives_an_old_card(
    installing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """torch 2.15 has no cu126: the way of an update on the day that constraints.txt asks for it."""
    want = replace(slots.read_requirements(), torch="2.15.0")
    pretend(monkeypatch, "Linux", "x86_64", "NVIDIA GeForce GTX 1060 6GB, 580.95, 6.1")
    assert install.renew(tmp_path, want) == tmp_path / "a" and installing == ["torch==2.14.1+cu126"]
    pins = (tmp_path / "a" / "constraints.txt").read_text()
    assert re.findall("^(?:torch==|nvidia).*$", pins, re.MULTILINE) == ["torch==2.14.1", "nvidia-cudnn-cu12<9.11"]
    assert "Build of torch 2.14.1: NVIDIA GeForce GTX 1060 6GB" in capsys.readouterr().err
    pretend(monkeypatch, "Linux", "x86_64", "NVIDIA GeForce RTX 4090, 580.95, 8.9")
    install.renew(tmp_path, want)
    assert installing[1:] == ["torch==2.15.0+cu130"] and "nvidia" not in (tmp_path / "a" / "constraints.txt").read_text()


def test_later_packages_keep_the_pins_of_their_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(pip_command, "run", lambda command, *_: commands.append([str(each) for each in command]))
    pip_command.pip_install(tmp_path, tmp_path / "log", INSTALLING, "pip")
    new_environment.write_pins(tmp_path, "2.13.0", "cu126")
    pip_command.pip_install(tmp_path, tmp_path / "log", INSTALLING, "bell")
    assert [each[each.index("-c", 4) + 1] for each in commands] == [str(TOP / "constraints.txt"), str(tmp_path / "constraints.txt")]
    assert all(each[2:4] == ["-X", "utf8"] for each in commands), (
        "the log is read so, and a folder's name was told with other letters on Windows"
    )


def test_a_foreign_cudnn_ends_on_the_processor_and_is_told(
    installing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cudnn = {"step": "convolution", "cudnn": "91300", "cudnn_file": "/opt/libcudnn.so.9", "capability": "6.1"}
    proofs = [{"kind": "cuda", "trouble": "no engine", **cudnn}, {"kind": "cpu", "trouble": ""}]
    monkeypatch.setattr(new_environment, "prove_torch", lambda slot: {"name": "the card", "torch": "2.13.0", **proofs.pop(0)})
    pretend(monkeypatch, "Linux", "x86_64", "NVIDIA GeForce GTX 1060 6GB, 580.95, 6.1")
    new_environment.make_environment(tmp_path / "a", slots.read_requirements())
    assert [each.partition("+")[2] for each in installing] == ["cu126", "cpu"]
    said = capsys.readouterr().err
    assert "The cu126 build does not work with this card: convolutions fail, because cuDNN 9.13 was loaded (/opt/libcudnn.so.9)" in said
    assert said.splitlines()[-1].startswith("Your NVIDIA GeForce GTX 1060 6GB is not used: no build of torch for it")


def test_a_card_that_computes_without_a_foreign_cudnn_is_used(
    installing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cudnn = {"step": "convolution", "cudnn": "91300", "cudnn_file": "/opt/libcudnn.so.9", "capability": "6.1"}
    monkeypatch.setattr(
        new_environment, "prove_torch", lambda slot: {"name": "the card", "torch": "2.13.0", "kind": "cuda", "trouble": "", **cudnn}
    )
    pretend(monkeypatch, "Linux", "x86_64", "NVIDIA GeForce GTX 1060 6GB, 580.95, 6.1")
    new_environment.make_environment(tmp_path / "a", slots.read_requirements())
    assert [each.partition("+")[2] for each in installing] == ["cu126"]
    said = capsys.readouterr().err
    assert "Tested on the card" in said and "cuDNN 9.13 was loaded (/opt/libcudnn.so.9), which has no convolutions for this card" in said


def test_a_card_between_builds_is_never_left_idle_silently(
    installing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An RTX 50 with driver 572: cu129 is for Linux only, and may not be there."""
    processor = {"name": "cpu", "torch": "2.13.0+cpu", "kind": "cpu", "trouble": ""}
    monkeypatch.setattr(new_environment, "prove_torch", lambda slot: processor)
    monkeypatch.setattr(machine_facts, "is_offered", lambda build, version: build == "cpu")
    for system, machine, installed in (("Linux", "x86_64", ["cpu"]), ("Windows", "AMD64", [""])):
        pretend(monkeypatch, system, machine, "NVIDIA GeForce RTX 5070, 572.16, 12.0")
        new_environment.make_environment(tmp_path / "a", slots.read_requirements())
        said = capsys.readouterr().err
        assert [each.partition("+")[2] for each in installing] == installed
        assert "Your NVIDIA GeForce RTX 5070 is not used" in said.splitlines()[-1], said
        assert f"driver to 580 or newer, then run {name_command()} repair" in said.splitlines()[-1], said
        installing.clear()


def test_a_radeon_gets_its_build_and_the_room_that_it_needs(installing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "Linux", "x86_64", seen=("AMD Radeon RX 7900 XT/7900 XTX",), gfx_targets=("gfx1100",))
    new_environment.make_environment(tmp_path / "a", slots.read_requirements())
    assert [each.partition("+")[2] for each in installing] == ["rocm7.2"]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=12 << 30))
    with pytest.raises(console.Refused, match="about 20 GB"):
        new_environment.make_environment(tmp_path / "a", slots.read_requirements())


def test_macos_13_is_refused_before_anything_is_fetched(installing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_environment, "run", lambda *_: pytest.fail("something was run"))
    pretend(monkeypatch, "Darwin", "arm64", macos=13)
    with pytest.raises(console.Refused, match=r"macOS 13.*needs macOS 14.*Software Update"):
        new_environment.make_environment(tmp_path / "a", slots.read_requirements())
    assert not installing and not (tmp_path / "a").exists()


def test_where_windows_lacks_a_library_no_other_build_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch says it: on stdout, and then it cannot be imported."""
    torch = (
        "Microsoft Visual C++ Redistributable is not installed, this may lead to the DLL load failure.\n"
        "It can be downloaded at https://aka.ms/vs/17/release/vc_redist.x64.exe"
    )
    monkeypatch.setattr(proof, "PROOF", f"print({torch!r}); raise OSError('[WinError 126] c10.dll')")
    monkeypatch.setattr(proof, "python_of", lambda slot: Path(sys.executable))
    installed: list[str] = []
    monkeypatch.setattr(
        machine_facts, "detect_facts", lambda: ComputerFacts("Windows", "AMD64", machine_facts.parse_cards("Tesla T4, 580.1, 7.5"))
    )
    monkeypatch.setattr(machine_facts, "is_offered", lambda build, version: True)
    monkeypatch.setattr(new_environment, "run", lambda *_: (tmp_path / "a").mkdir(exist_ok=True))
    monkeypatch.setattr(
        new_environment,
        "pip_install",
        lambda slot, log, what, *words: installed.extend(each for each in words if each.startswith("torch==")),
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40))
    with pytest.raises(console.Refused, match=r"Redistributable is missing. Install it from https://aka.ms/\S+ and"):
        new_environment.make_environment(tmp_path / "a", slots.read_requirements())
    assert len(installed) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gets CUDA from the default index")
@pytest.mark.parametrize(
    ("needs", "heavy"),
    [
        ("Requires-Dist: nvidia-cublas==13.0; platform_system == 'Linux'\n", True),
        ("Requires-Dist: sympy\n", False),
        ("Requires-Dist: nvidia-cublas==13.0; platform_machine == '{other}'\n", False),
    ],
)
def test_what_the_default_index_has_is_known_before_it_is_fetched(
    needs: str, heavy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    wheel(tmp_path, "torch", "0.0.1", needs.format(other=other), __init__="")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setattr(new_environment, "python_of", lambda slot: Path(sys.executable))
    assert new_environment.brings_cuda(tmp_path, "torch==0.0.1") is heavy
    assert new_environment.brings_cuda(tmp_path, "torch==9") is False, "there is none"


def test_what_is_wanted_is_what_pyproject_says() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    want = slots.read_requirements()
    assert [*want.core] == project["dependencies"] and want.extras["test"] == tuple(project["optional-dependencies"]["test"])
    assert f">={start.NEEDED[0]}.{start.NEEDED[1]}" == project["requires-python"]


def test_constraints_are_plain_pins() -> None:
    lines = [line for line in (TOP / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines == sorted(lines, key=lambda line: line.split("==")[0]) and len(lines) > 50
    for line in lines:
        assert line.count("==") == 1 and not set(line) & set("+/@<>"), line
    want = slots.read_requirements()
    asked = (*want.core, *(each for extra in want.extras.values() for each in extra))
    named = {re.split(r"[^\w-]", each)[0].lower().replace("_", "-") for each in asked}
    assert not named - {line.split("==")[0] for line in lines}, "without a pin"


def test_an_old_python_gets_a_sentence() -> None:
    text = (TOP / "start.py").read_text("utf-8")
    parse_source(text, feature_version=(3, 7))
    code = f"import sys, runpy; sys.version_info = (3, 8, 10); runpy.run_path({str(TOP / 'start.py')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "needs Python 3.11 or newer, and this is Python 3.8" in done.stderr


def test_back_without_an_update_says_so(made: Checkout) -> None:
    done = made.start("back")
    assert done.returncode == 2 and "no update to undo" in done.stderr


@pytest.mark.slow
def test_updates_prove_themselves_before_the_swap_and_one_step_back_is_kept(made: Checkout) -> None:
    origin = made.top.parent.parent / "origin"
    made.git("checkout", "-q", ".")
    one, slot = made.git("rev-parse", "HEAD"), made.slot
    for name in ("constraints.txt", "app/__main__.py"):  # newer code, which wants another package
        file = origin / name
        file.write_text(file.read_text().replace("small==1.0", "small==2.0").replace('"words"', '"new"'))
    made.git("commit", "-q", "-a", "-m", "two", at=origin)

    broken = made.start("update", BROKEN="1")
    assert broken.returncode == 1 and "as it was before" in broken.stderr and "Running the self-test failed" in broken.stderr
    assert (made.git("rev-parse", "HEAD"), made.slot) == (one, slot)
    still = made.start()
    assert still.stderr == "" and "words" in json.loads(still.stdout), "the old one works, with nothing to make"

    good = made.start("update")
    assert good.returncode == 0, good.stderr
    assert made.git("rev-parse", "HEAD") != one and made.slot == slots.other_slot(slot)
    new = made.start()
    assert new.stderr == "" and "new" in json.loads(new.stdout)
    assert (made.packages / "small-2.0.dist-info").is_dir()

    assert made.start("back").returncode == 0
    assert (made.git("rev-parse", "HEAD"), made.slot) == (one, slot) and made.start().stderr == ""
    assert made.start("back").returncode == 0 and made.slot == slots.other_slot(slot), "and forward again"


@pytest.mark.parametrize("told", [["-I"], ["-P"], []])
def test_it_finds_its_own_files_wherever_python_looks(told: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, *told, str(TOP / "start.py"), "add", "nonsense"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2 and "start.py add takes one or more of" in done.stderr, done.stderr


def test_a_checkout_with_files_missing_says_so(tmp_path: Path) -> None:
    shutil.copy(TOP / "start.py", tmp_path)
    (tmp_path / "app").mkdir()
    shutil.copy(TOP / "app" / "__init__.py", tmp_path / "app")
    # Without the environment's own folders, in which this checkout can be found.
    done = subprocess.run([sys.executable, "-S", str(tmp_path / "start.py"), "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "Files of Hearth's own are missing" in done.stderr and "Traceback" not in done.stderr


def test_the_repair_page_is_there_although_the_code_was_changed_meanwhile() -> None:
    """An update may take away the files of a window that is open: what its end needs is loaded by then."""
    code = "import sys; import app.launcher.supervisor; print('app.launcher.repair_page' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True).stdout == "True\n"


CHINESE = {"LC_ALL": "", "LANG": "zh_CN.UTF-8"}


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ({}, "takes one or more of: bell, test, tone, void."),
        (CHINESE, "后面请写以下的一个或几个：bell、test、tone、void。"),
        ({**CHINESE, "PYTHONIOENCODING": "latin-1"}, "takes one or more of: bell, test, tone, void."),
        ({**CHINESE, "LC_ALL": "nb_NO.UTF-8"}, "takes one or more of: bell, test, tone, void."),
    ],
)
def test_it_speaks_the_systems_language_where_the_console_can_print_it(language: dict[str, str], said: str, checkout: Checkout) -> None:
    """hearth: stays in front in any language, as the repair page looks for it."""
    done = checkout.start("add", "nonsense", **{"PYTHONIOENCODING": "utf-8", **language})
    assert (done.returncode, done.stderr) == (2, f"hearth: {name_command()} add {said}\n")
