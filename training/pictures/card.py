"""Write the scores into the table of the model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HEAD = "| what | measured |\n|---|---|\n"


def rows(scores: dict[str, Any]) -> str:
    """Return the table's rows, one per score."""
    return "".join(f"| {name.replace('_', ' ')} | {value} |\n" for name, value in scores.items())


def write_scores(readme: Path, scores: dict[str, Any]) -> None:
    """Replace the card's rows by these."""
    before, rest = readme.read_text(encoding="utf-8").split(HEAD)
    after = rest.split("\n\n", 1)[1]
    readme.write_text(f"{before}{HEAD}{rows(scores)}\n{after}", encoding="utf-8")
