"""A copy without git updates itself by releases, for real: swapped once tested, undone by `back`, and killed at every step; one Hearth always works."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.launcher import broken_pull, install, releases, slots, update
from app.launcher.console import Refused
from app.launcher.desktop_entry import start_command
from release import make_release as script
from tests.support.killed_updates import Copy, needs_groups
from tests.support.release_server import believe, make_release, serve

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    folder = tmp_path_factory.mktemp("copy")
    copy = Copy(folder)
    with serve() as server:
        copy.believe_in(server)
        copy.server.offer(make_release(copy.top, "0.2.0", folder / "out", {'"words"': '"new"'}))
        yield copy


@pytest.fixture
def copy(made: Copy) -> Copy:
    made.forget()
    return made


def test_an_update_is_tested_before_it_is_taken_and_undone_by_back(copy: Copy) -> None:
    broken = copy.start("update", BROKEN="1")
    assert broken.returncode == 1 and "as it was before" in broken.stderr and "Running the self-test failed" in broken.stderr
    assert copy.look() == ("0.1.0", "a") and not [*copy.top.glob(".venv/versions/*")]

    good = copy.start("update")
    assert good.returncode == 0 and "Downloading Hearth 0.2.0" in good.stderr and "Up to date and tested" in good.stderr, good.stderr
    assert copy.look() == ("0.2.0", "a"), "by the same start.py, in the same environment, which serves both"

    folder = copy.top / ".venv"
    assert slots.leads_back(folder)
    assert copy.start("back").returncode == 0 and copy.look() == ("0.1.0", "a")
    assert not slots.leads_back(folder), "no window calls it the version before"
    assert copy.start("back").returncode == 0 and copy.look() == ("0.2.0", "a"), "and forward again"
    assert slots.leads_back(folder)


@needs_groups
def test_a_copys_name_in_letters_that_the_systems_code_page_lacks_ends_no_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hearth speaks UTF-8, and its words were read in the code page of a Windows, which broke the update off."""
    python = slots.python_of(tmp_path)
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho /home/小明/hearth.db\necho 'hearth: 磁盘已满' >&2\nexit 1\n", "utf-8")
    python.chmod(0o755)
    monkeypatch.setattr("locale.getencoding", lambda: "cp1252")
    told: list[str] = []
    monkeypatch.setattr(update, "tell", lambda sentence: told.append(str(sentence)))
    update.back_up(tmp_path)
    assert told and told[0].endswith("磁盘已满")


