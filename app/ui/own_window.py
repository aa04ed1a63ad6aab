"""Hearth's own window, as the server sees it: start its process, tell it what goes on, reopen it, and fall back to the browser.

The process itself is app/window. It is closed with Hearth, and Hearth ends with it unless work goes on in the background.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.languages import system_language, templates
from app.base.palette import PALETTE
from app.base.paths import Home, assets
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.progress import Progress
from app.ui.page.translate import join, language
from app.ui.single_instance import FRONT_PATH
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route
from app.window.words import WORDS

SAVED: Final = "window"
"""The settings keep its position under this key."""
LOOK_S: Final = 1.0
"""Looks at what goes on are so far apart; the title tells it."""
STANDS_S: Final = 60.0
"""A window may take so long until its page is there; then the browser serves."""
CLOSES_S: Final = 5.0
"""A window may take so long to close with Hearth."""
ACTS: Final = ("stay", "background", "quit")
"""These answer the question whether to close."""
ICONS: Final = {"darwin": "hearth.icns", "win32": "hearth.ico"}
TOP: Final = Path(__file__).parents[2]
RUN: Final = "import sys; sys.path.insert(0, sys.argv[1]); from app.window.process import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Work:
    """What the end of Hearth would interrupt."""

    jobs: int = 0
    downloads: int = 0
    shared: bool = False
    lent: bool = False

    def describe(self) -> tuple[Sentence, ...]:
        """Say what goes on, and ask; nothing where nothing does."""
        facts = (
            (self.jobs, say("leave.jobs", "{count} {count:job is|jobs are} not finished.", count=self.jobs)),
            (self.downloads, say("leave.downloads", "{count} {count:download is|downloads are} running.", count=self.downloads)),
            (self.shared, say("leave.shared", "Hearth is shared with guests.")),
            (self.lent, say("leave.lent", "This computer helps another one.")),
        )
        told = tuple(sentence for holds, sentence in facts if holds)
        return (*told, say("leave.ask", "Continue in the background? Starting Hearth again brings the window back.")) if told else ()


def find_work(desk: Desk, is_shared: Callable[[], bool]) -> Work:
    jobs = len(desk.keeper.journal.list_waiting()) + bool(desk.keeper.state.job)
    downloads = sum(each.state in ("queued", "running") for each in desk.downloads.list_status())
    return Work(jobs, downloads, is_shared(), desk.others.lending is not None)


def measure_percent(progress: Progress | None) -> int | None:
    """Return how far a job is, as the page's bar shows it; None where that is not known."""
    if progress is None or progress.step is None or progress.end is not None:
        return None
    return int(100 * progress.share)


def write_title(percent: int | None) -> str:
    return "Hearth" if percent is None else f"{percent}% · Hearth"


