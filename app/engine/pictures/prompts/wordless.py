"""Tell a prompt without a word, as one of emoji. Pure."""

from __future__ import annotations

from app.base.sentence import Sentence, say


def note_wordless(prompt: str) -> Sentence | None:
    """Say what may come of a prompt without a letter or a figure, as one of emoji."""
    if not prompt.strip() or any(each.isalnum() for each in prompt):
        return None
    return say(
        "prompt.no-words",
        "The prompt has no words, and models learn from words: the picture may have nothing to do with {signs}.",
        signs=prompt.strip()[:12],
    )
