"""Embed prompts with weights, (word:1.2), or more than CLIP's 77 tokens, with the compel library."""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import torch
from compel import CompelForSD, CompelForSDXL  # type: ignore[import-untyped]
from compel.prompt_parser import Conjunction, FlattenedPrompt  # type: ignore[import-untyped]

from app.base.sentence import Sentence
from app.engine.pictures.prompts.prompt_weights import NO_WEIGHTS, drop_weights, has_weights, split_weights, writes_weights

_PICTURES: Final = "num_images_per_prompt"
_KEPT_MOST: Final = 4
"""Each takes a few megabytes: one row of 4,096 numbers for each of at most 512 tokens."""


def strip_weights(prompt: str) -> tuple[str, Sentence | None]:
    """Remove written weights for a text encoder that cannot use them; return also a sentence if there were any."""
    return (drop_weights(prompt), NO_WEIGHTS) if writes_weights(prompt) else (prompt, None)


def embed_prompts(pipe: Any, prompt: str, negative: str, kept: KeptEmbeddings) -> dict[str, Any]:
    """Return a CLIP pipeline's prompt arguments: plain prompts where they suffice, else embeddings by compel."""
    plain = [drop_weights(each) for each in (prompt, negative)]
    if not any(map(has_weights, (prompt, negative))) and not any(_exceeds_limit(pipe, each) for each in plain):
        return {"prompt": plain[0], "negative_prompt": plain[1] or None}
    compel_class = CompelForSDXL if hasattr(pipe, "text_encoder_2") else CompelForSD
    library = compel_class(pipe, device=pipe._execution_device)
    for compel in vars(library).values():  # one for each text encoder
        # Replace compel's parser: its syntax differs from Hearth's.
        compel.parse_prompt_string = lambda text: Conjunction([FlattenedPrompt(split_weights(text) or [("", 1.0)])])
        provider = compel.conditioning_provider
        provider.text_encoder = _EncoderOnDevice(provider.text_encoder, pipe._execution_device)
    made = kept.make(repr(("compel", prompt, negative)), lambda: library(prompt, negative_prompt=negative))
    arguments = {"prompt_embeds": made.embeds, "negative_prompt_embeds": made.negative_embeds}
    if made.pooled_embeds is not None:
        arguments |= {"pooled_prompt_embeds": made.pooled_embeds, "negative_pooled_prompt_embeds": made.negative_pooled_embeds}
    return arguments


class _EncoderOnDevice:
    """A text encoder that reports the device it computes on: compel moves its result to the weights' device, which offloaded
    weights do not have."""

    def __init__(self, encoder: Any, device: Any) -> None:
        self._encoder, self.device = encoder, device

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._encoder(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


def _exceeds_limit(pipe: Any, prompt: str) -> bool:
    ids = pipe.tokenizer(prompt, truncation=False, verbose=False).input_ids
    return len(ids) > int(pipe.tokenizer.model_max_length)


class KeptEmbeddings:
    """What the text encoders made of the latest prompts: a batch, and another job with the same words, encodes once."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, Any] = OrderedDict()

    def forget(self) -> None:
        """Forget all, because a LoRA may have changed the encoders."""
        self._made.clear()

    def keep(self, pipe: Any) -> None:
        """Have a pipeline's encode_prompt() give what it made before for the same arguments."""
        encode = pipe.encode_prompt
        signature = inspect.signature(encode)

        @functools.wraps(encode)
        def encode_once(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)  # the prompt of one request, whatever number of pictures it gets
            if any(isinstance(each, torch.Tensor) for each in given.arguments.values()):
                return encode(*args, **kwargs)  # embeddings already
            pictures = given.arguments.get(_PICTURES) or 1
            if pictures > 1:
                given.arguments[_PICTURES] = 1
            made = self.make(repr(sorted(given.arguments.items())), lambda: encode(*given.args, **given.kwargs))
            return tuple(_repeat(each, pictures) for each in made) if pictures > 1 else made

        pipe.encode_prompt = encode_once

    def make(self, key: str, encode: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = encode()
            if len(self._made) > _KEPT_MOST:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return self._made[key]


def _repeat(made: Any, pictures: int) -> Any:
    """Repeat a prompt's row for each picture; what has more rows (positions in the text) is the same for all."""
    return made.repeat_interleave(pictures, 0) if isinstance(made, torch.Tensor) and len(made) == 1 else made
