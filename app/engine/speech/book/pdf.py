"""Read a PDF: a process of its own takes it apart, bounded in memory and time; its printed pages become a flowing text."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

import psutil

from app.base.extras import install_command
from app.base.foreign_formats import Locked, TooLarge
from app.base.sentence import say, say_to_all
from app.base.trouble import BadRequest
from app.engine.speech.book.book import Book
from app.engine.speech.book.headed_text import cut_at_headings
from app.engine.speech.book.printed_pages import Entry, PrintedLine, flow

FILE_MOST_BYTES: Final = 500_000_000
MEMORY_MOST_BYTES: Final = 1 << 30
SECONDS_MOST: Final = 300.0
"""It may work this long, however busy the computer is; a page takes 10 to 50 ms."""
ANSWER_MOST_BYTES: Final = 100_000_000
LOOK_S: Final = 0.02
_FILE_NAME: Final = re.compile(r"microsoft word - |untitled|.*\.(?:docx?|rtf|odt|tex|indd|qxd|pdf|html?)$", re.IGNORECASE)
"""Programs write these as a title that nobody gave."""
TOP: Final = Path(__file__).parents[4]
RUN: Final = "import sys; sys.path.insert(0, sys.argv[1]); from app.engine.speech.book.pdf_process import main; main()"


def read_pdf(file: IO[bytes], name: str) -> Book:
    if find_spec("pypdf") is None:
        raise BadRequest(
            say_to_all(
                "book.pdf-extra",
                "To read a PDF, Hearth needs the library pypdf, which is missing here. Save {name} as EPUB, DOCX or text. {advice}",
                name=name,
                advice=say("owner.pdf", "Or add it (0.4 MB) on the Machine tab, or by: {command}", command=install_command("pdf")),
            )
        )
    found = _take_apart(file)
    if found.get("locked"):
        raise Locked(name)
    if "fault" in found:
        raise OSError(found["fault"])
    pages = [[PrintedLine(text, size, left, low, page) for text, size, left, low in lines] for page, lines in enumerate(found["pages"])]
    lost = found["lost"]
    note = (
        say_to_all(
            "book.pages-lost",
            "{count} {count:page|pages} of it cannot be read and {count:is|are} left out: {pages}.",
            count=len(lost),
            pages=tuple(str(each + 1) for each in lost[:20]),
        )
        if lost
        else None
    )
    title = "" if _FILE_NAME.match(found["title"]) else found["title"]
    return cut_at_headings(flow(pages, [Entry(*each) for each in found["contents"]]), Book((), title, found["author"], note=note))


def _take_apart(file: IO[bytes]) -> dict[str, Any]:
    """Return what the process tells of a file; end it where it takes more than a book does."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as told:
        if file.seek(0, 2) > FILE_MOST_BYTES:
            raise TooLarge
        file.seek(0)
        shutil.copyfileobj(file, given)
        given.seek(0)
        options: dict[str, Any] = {}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NO_WINDOW}
        command = [sys.executable, "-X", "utf8", "-c", RUN, str(TOP)]
        with subprocess.Popen(command, stdin=given, stdout=told, stderr=subprocess.DEVNULL, **options) as process:
            try:
                while process.poll() is None:
                    time.sleep(LOOK_S)
                    if _takes_too_much(process.pid):
                        raise TooLarge
            finally:
                process.kill()
        if told.seek(0, 2) > ANSWER_MOST_BYTES:
            raise TooLarge
        told.seek(0)
        try:
            found: dict[str, Any] = json.load(told)
        except ValueError as fault:
            raise OSError(f"its reader ended with {process.returncode}") from fault
        return found


def _takes_too_much(process: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        known = psutil.Process(process)
        worked = known.cpu_times()
        return known.memory_info().rss > MEMORY_MOST_BYTES or worked.user + worked.system > SECONDS_MOST
    return False
