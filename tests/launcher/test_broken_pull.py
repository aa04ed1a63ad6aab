"""A clone whose update git wrote half is brought back, also where files came, went or were called otherwise; what its owner wrote stays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.launcher import broken_pull, slots, update
from app.launcher.console import Refused
from tests.support.killed_updates import needs_groups

EDITOR = """
import pathlib, sys
print("open", flush=True)
sys.stdin.readline()
pathlib.Path(sys.argv[1]).write_text("mine")
"""
PULL = """
import pathlib, sys
from app.launcher import broken_pull, slots
slots.TOP = pathlib.Path(sys.argv[1])
broken_pull.pull(pathlib.Path(sys.argv[2]))
"""


class Clone:
    def __init__(self, folder: Path) -> None:
        self.origin, self.top, self.made = folder / "origin", folder / "clone", folder / "made"
        self.lock, self.note = self.top / ".git/index.lock", self.made / broken_pull.PULLING
        self.origin.mkdir()
        self.made.mkdir()
        self.git("init", "-q", "-b", "main", at=self.origin)
        self.commit({"a.txt": "a\n", "b.txt": "b\n", "gone.txt": "gone\n", "old/name.txt": "moved\n", "m.txt": "m\n", "z.txt": "z\n"})
        self.git("clone", "-q", str(self.origin), str(self.top), at=folder)
        self.one = self.git("rev-parse", "HEAD")
        (self.origin / "gone.txt").unlink()
        (self.origin / "old/name.txt").unlink()
        self.commit({"a.txt": "a\nnewer\n", "fresh/new.txt": "new\n", "fresh/name.txt": "moved\n", "m.txt": "newer\n", "z.txt": "newer\n"})
        self.two = self.git("rev-parse", "HEAD", at=self.origin)

    def git(self, *words: str, at: Path | None = None) -> str:
        named = ["git", "-c", "user.name=one", "-c", "user.email=one@example.org", *words]
        return subprocess.run(named, cwd=at or self.top, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.origin / name).parent.mkdir(exist_ok=True)
            (self.origin / name).write_text(text)
        self.git("add", "-A", at=self.origin)
        self.git("commit", "-q", "-m", "one more", at=self.origin)

    def at_m(self, command: str) -> None:
        """Have git run this before it writes m.txt, which comes after all but z.txt."""
        (self.top / ".git/info/attributes").write_text("m.txt filter=dies\n" if command else "")
        self.git("config", "filter.dies.smudge", command)

    def pull_killed(self, how: str = "KILL") -> None:
        """Start the update, have it killed with its git, and see that the files are half of each."""
        self.at_m(f"kill -{how} $PPID")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(broken_pull, "mend", lambda: None)
            assert broken_pull.pull(self.made).returncode
        self.at_m("")
        assert (self.top / "fresh/new.txt").exists() and (self.top / "a.txt").read_text() == "a\nnewer\n"
        assert not (self.top / "old/name.txt").exists() and not (self.top / "m.txt").exists()
        assert self.lock.exists() is (how == "KILL") and self.note.exists()

    def look(self) -> tuple[str, str]:
        """Return the commit, and what differs from it."""
        return self.git("rev-parse", "HEAD"), self.git("status", "--porcelain", "-uall")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    made = Clone(tmp_path)
    monkeypatch.setenv("HEARTH_ENV", str(made.made))
    monkeypatch.setattr(slots, "TOP", made.top)
    return made


def test_what_is_whole_is_left_as_it_is(clone: Clone) -> None:
    assert broken_pull.mend() is False
    assert broken_pull.pull(clone.made).returncode == 0
    assert clone.look() == (clone.two, "") and not clone.note.exists() and broken_pull.mend() is False
    assert (clone.made / broken_pull.LOCK).exists(), "no lock file is removed, which another start may have open"


@needs_groups
@pytest.mark.parametrize("how", ["KILL", pytest.param("TERM", marks=pytest.mark.slow)])
def test_half_of_each_becomes_the_older_one_again(how: str, clone: Clone) -> None:
    """A file that is new kept all others from being mended. Where git could hear the signal it had removed its lock, and nothing was mended."""
    clone.pull_killed(how)
    assert broken_pull.mend() and clone.look() == (clone.one, "")
    assert not clone.note.exists() and not clone.lock.exists() and (clone.made / broken_pull.LOCK).exists()
    assert broken_pull.pull(clone.made).returncode == 0 and clone.look() == (clone.two, "")


@needs_groups
def test_a_git_that_fails_in_the_middle_is_mended_at_once(clone: Clone, tmp_path: Path) -> None:
    clone.at_m(f"mkdir '{tmp_path / 'once'}' && kill -KILL $PPID; cat")
    assert broken_pull.pull(clone.made).returncode
    assert clone.look() == (clone.one, "") and not clone.note.exists()


@needs_groups
def test_the_lock_of_a_git_that_only_took_files_away_goes(clone: Clone) -> None:
    """Nothing told its age, so it stayed, and with it every later update was refused."""
    clone.git("pull", "-q")
    for name in ("b.txt", "fresh/name.txt", "fresh/new.txt"):
        (clone.origin / name).unlink()
    clone.commit({})
    two = clone.git("rev-parse", "HEAD")
    clone.git("fetch", "-q")
    clone.lock.touch()
    (clone.top / "b.txt").unlink()
    shutil.rmtree(clone.top / "fresh")
    slots.replace_text(clone.note, json.dumps([two, clone.git("rev-parse", "origin/main"), []]))
    assert broken_pull.mend() and not clone.lock.exists() and clone.look() == (two, "")


@needs_groups
def test_an_update_after_a_mending_that_failed_mends_first(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The half files counted as the owner's from then on, and nothing put them back."""
    clone.pull_killed()
    with monkeypatch.context() as patch:
        patch.setattr(broken_pull, "_put_back", Mock(side_effect=OSError("no room")))
        assert broken_pull.mend() is False
        assert broken_pull.pull(clone.made).stderr == "no room" and clone.look()[1]
    assert broken_pull.pull(clone.made).returncode == 0 and clone.look() == (clone.two, "")


