"""What Machine draws: this machine in words, the plan with its reasons, the curve of chunk sizes, the self-test. Plain values for the page."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re
from collections.abc import Mapping

from app import __version__
from app.compat.machine.chunk_curve import Curve, read_curve
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Verdict
from app.compat.planning.fallbacks import learned
from app.compat.planning.memory_formulas import COPIES_OF_SCORES, scores_bytes
from app.compat.planning.types import AUTO, Chunk, Need, Plan
from app.engine.models import catalog
from app.engine.models.model import need
from app.engine.models.planned import differs, named
from app.sentence import Sentence, Trouble, say
from app.ui.page.translate import Language, text, translate
from app.ui.page.views import View, end_view, remarks_view
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER


def tab_view(desk: Desk, model: str, pretended: str, spoken: Language) -> View:
    """All of the tab for one model, on this machine or on a pretended one."""
    hardware = desk.machine.find_hardware(pretended)
    if hardware is None:
        return {}
    asked = need(catalog.find(model))
    view: View = {
        "words": machine_words(hardware, spoken), "pretended": hardware.pretended,
        "selftest": selftest_view(desk.machine.load_verdicts()),
    }  # fmt: skip
    choice = desk.machine.read_choice(OWNER)
    try:
        plan = desk.machine.plan(model, choice, pretended)
    except Trouble as trouble:
        return view | {"trouble": " ".join(translate(each, spoken) for each in (trouble.sentence, *trouble.objections))}
    elsewhere = desk.machine.is_elsewhere(pretended)
    measured = None if elsewhere else read_curve(desk.keeper.home, model)
    taught = () if elsewhere else learned(desk.machine.load_verdicts(), model)
    note = desk.machine.explain_stand_in(model, plan, pretended) or (None if elsewhere else desk.machine.explain_running(model, plan))
    return view | {
        "plan": plan_view(plan, spoken), "note": translate(note, spoken) if note is not None else "",
        "learned": [translate(each.sentence, spoken) for each in taught],
        "curve": curve_view(asked, plan, measured, choice.chunk, spoken),
    }


def measuring_view(desk: Desk, spoken: Language) -> View:
    """How far the self-test or Tune is."""
    progress = desk.keeper.progress(desk.measuring.job)
    step = progress.step
    return {
        "kind": desk.measuring.kind, "done": step.done if step else 0, "total": step.total if step else 0,
        "share": step.done / step.total if step and step.total else 0.0, "eta_s": step.eta_s if step else None, "said": remarks_view(progress, spoken), "end": end_view(progress, spoken),
    }  # fmt: skip


def write_report(desk: Desk) -> str:
    """For a bug report: the machine, the plan, the verdicts that failed. No private paths, no prompts."""
    hardware = desk.keeper.state.hardware
    failed = [each.subject for each in desk.machine.load_verdicts().values() if not each.passed]
    told_facts = dataclasses.asdict(hardware) if hardware else {}
    trouble = desk.keeper.state.trouble
    return json.dumps(
        {"hearth": __version__, "machine": told_facts, "choice": dataclasses.asdict(desk.machine.read_choice(OWNER)), "failed": failed, "last_death": str(trouble.sentence) if trouble else ""},
        indent=1,
    )  # fmt: skip


def warnings_html(plan: Plan, spoken: Language) -> str:
    """What is unwise about a choice that works."""
    lines = "".join(f"<li>{html.escape(translate(each.sentence, spoken))}</li>" for each in plan.warnings)
    return f'<ul class="h-problems">{lines}</ul>' if lines else ""


def saved_html(spoken: Language) -> str:
    return f'<p class="h-soft" role="status">{html.escape(text("machine.kept", "Saved. Applies from the next job.", spoken))}</p>'


FIELDS: dict[str, Sentence] = {
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
    """The plan as a table: what was decided, why with its source, and what was rejected for which reasons."""
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
"""Those that have a plain word; the rest are names, the same in every language."""

SOURCES: dict[str, Sentence] = {
    "Hearth's rule": say("source.own", "Hearth's rule"), "this machine": say("source.here", "this machine"),
    "measured on torch 2.13, Dia's decoding step": say("source.dia", "measured with torch 2.13, Dia decoding step"),
    "measured on torch 2.13": say("source.torch", "measured with torch 2.13"),
}  # fmt: skip
"""Those that are words; the rest name a thread or a file."""


def option_text(field: str, option: str, spoken: Language) -> str:
    found = OPTIONS.get(f"{field}={option}", OPTIONS.get(option))
    return translate(found, spoken) if found else option


def source_text(source: str, spoken: Language) -> str:
    return translate(SOURCES[source], spoken) if source in SOURCES else source


def source_link(source: str) -> str:
    """Where a source can be read: a thread number of PyTorch's, or of a project named before it."""
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


