"""Describe a failed start: the sentence, the report, and the file that passes both to start.py."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from app.base.languages import ENGLISH, languages, templates
from app.base.private_words import hide_private
from app.base.sentence import Sentence
from app.launcher.slots import data_folder

FILE_VARIABLE: Final = "HEARTH_FAILURE"
"""Hearth passes its failure to start.py in the file whose path this environment variable holds."""
TAIL_BYTES: Final = 16 << 10


@dataclass(frozen=True, slots=True)
class StartFailure:
    """What went wrong, in `words` by language; `report` is for a bug report, without folders and names of this machine."""

    words: Mapping[str, str]
    report: str

    def in_language(self, language: str) -> str:
        return self.words.get(language, self.words[ENGLISH])


def describe(report: str, *sentences: Sentence) -> StartFailure:
    """Describe a failure in every language."""
    words = {each: " ".join(part.translate(templates(each)) for part in sentences) for each in languages()}
    return StartFailure(words, hide_private(report))


def describe_untranslated(sentence: str, report: str) -> StartFailure:
    """Describe a failure by what a program said, in its own language."""
    return StartFailure({ENGLISH: sentence}, hide_private(report))


def read(file: Path) -> StartFailure | None:
    """Read the failure that Hearth wrote, if any."""
    try:
        said = json.loads(file.read_text("utf-8"))
        return StartFailure(**said)
    except (OSError, ValueError, TypeError):
        return None


def write(file: Path, failed: StartFailure) -> None:
    file.write_text(json.dumps(asdict(failed)), "utf-8")


def write_text_file(failed: StartFailure) -> Path:
    for folder in (data_folder() / "logs", Path(tempfile.gettempdir())):
        file = folder / "hearth-did-not-start.txt"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{failed.words[ENGLISH]}\n\n{failed.report}\n", "utf-8")
        except OSError:
            continue
        return file
    raise OSError("there is no folder to write to")


def read_tail(log: Path) -> str:
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


def find_sentence(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    ours = [line.removeprefix("hearth: ") for line in lines if line.startswith("hearth: ")]
    return (ours or lines or ["?"])[-1]
