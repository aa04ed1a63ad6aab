"""Prompt weights as people write them, (word:1.2), and prompts longer than CLIP's 77 tokens, by way of the compel library."""

from __future__ import annotations

import re
from typing import Any, Final

from compel import CompelForSD, CompelForSDXL  # type: ignore[import-untyped]
from compel.prompt_parser import Conjunction, FlattenedPrompt  # type: ignore[import-untyped]

from app.engine.text.prompt_weights import pieces
from app.sentence import Sentence, say

_WRITTEN_OUT: Final = re.compile(r"\([^()]*:\s*(?:[0-4](?:\.\d+)?|\.\d+)\s*\)")


def has_weights(prompt: str) -> bool:
    return any(weight != 1 for _, weight in pieces(prompt))


def strip_weights(prompt: str) -> tuple[str, Sentence | None]:
    """For a model whose text encoder reads sentences: weights that were written out are taken out, and told."""
    if not _WRITTEN_OUT.search(prompt):
        return prompt, None
    said = say(
        "words.no-weights", "Weights such as (word:1.2) work with SD 1.5 and SDXL only; here they were left out."
    )
    return "".join(text for text, _ in pieces(prompt)), said


def embed_prompts(pipe: Any, prompt: str, negative: str) -> dict[str, Any]:
    """What a pipeline with CLIP alone is told: plain prompts where they say it all, else what its encoders made of the weights."""
    plain = ["".join(text for text, _ in pieces(each)) for each in (prompt, negative)]
    if not any(map(has_weights, (prompt, negative))) and not any(_exceeds_limit(pipe, each) for each in plain):
        return {"prompt": plain[0], "negative_prompt": plain[1] or None}
    kind = CompelForSDXL if hasattr(pipe, "text_encoder_2") else CompelForSD
    library = kind(pipe, device=pipe._execution_device)
    for compel in vars(library).values():  # one for each text encoder
        # compel has a syntax of its own; ours goes past its parser.
        compel.parse_prompt_string = lambda text: Conjunction([FlattenedPrompt(pieces(text) or [("", 1.0)])])
        provider = compel.conditioning_provider
        provider.text_encoder = _EncoderOnDevice(provider.text_encoder, pipe._execution_device)
    made = library(prompt, negative_prompt=negative)
    told = {"prompt_embeds": made.embeds, "negative_prompt_embeds": made.negative_embeds}
    if made.pooled_embeds is not None:
        told |= {
            "pooled_prompt_embeds": made.pooled_embeds,
            "negative_pooled_prompt_embeds": made.negative_pooled_embeds,
        }
    return told


class _EncoderOnDevice:
    """A text encoder that names the device on which it computes. compel moves what it made to where the weights lie, and those
    that come layer by layer lie nowhere."""

    def __init__(self, encoder: Any, device: Any) -> None:
        self._encoder, self.device = encoder, device

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._encoder(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


def _exceeds_limit(pipe: Any, prompt: str) -> bool:
    ids = pipe.tokenizer(prompt, truncation=False, verbose=False).input_ids
    return len(ids) > int(pipe.tokenizer.model_max_length)
