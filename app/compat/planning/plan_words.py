"""Word a plan's fields and values, for all places that show them: the Machine tab, doctor, README's table."""

from __future__ import annotations

import re
from typing import Final

from app.base.sentence import Sentence, Value, say
from app.compat.planning.types import AUTO, Chunk, Plan

FIELDS: Final[dict[str, Sentence]] = {
    "device": say("field.device", "device"),
    "dtype": say("field.dtype", "precision"),
    "score_dtype": say("field.score_dtype", "scores"),
    "gqa": say("field.gqa", "grouped heads"),
    "chunk_q": say("field.chunk_q", "chunk of queries"),
    "chunk_most": say("field.chunk_most", "largest chunk"),
    "chunk_k": say("field.chunk_k", "chunk of keys"),
    "budget_bytes": say("field.budget_bytes", "memory for scores"),
    "contiguous": say("field.contiguous", "layout"),
    "explicit_mask": say("field.explicit_mask", "causal mask"),
    "expand_mask": say("field.expand_mask", "mask"),
    "pad_value": say("field.pad_value", "value size"),
    "pad_heads": say("field.pad_heads", "head size"),
    "zero_masked_rows": say("field.zero_masked_rows", "masked rows"),
    "kernels": say("field.kernels", "kernels"),
    "ways": say("field.ways", "attention by shape"),
    "precision": say("field.precision", "component by component"),
    "offload": say("field.offload", "offload"),
    "vae": say("field.vae", "decoder"),
    "quantised": say("field.quantised", "quantised weights"),
    "product": say("field.product", "products of a row"),
    "row": say("field.row", "rows of speech"),
    "attention": say("field.attention", "attention"),
    "convolution": say("field.convolution", "convolutions"),
    "channels_last": say("field.channels_last", "order of numbers"),
    "environment": say("field.environment", "environment"),
}
OPTIONS: Final[dict[str, Sentence]] = {
    "yes": say("word.yes", "yes"),
    "no": say("word.no", "no"),
    "none": say("option.none", "none"),
    "automatic": say("word.automatic", "automatic"),
    "whole": say("option.whole", "in one piece"),
    "native": say("option.native", "native"),
    "folded": say("option.folded", "folded"),
    "expanded": say("option.expanded", "expanded"),
    "model": say("option.model", "one component at a time"),
    "group": say("option.group", "groups of layers"),
    "sequential": say("option.sequential", "one layer at a time"),
    "contiguous/yes": say("option.copied", "made contiguous"),
    "contiguous/no": say("option.as-it-lies", "unchanged"),
    "pad_heads/yes": say("option.padded", "padded"),
    "pad_heads/no": say("option.as-it-lies", "unchanged"),
    "score_dtype/kernel": say("option.kernel", "the kernel's own"),
    "kernels/own": say("word.own", "Hearth's own"),
    "convolution/library": say("option.library", "the card's library"),
    "convolution/torch": say("option.torch", "torch's own"),
    "channels_last/yes": say("option.channels-last", "channels last"),
    "channels_last/no": say("option.usual", "as usual"),
    "product/torch": say("option.torch", "torch's own"),
    "product/kernel": say("word.own", "Hearth's own"),
    "product/lines": say("option.lines", "line by line"),
    "row/calls": say("option.calls", "call by call"),
    "row/graph": say("option.graph", "captured graph"),
    "chunk_most/none": say("option.no-limit", "no limit"),
    "ways/rule": say("ways.by-rule", "by rule"),
}
"""These options have words of their own, for one field or for any; all others are shown by name in every language."""

SOURCES: Final[dict[str, Sentence]] = {
    "Hearth's rule": say("source.own", "Hearth's rule"),
    "this machine": say("source.here", "this machine"),
    "your choice": say("source.choice", "your choice"),
    "an earlier run on this machine": say("source.earlier", "an earlier run on this machine"),
    "the system's list of cards": say("source.cards", "the system's list of cards"),
    "measured on torch 2.13, Dia's decoding step": say("source.dia", "measured with torch 2.13, Dia decoding step"),
    "measured on torch 2.13": say("source.torch", "measured with torch 2.13"),
    "torch's source": say("source.torch-code", "torch's source"),
}
"""A source without words here names a thread or a file."""


def word_option(field: str, option: str) -> Value:
    return OPTIONS.get(f"{field}/{option}", OPTIONS.get(option, option))


def word_chunk(chunk: Chunk) -> Value:
    """Word a chunk: a number of queries, or automatic."""
    return OPTIONS["automatic"] if chunk == AUTO else chunk


def word_value(plan: Plan, field: str) -> Value:
    """Word the plan's value of one field."""
    value = getattr(plan, field)
    match field:
        case "budget_bytes":
            return f"{value >> 20} MiB"
        case "chunk_q":
            return word_chunk(value)
        case "chunk_k":
            return value or OPTIONS["automatic"]
        case "chunk_most":
            return value or OPTIONS["chunk_most/none"]
        case "score_dtype":
            return value or OPTIONS["score_dtype/kernel"]
        case "kernels":
            return value or OPTIONS["kernels/own"]
        case "ways":
            return say("ways.count", "{count} measured", count=len(value)) if value else OPTIONS["ways/rule"]
        case "vae":
            pixels = value.tile_pixels
            return say("vae.tiles", "tiles of {pixels} {pixels:pixel|pixels}", pixels=pixels) if pixels else OPTIONS["whole"]
        case "environment":
            return tuple(f"{name}={setting}" for name, setting in value)
        case "precision":
            return (
                "; ".join(
                    f"{each.part}: {each.compute}"
                    + (f" ({each.storage})" if each.storage != each.compute else "")
                    + (f", {each.device}" if each.device != plan.device else "")
                    for each in value
                )
                or OPTIONS["none"]
            )
    return word_option(field, {True: "yes", False: "no"}.get(value, str(value)))


def word_source(source: str) -> Value:
    owner, _, file = source.partition("'s ")
    if owner == "torch" and re.fullmatch(r"\w+\.\w+", file):
        return say("source.torch-file", "torch's {file}", file=file)
    return SOURCES.get(source, source)
