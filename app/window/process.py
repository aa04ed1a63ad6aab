"""The process of Hearth's own window: told what to show by lines of JSON, and telling what was done with it by others.

It comes in: `open` (see `Order`), `title` with `badge` and `busy`, `front`, `stay`, `leave`; the end of the input closes the window.
It goes out: `stands` once the page is drawn, `geometry` after each move, `closed` with what is to become of Hearth.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypedDict

from app.launcher import slot_lock
from app.window import engines
from app.window.engines import Engine
from app.window.geometry import LEAST, Geometry, Screen, fit, read_geometry

NO_WINDOW: Final = 3
"""The process exits so where there is no display or no engine; then the browser serves."""
SETTLE_S: Final = 0.4
"""The window must have stood still so long before its place is told."""
ASK: Final = "Boolean(window.Hearth?.askToLeave && (Hearth.askToLeave(), true))"
GROUND: Final = "getComputedStyle(document.body).backgroundColor"


class Order(TypedDict):
    """What `open` says."""

    address: str
    geometry: dict[str, Any]
    ground: str
    """The page had this colour the last time; it is shown until the page is drawn."""
    storage: str
    icon: str
    words: dict[str, str]


class OwnWindow:
    def __init__(self, order: Order, engine: Engine, tell: Callable[[dict[str, Any]], None]) -> None:
        import webview

        self._tell, self._kind, self._closing, self._leaving = tell, engine.kind, Closing(), False
        self._timer: threading.Timer | None = None
        self._minimized = False
        self._moved: tuple[int, int] | None = None
        known = {Screen(each.x, each.y, each.width, each.height): each for each in engine.screens}
        geometry, screen = fit(read_geometry(order["geometry"]), list(known))
        self._maximized, self._last = geometry.maximized, geometry
        x, y = engines.place_on(self._kind, screen, geometry)
        window = webview.create_window(
            "Hearth",
            order["address"],
            x=x,
            y=y,
            width=geometry.width,
            height=geometry.height,
            screen=known[screen] if screen else None,
            maximized=geometry.maximized,
            min_size=LEAST,
            background_color=order["ground"],
            text_select=True,
            zoomable=True,
        )
        assert window is not None
        self.window = window
        self._address = order["address"]
        happens = window.events
        happens.before_show += lambda: engines.prepare(self._kind, self.window, self._address)
        happens.loaded += self._stand
        happens.closing += self._may_close
        happens.minimized += lambda: self._change(minimized=True)
        happens.maximized += lambda: self._change(maximized=True)
        happens.restored += lambda: self._change(minimized=False, maximized=False)
        happens.moved += self._note_move
        happens.resized += lambda *_: self._settle()

    def obey(self, line: dict[str, Any]) -> None:
        """Do what a line says; called from the thread that reads."""
        if "title" in line:
            self._closing.busy = line["busy"]
            self.window.set_title(line["title"])
            engines.set_badge(self._kind, line["badge"])
        if "stay" in line:
            self._closing.stay()
        if "front" in line:
            if self._minimized:
                self.window.restore()
            engines.bring_to_front(self._kind, self.window)
        if "leave" in line:
            self.leave()

    def leave(self) -> None:
        self._leaving = True
        self.window.destroy()

    def _stand(self) -> None:
        self._tell({"stands": True})
        self._settle()

    def _may_close(self) -> bool:
        """Answer the web view, on its own thread, which must not wait for the page."""
        if self._leaving:
            return True
        does = self._closing.press()
        if does == "ask":
            threading.Thread(target=self._ask, daemon=True).start()
            return False
        self._tell({"closed": does})
        return True

    def _ask(self) -> None:
        try:
            asks = self.window.evaluate_js(ASK)
        except Exception:  # Whatever the engine raises of a page that is not there: nobody can be asked.
            asks = False
        if not asks:
            self._tell({"closed": "background"})
            self.leave()

    def _change(self, minimized: bool | None = None, maximized: bool | None = None) -> None:
        self._minimized = self._minimized if minimized is None else minimized
        self._maximized = self._maximized if maximized is None else maximized
        self._settle()

    def _note_move(self, x: float, y: float) -> None:
        self._moved = int(x), int(y)
        self._settle()

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(SETTLE_S, self._tell_geometry)
        self._timer.daemon = True
        self._timer.start()

    def _tell_geometry(self) -> None:
        """Tell where it stands now; a maximized one keeps the place it came from."""
        if self._minimized or self._leaving:
            return
        if not self._maximized:
            x, y = engines.find_place(self._kind, self.window, self._moved)
            self._last = Geometry(x, y, self.window.width, self.window.height)
        try:
            ground = engines.read_colour(str(self.window.evaluate_js(GROUND)))
        except Exception:  # A page that is not there has none.
            ground = ""
        self._tell({"geometry": {**asdict(self._last), "maximized": self._maximized}} | ({"ground": ground} if ground else {}))


def main() -> int:
    """Make the engine ready at once, and the window as soon as it is known what to show."""
    slot_lock.hold()
    engines.prepare_system()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes into the log

    def tell(line: dict[str, Any]) -> None:
        try:
            print(json.dumps(line), file=out, flush=True)
        except OSError:  # Hearth is gone; the end of the input closes the window.
            return

    engine = engines.find_engine()
    if engine is None:
        return NO_WINDOW
    first = sys.stdin.readline()
    if not first:
        return 0
    order: Order = json.loads(first)["open"]
    own = OwnWindow(order, engine, tell)

    def listen() -> None:
        for line in sys.stdin:
            try:
                own.obey(json.loads(line))
            except Exception:  # A page that takes long has no title yet; what comes next is heard all the same.
                logging.getLogger("hearth").exception("not done: %s", line)
        own.leave()

    engines.run(engine.kind, listen, order["icon"], order["storage"], order["words"])
    out.close()
    os._exit(0)  # The thread that listens holds the input, without which Python could not end.


Does = Literal["quit", "ask", "background"]


@dataclass(slots=True)
class Closing:
    """Asks once: a second press while the question stands, or a page that cannot ask, goes on in the background, which loses nothing."""

    busy: bool = False
    """True: work goes on that the end of Hearth would interrupt."""
    asked: bool = False

    def press(self) -> Does:
        if not self.busy:
            return "quit"
        if self.asked:
            return "background"
        self.asked = True
        return "ask"

    def stay(self) -> None:
        """The question was answered with staying open: the next press asks again."""
        self.asked = False
