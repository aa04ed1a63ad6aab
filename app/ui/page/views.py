"""Views that every tab shares: plain values for the page, in the person's language. Pure."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import soundfile
from PIL import Image

from app.base.foreign_formats import open_picture, open_sound
from app.base.path_checks import is_file
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.base.unknown_words import Unknown
from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.compat.planning.plan_words import word_chunk
from app.compat.planning.types import AUTO, Choice, Chunk, Plan
from app.engine.jobs.doubt import word_doubt
from app.engine.jobs.events import Failed, Finished, Step, Stopped
from app.engine.jobs.journal import Job
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import Request
from app.engine.jobs.tasks import is_lent
from app.engine.keeper.state import EngineState, Sample
from app.engine.models.catalog import name_model
from app.engine.models.model_names import word_name
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.foreign_settings import ADD_GUIDE, ADD_IMAGE, ADD_REFERENCE
from app.engine.speech.text.subtitles import read_cues
from app.ui.page.translate import Language, join, text, translate
from app.ui.page.view_types.live import (
    BlockerView,
    ChartPointView,
    EndView,
    MadeView,
    MemoryView,
    QueueView,
    RemarkView,
    StripMemoryView,
    StripView,
    UnknownView,
)

PEAK_FRAMES: Final = 1 << 16
"""So many frames of each bar are looked at for its peak: all of them up to two minutes of speech at 44,100 Hz."""


def strip_view(state: EngineState, progress: Progress | None, title: str, choice: Choice, chunk: Chunk, spoken: Language) -> StripView:
    """Return the strip on every tab; an idle one only says that it is ready. `choice`: what the owner forced."""
    step = progress.step if progress is not None and progress.end is None else None
    doing = doing_text(state, progress, spoken)
    return {
        "job": state.job,
        "model": title,
        "doing": translate(say("strip.lent", "{doing}, for another computer", doing=doing), spoken)
        if state.job and is_lent(state.job)
        else doing,
        "rate": step_rate(step, spoken) if step else "",
        "eta_s": step.eta_s if step else None,
        "memory": strip_memory(state) if state.ready else None,
        "machine": machine_text(state.hardware, state.plan if state.job else None, spoken),
        "precision": translate(word_precision(state.plan), spoken) if title and state.plan else "",
        "attention": attention_text(state.plan, step, chunk, spoken) if state.job and state.plan else "",
        "chunk": chunk_now_text(step, chunk, spoken),
        "plan": stamp_plan(state, choice, chunk),
    }


def word_precision(plan: Plan) -> Sentence | str:
    return say("strip.graph", "{dtype}, captured graph", dtype=plan.dtype) if plan.row == "graph" else plan.dtype


def is_held(state: EngineState) -> bool:
    """Tell whether no job is begun, however long it waits."""
    return state.obstacle is not None or (state.paused is not None and not state.ready)


def doing_text(state: EngineState, progress: Progress | None, spoken: Language) -> str:
    if progress is None or not state.job or progress.end is not None:
        if is_held(state):
            return text("strip.held", "paused", spoken)
        if state.ready:
            return text("strip.ready", "ready", spoken)
        if state.gave_up:
            return text("strip.gave-up", "engine does not start", spoken)
        if state.trouble is not None:
            return text("strip.back", "engine restarting", spoken)
        return text("strip.wakes", "engine starting", spoken)
    if progress.loading is not None:
        return loading_text(progress, spoken)
    step = progress.step
    if step is None:
        return text("strip.begins", "starting", spoken)
    if step.unit == "frames":
        counted = say("strip.speaking", "speaking part {part} of {parts}", part=step.part + 1, parts=step.parts)
    elif step.unit == "steps" and step.at_once > 1:
        counted = say(
            "strip.painting-together",
            "painting pictures {first} to {last} of {parts}, step {done} of {total}",
            first=step.part + 1,
            last=step.part + step.at_once,
            parts=step.parts,
            done=step.done,
            total=step.total,
        )
    elif step.unit == "steps" and step.parts > 1:
        counted = say(
            "strip.painting-many",
            "painting picture {part} of {parts}, step {done} of {total}",
            part=step.part + 1,
            parts=step.parts,
            done=step.done,
            total=step.total,
        )
    elif step.unit == "steps":
        counted = say("strip.painting", "painting, step {done} of {total}", done=step.done, total=step.total)
    elif step.unit == "tiles":
        counted = say("strip.enlarging", "enlarging, {done} of {total}", done=step.done, total=step.total)
    else:
        counted = say("strip.measuring", "measuring, {done} of {total}", done=step.done, total=step.total)
    return translate(counted, spoken)


def blocker_view(state: EngineState, spoken: Language) -> BlockerView | None:
    """Return what keeps all jobs from running, with its cure; None where nothing does."""
    if state.obstacle is not None:
        return {"text": translate(state.obstacle, spoken), "cure": ""}
    if not state.gave_up:
        return None
    sentence = say("engine.waits", "The engine does not start. Waiting jobs resume when it does.")
    why = [state.trouble.sentence] if state.trouble else []
    return {"text": join(spoken, sentence, *why), "cure": "repair"}


def loading_text(progress: Progress, spoken: Language) -> str:
    return translate(progress.loading.sentence, spoken) if progress.loading is not None and progress.end is None else ""


def step_rate(step: Step, spoken: Language) -> str:
    return rate_text(step.rate, step.unit, spoken, step.realtime)


def rate_text(rate: float, unit: str, spoken: Language, realtime: float | None = None) -> str:
    """Word a speed with its unit; speech also as a multiple of realtime."""
    if unit == "frames" and realtime is not None:
        sentence = say("rate.frames", "{rate} frames/s, {times}x realtime", rate=round(rate), times=round(realtime, 2))
    elif unit == "frames":
        sentence = say("rate.frames-alone", "{rate} frames/s", rate=round(rate))
    elif unit == "steps" and rate < 1:
        sentence = say("rate.slow", "{seconds} s/step", seconds=round(1 / max(rate, 1e-6), 1))
    elif unit == "steps":
        sentence = say("rate.steps", "{rate} steps/s", rate=round(rate, 1))
    else:
        return ""
    return translate(sentence, spoken)


def strip_memory(state: EngineState) -> StripMemoryView:
    """Return the memory in use. It is this computer's also where the machine is simulated: then the page says whose it is."""
    reading, hardware = state.reading, state.hardware
    stands_in = bool(hardware and hardware.pretended)
    total = reading.limit_bytes
    if reading.device_bytes is None:
        total = reading.system_bytes or total
    elif hardware is not None and not hardware.unified and not stands_in:
        total = hardware.memory_bytes  # the limit is what other programs leave of it, and changes with them
    return {**memory_view(reading), "stands_in": stands_in, "total": total}


