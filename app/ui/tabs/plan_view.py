"""The plan as the Machine tab draws it: each field with its choice, reason, source and rejected options."""

from __future__ import annotations

import re

from app.base.sentence import Sentence, say
from app.compat.planning.options import LEARNED_HERE
from app.compat.planning.plan_words import FIELDS, word_option, word_value
from app.compat.planning.types import Plan, Reason
from app.ui.page.translate import Language, translate
from app.ui.page.view_types.machine import ChoiceView, ObjectionView, PlanView, RejectedView

SHOWN_FIRST = ("device", "dtype", "score_dtype", "gqa", "chunk_q", "kernels", "contiguous", "offload", "vae", "quantised", "product", "row")


def plan_view(plan: Plan, spoken: Language) -> PlanView:
    """Return the plan as a table: each choice, its reason and source, and what was rejected for which reasons."""
    rejected: dict[str, list[RejectedView]] = {}
    for each in plan.rejected:
        objections: list[ObjectionView] = [
            {"text": translate(reason.sentence, spoken), "source": source_text(reason.source, spoken), "link": source_link(reason.source)}
            for reason in each.objections
        ]
        rejected.setdefault(each.field, []).append(
            {"option": translate(word_option(each.field, each.option), spoken), "objections": objections}
        )
    rows: list[ChoiceView] = [
        {
            "field": reason.field,
            "what": translate(FIELDS[reason.field], spoken),
            "choice": translate(word_value(plan, reason.field), spoken),
            "because": translate(reason.sentence, spoken),
            "source": source_text(reason.source, spoken),
            "link": source_link(reason.source),
            "rejected": rejected.get(reason.field, []),
            "first": _comes_first(plan, reason),
        }
        for reason in plan.because
    ]
    rows.sort(key=lambda row: SHOWN_FIRST.index(row["field"]) if row["first"] else len(SHOWN_FIRST))
    return {
        "rows": rows,
        "warnings": [translate(each.sentence, spoken) for each in plan.warnings],
        "retired": [translate(each.sentence, spoken) for each in plan.retired],
    }


def _comes_first(plan: Plan, reason: Reason) -> bool:
    """Tell whether a person should see it at once; a device only where it is not used, rows of speech and their products
    only where torch alone does not make them."""
    unusual = {"device": reason.slower, "product": plan.product != "torch", "row": plan.row == "graph"}
    return reason.field in SHOWN_FIRST and unusual.get(reason.field, True)


SOURCES: dict[str, Sentence] = {
    "Hearth's rule": say("source.own", "Hearth's rule"),
    "this machine": say("source.here", "this machine"),
    "your choice": say("source.choice", "your choice"),
    LEARNED_HERE: say("source.earlier", "an earlier run on this machine"),
    "the system's list of cards": say("source.cards", "the system's list of cards"),
    "measured on torch 2.13, Dia's decoding step": say("source.dia", "measured with torch 2.13, Dia decoding step"),
    "measured on torch 2.13": say("source.torch", "measured with torch 2.13"),
    "torch's source": say("source.torch-code", "torch's source"),
}
"""A source without words here names a thread or a file."""


def source_text(source: str, spoken: Language) -> str:
    owner, _, file = source.partition("'s ")
    if owner == "torch" and re.fullmatch(r"\w+\.\w+", file):
        return translate(say("source.torch-file", "torch's {file}", file=file), spoken)
    return translate(SOURCES[source], spoken) if source in SOURCES else source


def source_link(source: str) -> str:
    """Link to a source: the thread of a number, PyTorch's unless a project is named before it."""
    found = re.search(r"(?:(ComfyUI|InvokeAI|A1111|diffusers|Dia|transformers|uv|DirectML)\s+(?:PR\s+)?)?#(\d+)", source)
    if not found:
        return source if source.startswith("https://") else ""
    return f"https://github.com/{REPOSITORIES.get(found[1] or '', 'pytorch/pytorch')}/issues/{found[2]}"


REPOSITORIES = {
    "ComfyUI": "comfyanonymous/ComfyUI", "InvokeAI": "invoke-ai/InvokeAI", "A1111": "AUTOMATIC1111/stable-diffusion-webui",
    "diffusers": "huggingface/diffusers", "Dia": "nari-labs/dia", "transformers": "huggingface/transformers", "uv": "astral-sh/uv",
    "DirectML": "microsoft/DirectML",
}  # fmt: skip
