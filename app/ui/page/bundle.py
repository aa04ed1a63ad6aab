"""The page's own scripts and styles, each as one answer: a request of its own costs a file more than its bytes do."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

FACE: Final = Path(__file__).parent / "face"
FIRST: Final = "early.js"
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
    """All files of the face of one kind, one after the other."""
    place = {f"{stem}{suffix}": number for number, stem in enumerate(ORDER[suffix])}
    files = sorted(
        (each for each in FACE.glob(f"*{suffix}") if each.name != FIRST),
        key=lambda each: (place.get(each.name, len(place)), each.name),
    )
    content = b"\n".join(each.read_bytes() for each in files)
    return Bundle(f"all-{hashlib.sha256(content).hexdigest()[:12]}{suffix}", content)


def head(variables: str) -> str:
    """What goes to the top of the page's head, before Gradio's own."""
    return (
        f'<style>{variables}</style><link rel="stylesheet" href="hearth/face/{bundle(".css").name}">'
        f'<script>{(FACE / FIRST).read_text("utf-8")}</script><script defer src="hearth/face/{bundle(".js").name}"></script>'
    )
