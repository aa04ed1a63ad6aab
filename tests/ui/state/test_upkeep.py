"""Upkeep: asked once whether it may look, at most a look a day, only newer versions shown; and work beside the window, told, ended and failed."""

from __future__ import annotations

import re
import sys
import textwrap
import threading
import time
import tomllib
from pathlib import Path

import psutil
import pytest

from app.base import extras
from app.base.extras import EXTRAS
from app.base.sentence import say
from app.base.trouble import Trouble
from app.launcher import failure, releases, slots
from app.launcher.beside import Beside
from app.launcher.console import Refused
from app.launcher.releases import Offer
from app.ui.state import upkeep
from app.ui.state.settings import Settings
from app.ui.state.upkeep import SAVED, Upkeep
from app.ui.tabs.upkeep import upkeep_view
from tests.support.places import TOP
from tests.support.waiting import until

OFFER = Offer("99.0.1", "hearth-99.0.1.zip", 34_000_000, "0" * 64, "### Speech\n\n- <b>One</b>.")


class Asked:
    """Stands in for the server of releases, and counts who asks."""

    def __init__(self, answer: Offer | Trouble | None = OFFER) -> None:
        self.answer, self._times = answer, 0

    def find_newer(self) -> Offer | None:
        self._times += 1
        if isinstance(self.answer, Trouble):
            raise self.answer
        return self.answer

    def times(self) -> int:
        return self._times


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(releases, "find_newer", asked.find_newer)
    monkeypatch.setattr(Upkeep, "explain_fixed", lambda self: None)
    return asked


@pytest.fixture
def kept(tmp_path: Path) -> Upkeep:
    return Upkeep(Settings(tmp_path / "settings.json"), threading.Event())


def looked(kept: Upkeep) -> Upkeep:
    until(lambda: not kept.looking)
    return kept


def test_nothing_is_asked_before_the_owner_agrees_and_then_once_a_day(kept: Upkeep, asked: Asked) -> None:
    kept.look_if_due()
    assert upkeep_view(kept, "en")["looks"] is None and not asked.times()
    kept.let_look(True)
    looked(kept).look_if_due()
    assert looked(kept).saved["looks"] is True and asked.times() == 1, "it looks at once, and not again the same day"
    kept._settings.change(SAVED, {}, lambda saved: {**saved, "at": time.time() - upkeep.DAY_S - 1})
    kept.look_if_due()
    assert looked(kept) and asked.times() == 2
    kept.let_look(False)
    kept._settings.change(SAVED, {}, lambda saved: {**saved, "at": 0.0})
    kept.look_if_due()
    assert not kept.looking and asked.times() == 2


