"""From what the engine says to what the page draws: plain values in the person's language. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from app.compat.hardware import Hardware
from app.compat.memory import COPIES_OF_SCORES, scores_bytes
from app.compat.meter import Reading
from app.compat.plan import Need, Plan
from app.compat.verdicts import Verdict
from app.engine import script
from app.engine.curve import Curve
from app.engine.event import Failed, Finished, Step, Stopped
from app.engine.forecast import Forecast
from app.engine.limits import Limits
from app.engine.process import EngineState, Sample
from app.engine.progress import Progress
from app.engine.request import Request, SpeechRequest
from app.engine.script import Checked
from app.sentence import Sentence, Trouble, say
from app.ui.words import Language, text, told

View = dict[str, Any]


def strip(state: EngineState, progress: Progress | None, title: str, spoken: Language) -> View:
    """The line on every tab. Idle, it says that it is ready and nothing else."""
    step = progress.step if progress is not None and progress.end is None else None
    return {
        "job": state.job,
        "model": f"{title}, {state.plan.dtype}" if title and state.plan else title,
        "doing": doing(state, progress, spoken),
        "rate": rate(step, spoken) if step else "",
        "eta_s": step.eta_s if step else None,
        "memory": memory(state.reading) if state.ready else None,
        "machine": machine(state.hardware, state.plan if state.job else None, spoken),
    }


def doing(state: EngineState, progress: Progress | None, spoken: Language) -> str:
    if progress is None or not state.job or progress.end is not None:
        if state.ready:
            return text("strip.ready", "ready", spoken)
        if state.trouble is not None:
            return text("strip.back", "the engine is coming back", spoken)
        return text("strip.wakes", "the engine is waking up", spoken)
    if progress.loading is not None:
        return told(progress.loading.sentence, spoken)
    step = progress.step
    if step is None:
        return text("strip.begins", "beginning", spoken)
    if step.unit == "frames":
        counted = say("strip.speaking", "speaking part {part} of {parts}", part=step.part + 1, parts=step.parts)
    elif step.unit == "steps" and step.parts > 1:
        counted = say("strip.painting-many", "painting {part} of {parts}, step {done} of {total}", part=step.part + 1, parts=step.parts, done=step.done, total=step.total)  # fmt: skip
    elif step.unit == "steps":
        counted = say("strip.painting", "painting step {done} of {total}", done=step.done, total=step.total)
    else:
        counted = say("strip.measuring", "measuring, {done} of {total}", done=step.done, total=step.total)
    return told(counted, spoken)


def rate(step: Step, spoken: Language) -> str:
    return rated(step.rate, step.unit, spoken, step.realtime)


def rated(rate: float, unit: str, spoken: Language, realtime: float | None = None) -> str:
    """A speed with its unit, and with what it means where that is known."""
    if unit == "frames" and realtime is not None:
        sentence = say("rate.frames", "{rate} frames/s, {times}x realtime", rate=round(rate), times=f"{realtime:.2f}")
    elif unit == "frames":
        sentence = say("rate.frames-alone", "{rate} frames/s", rate=round(rate))
    elif unit == "steps" and rate < 1:
        sentence = say("rate.slow", "{seconds} s/step", seconds=f"{1 / max(rate, 1e-6):.1f}")
    elif unit == "steps":
        sentence = say("rate.steps", "{rate} steps/s", rate=f"{rate:.1f}")
    else:
        return ""
    return told(sentence, spoken)


def memory(reading: Reading) -> View:
    """What counts on this machine: the device's own memory where it has one, else the process's."""
    now = reading.process_bytes if reading.device_bytes is None else reading.device_bytes
    return {
        "now": now, "highest": max(now, reading.highest_bytes), "limit": reading.limit_bytes, "swap": reading.swap_bytes,
        "process": reading.process_bytes, "device": reading.device_bytes, "allocated": reading.allocated_bytes,
    }  # fmt: skip


def machine(hardware: Hardware | None, plan: Plan | None, spoken: Language) -> str:
    if hardware is None:
        return ""
    words = [hardware.name]
    if plan is not None:
        words.append(told(GQA_WORDS[plan.gqa], spoken))
        chunk = plan.chunk_q
        words.append(
            text("strip.chunk-auto", "chunk auto", spoken)
            if chunk is None
            else told(say("strip.chunk", "chunk {chunk}", chunk=chunk), spoken)
        )
    return ", ".join(words)


GQA_WORDS = {
    "native": say("gqa.native", "native GQA"),
    "folded": say("gqa.folded", "folded GQA"),
    "expanded": say("gqa.expanded", "expanded GQA"),
}


def said(progress: Progress, spoken: Language) -> list[View]:
    """What the engine remarked on the way: rungs of the ladder, notes, models that made room."""
    return [{"kind": type(event).__name__.lower(), "text": told(event.sentence, spoken)} for event in progress.said]


def ended(progress: Progress, spoken: Language) -> View | None:
    match progress.end:
        case Finished():
            return {"kind": "finished", "seconds": progress.end.seconds, "elapsed_s": progress.end.elapsed_s}
        case Stopped():
            return {"kind": "stopped", "seconds": progress.end.seconds, "elapsed_s": progress.end.elapsed_s}
        case Failed(sentence, objections, cure):
            return {
                "kind": "failed",
                "text": " ".join(told(each, spoken) for each in (sentence, *objections)),
                "cure": cure,
            }
    return None


def charts(history: Sequence[Sample]) -> list[View]:
    """The live charts, one point a second; swap and Metal's two kinds of memory are told apart."""
    return [
        {"time_s": sample.time_s, "rate": sample.rate, "unit": sample.unit, **memory(sample.reading)}
        for sample in history
    ]