class OwnWindow:
    """At most one window. Its methods may be called from any thread."""

    def __init__(self, home: Home, spoken: str | None = None) -> None:
        self._home, self._spoken = home, spoken or system_language()
        self._lock = threading.RLock()
        self._process: subprocess.Popen[str] | None = None
        self._desk: Desk | None = None
        self._address = ""
        self._find_work: Callable[[], Work] = Work
        self._meant = self._background = False
        """The first is set if the window was closed on purpose, the second if Hearth goes on without it until its work is done."""
        self.ended = False
        """Hearth was left by closing the window."""

    def start(self) -> None:
        """Start the process, which loads its engine while the server is built."""
        options: dict[str, Any] = {"start_new_session": True}  # Ctrl+C is for the server, which closes the window
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NO_WINDOW}
        command = [sys.executable, "-I", "-X", "utf8", "-c", RUN, str(TOP)]
        try:
            with (self._home.logs / "window.log").open("wb") as log:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, encoding="utf-8", **options
                )
        except OSError as fault:
            logging.getLogger("hearth").warning("no window of its own (%s)", fault)
        self._meant = self._background = False

    def open(self, address: str, desk: Desk, is_shared: Callable[[], bool]) -> None:
        """Show the page, and from now on what goes on."""
        self._address, self._desk = address, desk
        self._find_work = lambda: find_work(desk, is_shared)
        self._show()
        threading.Thread(target=self._watch, name="own window's title", daemon=True).start()

    def front(self) -> bool:
        """Bring the window to the front, or back; False while Hearth is about to end, or shows itself in the browser."""
        with self._lock:
            if self.ended or self._desk is None:
                return False
            if self._process is not None:
                self._send({"front": True})
            elif self._background:
                self.start()
                self._show()
            return self._process is not None

    def answer(self, act: str) -> None:
        """Do what was answered to the question whether to close."""
        if act == "quit":
            self._end()  # first: whoever holds the lock may wait for the window, or for the disk
        with self._lock:
            if act == "stay":
                self._send({"stay": True})
                return
            self._meant, self._background = True, act == "background"
            self._send({"leave": True})

    def describe_work(self) -> tuple[Sentence, ...]:
        return self._find_work().describe()

    def close(self) -> None:
        """Close the window with Hearth; one that does not close in time is ended."""
        self._meant, process = True, self._process
        if process is None or process.stdin is None:
            return
        late = threading.Timer(CLOSES_S, process.kill)
        late.daemon = True
        late.start()  # before the pipe is closed, which waits for a window that reads no more
        with suppress(OSError, ValueError):
            process.stdin.close()
        process.wait()
        late.cancel()

    def _show(self) -> None:
        assert self._desk is not None
        if self._process is None:
            webbrowser.open(self._address)
            return
        kept: Mapping[str, Any] = self._desk.settings.get(SAVED, {})
        words = {name: each.translate(templates(self._spoken)) for name, each in WORDS.items()}
        self._send(
            {
                "open": {
                    "address": self._address,
                    "geometry": dict(kept),
                    "ground": kept.get("ground", PALETTE["ground"][0]),
                    "words": words,
                    "storage": str(self._home.root / "window"),
                    "icon": str(assets() / "icons" / ICONS.get(sys.platform, "icon-256.png")),
                }
            }
        )
        threading.Thread(target=self._listen, args=(self._process,), name="own window", daemon=True).start()

    def _send(self, line: Mapping[str, Any]) -> None:
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                with suppress(OSError, ValueError):  # It just ended; the thread that listens to it sees to that.
                    self._process.stdin.write(json.dumps(line) + "\n")
                    self._process.stdin.flush()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Hear what the window tells until it ends. One that ends by itself, or never stands, leaves the page to the browser."""
        late = threading.Timer(STANDS_S, process.kill)
        late.daemon = True
        late.start()
        assert process.stdout is not None
        for line in process.stdout:
            told = json.loads(line)
            if "stands" in told:
                late.cancel()
            if "geometry" in told:
                self._keep(told)
            if "closed" in told:
                self._note_closed(told["closed"])
        late.cancel()
        code = process.wait()
        if self._desk is not None:
            self._desk.notifying.note_left()
        with self._lock:
            if self._process is process:
                self._process = None
            meant = self._meant
        if not meant:
            logging.getLogger("hearth").warning("no window of its own (%s): see window.log; the browser serves", code)
            webbrowser.open(self._address)

    def _note_closed(self, does: str) -> None:
        goes_on = does == "background" or self._find_work() != Work()  # begun in the last moment
        with self._lock:
            self._meant, self._background = True, goes_on
        if not goes_on:
            self._end()

    def _keep(self, told: Mapping[str, Any]) -> None:
        assert self._desk is not None
        ground = {"ground": told["ground"]} if "ground" in told else {}
        with suppress(Trouble):  # A full disk forgets where a window stood.
            self._desk.settings.change(SAVED, {}, lambda kept: {**kept, **told["geometry"], **ground})

    def _watch(self) -> None:
        """Tell the window what goes on; end Hearth once nothing does and the window is closed."""
        desk = self._desk
        assert desk is not None
        shown: dict[str, Any] = {}
        told_to: subprocess.Popen[str] | None = None
        while not desk.leaving.wait(LOOK_S):
            job, work = desk.keeper.state.job, self._find_work()
            percent = None
            with suppress(Trouble):  # A job whose record is gone has no progress.
                percent = measure_percent(desk.keeper.get_progress(job)) if job else None
            line = {"title": write_title(percent), "badge": "" if percent is None else f"{percent}%", "busy": work != Work()}
            with self._lock:
                if line != shown or told_to is not self._process:
                    shown, told_to = line, self._process
                    self._send(line)
                if self._background and not line["busy"] and self._process is None:
                    self._end()

    def _end(self) -> None:
        self.ended = True
        if self._desk is not None:
            self._desk.leaving.set()


class WindowAsked(Asked):
    act: Word


def routes(own: OwnWindow) -> list[Route]:
    """Return the routes of the question whether to close."""
    return [
        owner_route(own, "/hearth/window", answer_question),
        owner_route(own, "/hearth/window/{act}", answer_act, ["POST"], WindowAsked),
    ]


def front_route(own: OwnWindow) -> Route:
    """Return the route by which a second start asks for the window."""
    return owner_route(own, f"/{FRONT_PATH}", answer_front, ["POST"])


def answer_question(own: OwnWindow, request: Request) -> Response:
    return JSONResponse({"text": join(language(request), *own.describe_work())})


def answer_act(own: OwnWindow, request: Request, asked: WindowAsked) -> Response:
    if asked.act not in ACTS:
        return Response(status_code=404)
    own.answer(asked.act)
    return JSONResponse({})


def answer_front(own: OwnWindow, request: Request) -> Response:
    return JSONResponse({"window": own.front()})
