"""Write the scores into the table of the model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HEAD = "| size | what | share |\n|---|---|---|\n"


def rows(scores: dict[str, Any]) -> str:
    """Return the table's rows, one per score."""
    return "".join(
        f"| {size} | {name.replace('_', ' ')} | {value:.3f} |\n"
        for size in ("256px",)
        for name, value in scores[size].items()
        if name.endswith("_right")
    )


def write_scores(readme: Path, scores: dict[str, Any]) -> None:
    """Replace the card's rows by these."""
    before, rest = readme.read_text(encoding="utf-8").split(HEAD)
    after = rest.split("\n\n", 1)[1]
    readme.write_text(f"{before}{HEAD}{rows(scores)}\n{after}", encoding="utf-8")