def test_one_that_was_killed_after_the_last_file_becomes_the_older_one_again(clone: Clone) -> None:
    """Git's list of files was the newer one's then, and HEAD was not."""
    assert broken_pull.pull(clone.made).returncode == 0
    clone.git("reset", "-q", "--soft", clone.one)
    slots.replace_text(clone.note, f'["{clone.one}", "{clone.two}", []]')
    assert clone.look()[1] and broken_pull.mend() and clone.look() == (clone.one, "")


@needs_groups
def test_what_was_changed_before_the_update_stays(clone: Clone) -> None:
    """A newer commit, fetched since, changed the same file, which was put back to what it was before the owner's change."""
    (clone.top / "b.txt").write_text("mine\n")
    (clone.top / "z.txt").write_text("newer\n")
    clone.git("add", "z.txt")  # as the newer commit has it, so git lets it be
    clone.pull_killed()
    clone.commit({"b.txt": "newest\n"})
    clone.git("fetch", "-q")
    assert broken_pull.mend() and (clone.top / "b.txt").read_text() == "mine\n"
    assert clone.look() == (clone.one, "M b.txt\nM  z.txt")


@needs_groups
def test_what_is_left_out_of_a_sparse_checkout_stays_away(clone: Clone) -> None:
    """It was taken for removed by git and written, for the next update to refuse; also where git had refused this one."""
    clone.git("sparse-checkout", "set", "--no-cone", "/*", "!/z.txt", "!/old/", "!/fresh/name.txt")
    (clone.top / "a.txt").write_text("mine\n")
    assert broken_pull.pull(clone.made).returncode and not (clone.top / "z.txt").exists() and not (clone.top / "old/name.txt").exists()
    clone.git("checkout", "a.txt")
    clone.pull_killed()
    assert broken_pull.mend() and clone.look() == (clone.one, "")
    assert clone.git("ls-files", "-t").split("\n")[-2:] == ["S old/name.txt", "S z.txt"]


@needs_groups
@pytest.mark.parametrize("listed", [False, True])
def test_a_file_whose_name_a_folder_has_now_comes_back(listed: bool, clone: Clone) -> None:
    (clone.origin / "b.txt").unlink()
    clone.commit({"b.txt/new.txt": "new\n"})
    if listed:  # it was killed after it had written its list
        assert broken_pull.pull(clone.made).returncode == 0
        clone.git("reset", "-q", "--soft", clone.one)
        slots.replace_text(clone.note, f'["{clone.one}", "{clone.git("rev-parse", "origin/main")}", []]')
    else:
        clone.pull_killed()
    assert broken_pull.mend() and clone.look() == (clone.one, "") and not (clone.top / "fresh").exists()


@needs_groups
def test_a_mending_that_was_cut_short_is_begun_anew(clone: Clone) -> None:
    """On a full disk git leaves half of an older file, which was taken for the owner's."""
    clone.pull_killed()
    for name in ("m.txt", "old/name.txt"):
        (clone.top / name).parent.mkdir(exist_ok=True)
        (clone.top / name).write_text({"m.txt": "m", "old/name.txt": "mov"}[name])
    assert broken_pull.mend() and clone.look() == (clone.one, "")


