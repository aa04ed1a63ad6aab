"""Embeddings (textual inversions) of a request: vectors that stand where their word stands in a prompt. The text encoders' weights stay as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from transformers import AddedToken

from app.base.path_checks import is_file
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.request import Lora
from app.engine.models import safetensors
from app.engine.models.lora_facts import VECTORS_MOST, describe
from app.engine.models.lora_header import refuse_lora

SLOTS_MOST: Final = 512
"""All embeddings of a request together have at most so many slots."""
_CLIPS: Final = (("text_encoder", "tokenizer", "clip_l"), ("text_encoder_2", "tokenizer_2", "clip_g"))
"""Each encoder has its tokenizer, and the file for two of them calls its vectors so."""


def _name_slot(place: int) -> str:
    return f"<|hearth{place}|>"


@dataclass(slots=True)
class _Slots:
    """The vectors that an encoder reads in place of its own at certain ids."""

    first: int
    rows: torch.Tensor = field(default_factory=lambda: torch.empty(0, 0))
    ids: torch.Tensor | None = None
    """The text that is being encoded has these words."""
    hooks: list[Any] = field(default_factory=list)

    def hide(self, _encoder: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Give the encoder ids that it knows, which it also searches for the end of the text."""
        ids = given[0] if given else named["input_ids"]
        self.ids = ids
        plain = torch.where(self._find(ids), 0, ids)
        return ((plain, *given[1:]), named) if given else (given, {**named, "input_ids": plain})

    def put(self, _table: Any, _given: Any, made: torch.Tensor) -> torch.Tensor:
        ids = self.ids
        if ids is None or ids.shape != made.shape[:-1]:
            return made
        here = self._find(ids).to(made.device)
        rows = self.rows.to(made)[(ids.to(made.device) - self.first).clamp(0, len(self.rows) - 1)]
        return torch.where(here[..., None], rows, made)

    def _find(self, ids: torch.Tensor) -> torch.Tensor:
        return (ids >= self.first) & (ids < self.first + len(self.rows))


class ActiveEmbeddings:
    def __init__(self) -> None:
        self._active: tuple[Lora, ...] = ()
        self._slots: dict[str, _Slots] = {}
        self._texts: list[tuple[re.Pattern[str], str]] = []
        """Each says what is looked for in a prompt, and what stands there instead."""

    def activate(self, pipe: Any, loras: Sequence[Lora]) -> bool:
        """Have exactly the embeddings among these; return whether anything changed."""
        wanted = tuple(each for each in loras if each.word)
        if wanted == self._active:
            return False
        self.close()
        read = [_read(pipe, each) for each in wanted]
        counts = [len(next(iter(vectors.values()))) for vectors in read]
        if sum(counts) > SLOTS_MOST:
            raise Trouble(
                say(
                    "embedding.many",
                    "These embeddings have {count} vectors together; {most} is the limit.",
                    count=sum(counts),
                    most=SLOTS_MOST,
                )
            )
        begins = [sum(counts[:place]) for place in range(len(counts))]
        for encoder, tokenizer, _ in _CLIPS if wanted else ():
            if getattr(pipe, encoder, None) is not None:
                rows = torch.cat([vectors[encoder] for vectors in read])
                self._slots[encoder] = _watch(getattr(pipe, encoder), getattr(pipe, tokenizer), rows)
        for each, begin, count in zip(wanted, begins, counts, strict=True):
            slots = " ".join(_name_slot(begin + place) for place in range(count))
            self._texts.append((re.compile(rf"(?<![\w.+-]){re.escape(each.word)}(?![\w+-])", re.IGNORECASE), slots))
        self._active = wanted
        return True

    def put_into(self, prompt: str) -> str:
        for word, slots in self._texts:
            prompt = word.sub(slots, prompt)
        return prompt

    def close(self) -> None:
        """Let the encoders read their own vectors again."""
        for slots in self._slots.values():
            for hook in slots.hooks:
                hook.remove()
        self._slots, self._texts, self._active = {}, [], ()


def _watch(encoder: Any, tokenizer: Any, rows: torch.Tensor) -> _Slots:
    """Have an encoder read these rows at the tokenizer's slots, which stay there when it no longer does: nobody writes their names."""
    tokenizer.add_tokens([AddedToken(_name_slot(place), normalized=False) for place in range(len(rows))])
    slots = _Slots(tokenizer.convert_tokens_to_ids(_name_slot(0)), rows)
    hooks = encoder.register_forward_pre_hook(slots.hide, with_kwargs=True), encoder.get_input_embeddings().register_forward_hook(slots.put)
    slots.hooks += hooks
    return slots


def _read(pipe: Any, asked: Lora) -> dict[str, torch.Tensor]:
    """Read the vectors for each encoder of a pipeline; raise a Trouble if they do not fit it."""
    path = Path(asked.path)
    if not is_file(path):
        raise Trouble(say("embedding.missing", "The embedding {name} was not found. Remove its word from the prompt.", name=path.stem))
    header = safetensors.read_whole_header(path)
    facts = describe(header.entries, header.words)
    found: dict[str, torch.Tensor] = {}
    if facts is not None and facts.kind == "embedding":
        with suppress(SafetensorError), safe_open(path, "pt") as file:
            found = {name: file.get_tensor(name).float() for name in header.entries}
    for name, each in found.items():
        if not bool(torch.isfinite(each).all()):
            raise refuse_lora(path, name, "not finite")
    clips = [(encoder, own) for encoder, _, own in _CLIPS if getattr(pipe, encoder, None) is not None]
    vectors = {encoder: _pick(found, own, getattr(pipe, encoder).config.hidden_size, alone=len(clips) == 1) for encoder, own in clips}
    whole = {encoder: each for encoder, each in vectors.items() if each is not None}
    if not hasattr(pipe, "unet") or len(whole) != len(clips) or len({len(each) for each in whole.values()}) != 1:
        raise Trouble(
            say(
                "embedding.misfit",
                "The embedding {name} was made for another model. Remove its word, or choose the model it was made for.",
                name=path.stem,
            )
        )
    return whole


def _pick(found: dict[str, torch.Tensor], own: str, width: int, alone: bool) -> torch.Tensor | None:
    """Return the vectors for an encoder of this width: those under its name, or the only ones that there are."""
    name = (next(iter(found)) if len(found) == 1 else "") if alone else own if own in found else ""
    vectors = found[name][None] if name and found[name].ndim == 1 else found.get(name)
    return vectors if vectors is not None and vectors.ndim == 2 and vectors.shape[1] == width and 0 < len(vectors) <= VECTORS_MOST else None
