"""Bundle the page's scripts and its styles into one file each: a request costs more than the bytes."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from app.base.languages import languages

STATIC: Final = Path(__file__).parent / "static"
FOLDERS: Final = {".js": STATIC / "js", ".css": STATIC / "css"}
FIRST: Final = STATIC / "early.js"
"""Inlined in the page, as it must run before anything is drawn."""
ORDER: Final = {".js": ("refusals", "hearth"), ".css": ("hearth", "gradio", "rooms")}
"""Files that come first. Scripts depend on hearth.js alone, and on the fetch of refusals.js; styles may override earlier ones."""
SCRIPT_SENTENCE: Final = re.compile(r"""\bt\(\s*"([^"]+)",\s*"((?:[^"\\]|\\.)*)\"""")


@dataclass(frozen=True, slots=True)
class Bundle:
    name: str
    """Holds a hash of the content, so that browsers may cache it forever."""
    content: bytes


@cache
def bundle(suffix: str) -> Bundle:
    """Join all scripts, or all styles, one after the other."""
    place = {f"{stem}{suffix}": number for number, stem in enumerate(ORDER[suffix])}
    files = sorted(FOLDERS[suffix].glob(f"*{suffix}"), key=lambda each: (place.get(each.name, len(place)), each.name))
    content = b"\n".join(each.read_bytes() for each in files)
    return Bundle(f"all-{hashlib.sha256(content).hexdigest()[:12]}{suffix}", content)


def head(variables: str) -> str:
    """Return what goes to the top of the page's head, before Gradio's own."""
    tags = json.dumps({code: each.tags[0] for code, each in languages().items()})
    return (
        f'<style>{variables}</style><link rel="stylesheet" href="hearth/static/{bundle(".css").name}">'
        f"<script data-languages='{tags}'>{FIRST.read_text('utf-8')}</script>"
        f'<script defer src="hearth/static/{bundle(".js").name}"></script>'
    )


def list_script_sentences() -> dict[str, str]:
    """Collect every t("key", "English") of the scripts."""
    scripts = (file.read_text("utf-8") for file in sorted(STATIC.rglob("*.js")))
    return {key: english for source in scripts for key, english in SCRIPT_SENTENCE.findall(source)}