def with_chunk(plan: Plan, chunk: int | None) -> Plan:
    """As it acts now, after the slider was moved."""
    return replace(plan, chunk_q=chunk)


def trouble(trouble: Trouble, spoken: Language) -> str:
    """A sentence where it happened, with the button that cures it where there is one."""
    words = " ".join(told(each, spoken) for each in (trouble.sentence, *trouble.objections))
    return f'<p class="h-trouble" role="alert" data-cure="{html.escape(trouble.cure, quote=True)}">{html.escape(words)}</p>'


def speech(job: str, progress: Progress, request: SpeechRequest, title: str, spoken: Language) -> View:
    """The parts of a script, done, under way and waiting; then the whole."""
    texts = [part.text for part in script.check(request.text).parts]
    done = {part.index: part for part in progress.parts}
    step = progress.step
    total = max([len(texts), *(part.total for part in progress.parts)])
    parts = []
    for index in range(total):
        view: View = {"index": index, "text": texts[index] if index < len(texts) else ""}
        if index in done:
            part = done[index]
            view |= {
                "state": "done",
                "text": part.text,
                "seconds": part.seconds,
                "url": made_url(job, part.path),
                "peaks": peaks(part.path),
            }
        elif step is not None and progress.end is None and step.part == index:
            sounds = [sound for sound in progress.sounds if sound.part == index]
            view |= {
                "state": "now",
                "pieces": [made_url(job, sound.path) for sound in sounds],
                "seconds": sum(sound.seconds for sound in sounds),
            }
        else:
            view |= {"state": "waits"}
        parts.append(view)
    share = min(1.0, step.done / step.total) if step is not None and step.total else 0.0
    return {
        "job": job, "parts": parts, "share": share, "said": said(progress, spoken), "end": ended(progress, spoken), "title": title,
        "doing": "" if progress.end else (told(progress.loading.sentence, spoken) if progress.loading else ""),
    }  # fmt: skip


def picture(job: str, progress: Progress, spoken: Language) -> View:
    """The picture as far as it is, and those of the batch that are done."""
    step = progress.step
    done = [{"index": part.index, "url": made_url(job, part.path), "seed": part.seed} for part in progress.parts]
    return {
        "job": job, "parts": done, "share": step.done / step.total if step is not None and step.total else 0.0,
        "preview": preview_url(job, progress), "said": said(progress, spoken), "end": ended(progress, spoken),
        "doing": told(progress.loading.sentence, spoken) if progress.loading and not progress.end else "",
        "rate": rate(step, spoken) if step is not None and not progress.end else "",
    }  # fmt: skip


def preview_url(job: str, progress: Progress) -> str:
    if progress.preview is None or progress.end is not None:
        return ""
    return f"{made_url(job, progress.preview.path)}?step={progress.preview.step}"


