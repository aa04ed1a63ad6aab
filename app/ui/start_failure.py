"""A start that fails still leaves something to see: a page with the sentence, the log and the way out. And the log itself, which rotates."""

from __future__ import annotations

import logging
import os
import platform
import sys
import tempfile
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from app import __version__
from app.engine.jobs.events import Failed
from app.launcher import failure, repair_page
from app.paths import Home
from app.sentence import Trouble
from app.ui.page.translate import Language, text, translate

LOG_BYTES: Final = 1 << 20
LOGS_KEPT: Final = 3
LOG: Final = "\n-- log --\n"


def logged(place: Home) -> logging.Handler:
    """Warnings of the server and of the window. No requests: they would tell what people do."""
    handler = RotatingFileHandler(place.logs / "hearth.log", maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8")  # fmt: skip
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    return handler


def left(place: Home, fault: BaseException, spoken: Language) -> Path:
    """The page, where it lies: in the system's folder for passing things if home cannot be written to. Also told to start.py, if that is there."""
    found = describe(place, fault)
    logging.getLogger("hearth").error("the start failed: %s\n%s", found.english, found.report.partition(LOG)[0])
    if keeper := os.environ.get(failure.LEFT):
        failure.leave(Path(keeper), found)
    body = repair_page.with_line(found, spoken == "zh", line())
    for folder in (place.logs, Path(tempfile.gettempdir())):
        try:
            file = folder / "hearth-did-not-start.html"
            file.write_text(body, "utf-8")
        except OSError:
            continue
        return file
    raise OSError("there is no folder to write to")


def handed(place: Home, failed: Failed) -> None:
    """To start.py: once this process has ended it shows why the engine does not start, with Repair, and then opens Hearth again."""
    failure.leave(Path(os.environ[failure.LEFT]), describe(place, Trouble(failed.sentence, *failed.objections), "engine.log"))


def describe(place: Home, fault: BaseException, log: str = "hearth.log") -> failure.Failure:
    """So that a copied report does not tell who somebody is, home is written as ~."""
    english, chinese = (
        " ".join(translate(part, each) for part in (fault.sentence, *fault.objections)) if isinstance(fault, Trouble) else text("failing.unknown", "Hearth could not start. What went wrong stands below.", each)
        for each in ("en", "zh")
    )  # fmt: skip
    trace = "" if isinstance(fault, Trouble) else "".join(traceback.format_exception(fault))
    facts = f"hearth {__version__}, Python {platform.python_version()}, {platform.platform()}"
    report = f"{facts}\n\n{trace}{LOG}{failure.tail(place.logs / log)}"
    return failure.Failure(english, chinese, report.replace(str(Path.home()), "~"))


def line() -> str:
    start = Path(__file__).parent.parent.parent / "start.py"
    if start.is_file():
        return f'"{sys.executable}" "{start}" repair'
    return f'"{sys.executable}" -m pip install --force-reinstall hearth'


def watched() -> bool:
    """Whether start.py shows what went wrong, with more to press."""
    return failure.LEFT in os.environ
