"""The starter painter's domain: it names what it was never taught, and the nearest caption that it was, before anything is painted."""

from __future__ import annotations

import json
import re
from pathlib import Path

from app.engine.painting.nearest import nearest
from app.engine.painting.pieces import pieces
from app.sentence import Trouble, say


def check(folder: Path, prompt: str) -> None:
    """Its card lists every word and form that it was taught. Weights are no words."""
    card = json.loads((folder / "starter.json").read_text("utf-8"))
    taught = set(card["words"])
    asked = "".join(text for text, _ in pieces(prompt)).lower()
    strange = [word for word in dict.fromkeys(re.findall(r"\w+", asked)) if word not in taught]
    near, learned = nearest(asked, card["grammar"]) if "grammar" in card else ("", True)
    cure = f"nearest:{near}" if near else "use:sd15"
    offered = near or card["examples"][len(prompt) % len(card["examples"])]
    if strange:
        raise Trouble(
            say(
                "starter.strange-words",
                "The starter painter was never taught: {words}. Try: {example}. Stable Diffusion 1.5 paints anything.",
                words=", ".join(strange[:8]),
                example=offered,
            ),
            cure=cure,
        )
    if asked.strip() and not learned:
        raise Trouble(
            say(
                "starter.strange-form",
                "The starter painter knows these words, but not put together like this, and would paint something else. "
                "Nearest it can paint: {example}. Stable Diffusion 1.5 paints anything.",
                example=offered,
            ),
            cure=cure,
        )
