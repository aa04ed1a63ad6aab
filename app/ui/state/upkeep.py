"""Hearth's upkeep from its own window: whether a newer version may be looked for and is there, and what is made beside the window for its next start."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from app.base.extras import EXTRAS, can_add
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.launcher import failure, new_environment, releases, slots
from app.launcher.beside import Beside
from app.launcher.update import back as undo
from app.ui.state.settings import Settings

SAVED: Final = "updates"
"""The settings hold under it whether Hearth may look, when it did, and what it found."""
ASSISTANTS: Final = "assistants"
"""The settings hold under it whether assistants (MCP) are let in, from the next start on."""
DAY_S: Final = 24 * 3600.0
BUSY: Final = say("upkeep.working", "Hearth is already preparing something. Wait for that, or cancel it.")


class Upkeep:
    """Any thread may call. Only the owner's routes do."""

    def __init__(self, settings: Settings, leaving: threading.Event) -> None:
        self._settings, self._leaving, self._lock = settings, leaving, threading.Lock()
        self.folder = Path(sys.prefix).parent
        """The slots lie in it, where `can_add`."""
        self.beside = Beside(self.folder)
        self.looking = False
        self.told: Sentence | None = None
        """It says what came of the last look since the window was opened."""
        self.assistants_address = ""
        """They find Hearth there; empty while they are not let in."""
        self.assistants_fixed: Sentence | None = None
        """It says why the owner's wish for them counts for nothing in this run."""
        self.restarts = False
        """True: start.py is to open Hearth anew once this process has ended."""

    def explain_fixed(self) -> Sentence | None:
        """Say who else updates this copy, or why nobody does; None where Hearth does so itself."""
        if not can_add():
            return say("update.pip", "Hearth was installed with pip, and pip updates it: {command}", command="pip install --upgrade hearth")
        if (slots.find_place() / ".git").exists():
            return say(
                "upkeep.clone", "This folder is a git clone. With Hearth closed, {hearth} update fetches what is newer and tests it."
            )
        return releases.explain_unknown()

    @property
    def saved(self) -> dict[str, Any]:
        return dict(self._settings.get(SAVED, {}))

    @property
    def place(self) -> str:
        return urlsplit(releases.read_address()).netloc

    def let_look(self, allowed: bool) -> None:
        self._settings.change(SAVED, {}, lambda saved: {**saved, "looks": allowed})
        if allowed:
            self.look()

    def look_if_due(self) -> None:
        """Look once a day, if the owner has allowed that."""
        saved = self.saved
        if saved.get("looks") and not 0 <= time.time() - saved.get("at", 0.0) < DAY_S and self.explain_fixed() is None:
            self.look()

    def look(self) -> None:
        """Ask for a newer version, in the background."""
        with self._lock:
            if self.looking or self.explain_fixed() is not None:
                return
            self.looking = True
        threading.Thread(target=self._look, name="look for a newer version", daemon=True).start()

    def _look(self) -> None:
        try:
            self._settings.change(SAVED, {}, lambda saved: {**saved, "at": time.time()})  # first: also one that fails is one a day
            offer = releases.find_newer()
            found = {"version": offer.version, "notes": offer.notes, "bytes": offer.bytes} if offer is not None else {"version": ""}
            self._settings.change(SAVED, {}, lambda saved: {**saved, **found})
            self.told = None if offer is not None else say("upkeep.newest", "This is the newest version.")
        except Trouble as fault:
            self.told = fault.sentence
        finally:
            self.looking = False

    def find_newer(self) -> dict[str, Any] | None:
        """Return the version that was found, while it is newer than this one."""
        saved = self.saved
        return saved if releases.is_newer(saved.get("version", "")) else None

    def find_ready(self) -> dict[str, str]:
        """Return what the next start takes."""
        return slots.read_ready(self.folder) if can_add() else {}

    def update(self) -> None:
        if self.explain_fixed() is None and not self.beside.start("update"):
            raise Trouble(BUSY)

    def add(self, extra: str) -> None:
        missing = can_add() and any(each.name == extra and not each.is_here for each in EXTRAS)
        if missing and not self.beside.start("environment", extra):
            raise Trouble(BUSY)

    @property
    def wants_assistants(self) -> bool:
        return bool(self._settings.get(ASSISTANTS))

    def let_assistants(self, allowed: bool) -> None:
        self._settings.put({ASSISTANTS: allowed})

    def measure_environment(self) -> int:
        """Return how many bytes another environment takes."""
        build = str(slots.read_stamp(Path(sys.prefix)).get("build", ""))
        return new_environment.SPACE.get(build[:2], new_environment.PLAIN_BYTES)

    def can_go_back(self) -> bool:
        """Return whether an update can be undone from the window. A clone's would change the code that runs."""
        return can_add() and self.explain_fixed() is None and slots.leads_back(self.folder)

    def go_back(self) -> None:
        """Undo the last update, then end this process, so that start.py opens the version before."""
        if self.beside.describe():
            raise Trouble(BUSY)
        self._require_start()
        if self.can_go_back():
            undo(self.folder)
            self.restart()

    def restart(self) -> None:
        """End this process, so that start.py opens Hearth anew with what is ready."""
        self._require_start()
        self.restarts = True
        self._leaving.set()

    @staticmethod
    def _require_start() -> None:
        if failure.FILE_VARIABLE not in os.environ:  # start.py does not run this process
            raise Trouble(say("upkeep.by-hand", "Close Hearth and start it again: the next start takes what is ready."))

    def close(self) -> None:
        self.beside.stop()