def test_what_was_found_is_told_until_this_is_it(kept: Upkeep, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.let_look(True)
    view = upkeep_view(looked(kept), "en")
    assert view["newer"] == {"version": "99.0.1", "notes": OFFER.notes, "bytes": OFFER.bytes} and view["told"] == ""
    again = Upkeep(Settings(kept._settings._file), threading.Event())
    assert upkeep_view(again, "en")["newer"] is not None, "also after a restart, without a look"
    monkeypatch.setattr(releases.is_newer, "__defaults__", ("99.0.1",))
    assert upkeep_view(again, "en")["newer"] is None, "this is it now"


def test_a_look_that_fails_is_told_and_is_the_look_of_the_day(kept: Upkeep, asked: Asked) -> None:
    asked.answer = Refused(say("release.forged", "Not signed by {place}.", place="there"))
    kept.let_look(True)
    assert upkeep_view(looked(kept), "en")["told"] == "Not signed by there."
    kept.look_if_due()
    assert not kept.looking and asked.times() == 1
    asked.answer = None
    kept.look()
    assert upkeep_view(looked(kept), "en")["told"] == "This is the newest version."


def test_a_clone_and_a_copy_without_key_are_not_asked(kept: Upkeep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "find_newer", lambda: pytest.fail("asked"))
    monkeypatch.setattr(upkeep, "can_add", lambda: True)
    monkeypatch.setattr(Beside, "start", lambda *_: pytest.fail("begun"))
    for place, told in ((TOP, "git clone"), (tmp_path, "does not know where its releases are")):
        monkeypatch.setattr(slots, "find_place", lambda place=place: place)
        if (place / ".git").exists() or place == tmp_path:
            assert told in upkeep_view(kept, "en")["fixed"]
            kept.let_look(True)
            kept.look_if_due()
            kept.update()
    monkeypatch.setattr(upkeep, "can_add", lambda: False)
    assert "pip updates it" in upkeep_view(kept, "en")["fixed"]


def test_a_restart_is_start_pys_to_do(kept: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(failure.FILE_VARIABLE, raising=False)
    with pytest.raises(Trouble, match="Close Hearth and start it again"):
        kept.restart()
    assert not kept.restarts and not kept._leaving.is_set()
    monkeypatch.setenv(failure.FILE_VARIABLE, "somewhere")
    kept.restart()
    assert kept.restarts and kept._leaving.is_set()


def test_the_table_of_extras_is_pyprojects() -> None:
    named = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {each.name for each in EXTRAS} == named.keys() - {"test", "window"}
    for each in EXTRAS:
        packages = {re.split(r"[^\w-]", package)[0] for package in named[each.name]}
        assert (each.licence and each.bytes > 0 and len(each.modules) == len(packages)) or each.name == "mcp"


START = """
import subprocess, sys, time
from pathlib import Path
words = sys.argv[1:]
Path(__file__).with_name("asked").write_text(" ".join(words))
if words[-1] == "bad":
    print("noise\\nhearth: The disk is full.", file=sys.stderr)
    sys.exit(2)
if words[-1] == "long":
    log = Path(__file__).with_name("install.log")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(__file__).with_name("child").write_text(str(child.pid))
    log.write_text("Downloading hearth-0.2.0.zip\\nProgress 41943040 of 188743680\\n")
    try:
        child.wait()
    except KeyboardInterrupt:
        child.kill()
        raise
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Beside:
    (tmp_path / "start.py").write_text(textwrap.dedent(START))
    monkeypatch.setattr(slots, "TOP", tmp_path)
    return Beside(tmp_path)


def test_work_beside_the_window_is_told_once_at_a_time_and_why_it_failed(work: Beside, tmp_path: Path) -> None:
    assert work.describe() == () and work.find_failure() == ""
    assert work.start("environment", "good")
    until(lambda: not work.describe())
    assert (tmp_path / "asked").read_text() == "prepare environment good" and work.find_failure() == ""
    assert work.start("environment", "bad")
    until(lambda: not work.describe())
    assert work.find_failure() == "The disk is full."


@pytest.mark.slow
def test_work_is_ended_with_all_that_it_started(work: Beside, tmp_path: Path) -> None:
    assert work.start("environment", "long")
    until(lambda: "downloading hearth-0.2.0.zip, 40 of 180 MB" in [str(each) for each in work.describe()])
    assert not work.start("update"), "one at a time"
    child = psutil.Process(int((tmp_path / "child").read_text()))
    work.stop()
    assert work.describe() == () and work.find_failure() == "", "whoever ends it knows why"
    if sys.platform != "win32":
        psutil.wait_procs([child], timeout=20)
        assert not child.is_running()
    else:
        child.kill()


def test_only_extras_that_are_known_and_missing_are_begun(kept: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, ...]] = []
    monkeypatch.setattr(Beside, "start", lambda self, *words: not begun and not begun.append(words))
    monkeypatch.setattr(extras.Extra, "is_here", property(lambda self: self.name == "pdf"))
    monkeypatch.setattr(upkeep, "can_add", lambda: True)
    for name in ("nonsense", "test", "pdf", "", "aac", "--help"):
        kept.add(name)
    assert begun == [("environment", "aac")]
    with pytest.raises(Trouble, match="already preparing"):
        kept.add("mcp")
    assert not upkeep_view(kept, "en")["assistants"]["wanted"]


def test_adding_the_extra_for_assistants_lets_nobody_in(kept: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came with a yes to a download would be let in unasked, also after a cancelled one."""
    monkeypatch.setattr(Beside, "start", lambda *_: True)
    monkeypatch.setattr(extras.Extra, "is_here", property(lambda self: False))
    monkeypatch.setattr(upkeep, "can_add", lambda: True)
    kept.add("mcp")
    assert not kept.wants_assistants
    kept.let_assistants(True)
    assert upkeep_view(kept, "en")["assistants"] == {"wanted": True, "address": "", "fixed": ""}
    assert Upkeep(Settings(kept._settings._file), threading.Event()).wants_assistants, "also after the restart"


def test_the_last_update_is_undone_and_hearth_opened_anew(
    kept: Upkeep, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone: list[Path] = []
    monkeypatch.setattr(upkeep, "undo", undone.append)
    monkeypatch.setattr(upkeep, "can_add", lambda: True)
    monkeypatch.setattr(kept, "folder", tmp_path)
    monkeypatch.setenv(failure.FILE_VARIABLE, "somewhere")
    kept.go_back()
    assert not undone and not kept.restarts, "there was no update"
    slots.write_way_back(tmp_path, {"slot": "b", "version": ""})
    assert upkeep_view(kept, "en")["back"]
    with monkeypatch.context() as at_work, pytest.raises(Trouble, match="already preparing"):
        at_work.setattr(kept.beside, "describe", lambda: (say("pip.installs", "installing packages"),))
        kept.go_back()
    monkeypatch.delenv(failure.FILE_VARIABLE)
    with pytest.raises(Trouble, match="Close Hearth and start it again"):
        kept.go_back()
    assert not undone, "nothing is undone that is not opened"
    monkeypatch.setenv(failure.FILE_VARIABLE, "somewhere")
    kept.go_back()
    assert undone == [tmp_path] and kept.restarts
    monkeypatch.setattr(Upkeep, "explain_fixed", lambda self: say("upkeep.clone", "A clone."))
    assert not upkeep_view(kept, "en")["back"], "its code runs"
