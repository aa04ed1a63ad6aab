"""Prompt weights as people write them, (word:1.2), and prompts longer than CLIP's 77 tokens, by way of the compel library."""

from __future__ import annotations

import re
from typing import Any, Final

from compel import CompelForSD, CompelForSDXL  # type: ignore[import-untyped]
from compel.prompt_parser import Conjunction, FlattenedPrompt  # type: ignore[import-untyped]

from app.sentence import Sentence, say

STRONGER: Final = 1.1
"""What bare brackets do: (word) once, ((word)) twice, [word] the other way."""
_MARK: Final = re.compile(r"\\[()\[\]\\]|[()\[\]]|:\s*([0-4](?:\.\d+)?|\.\d+)\s*\)|[^\\()\[\]:]+|:|\\")
"""Weights go to 4.99: (at 12:30) is a time of day."""
_WRITTEN_OUT: Final = re.compile(r"\([^()]*:\s*(?:[0-4](?:\.\d+)?|\.\d+)\s*\)")


def pieces(prompt: str) -> list[tuple[str, float]]:
    """Text with its weight, in order. Brackets that have no partner are text."""
    found: list[tuple[str, float]] = []
    opened: list[tuple[str, int]] = []
    for match in _MARK.finditer(prompt):
        token, number = match.group(), match.group(1)
        if token in ("(", "["):
            opened.append((token, len(found)))
            found.append((token, 1.0))
        elif number is not None:
            if not _close(found, opened, "(", float(number)):
                found.append((token, 1.0))
        elif token == ")":
            if not _close(found, opened, "(", STRONGER):
                found.append((token, 1.0))
        elif token == "]":
            if not _close(found, opened, "[", 1 / STRONGER):
                found.append((token, 1.0))
        else:
            found.append((token[1:] if token[0] == "\\" and len(token) > 1 else token, 1.0))
    merged: list[tuple[str, float]] = []
    for text, weight in found:
        if merged and merged[-1][1] == weight:
            merged[-1] = (merged[-1][0] + text, weight)
        else:
            merged.append((text, weight))
    return merged


def _close(found: list[tuple[str, float]], opened: list[tuple[str, int]], bracket: str, weight: float) -> bool:
    if not opened or opened[-1][0] != bracket:
        return False
    start = opened.pop()[1]
    found[start:] = [(text, round(each * weight, 6)) for text, each in found[start + 1 :]]
    return True


def weighted(prompt: str) -> bool:
    return any(weight != 1 for _, weight in pieces(prompt))


def without_weights(prompt: str) -> tuple[str, Sentence | None]:
    """For a model whose text encoder reads sentences: weights that were written out are taken out, and told."""
    if not _WRITTEN_OUT.search(prompt):
        return prompt, None
    said = say(
        "words.no-weights", "Weights such as (word:1.2) work with SD 1.5 and SDXL only; here they were left out."
    )
    return "".join(text for text, _ in pieces(prompt)), said


def embedded(pipe: Any, prompt: str, negative: str) -> dict[str, Any]:
    """What a pipeline with CLIP alone is told: plain prompts where they say it all, else what its encoders made of the weights."""
    plain = ["".join(text for text, _ in pieces(each)) for each in (prompt, negative)]
    if not any(map(weighted, (prompt, negative))) and not any(_long(pipe, each) for each in plain):
        return {"prompt": plain[0], "negative_prompt": plain[1] or None}
    kind = CompelForSDXL if hasattr(pipe, "text_encoder_2") else CompelForSD
    library = kind(pipe, device=pipe._execution_device)
    for compel in vars(library).values():  # one for each text encoder
        # compel has a syntax of its own; ours goes past its parser.
        compel.parse_prompt_string = lambda text: Conjunction([FlattenedPrompt(pieces(text) or [("", 1.0)])])
    made = library(prompt, negative_prompt=negative)
    told = {"prompt_embeds": made.embeds, "negative_prompt_embeds": made.negative_embeds}
    if made.pooled_embeds is not None:
        told |= {
            "pooled_prompt_embeds": made.pooled_embeds,
            "negative_pooled_prompt_embeds": made.negative_pooled_embeds,
        }
    return told


def _long(pipe: Any, prompt: str) -> bool:
    ids = pipe.tokenizer(prompt, truncation=False, verbose=False).input_ids
    return len(ids) > int(pipe.tokenizer.model_max_length)