@needs_groups
def test_what_was_changed_after_it_was_killed_stays(clone: Clone) -> None:
    clone.pull_killed("TERM")
    mine = {"a.txt": "a\nnewer\nmine\n", "z.txt": "mine\n", "fresh/new.txt": "mine\n"}
    for name, text in mine.items():
        (clone.top / name).write_text(text)
    assert broken_pull.mend()
    assert {name: (clone.top / name).read_text() for name in mine} == mine
    assert clone.look() == (clone.one, "M a.txt\n M z.txt\n?? fresh/new.txt")


def test_the_lock_of_a_commit_whose_message_the_owner_writes_stays(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was taken for that of the update, and the commit and its changes were lost."""
    with monkeypatch.context() as patch:
        patch.setattr(broken_pull, "MERGE", ["--killed-before-it-began"])
        patch.setattr(broken_pull, "mend", lambda: None)
        assert broken_pull.pull(clone.made).returncode and clone.note.exists()
    (clone.top / "a.txt").write_text("mine\n")
    (tmp_path / "editor.py").write_text(EDITOR)
    command = ["git", "-c", "user.name=one", "-c", "user.email=one@example.org", "commit", "-q", "-a"]
    env = {**os.environ, "GIT_EDITOR": f'"{sys.executable}" "{tmp_path / "editor.py"}"'.replace("\\", "/")}
    commit = subprocess.Popen(command, cwd=clone.top, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert commit.stdout is not None and commit.stdout.readline() == "open\n" and clone.lock.exists()
    broken_pull.mend()
    assert clone.lock.exists()
    commit.communicate("\n", timeout=60)
    assert commit.returncode == 0 and clone.git("show", "HEAD:a.txt") == "mine" and not clone.look()[1]


@needs_groups
def test_an_empty_lock_that_is_newer_than_what_git_wrote_stays(clone: Clone) -> None:
    """Another git of the owner's is at work."""
    clone.pull_killed("TERM")
    written = max(file.stat().st_mtime for file in clone.top.rglob("*.txt"))
    clone.lock.touch()
    os.utime(clone.lock, (written + 1, written + 1))
    assert broken_pull.mend() and clone.lock.exists()
    clone.lock.unlink()
    assert clone.look() == (clone.one, "")


@needs_groups
def test_a_git_that_outlives_the_start_is_waited_for(clone: Clone, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    clone.at_m(f"cat '{tmp_path / 'gate'}' >&2; cat")
    start = subprocess.Popen([sys.executable, "-c", PULL, clone.top, clone.made], cwd=Path(__file__).parents[2])
    with (tmp_path / "gate").open("w"):  # once git reads from it
        start.kill()
        start.wait()
        with pytest.raises(Refused), slots.lock(clone.made, wait=False, name=broken_pull.LOCK):
            pass
    assert broken_pull.mend() and clone.look() == (clone.two, "")


@pytest.mark.parametrize("said", ["", "[", "[1, 2, 3]", '["--output=x", "HEAD", []]'])
def test_a_damaged_note_changes_nothing(said: str, clone: Clone) -> None:
    clone.note.write_text(said)
    assert broken_pull.mend() and clone.look() == (clone.one, "") and not clone.note.exists() and broken_pull.mend() is False


def test_without_git_a_start_goes_on(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended with a FileNotFoundError, as every later one."""
    clone.note.write_text("")
    monkeypatch.setenv("PATH", "")
    assert broken_pull.mend() is False and clone.note.exists()


def refuse_changed(clone: Clone) -> str:
    (clone.top / "a.txt").write_text("mine\n")
    return "Your local changes to the following files would be overwritten by merge: a.txt."


def refuse_untracked(clone: Clone) -> str:
    (clone.top / "fresh").mkdir()
    (clone.top / "fresh/new.txt").write_text("new\n")
    return "The following untracked working tree files would be overwritten by merge: fresh/new.txt."


def refuse_diverged(clone: Clone) -> str:
    clone.git("commit", "-q", "--allow-empty", "-m", "mine")
    return "Not possible to fast-forward, aborting."


@pytest.mark.parametrize("refuse", [refuse_changed, refuse_untracked, refuse_diverged])
def test_what_git_refuses_is_left_as_it_is_and_said_in_english(
    refuse: Callable[[Clone], str], clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the owner's git speaks another language no reason was found in what it said, and its last words were shown."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setattr(broken_pull, "_read_blob", lambda _: pytest.fail("a git is started for each file of the update"))
    why, before = refuse(clone), clone.look()
    done = broken_pull.pull(clone.made)
    assert done.returncode and update.find_reason(done.stderr) == why
    assert clone.look() == before and not clone.note.exists()
