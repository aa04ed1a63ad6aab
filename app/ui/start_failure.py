"""Write the page that explains a failed start, with the log and the way out; set up that log."""

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
from app.base.clean_words import CleanFormatter
from app.base.languages import ENGLISH
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.events import Failed
from app.launcher import failure, repair_page, slots
from app.ui.page.translate import Language

LOG_BYTES: Final = 1 << 20
LOGS_KEPT: Final = 3
LOG: Final = "\n-- log --\n"
UNKNOWN: Final = say("start.unknown", "Hearth could not start. The report below shows the reason.")


def start_log(home: Home) -> logging.Handler:
    """Log warnings to a rotating file, but no requests: they would show what people do."""
    handler = RotatingFileHandler(home.logs / "hearth.log", maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8")
    handler.setFormatter(CleanFormatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    return handler


def write_page(home: Home, fault: BaseException, spoken: Language) -> Path:
    """Write the page, in the temporary folder if home is not writable, and pass the failure to start.py if it started
    us."""
    found = describe(home, fault)
    logging.getLogger("hearth").error("the start failed: %s\n%s", found.words[ENGLISH], found.report.partition(LOG)[0])
    if file_name := os.environ.get(failure.FILE_VARIABLE):
        failure.write(Path(file_name), found)
    body = repair_page.render_file(found, spoken, repair_command())
    for folder in (home.logs, Path(tempfile.gettempdir())):
        try:
            file = folder / "hearth-did-not-start.html"
            file.write_text(body, "utf-8")
        except OSError:
            continue
        return file
    raise OSError("there is no folder to write to")


def hand_over(home: Home, failed: Failed) -> None:
    """Pass a failed engine start to start.py, which shows the reason, offers Repair, and opens Hearth again."""
    failure.write(Path(os.environ[failure.FILE_VARIABLE]), describe(home, failed.trouble, "engine.log"))


def describe(home: Home, fault: BaseException, log: str = "hearth.log") -> failure.StartFailure:
    """Word a failure, with a report for a bug."""
    known = explain(home, fault)
    sentences, trace = (known, "") if known else ((UNKNOWN,), "".join(traceback.format_exception(fault)))
    facts = f"hearth {__version__}, Python {platform.python_version()}, {platform.platform()}"
    report = f"{facts}\n\n{trace}{LOG}{failure.read_tail(home.logs / log)}"
    return failure.describe(report, *sentences)


def explain(home: Home, fault: BaseException) -> tuple[Sentence, ...]:
    """Say what stands in the way and what to do; nothing where that is not known."""
    if isinstance(fault, Trouble):
        return fault.sentence, *fault.objections
    if isinstance(fault, OSError) and home.root in Path(fault.filename or "").parents:
        return (home.word_unusable(fault),)
    return ()


def repair_command() -> str:
    start = slots.find_place() / "start.py"
    if start.is_file():
        return f'"{sys.executable}" "{start}" repair'
    return f'"{sys.executable}" -m pip install --force-reinstall hearth'


def is_supervised() -> bool:
    """Return whether start.py runs us and shows failures itself, with Repair."""
    return failure.FILE_VARIABLE in os.environ
