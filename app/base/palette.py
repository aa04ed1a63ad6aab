"""The colours of every page of Hearth, light and dark. The standard library only: the page of a failed start needs them, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PALETTE: Final[Mapping[str, tuple[str, str]]] = {
    "ground": ("#faf6f0", "#161311"),
    "card": ("#fffdfa", "#1f1b18"),
    "line": ("#e7ddd0", "#3a332d"),
    "edge": ("#8f8273", "#82766a"),
    "ink": ("#221d18", "#f4ede4"),
    "soft": ("#6a6056", "#b3a799"),
    "ember": ("#b8420f", "#ff9159"),
    "ember-ground": ("#fbe9df", "#3a2217"),
    "on-ember": ("#ffffff", "#221108"),
    "right": ("#2b6a4d", "#7fd0a8"),
    "right-ground": ("#e3f1ea", "#17322a"),
    "careful": ("#8a5a00", "#f0c060"),
    "careful-ground": ("#fbf0d6", "#382c12"),
    "wrong": ("#a3271b", "#ff9a8d"),
    "wrong-ground": ("#fbe3e0", "#3b1c19"),
    "speaker1": ("#1f5f8b", "#8cc7f2"),
    "speaker1-ground": ("#e2eef7", "#172a38"),
    "speaker2": ("#7a3f91", "#d7a6ea"),
    "speaker2-ground": ("#f3e6f7", "#2f1c37"),
    "speaker3": ("#2f6b2a", "#a4d58a"),
    "speaker3-ground": ("#e6f2e2", "#1d2f18"),
    "speaker4": ("#7d4a12", "#f0b37a"),
    "speaker4-ground": ("#f8eadb", "#38250f"),
    "speaker5": ("#0f6262", "#7fd1d1"),
    "speaker5-ground": ("#dff1f1", "#123131"),
    "speaker6": ("#9b2c5a", "#f2a1c2"),
    "speaker6-ground": ("#f8e4ec", "#3a1a28"),
}
"""Each colour has a light and a dark form. Text on its ground keeps 4.5:1, `edge` on a card 3:1; a test holds both."""


def variables() -> str:
    """Return the colours as CSS for our own parts of Gradio's page, which says by a class whether it is light or dark."""
    return f":root{{{_values(0)}}}:root .dark,body.dark{{{_values(1)}}}"


def by_system() -> str:
    """Return the colours as CSS for pages without Gradio, which are light or dark as the system is."""
    return f":root{{color-scheme:light dark;{_values(0)}}}@media (prefers-color-scheme:dark){{:root{{{_values(1)}}}}}"


def _values(which: int) -> str:
    return "".join(f"--h-{name}:{pair[which]};" for name, pair in PALETTE.items())