def memory_view(reading: Reading) -> MemoryView:
    """Return the memory that matters here: the device's own where it has some, else the process's."""
    now = reading.process_bytes if reading.device_bytes is None else reading.device_bytes
    return {
        "now": now,
        "highest": max(now, reading.highest_bytes),
        "limit": reading.limit_bytes,
        "swap": reading.swap_bytes,
        "process": reading.process_bytes,
        "device": reading.device_bytes,
        "allocated": reading.allocated_bytes,
    }


def machine_text(hardware: Hardware | None, plan: Plan | None, spoken: Language) -> str:
    """Name what computes, or where nothing does the machine."""
    if hardware is None:
        return ""
    if plan is not None and plan.device == "cpu" and hardware.kind != "cpu":
        return text("strip.processor", "the processor", spoken)
    return translate(say("strip.simulated", "{name} (simulated)", name=hardware.name), spoken) if hardware.pretended else hardware.name


def attention_text(plan: Plan, step: Step | None, chunk: Chunk, spoken: Language) -> str:
    return translate(say("strip.attention", "{gqa}, {chunk}", gqa=GQA_WORDS[plan.gqa], chunk=chunk_text(plan, step, chunk, spoken)), spoken)


def chunk_text(plan: Plan, step: Step | None, chunk: Chunk, spoken: Language) -> str:
    """Word the chunk of the last step's largest call, before the first step the planned one; and the size asked for, where it is another."""
    ran = step.ran if step is not None else None
    if ran is not None and (ran.queries == 1 or _reads_script(step)):
        return text("strip.decode", "one query at a time", spoken)
    if ran is None:
        rows, wanted = plan.chunk_q, chunk
    else:
        rows, wanted = ran.rows, chunk if chunk == AUTO else min(chunk, ran.queries)
    if rows == AUTO:
        sentence = say("strip.chunk-auto", "automatic chunk")
    elif ran is not None and ran.rows >= ran.queries:
        sentence = say("strip.whole", "not chunked")
    else:
        sentence = say("strip.chunk", "chunk {chunk}", chunk=rows)
    if chunk != AUTO and rows != wanted:
        sentence = say("strip.requested", "{chunk} ({asked} requested)", chunk=sentence, asked=chunk)
    return translate(sentence, spoken)


