"""The page's own scripts and styles, each as one answer: a request of its own costs a file more than its bytes do."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"
FOLDERS: Final = {".js": STATIC / "js", ".css": STATIC / "css"}
FIRST: Final = STATIC / "early.js"
"""Stands in the page itself: it has to run before anything is drawn."""
ORDER: Final = {".js": ("hearth",), ".css": ("hearth", "gradio", "rooms")}
"""What must come before the rest. A script knows only hearth.js; a style may overrule the ones before it."""


@dataclass(frozen=True, slots=True)
class Bundle:
    name: str
    """Tells its content, so that a browser may keep it for good."""
    content: bytes


@cache
def bundle(suffix: str) -> Bundle:
    """Join all scripts, or all styles, one after the other."""
    place = {f"{stem}{suffix}": number for number, stem in enumerate(ORDER[suffix])}
    files = sorted(
        FOLDERS[suffix].glob(f"*{suffix}"), key=lambda each: (place.get(each.name, len(place)), each.name)
    )
    content = b"\n".join(each.read_bytes() for each in files)
    return Bundle(f"all-{hashlib.sha256(content).hexdigest()[:12]}{suffix}", content)


def head(variables: str) -> str:
    """What goes to the top of the page's head, before Gradio's own."""
    return (
        f'<style>{variables}</style><link rel="stylesheet" href="hearth/static/{bundle(".css").name}">'
        f'<script>{FIRST.read_text("utf-8")}</script><script defer src="hearth/static/{bundle(".js").name}"></script>'
    )
