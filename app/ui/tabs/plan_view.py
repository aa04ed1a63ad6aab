"""The plan as the Machine tab draws it: each field with its choice, reason, source and rejected options."""

from __future__ import annotations

import re
from typing import Final

from app.compat.planning.types import Plan
from app.sentence import Sentence, say
from app.ui.page.translate import Language, text, translate
from app.ui.page.views import View

FIELDS: Final[dict[str, Sentence]] = {
    "device": say("field.device", "device"), "dtype": say("field.dtype", "precision"), "score_dtype": say("field.score_dtype", "scores"),
    "gqa": say("field.gqa", "grouped heads"), "chunk_q": say("field.chunk_q", "query chunk"), "chunk_most": say("field.chunk_most", "chunk limit"), "chunk_k": say("field.chunk_k", "key chunk"),
    "budget_bytes": say("field.budget_bytes", "score memory limit"), "contiguous": say("field.contiguous", "memory layout"),
    "explicit_mask": say("field.explicit_mask", "causal mask"), "expand_mask": say("field.expand_mask", "mask"),
    "pad_value": say("field.pad_value", "value width"), "zero_masked_rows": say("field.zero_masked_rows", "fully masked rows"),
    "kernels": say("field.kernels", "kernels"), "ways": say("field.ways", "attention methods"), "precision": say("field.precision", "precision per component"), "offload": say("field.offload", "offload"),
    "vae": say("field.vae", "decoder"), "quantised": say("field.quantised", "quantised weights"), "attention": say("field.attention", "attention"),
    "environment": say("field.environment", "environment"),
}  # fmt: skip


SHOWN_FIRST = ("dtype", "score_dtype", "gqa", "chunk_q", "kernels", "contiguous", "offload", "vae", "quantised")


def plan_view(plan: Plan, spoken: Language) -> View:
    """Return the plan as a table: each choice, its reason and source, and what was rejected for which reasons."""
    rejected: dict[str, list[View]] = {}
    for each in plan.rejected:
        objections = [
            {
                "text": translate(reason.sentence, spoken),
                "source": source_text(reason.source, spoken),
                "link": source_link(reason.source),
            }
            for reason in each.objections
        ]
        rejected.setdefault(each.field, []).append(
            {"option": option_text(each.field, each.option, spoken), "objections": objections}
        )
    rows = [
        {
            "field": reason.field, "what": translate(FIELDS[reason.field], spoken), "choice": chosen_text(plan, reason.field, spoken),
            "because": translate(reason.sentence, spoken), "source": source_text(reason.source, spoken), "link": source_link(reason.source),
            "rejected": rejected.get(reason.field, []), "first": reason.field in SHOWN_FIRST,
        }
        for reason in plan.because
    ]  # fmt: skip
    rows.sort(key=lambda row: SHOWN_FIRST.index(row["field"]) if row["first"] else len(SHOWN_FIRST))
    return {
        "rows": rows, "warnings": [translate(each.sentence, spoken) for each in plan.warnings],
        "retired": [translate(each.sentence, spoken) for each in plan.retired],
    }  # fmt: skip


def chosen_text(plan: Plan, field: str, spoken: Language) -> str:
    value = getattr(plan, field)
    if field == "precision":
        return "; ".join(
            f"{part.part}: {part.compute}" + (f" ({part.storage})" if part.storage != part.compute else "")
            for part in value
        )
    if field == "vae":
        return (
            translate(say("vae.tiles", "{pixels}-pixel tiles", pixels=value.tile_pixels), spoken)
            if value.tile_pixels
            else text("vae.in-one", "not tiled", spoken)
        )
    if field == "budget_bytes":
        return f"{value / (1 << 30):.2f} GB"
    if field == "ways":
        return translate(say("ways.count", "{count} measured", count=len(value)), spoken) if value else text("ways.by-rule", "by rule", spoken)
    if field == "environment":
        return ", ".join(f"{name}={setting}" for name, setting in value)
    if isinstance(value, bool):
        return option_text(field, "yes" if value else "no", spoken)
    if isinstance(value, tuple):
        return ", ".join(value) or text("word.own", "Hearth's own", spoken)
    return text("word.automatic", "automatic", spoken) if value is None else option_text(field, str(value), spoken)


OPTIONS: dict[str, Sentence] = {
    "yes": say("word.yes", "yes"), "no": say("word.no", "no"), "none": say("option.none", "none"), "automatic": say("word.automatic", "automatic"),
    "whole": say("option.whole", "not split"), "native": say("option.native", "native"), "folded": say("option.folded", "folded"),
    "expanded": say("option.expanded", "expanded"), "model": say("option.model", "one component at a time"), "group": say("option.group", "one group of layers at a time"),
    "sequential": say("option.sequential", "one layer at a time"), "contiguous=yes": say("option.copied", "made contiguous"),
    "contiguous=no": say("option.as-it-lies", "unchanged"),
}  # fmt: skip
"""Options with a plain word; the others are names, the same in every language."""

SOURCES: dict[str, Sentence] = {
    "Hearth's rule": say("source.own", "Hearth's rule"), "this machine": say("source.here", "this machine"),
    "measured on torch 2.13, Dia's decoding step": say("source.dia", "measured with torch 2.13, Dia decoding step"),
    "measured on torch 2.13": say("source.torch", "measured with torch 2.13"),
}  # fmt: skip
"""Sources in words; the others name a thread or a file."""


def option_text(field: str, option: str, spoken: Language) -> str:
    found = OPTIONS.get(f"{field}={option}", OPTIONS.get(option))
    return translate(found, spoken) if found else option


def source_text(source: str, spoken: Language) -> str:
    return translate(SOURCES[source], spoken) if source in SOURCES else source


def source_link(source: str) -> str:
    """Link to a source: the thread of a number, PyTorch's unless a project is named before it."""
    found = re.search(
        r"(?:(ComfyUI|InvokeAI|A1111|diffusers|Dia|transformers|uv|DirectML)\s+(?:PR\s+)?)?#(\d+)", source
    )
    if not found:
        return source if source.startswith("https://") else ""
    return f"https://github.com/{REPOSITORIES.get(found[1] or '', 'pytorch/pytorch')}/issues/{found[2]}"


REPOSITORIES = {
    "ComfyUI": "comfyanonymous/ComfyUI", "InvokeAI": "invoke-ai/InvokeAI", "A1111": "AUTOMATIC1111/stable-diffusion-webui",
    "diffusers": "huggingface/diffusers", "Dia": "nari-labs/dia", "transformers": "huggingface/transformers", "uv": "astral-sh/uv",
    "DirectML": "microsoft/DirectML",
}  # fmt: skip