def machine_words(hardware: Hardware, spoken: Language) -> str:
    """This machine in one line."""
    known: dict[str, str | int | float] = {
        "name": hardware.name,
        "memory": round(hardware.memory_bytes / (1 << 30)),
        "torch": hardware.torch,
        "cores": hardware.cores,
    }
    if hardware.kind == "mps":
        sentence = say(
            "machine.mac",
            "{name}, {memory} GB shared memory, macOS {system}, torch {torch}.",
            system=hardware.system_version,
            **known,
        )
    elif hardware.kind in ("cuda", "rocm"):
        sentence = say(
            "machine.card",
            "{name}, {memory} GB VRAM, driver {driver}, torch {torch}.",
            driver=hardware.driver or "?",
            **known,
        )
    else:
        sentence = say(
            "machine.cpu",
            "{name}, {cores} cores, {memory} GB memory, torch {torch}; no usable graphics card.",
            **known,
        )
    return translate(sentence, spoken)


def selftest_view(verdicts: Mapping[str, Verdict]) -> View:
    """Path by path; rows of known defects apart."""

    def rows(prefix: str) -> list[View]:
        return [
            {"subject": each.subject.removeprefix(prefix), "passed": each.passed, "error": each.error if math.isfinite(each.error) else None, "ms": each.elapsed_s * 1000, "words": each.words}
            for each in sorted(verdicts.values(), key=lambda each: (each.passed, each.subject))
            if each.subject.startswith(prefix)
        ]  # fmt: skip

    paths, known = rows("path:"), rows("row:")
    return {"paths": paths, "rows": known, "right": sum(row["passed"] for row in paths), "total": len(paths)}


def curve_view(need: Need, plan: Plan, measured: Curve | None, asked: Chunk, spoken: Language) -> View:
    """Predicted memory and measured speed at each size, and where we are on it."""
    speeds = {point.chunk: point.seconds for point in measured.points} if measured else {}
    points = [
        {"chunk": size, "bytes": COPIES_OF_SCORES * scores_bytes(need.batch, need.heads, min(size, need.queries), need.keys, plan.score_dtype or plan.dtype), "seconds": speeds.get(size)}
        for size in CURVE_SIZES
    ]  # fmt: skip
    note = ""
    if need.kind == "speech":
        note = text(
            "curve.decode",
            "Speech is generated one query at a time, so the chunk size has no effect there. It only affects the text encoder and voice prompts.",
            spoken,
        )
    elif need.queries <= CURVE_SIZES[0]:
        note = text("curve.small", "This model's attention is small; the chunk size makes no difference.", spoken)
    return {
        "points": points, "chunk": None if asked == AUTO else asked, "at": None if plan.chunk_q == AUTO else plan.chunk_q, "runs": explain_chunk(plan, asked, spoken), "knee": measured.knee if measured else None, "budget": plan.budget_bytes, "queries": need.queries, "note": note,
    }  # fmt: skip


def explain_chunk(plan: Plan, asked: Chunk, spoken: Language) -> str:
    """Why what runs is not what was asked for; empty where it is."""
    now = plan.chunk_q
    if now == asked and (now != AUTO or plan.chunk_most is None):
        return ""
    why = {reason.field: reason.sentence for reason in plan.because}
    decided_for = dict(why["chunk_q"].values).get(SIZE_ASKED.get(why["chunk_q"].key, ""), named(AUTO))
    if str(decided_for) != str(named(asked)):
        sentence = say("curve.until", "You asked for {asked}; {chunk} stays in use until the next step.", asked=named(asked), chunk=named(now))
    elif now == AUTO == asked:
        sentence = why["chunk_most"]
    elif why["chunk_q"].key in TOLD_WHOLE:
        sentence = why["chunk_q"]
    elif asked == AUTO:
        sentence = say("curve.automatic", "Automatic: {chunk} queries at a time. {why}", chunk=now, why=why["chunk_q"])
    else:
        sentence = differs(asked, now, why["chunk_q"])
    return translate(sentence, spoken)


SIZE_ASKED = {"plan.yours": "option", "plan.overruled": "option", "chunk_q.bounded": "asked", "chunk_q.differs": "asked"}
"""Reasons for a chunk that was asked for, and which of their values is that size: a running plan is behind the slider until its next step."""
TOLD_WHOLE = ("chunk_q.bounded", "chunk_q.differs")
"""They say both sizes themselves."""


CURVE_SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