@pytest.mark.slow
def test_an_open_hearth_goes_on_and_the_next_start_takes_what_was_made_beside_it(copy: Copy) -> None:
    assert copy.look() == ("0.1.0", "a")
    opened = [str(slots.python_of(copy.slot)), "-I", "-m", "app", "--hold"]
    hearth = subprocess.Popen(opened, cwd=copy.elsewhere, env=copy.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert hearth.stdout is not None and hearth.stdout.readline() == "open\n"
    assert copy.start("prepare", "update").returncode == 0
    assert copy.start("--browser").returncode == 0 and (copy.top / ".venv/ready").is_file(), "not while one is open"
    assert copy.look() == ("0.1.0", "a")
    hearth.communicate(timeout=60)
    opened_again = copy.start("--browser")
    assert json.loads(opened_again.stdout)["new"] == ["--browser"], opened_again.stderr
    assert copy.look() == ("0.2.0", "a") and not (copy.top / ".venv/ready").exists()
    own = copy.top / ".venv/versions/0.2.0/start.py"  # which the window of that version runs
    nothing = subprocess.run([sys.executable, own, "prepare", "update"], cwd=copy.elsewhere, env=copy.env, capture_output=True, text=True)
    assert nothing.returncode == 2 and "hearth: There is nothing newer any more." in nothing.stderr


def test_what_has_nowhere_to_ask_is_refused_and_not_called_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that it does not know of releases, then "The code is up to date", and ended with 0."""
    monkeypatch.setattr(update, "back_up", lambda slot: None)
    monkeypatch.setattr(subprocess, "call", lambda *_: pytest.fail("nothing is made anew"))
    monkeypatch.setattr(releases, "read_address", lambda top: "")
    monkeypatch.setattr(slots, "current_commit", lambda: "")
    with pytest.raises(Refused, match="does not know where its releases are"):
        update.update(tmp_path)
    monkeypatch.setattr(slots, "current_commit", lambda: "1234567")
    monkeypatch.setattr(update, "git", lambda *words: subprocess.CompletedProcess(words, 0, "", ""))
    with pytest.raises(Refused, match="has no remote"):
        update.update(tmp_path)


@pytest.mark.parametrize("newer", [False, True])
def test_a_clones_way_back_holds_until_an_update_is_done(newer: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While what is up to date was tested, no way led back any more, and a start removed its environment; what failed its test was forgotten first."""
    at, ways = "2", list[dict[str, str]]()

    def git(*words: str, **_: object) -> subprocess.CompletedProcess[str]:
        nonlocal at
        if "merge" in words:
            led = slots.read_way_back(tmp_path)
            assert slots.leads_back(tmp_path) and (led["slot"], led["commit"]) == ("a", "1"), "one killed now offers its earlier way"
            at = "3" if newer else at
            assert slots.leads_back(tmp_path)
        if words[0] == "reset":
            ways.append(slots.read_way_back(tmp_path))
            at = words[-1]
        return subprocess.CompletedProcess(words, 0, {"rev-parse": "2 3", "remote": "origin"}.get(words[0], ""), "")

    before = {"slot": "a", "commit": "1", "version": ""}
    (tmp_path / "current").write_text("b")
    slots.write_way_back(tmp_path, before)
    monkeypatch.setattr(update, "back_up", lambda slot: None)
    for each in (update, broken_pull):
        monkeypatch.setattr(each, "git", git)
    monkeypatch.setattr(slots, "current_commit", lambda: at)
    monkeypatch.setattr(slots, "read_stamp", lambda slot: {"digest": slots.read_requirements().digest})
    monkeypatch.setattr(subprocess, "call", lambda *_: ways.append(slots.read_way_back(tmp_path)) or 1)
    assert update.update(tmp_path) == 1
    assert ways == ([{"slot": "b", "commit": "2", "version": ""}] * 2 if newer else [before])
    assert at == "2" and slots.read_ways(tmp_path) == [before]


@pytest.mark.parametrize(
    "damaged",
    [
        {"slot": ["a"]}, {"slot": "../../x", "version": ""}, {"slot": "a", "version": ["x"]}, {"slot": "a", "version": "../../x"},
        {"slot": "a", "version": ".."}, {"slot": "a", "commit": "--hard"}, {"slot": "a", "commit": 7}, {"after": {"slot": "a"}}, ["a"],
    ],
)  # fmt: skip
def test_a_damaged_note_of_the_way_back_is_none(damaged: object, tmp_path: Path) -> None:
    (tmp_path / "back").write_text(json.dumps(damaged))
    assert slots.read_ways(tmp_path) == [] and slots.read_way_back(tmp_path) == {} and not slots.leads_back(tmp_path)
    assert install.list_way_slots(tmp_path) == set()
    install.discard_versions(tmp_path)
    good = {"slot": "b", "commit": "", "version": "0.2.0"}
    (tmp_path / "back").write_text(json.dumps({**good, "after": damaged}))
    assert slots.read_ways(tmp_path) == [good]


def test_a_note_without_an_end_is_none(tmp_path: Path) -> None:
    (tmp_path / "back").write_text("[" * 100_000)
    assert slots.read_ways(tmp_path) == [] and not slots.leads_back(tmp_path)


def test_what_an_older_hearth_undid_leads_forward_and_then_back(copy: Copy) -> None:
    """It noted only where the update had led. The window offered that as the version before."""
    assert copy.look() == ("0.1.0", "a") and copy.start("update").returncode == 0
    assert copy.start("back").returncode == 0 and copy.look() == ("0.1.0", "a")
    folder = copy.top / ".venv"
    (folder / "back").write_text(json.dumps({"slot": "a", "commit": "", "version": "0.2.0", "forward": "yes"}))
    assert not slots.leads_back(folder)
    assert copy.start("back").returncode == 0 and copy.look() == ("0.2.0", "a") and slots.leads_back(folder)
    assert copy.start("back").returncode == 0 and copy.look() == ("0.1.0", "a") and not slots.leads_back(folder)


def test_two_at_once_make_it_once(copy: Copy) -> None:
    copy.server.asked.clear()
    two = [copy.begin("update") for _ in "ab"]
    told = [each.communicate(timeout=200)[1] for each in two]
    assert [each.returncode for each in two] == [0, 0], told
    assert copy.server.asked.count("hearth-0.2.0.zip") == 1
    assert copy.look() == ("0.2.0", "a")


def test_a_release_whose_folder_is_lost_leaves_what_was_downloaded_first(copy: Copy) -> None:
    assert copy.start("update").returncode == 0
    shutil.rmtree(copy.top / ".venv/versions")
    assert copy.look() == ("0.1.0", "a")
    (copy.top / ".venv/ready").write_text('{"slot": "b", "version": "0.2.0"}')
    assert json.loads(copy.start("--browser").stdout)["words"] == ["--browser"], "and what is ready counts only where it is there"
    assert not (copy.top / ".venv/ready").exists()


def try_killed(copy: Copy, at: str, before: str) -> bool:
    copy.forget()
    if not copy.kill(at, before):
        return False
    assert copy.look()[0] in ("0.1.0", "0.2.0")
    again = copy.start("update")
    assert again.returncode == 0, again.stderr
    opened = copy.start("--browser")  # which takes what the killed one left ready
    assert "new" in json.loads(opened.stdout), opened.stderr
    assert copy.look()[0] == "0.2.0"
    assert {each.name for each in copy.top.glob(".venv/versions/*")} == {"0.2.0"}, "and leaves nothing half done"
    return True


@needs_groups
@pytest.mark.slow
@pytest.mark.parametrize("at", ["parent:1", "parent:2", "parent:3", "child:1"])
def test_one_killed_before_it_puts_something_in_its_place_leaves_one_that_works(at: str, copy: Copy) -> None:
    """The way back, which is written before the swap; the code's own name, the note that it is ready, the swap."""
    assert try_killed(copy, at, "rename")


@needs_groups
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", ["parent", "child"])
def test_one_killed_before_any_change_leaves_one_that_works(part: str, copy: Copy) -> None:
    steps = 1
    while try_killed(copy, f"{part}:{steps}", "any"):
        steps += 1
    assert steps > 3, steps


@needs_groups
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_release_that_wants_another_environment_brings_it(copy: Copy, tmp_path: Path) -> None:
    """Into the other slot; killed while that is made, the old one stays."""
    had = dict(copy.server.files)
    try:
        copy.server.offer(make_release(copy.top, "0.2.0", tmp_path / "out", {'"words"': '"new"', "small==1.0": "small==2.0"}))
        for step in ("child:1", "child:2"):
            assert copy.kill(step, "any" if step == "child:1" else "rename") and copy.look() == ("0.1.0", "a")
        assert copy.start("update").returncode == 0
        assert copy.look() == ("0.2.0", "b") and (copy.packages / "small-2.0.dist-info").is_dir()
        assert copy.start().stderr == "", "with nothing left to make"
        assert copy.start("back").returncode == 0 and copy.look() == ("0.1.0", "a") and copy.start().stderr == ""
        assert copy.start("back").returncode == 0 and copy.look() == ("0.2.0", "b")
    finally:
        copy.server.files = had
        copy.start("back")
        shutil.rmtree(copy.top / ".venv/b")


@pytest.mark.slow
def test_the_workflow_has_the_release_before_update_itself(
    copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HEARTH_ENV", raising=False)
    out = make_release(copy.top, "0.2.0", tmp_path / "out", {'"words"': '"new"'})
    try:
        script.prove(copy.top, out)
        assert "again, in" in capsys.readouterr().out
        (out / "release.json.sig").write_text("00" * 64)
        with pytest.raises(SystemExit, match=r"start\.py update ended with 2"):
            script.prove(copy.top, out)
    finally:
        believe(copy.top, copy.server.address)
    assert copy.look() == ("0.1.0", "a")


@pytest.mark.slow
def test_an_extra_is_made_beside_and_taken_by_the_next_start(copy: Copy) -> None:
    failed = copy.start("prepare", "environment", "void")
    assert failed.returncode == 2 and "void" in failed.stderr and not (copy.top / ".venv/ready").exists()
    assert copy.look() == ("0.1.0", "a")
    done = copy.start("prepare", "environment", "bell")
    assert done.returncode == 0 and copy.slot.name == "a" and not (copy.packages / "bell-1.0.dist-info").exists(), done.stderr
    assert copy.start("--browser").returncode == 0 and copy.look() == ("0.1.0", "b")
    assert (copy.packages / "bell-1.0.dist-info").is_dir()
    assert not (copy.top / ".venv/a").exists(), "a start removes what is not needed any more"
    assert copy.start("back").returncode == 2
    assert copy.start("prepare", "environment", "tone").returncode == 0 and copy.start("--browser").returncode == 0
    assert copy.look() == ("0.1.0", "a")
    for name in ("bell", "tone"):
        assert (copy.packages / f"{name}-1.0.dist-info").is_dir(), "what was there stays"


def test_what_prepare_does_not_know_does_nothing(tmp_path: Path) -> None:
    for words in ([], ["nonsense"], ["update", "now"], ["environment", "nonsense"]):
        with pytest.raises(Refused, match=r"Nothing was done\."):
            update.prepare(words, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_shortcuts_lead_to_the_folder_that_was_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "Downloads/hearth"
    code = place / ".venv/versions/0.2.0"
    code.mkdir(parents=True)
    for each in (place, code):
        (each / "hearth.sh").touch()
        (each / "start.py").touch()
    (place / ".venv/current").write_text("a 0.2.0")
    assert slots.find_place(code) == place and slots.find_folder(code) == place / ".venv" and slots.find_place(place) == place
    monkeypatch.setattr("app.launcher.desktop_entry.TOP", code)
    assert start_command("Linux") == [str(place / "hearth.sh")]
    elsewhere = tmp_path / "data/environment-1"
    (elsewhere / "versions/0.2.0").mkdir(parents=True)
    (elsewhere / "versions/0.2.0/start.py").touch()
    (elsewhere / "current").write_text("a 0.2.0")
    (elsewhere / "place").write_text(str(place))
    assert slots.find_place(elsewhere / "versions/0.2.0") == place, "where the slots lie in the user's data"
    assert slots.find_code(elsewhere, place) == elsewhere / "versions/0.2.0" and slots.find_code(tmp_path, place) == place


def test_a_start_that_an_update_overtook_makes_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "versions/0.2.0").mkdir(parents=True)
    (tmp_path / "versions/0.2.0/start.py").touch()
    (tmp_path / "current").write_text("a 0.2.0")
    monkeypatch.setattr(install, "make_environment", lambda *_: pytest.fail("something was made"))
    with pytest.raises(Refused, match="updated meanwhile"):
        install.ensure_ready(tmp_path, slots.read_requirements())
