"""Writes the scores where a person reads them: the table of the model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HEAD = "| size | what | share |\n|---|---|---|\n"


def rows(scores: dict[str, Any]) -> str:
    """The table's rows, one a score."""
    return "".join(
        f"| {size} | {name.replace('_', ' ')} | {value:.3f} |\n"
        for size in ("256px",)
        for name, value in scores[size].items()
        if name.endswith("_right")
    )


def write_scores(readme: Path, scores: dict[str, Any]) -> None:
    """Puts these rows in place of those that the card has."""
    before, rest = readme.read_text(encoding="utf-8").split(HEAD)
    after = rest.split("\n\n", 1)[1]
    readme.write_text(f"{before}{HEAD}{rows(scores)}\n{after}", encoding="utf-8")