def _reads_script(step: Step | None) -> bool:
    """Tell whether the step's largest call only read a script at once: speech itself takes one query at a time."""
    return step is not None and step.unit == "frames" and step.ran is not None and step.ran.rows >= step.ran.queries


def chunk_now_text(step: Step | None, chunk: Chunk, spoken: Language) -> str:
    """Word what the slider asks for and what the last step's largest call took."""
    if step is None or step.ran is None or step.ran.queries < 2 or _reads_script(step):
        return ""
    sentence = say(
        "chunk.now",
        "Requested: {asked}. The largest call processes {rows} of {queries} {queries:query|queries} at a time.",
        asked=word_chunk(chunk),
        rows=step.ran.rows,
        queries=step.ran.queries,
    )
    return translate(sentence, spoken)


def stamp_plan(state: EngineState, choice: Choice, chunk: Chunk) -> str:
    """Return a value that changes when the Machine tab must redraw its plan.

    It changes with the choice and the chunk size, with the job and its fallbacks, and with each half GiB of free memory."""
    free = state.hardware.free_bytes >> 29 if state.hardware is not None else None
    return f"{hash((choice, chunk, state.job, state.plan if state.job else free)):x}"


GQA_WORDS = {
    "native": say("gqa.native", "native GQA"),
    "folded": say("gqa.folded", "folded GQA"),
    "expanded": say("gqa.expanded", "expanded GQA"),
}


def remarks_view(progress: Progress, spoken: Language) -> list[RemarkView]:
    """Return the remarks on a job: fallbacks, notes, models unloaded for it, and the parts that are likely wrong."""
    doubts: list[RemarkView] = [
        {"kind": "note", "text": translate(sentence, spoken)} for sentence in filter(None, map(word_doubt, progress.parts))
    ]
    remarks: list[RemarkView] = [
        {"kind": type(event).__name__.lower(), "text": translate(event.sentence, spoken)} for event in progress.said
    ]
    return remarks + doubts


def end_view(progress: Progress, spoken: Language) -> EndView | None:
    match progress.end:
        case Finished():
            return {"kind": "finished", "elapsed_s": progress.end.elapsed_s, "made": len(progress.end.files)}
        case Stopped():
            return {"kind": "stopped"}
        case Failed(sentence, objections, cure) as failed:
            return {"kind": "failed", "text": join(spoken, sentence, *objections), "cure": cure, "code": failed.code}
    return None


def charts_view(history: Sequence[Sample], spoken: Language) -> list[ChartPointView]:
    """Return the live charts, one point a second, with what changed at each."""
    return [
        {
            "rate": sample.rate,
            "unit": sample.unit,
            "marks": [translate(each, spoken) for each in sample.marks],
            **memory_view(sample.reading),
        }
        for sample in history
    ]


def trouble_html(trouble: Trouble, spoken: Language) -> str:
    """Word a Trouble as HTML; the page adds the button for its cure, and by its code the way to the help."""
    words = join(spoken, trouble.sentence, *trouble.objections)
    told = f'data-cure="{html.escape(trouble.cure, quote=True)}" data-code="{trouble.code}"'
    return f'<p class="h-trouble" role="alert" {told}>{html.escape(words)}</p>'


