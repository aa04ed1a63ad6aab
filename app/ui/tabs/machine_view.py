"""Views of the Machine tab: the machine in words, a plan with its reasons, the measurement that runs, the self-test, the report for a bug."""

from __future__ import annotations

import dataclasses
import html
import math
import re

from app.base.private_words import hide_private
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.compat.machine.report import describe_report
from app.compat.machine.report_file import lay_out
from app.compat.machine.verdicts import Subject, Verdicts
from app.compat.planning.fallbacks import learned
from app.compat.planning.memory_formulas import free_bytes
from app.compat.planning.plan_words import FIELDS, word_option, word_source, word_value
from app.compat.planning.types import Plan, Reason
from app.compat.planning.wrong_parts import PART_WORDS
from app.engine.models import catalog
from app.engine.models.fit import find_largest_picture
from app.engine.models.forecast import GIB
from app.engine.models.model import describe_need
from app.engine.models.model_names import word_name
from app.engine.models.planned import Setup
from app.ui.page.translate import Language, join, text, translate
from app.ui.page.view_types.live import MeasuringView
from app.ui.page.view_types.machine import ChoiceView, MachineView, ObjectionView, PlanView, RejectedView, SelfTestView, VerdictView
from app.ui.page.views import end_view, notes_html, remarks_view
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs.curve_view import curve_view

SHOWN_FIRST = ("device", "dtype", "score_dtype", "gqa", "chunk_q", "kernels", "contiguous", "offload", "vae", "quantised", "product", "row")


def tab_view(desk: Desk, model: str, pretended: str, spoken: Language) -> MachineView | None:
    """Return all of the tab: this machine; and the plan of one model, here or on another machine. None until the engine has read the machine."""
    here, hardware = desk.machine.find_hardware(), desk.machine.find_hardware(pretended)
    if here is None or hardware is None:
        return None
    asked, elsewhere = describe_need(catalog.find(model)), desk.machine.is_elsewhere(pretended)
    verdicts = desk.machine.load_verdicts()
    view: MachineView = {
        "words": describe_machine(here, spoken),
        "pretended": here.pretended,
        "facts": list_facts(desk, here, verdicts, spoken),
        "selftest": selftest_view(verdicts, spoken),
        "other": describe_machine(hardware, spoken) if elsewhere else "",
        "simulated": hardware.name if hardware.pretended else "",
    }
    choice = desk.machine.read_choice(OWNER)
    try:
        plan = desk.machine.plan(model, choice, pretended)
    except Trouble as trouble:
        return view | {"trouble": join(spoken, trouble.sentence, *trouble.objections)}
    measured = None if elsewhere else desk.machine.read_curve(model)
    taught = () if elsewhere else learned(verdicts, model)
    note = desk.machine.explain_stand_in(model, plan, pretended) or (None if elsewhere else desk.machine.explain_running(model, plan))
    return view | {
        "plan": plan_view(plan, spoken),
        "note": translate(note, spoken) if note is not None else "",
        "learned": [translate(each.sentence, spoken) for each in taught],
        "curve": curve_view(asked, plan, measured, desk.keeper.chunk, spoken),
    }


def list_facts(desk: Desk, hardware: Hardware, verdicts: Verdicts, spoken: Language) -> list[str]:
    """Say how much memory is free, and how large a picture can be made."""
    gigabytes = {"free": round(free_bytes(hardware) / GIB, 1), "total": round(hardware.memory_bytes / GIB)}
    facts = [say("machine.free-now", "{free} of {total} GB are free now.", **gigabytes)]
    setup = Setup(desk.keeper.home, hardware, desk.machine.read_choice(OWNER), desk.keeper.chunk, verdicts)
    if largest := find_largest_picture(setup, desk.models.list_all()):
        model, width, height = largest
        known = {"model": word_name(model.title), "width": width, "height": height}
        facts.append(say("machine.largest", "Pictures up to {width} x {height}, with {model}.", **known))
    return [translate(each, spoken) for each in facts]


def measuring_view(desk: Desk, spoken: Language) -> MeasuringView:
    """Return the progress of the self-test or Tune."""
    progress = desk.keeper.get_progress(desk.measuring.job)
    step = progress.step
    return {
        "kind": desk.measuring.kind,
        "done": step.done if step else 0,
        "total": step.total if step else 0,
        "share": progress.share,
        "eta_s": step.eta_s if step else None,
        "said": remarks_view(progress, spoken),
        "end": end_view(progress, spoken),
    }


def write_report(desk: Desk) -> str:
    """Write what a bug report needs: the machine's report as doctor prints it, the choice, the last death; nothing private."""
    hardware = desk.keeper.state.hardware
    trouble = desk.keeper.state.trouble
    report = describe_report(hardware, desk.machine.load_verdicts()) if hardware else {}
    more = {
        "choice": {"chunk": desk.keeper.chunk} | dataclasses.asdict(desk.machine.read_choice(OWNER)),
        "last_death": hide_private(str(trouble.sentence)) if trouble else "",
    }
    return lay_out(report | more)


def warnings_html(plan: Plan, spoken: Language) -> str:
    """List what is unwise about a choice that works."""
    return notes_html([each.sentence for each in plan.warnings], spoken)


def saved_html(spoken: Language) -> str:
    return f'<p class="h-soft" role="status">{html.escape(text("machine.kept", "Saved. Applies from the next job.", spoken))}</p>'


def describe_machine(hardware: Hardware, spoken: Language) -> str:
    """Describe a machine in one line."""
    known: dict[str, str | int | float] = {
        "name": hardware.name,
        "memory": round(hardware.memory_bytes / GIB),
        "torch": hardware.torch,
        "cores": hardware.cores,
    }
    if hardware.kind == "mps":
        sentence = say(
            "machine.mac", "{name}, {memory} GB shared memory, macOS {system}, torch {torch}.", system=hardware.system_version, **known
        )
    elif hardware.kind in ("cuda", "rocm"):
        sentence = say("machine.card", "{name}, {memory} GB VRAM, driver {driver}, torch {torch}.", driver=hardware.driver or "?", **known)
    else:
        sentence = say(
            "machine.cpu", "{name}, {cores} {cores:core|cores}, {memory} GB memory, torch {torch}; no usable graphics card.", **known
        )
    return translate(sentence, spoken)


def selftest_view(verdicts: Verdicts, spoken: Language) -> SelfTestView:
    """List the results by starter's part and by path of attention, and those of known defects apart."""

    def rows(kind: str) -> list[VerdictView]:
        return [
            {
                "subject": _subject_text(each.subject, spoken),
                "passed": each.passed,
                "error": each.error if math.isfinite(each.error) else None,
                "ms": each.elapsed_s * 1000,
                "words": each.words,
            }
            for each in sorted(verdicts.values(), key=lambda each: (each.passed, each.subject))
            if each.subject.kind == kind and (kind == "row" or each.subject.matters)
        ]

    parts, paths, known = rows("part"), rows("path"), rows("row")
    both = [*parts, *paths]
    return {"parts": parts, "paths": paths, "rows": known, "right": sum(row["passed"] for row in both), "total": len(both)}


def _subject_text(subject: Subject, spoken: Language) -> str:
    part, _, dtype = subject.name.rpartition("/")
    if subject.kind != "part" or part not in PART_WORDS:
        return subject.name
    return translate(say("selftest.part", "{part}, {dtype}", part=PART_WORDS[part], dtype=dtype), spoken)


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


def source_text(source: str, spoken: Language) -> str:
    return translate(word_source(source), spoken)


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
