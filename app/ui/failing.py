"""A start that fails still leaves something to see: a page with the sentence, the log and the way out. And the log itself, which rotates."""

from __future__ import annotations

import html
import logging
import platform
import sys
import tempfile
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from app import __version__
from app.paths import Home
from app.sentence import Trouble
from app.ui.theme import variables
from app.ui.words import Language, text, told

LOG_BYTES: Final = 1 << 20
LOGS_KEPT: Final = 3
TAIL_BYTES: Final = 16 << 10


def logged(place: Home) -> logging.Handler:
    """Warnings of the server and of the window. No requests: they would tell what people do."""
    handler = RotatingFileHandler(place.logs / "hearth.log", maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8")  # fmt: skip
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    return handler


def page(place: Home, fault: BaseException, spoken: Language) -> Path:
    """Where it lies; in the system's folder for passing things if home cannot be written to."""
    sentence = told(fault.sentence, spoken) if isinstance(fault, Trouble) else text("failing.unknown", "Hearth could not start. What went wrong stands below.", spoken)  # fmt: skip
    trace = "" if isinstance(fault, Trouble) else "".join(traceback.format_exception(fault))
    logging.getLogger("hearth").error("the start failed: %s\n%s", sentence, trace)
    body = written(sentence, trace, tail(place.logs / "hearth.log"), spoken)
    for folder in (place.logs, Path(tempfile.gettempdir())):
        try:
            file = folder / "hearth-did-not-start.html"
            file.write_text(body, "utf-8")
        except OSError:
            continue
        return file
    raise OSError("there is no folder to write to")


def written(sentence: str, trace: str, log: str, spoken: Language) -> str:
    start = Path(__file__).parent.parent.parent / "start.py"
    repair = f'"{sys.executable}" "{start}" repair' if start.is_file() else f'"{sys.executable}" -m pip install --force-reinstall hearth'  # fmt: skip
    words = {
        "title": text("failing.title", "Hearth did not start", spoken),
        "repair": text("failing.repair", "Repair makes its environment anew; your creations and models stay. Copy this line into a terminal:", spoken),
        "log": text("failing.log", "For a bug report", spoken),
    }  # fmt: skip
    facts = f"hearth {__version__}, Python {platform.python_version()}, {platform.platform()}"
    e = html.escape
    return f"""<!doctype html><html lang="{"zh-CN" if spoken == "zh" else "en"}"><meta charset="utf-8"><title>{e(words["title"])}</title>
<meta name="viewport" content="width=device-width"><style>{variables()}
body {{ margin: 0; background: var(--h-ground); color: var(--h-ink); font: 16px/1.5 system-ui, sans-serif; }} main {{ max-width: 760px; margin: 8vh auto; padding: 0 24px; }}
pre {{ background: var(--h-card); border: 1px solid var(--h-line); border-radius: 12px; padding: 14px; overflow: auto; font-size: 13px; }}</style>
<main><h1>{e(words["title"])}</h1><p>{e(sentence)}</p><p>{e(words["repair"])}</p><pre>{e(repair)}</pre>
<details><summary>{e(words["log"])}</summary><pre>{e(facts)}\n\n{e(without_home(trace))}\n{e(without_home(log))}</pre></details></main></html>"""


def without_home(words: str) -> str:
    """So that a copied report does not tell who somebody is."""
    return words.replace(str(Path.home()), "~")


def tail(log: Path) -> str:
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")