def notes_html(sentences: Sequence[Sentence], spoken: Language) -> str:
    """Word notes as HTML; the page hides the one that asks for a picture once that is there."""
    adds = ((ADD_IMAGE, " data-adds=image"), (ADD_GUIDE, " data-adds=guide"), (ADD_REFERENCE, " data-adds=reference"))
    marks = ["".join(mark for asks, mark in adds if each == asks) for each in sentences]
    lines = "".join(f"<li{mark}>{html.escape(translate(each, spoken))}</li>" for each, mark in zip(sentences, marks, strict=True))
    return f'<ul class="h-problems">{lines}</ul>' if lines else ""


def unknown_view(words: str, found: Sequence[Unknown]) -> list[UnknownView]:
    """Return what is not known, in order, with its places counted as a browser counts: in units of UTF-16."""
    view, at, units = list[UnknownView](), 0, 0
    for each in found:
        begin = units + count_units(words[at : each.begin])
        at, units = each.end, begin + count_units(words[each.begin : each.end])
        view.append({"begin": begin, "end": units, "near": list(each.near)})
    return view


def count_units(words: str) -> int:
    return len(words) + sum(letter > "\uffff" for letter in words)


def shorten_text(request: Request, most: int = 80) -> str:
    words = request.words
    return words if len(words) <= most else words[: most - 1] + "…"


def queue_view(job: Job, model: bool, spoken: Language, maker: str = "") -> QueueView:
    """Show a job in the queue. `model`: whether its model is told, which is the owner's affair. `maker`: the guest whose it is."""
    request = job.request
    title = translate(word_name(name_model(request.model)), spoken) if model and request.model else ""
    return {
        "id": job.id,
        "text": shorten_text(request),
        "kind": request.kind,
        "facts": " · ".join(filter(None, [maker, title, *(translate(each, spoken) for each in request.facts)])),
    }


def job_file_url(job: str, path: str) -> str:
    return f"hearth/made/{job}/{Path(path).name}"


@lru_cache(maxsize=1000)
def has_cues(path: str) -> bool:
    """Tell whether a result says when each sentence is said; one of an earlier Hearth does not."""
    return is_file(Path(path)) and bool(read_cues(Path(path)))


def read_made(path: str) -> MadeView:
    """Return the seed and the size of a picture that its file holds; cached until the file changes."""
    try:
        seed, width, height = _read_made(path, Path(path).stat().st_mtime_ns)
    except OSError:
        return {}
    return {"seed": seed, "width": width, "height": height} if width else {}


@lru_cache(maxsize=4096)
def _read_made(path: str, _written_ns: int) -> tuple[int | None, int, int]:
    try:
        with open_picture(Path(path)) as picture:
            width, height = picture.size
        return picture_settings.read(Path(path)).request.seed, width, height
    except Trouble:
        return None, width, height
    except (OSError, ValueError, Image.DecompressionBombError):
        return None, 0, 0


def read_peaks(path: str, bars: int = 96) -> tuple[float, ...]:
    """Return the peaks of a sound, 0 to 1, one a bar; cached until the file changes, as that of a part that is spoken on does."""
    try:
        return _read_peaks(path, Path(path).stat().st_mtime_ns, bars)
    except OSError:
        return ()


@lru_cache(maxsize=512)
def _read_peaks(path: str, _written_ns: int, bars: int) -> tuple[float, ...]:
    """Read the beginning of each bar alone: a result of hours must not lie in memory as a whole, nor keep the page waiting."""
    try:
        with open_sound(Path(path)) as file:
            edges = np.linspace(0, file.frames, min(bars, max(file.frames, 1)) + 1, dtype=np.int64)
            peaks = [_read_peak(file, int(first), min(int(last - first), PEAK_FRAMES)) for first, last in pairwise(edges)]
    except (OSError, RuntimeError):
        return ()
    highest = max(peaks) or 1.0
    return tuple(round(peak / highest, 3) for peak in peaks)


def _read_peak(file: soundfile.SoundFile, first: int, frames: int) -> float:
    if file.tell() != first:
        file.seek(first)
    return float(np.abs(file.read(frames, dtype="float32")).max(initial=0))