def fit(found: Forecast, spoken: Language) -> str:
    """Fits, tight or not, with its sentence, how long it takes, and what would make it fit."""
    level, name = {
        "fits": ("right", text("fit.fits", "fits", spoken)), "tight": ("careful", text("fit.tight", "tight", spoken)),
        "no": ("wrong", text("fit.no", "would not fit", spoken)),
    }[found.fit]  # fmt: skip
    words = [told(found.sentence, spoken)]
    if found.seconds is None:
        words.append(text("fit.unknown", "How long it takes is not known yet: it was never measured here.", spoken))
    else:
        words.append(
            told(
                say("fit.seconds", "About {seconds} s, from what was measured here.", seconds=round(found.seconds, 1)),
                spoken,
            )
        )
    words += [told(cure.sentence, spoken) for cure in found.cures]
    return f'<p class="h-check"><span class="h-badge {level}">{html.escape(name)}</span> <span class="h-soft">{html.escape(" ".join(words))}</span></p>'


def notes(sentences: Sequence[Sentence], spoken: Language) -> str:
    lines = "".join(f"<li>{html.escape(told(each, spoken))}</li>" for each in sentences)
    return f'<ul class="h-problems">{lines}</ul>' if lines else ""


def title_of(request: Request, most: int = 80) -> str:
    words = request.text if isinstance(request, SpeechRequest) else request.prompt
    return words if len(words) <= most else words[: most - 1] + "…"


def made_url(job: str, path: str) -> str:
    return f"hearth/made/{job}/{Path(path).name}"


@lru_cache(maxsize=512)
def peaks(path: str, bars: int = 96) -> tuple[float, ...]:
    """The loudest of each stretch, 0 to 1, for a waveform of bars. A finished file never changes."""
    try:
        samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
    except (OSError, RuntimeError):
        return ()
    loud = np.abs(samples).max(axis=1) if len(samples) else np.zeros(1, np.float32)
    stretches = np.array_split(loud, min(bars, len(loud)))
    highest = float(loud.max()) or 1.0
    return tuple(round(float(each.max()) / highest, 3) for each in stretches)


def checked(found: Checked, limits: Limits, seconds: float | None, spoken: Language) -> View:
    """The script as it is typed: turns with their speakers, what there is to say about it, how long it will be."""
    worst = {"fatal": "wrong", "warning": "careful"}
    problems = [
        {"kind": worst.get(each.severity, ""), "text": told(each.sentence, spoken), "cure": each.cure}
        for each in found.problems
    ]
    turns = [{"speaker": turn.speaker, "text": turn.text} for part in found.parts for turn in part.turns]
    about = say(
        "script.about", "{bytes} of {most} bytes in the longest part, {parts} parts, about {seconds} s of speech",
        bytes=found.bytes_longest, most=limits.bytes_most, parts=len(found.parts), seconds=round(found.seconds_estimate),
    )  # fmt: skip
    level = "wrong" if found.fatal else ("careful" if any(each["kind"] == "careful" for each in problems) else "right")
    return {
        "turns": turns, "problems": problems, "level": level, "about": told(about, spoken), "eta_s": seconds,
        "nonverbals": sorted(limits.nonverbals), "words": sorted(limits.words) if limits.words is not None else None,
    }  # fmt: skip


def warnings(plan: Plan, spoken: Language) -> str:
    """What is unwise about a choice that works."""
    lines = "".join(f"<li>{html.escape(told(each.sentence, spoken))}</li>" for each in plan.warnings)
    return f'<ul class="h-problems">{lines}</ul>' if lines else ""


def kept(spoken: Language) -> str:
    return f'<p class="h-soft" role="status">{html.escape(text("machine.kept", "From the next run on.", spoken))}</p>'


FIELDS: dict[str, Sentence] = {
    "device": say("field.device", "device"), "dtype": say("field.dtype", "precision"), "score_dtype": say("field.score_dtype", "scores"),
    "gqa": say("field.gqa", "grouped heads"), "chunk_q": say("field.chunk_q", "chunk of queries"), "chunk_k": say("field.chunk_k", "chunk of keys"),
    "budget_bytes": say("field.budget_bytes", "memory for scores"), "contiguous": say("field.contiguous", "layout"),
    "explicit_mask": say("field.explicit_mask", "causal mask"), "expand_mask": say("field.expand_mask", "mask"),
    "pad_value": say("field.pad_value", "value size"), "zero_masked_rows": say("field.zero_masked_rows", "masked rows"),
    "kernels": say("field.kernels", "kernels"), "precision": say("field.precision", "part by part"), "offload": say("field.offload", "offload"),
    "vae": say("field.vae", "decoder"), "quantised": say("field.quantised", "quantised weights"), "attention": say("field.attention", "attention"),
    "environment": say("field.environment", "environment"),
}  # fmt: skip
SHOWN_FIRST = ("dtype", "score_dtype", "gqa", "chunk_q", "kernels", "contiguous", "offload", "vae", "quantised")


