"""The starter painter's domain: it says which words it doesn't know rather than painting something else."""

from __future__ import annotations

import json
import re
from pathlib import Path

from app.engine.painting.pieces import pieces
from app.sentence import Trouble, say


def check(folder: Path, prompt: str) -> None:
    """Its card lists every word that it was taught. Weights are no words."""
    card = json.loads((folder / "starter.json").read_text("utf-8"))
    taught = set(card["words"])
    asked = "".join(text for text, _ in pieces(prompt)).lower()
    strange = [word for word in dict.fromkeys(re.findall(r"\w+", asked)) if word not in taught]
    if strange:
        raise Trouble(
            say(
                "starter.strange-words",
                "The starter painter was never taught: {words}. Try: {example}. Stable Diffusion 1.5 paints anything.",
                words=", ".join(strange[:8]),
                example=card["examples"][len(prompt) % len(card["examples"])],
            ),
            cure="use:sd15",
        )
