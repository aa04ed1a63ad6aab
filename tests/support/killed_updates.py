"""A copy of Hearth with two releases of itself, whose updates are killed at any of their steps, and environments that are made at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.launcher import slots
from tests.support.checkout import Checkout
from tests.support.release_server import Server, believe, set_version

needs_groups = pytest.mark.skipif(os.name == "nt", reason="groups of processes are POSIX's")

KILLED = """
import os, signal, sys
place = os.environ.get("KILL_AT", "")
if place and any(each.endswith("start.py") for each in sys.orig_argv):
    part, left = place.split(":")
    mine = any(each in sys.orig_argv for each in ("prepare", "renew")) is (part == "child")
    left = int(left) if mine else 0
    CHANGES = {"os.rename"}
    before = os.environ["KILL_BEFORE"]
    if before != "rename":
        CHANGES |= {"open", "os.remove", "os.rmdir", "os.mkdir", "subprocess.Popen"}
    def hook(event, words):
        global left
        here = ".venv" in str(words) or (event == "subprocess.Popen" and words[0] == "git")
        here = here and not (before == "unpacked" and ".half/" in str(words[0]))
        if left and event in CHANGES and here and (event != "open" or (words[2] or 0) & (os.O_WRONLY | os.O_RDWR)):
            left -= 1
            if not left:
                os.killpg(0, signal.SIGKILL)
    sys.addaudithook(hook)
"""
"""As a sitecustomize, it ends start.py, with all that it started, just before one of its changes to the environment's folder, or before a command
that makes one, git's too. KILL_BEFORE: "rename" is what puts something in its place, "any" every change, "unpacked" the same but for the files of an
archive."""

LIGHT_VENV = """
import pathlib, sys
slot = pathlib.Path(sys.argv[-1])
packages = slot / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
(packages / "pip").mkdir(parents=True)
(slot / "bin").mkdir()
(slot / "pyvenv.cfg").write_text(f"home = {pathlib.Path(sys.executable).resolve().parent}\\ninclude-system-site-packages = false\\n")
(packages / "pip/__init__.py").touch()
(slot / "bin/python").symlink_to(pathlib.Path(sys.executable).resolve())
(packages / "pip/__main__.py").write_text(pathlib.Path(__file__).with_name("light_pip.txt").read_text())
"""
LIGHT_PIP = """
import os, pathlib, re, sys, sysconfig, zipfile
here = pathlib.Path(os.environ["PIP_FIND_LINKS"])
words = sys.argv[2:]
pins = dict(re.findall(r"^(.+)==(.+)$", pathlib.Path(words.pop(words.index("-c") + 1)).read_text(), re.M)) if "-c" in words else {}
if sys.argv[1] == "install" and "--dry-run" not in words:
    for each in words:
        name, _, version = each.partition("==")
        if not each.startswith("-") and each != "raw":
            wheel = here / f"{name}-{(version or pins.get(name, '1.0')).partition('+')[0]}-py3-none-any.whl"
            sys.exit(f"ERROR: there is no {wheel.name}") if not wheel.is_file() else zipfile.ZipFile(wheel).extractall(sysconfig.get_path("purelib"))
"""
"""As modules of the copy's own these make an environment in a tenth of a second: what matters here is where start.py is killed, not pip."""

PRESSED = """
import pathlib, sys
sys.path.insert(0, str(pathlib.Path(sys.argv[1]).parent))
from app.launcher import slots, update
update.back(slots.find_folder())
"""
"""What the window's process does for its button, in the code that is current."""


class Copy(Checkout):
    """A checkout as it comes out of an archive: without git, with a server of releases."""

    server: Server

    def believe_in(self, server: Server) -> None:
        """Be version 0.1.0 and ask this server for newer ones."""
        self.server = server
        set_version(self.top, "0.1.0")
        believe(self.top, server.address)
        self.make_first()

    def make_first(self) -> None:
        """Make the first environment, start once, as whoever updates has, and be killed where a test says so."""
        (self.elsewhere / "sitecustomize.py").write_text(KILLED)
        slot = self.top / ".venv/a"  # with nothing in it, which these need as little as its making
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", slot], check=True)
        (slot / "hearth.json").write_text(json.dumps({"digest": slots.read_requirements(self.top).digest}))
        (self.top / ".venv/current").write_text("a")
        self.look()

    def make_light(self) -> None:
        """Have environments made at once, and torch's indices refuse at once."""
        self.env |= {"https_proxy": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1"}
        (self.elsewhere / "venv").mkdir()
        (self.elsewhere / "venv/__init__.py").touch()
        (self.elsewhere / "venv/__main__.py").write_text(LIGHT_VENV)
        (self.elsewhere / "venv/light_pip.txt").write_text(LIGHT_PIP)

    def look(self) -> tuple[str, str]:
        """Start Hearth and return which version's code answered, and in which slot; whatever happened before, it does."""
        done = self.start("speak")
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
        said = json.loads(done.stdout)
        version = "0.2.0" if "new" in said else "0.1.0"
        assert Path(said["file"]).parents[1] == self.find_code(version), "the code that it says"
        return version, Path(said["prefix"]).name

    def find_code(self, version: str) -> Path:
        return self.top / ".venv/versions/0.2.0" if version == "0.2.0" and not (self.top / ".git").exists() else self.top

    def forget(self) -> None:
        """Make it as it was before any update."""
        folder = self.top / ".venv"
        if (self.top / ".git").exists():
            self.git("reset", "-q", "--hard", "one")
            shutil.rmtree(folder / "b", ignore_errors=True)
        for name in ("ready", "back"):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / "versions", ignore_errors=True)
        (folder / "current").write_text("a")

    def kill(self, at: str, before: str, *words: str, pressed: bool = False) -> bool:
        """Run a command, by default an update, or the window's way back, that is killed at a step; return whether it was, or had no such step any more."""
        code = slots.find_code(self.top / ".venv", self.top) / "start.py"
        command = ["-c", PRESSED, str(code)] if pressed else [str(self.top / "start.py"), *(words or ("update",))]
        child = subprocess.Popen(
            [sys.executable, *command],
            cwd=self.elsewhere,
            start_new_session=True,
            env={**self.env, "KILL_AT": at, "KILL_BEFORE": before},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        _, said = child.communicate(timeout=200)
        assert child.returncode in (0, -signal.SIGKILL), said
        return child.returncode != 0