def plan_view(plan: Plan, spoken: Language) -> View:
    """The plan as a table: what was decided, why with its source, and what was rejected for which reasons."""
    rejected: dict[str, list[View]] = {}
    for each in plan.rejected:
        objections = [
            {"text": told(reason.sentence, spoken), "source": reason.source, "link": link(reason.source)}
            for reason in each.objections
        ]
        rejected.setdefault(each.field, []).append({"option": each.option, "objections": objections})
    rows = [
        {
            "field": reason.field, "what": told(FIELDS[reason.field], spoken), "choice": chosen(plan, reason.field, spoken),
            "because": told(reason.sentence, spoken), "source": reason.source, "link": link(reason.source),
            "rejected": rejected.get(reason.field, []), "first": reason.field in SHOWN_FIRST,
        }
        for reason in plan.because
    ]  # fmt: skip
    rows.sort(key=lambda row: SHOWN_FIRST.index(row["field"]) if row["first"] else len(SHOWN_FIRST))
    return {
        "rows": rows, "warnings": [told(each.sentence, spoken) for each in plan.warnings],
        "retired": [told(each.sentence, spoken) for each in plan.retired],
    }  # fmt: skip


def chosen(plan: Plan, field: str, spoken: Language) -> str:
    value = getattr(plan, field)
    if field == "precision":
        return "; ".join(
            f"{part.part}: {part.compute}" + (f" ({part.storage})" if part.storage != part.compute else "")
            for part in value
        )
    if field == "vae":
        return (
            told(say("vae.tiles", "tiles of {pixels}", pixels=value.tile_pixels), spoken)
            if value.tile_pixels
            else text("vae.in-one", "whole", spoken)
        )
    if field == "budget_bytes":
        return f"{value / (1 << 30):.2f} GB"
    if field == "environment":
        return ", ".join(f"{name}={setting}" for name, setting in value)
    if isinstance(value, bool):
        return text("word.yes", "yes", spoken) if value else text("word.no", "no", spoken)
    if isinstance(value, tuple):
        return ", ".join(value) or text("word.own", "Hearth's own", spoken)
    return text("word.automatic", "automatic", spoken) if value is None else str(value)


def link(source: str) -> str:
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
            "{name}, {memory} GB of its own, driver {driver}, torch {torch}.",
            driver=hardware.driver or "?",
            **known,
        )
    else:
        sentence = say(
            "machine.cpu",
            "{name}, {cores} cores, {memory} GB memory, torch {torch}; no graphics card that can help.",
            **known,
        )
    return told(sentence, spoken)


def selftest_view(verdicts: Mapping[str, Verdict]) -> View:
    """Path by path; rows of known defects apart."""

    def rows(prefix: str) -> list[View]:
        return [
            {"subject": each.subject.removeprefix(prefix), "passed": each.passed, "error": each.error, "ms": each.elapsed_s * 1000, "words": each.words}
            for each in sorted(verdicts.values(), key=lambda each: (each.passed, each.subject))
            if each.subject.startswith(prefix)
        ]  # fmt: skip

    paths, known = rows("path:"), rows("row:")
    return {"paths": paths, "rows": known, "right": sum(row["passed"] for row in paths), "total": len(paths)}


def curve_view(need: Need, plan: Plan, measured: Curve | None, chunk: int | None, spoken: Language) -> View:
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
            "A step of speech asks for one query at a time: no chunk size can matter there. It acts on the text encoder and on voice prompts.",
            spoken,
        )
    elif need.queries <= CURVE_SIZES[0]:
        note = text("curve.small", "This model's attention is so small that no chunk size matters.", spoken)
    return {
        "points": points, "chunk": chunk, "knee": measured.knee if measured else None, "budget": plan.budget_bytes, "queries": need.queries, "note": note,
    }  # fmt: skip


CURVE_SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
