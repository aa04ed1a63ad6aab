"""Views of the Paint tab: the picture while it is painted, the grid, the forecast, the check of a prompt."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from app.base.duration import word_duration
from app.base.sentence import Sentence, say, say_to_all
from app.compat.planning.types import Plan
from app.engine import kinds
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import Stopped
from app.engine.jobs.parts import GUIDE, list_made
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.shelf import Search
from app.engine.models.enlargers import find_enlarger
from app.engine.models.forecast import Forecast, list_alike, make_forecast
from app.engine.models.model import Model
from app.engine.models.model_names import word_name
from app.engine.models.on_disk import find_model
from app.engine.pictures.files.alternatives import choose_words
from app.engine.pictures.files.lora_tags import split_tags
from app.engine.pictures.prompts import starter_words
from app.engine.pictures.prompts.wordless import note_wordless
from app.engine.pictures.steps import compare_few_steps, estimate_seconds, estimate_share
from app.ui.page import views
from app.ui.page.translate import Language, join, text, translate
from app.ui.page.view_types.live import CanvasView, CellView, GridView, InterruptedView, PaintedView, PictureResultView, PictureView
from app.ui.page.view_types.making import ProblemView, PromptView
from app.ui.page.views import end_view, job_file_url, loading_text, remarks_view, step_rate, unknown_view
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_sentences
from app.ui.state.jobs_desk import LIST_MOST
from app.ui.state.other_machines import look_elsewhere
from app.ui.state.person import Person
from app.ui.tabs import paint_form

LINES_TOLD: Final = 5
"""Of a list of prompts, so many lines are told of that will not become what they say."""


def picture_view(job: str, progress: Progress, spoken: Language, guide: Path | None = None) -> CanvasView:
    """Return the picture so far, and the finished ones of the batch; after the end those that still lie in the job's folder. `guide`: where the map is
    that guides it, if any does."""
    step = progress.step
    there = [part for part in progress.parts if progress.end is None or Path(part.path).is_file()]
    map_url = job_file_url(job, str(guide)) if guide is not None and guide.is_file() else ""
    done: list[PaintedView] = [{"index": part.index, "url": job_file_url(job, part.path)} for part in there]
    return {
        "job": job,
        "parts": done,
        "share": progress.share,
        "preview": preview_url(job, progress),
        "guide": map_url,
        "said": remarks_view(progress, spoken),
        "end": end_view(progress, spoken),
        "doing": loading_text(progress, spoken),
        "rate": step_rate(step, spoken) if step is not None and not progress.end else "",
    }


def prompt_view(desk: Desk, prompt: str, negative: str, model: str, person: Person, spoken: Language) -> PromptView:
    """Check a prompt as it is typed: for a model with few captions, what it would paint instead and which to use. First all of it, which Paint takes as
    one picture; then the lines that each could become one, told by their numbers."""
    chosen = paint_form.find_model(desk, model)
    folder = Path(chosen.path) if chosen.starter and chosen.kind == "picture" else None

    def judge(words: str) -> tuple[ProblemView | None, tuple[str, ...]]:
        return _judge_prompt(folder, chosen, choose_words(split_tags(words)[0], 0), negative, person, spoken)

    whole, lost = judge(prompt)
    problems = [whole] if whole else []
    lines = paint_form.number_lines(prompt) if person.owner else []  # guests have no lists
    if 1 < len(lines) <= LIST_MOST:
        judged = ((number, judge(line)[0]) for number, line in lines)
        told = islice(((number, problem) for number, problem in judged if problem), LINES_TOLD)
        problems += [{**problem, "text": name_line(number, problem["text"], spoken), "captions": []} for number, problem in told]
    for each in [each for each in problems if each["cure"]][1:]:
        each["cure"] = ""  # once for all
    plain = choose_words(split_tags(prompt)[0], 0) == prompt
    marks = unknown_view(prompt, starter_words.list_unknown(folder, prompt, lost)) if folder is not None and plain else []
    return {"problems": problems, "marks": marks}


def name_line(number: int, said: str, spoken: Language) -> str:
    return translate(say("prompts.line", "Line {n} on its own: {said}", n=number, said=said), spoken)


def _judge_prompt(
    folder: Path | None, chosen: Model, prompt: str, negative: str, person: Person, spoken: Language
) -> tuple[ProblemView | None, tuple[str, ...]]:
    """Return what is to be said of one prompt, and which of its words are lost. `folder`: where the starter painter's captions are."""
    if folder is None:
        wordless = note_wordless(prompt)
        return {"kind": "careful", "text": translate(wordless, spoken), "cure": ""} if wordless else None, ()
    match = starter_words.match_prompt(folder, prompt, negative)
    if match.note is None:
        return None, match.lost
    english = say_to_all(
        "starter.english", "{name} reads English and simple Chinese. Describe the picture in one of them.", name=word_name(chosen.title)
    )
    said = [*([english] if starter_words.is_foreign(prompt) else []), match.note, *match.reasons]
    offered = list(match.offered)
    seen: ProblemView = {
        "kind": "careful" if offered else "note", "text": join(spoken, *redact_sentences(person, *said)),
        "cure": "use:sd15" if offered else "", "captions": offered,
    }  # fmt: skip
    return seen, match.lost


def preview_url(job: str, progress: Progress) -> str:
    if progress.preview is None or progress.end is not None:
        return ""
    return f"{job_file_url(job, progress.preview.path)}?step={progress.preview.step}"


def fit_html(
    found: Forecast,
    seconds: float | None,
    share: float,
    few_steps: float,
    spoken: Language,
    elsewhere: Sequence[Sentence] = (),
    lines: int = 1,
) -> str:
    """Word a forecast as HTML: whether it fits here and `elsewhere`, how long it takes, also as a list of so many lines, what "quicker" (`share`) and
    a few-steps LoRA leave of that, what would make it fit."""
    level, name = {
        "fits": ("right", text("fit.fits", "fits", spoken)),
        "tight": ("careful", text("fit.tight", "tight", spoken)),
        "no": ("wrong", text("fit.no", "too large", spoken)),
    }[found.fit]
    if seconds is None:
        time = say("fit.unknown", "Time unknown: this has not been measured on this machine yet.")
    elif 1 < lines <= LIST_MOST:
        time = say(
            "fit.seconds-list",
            "About {time}, based on earlier runs; {total} for {count} {count:picture|pictures}, one for each line.",
            time=word_duration(seconds),
            total=word_duration(lines * seconds),
            count=lines,
        )
    else:
        time = say("fit.seconds", "About {time}, based on earlier runs.", time=word_duration(seconds))
    saved = []
    if few_steps < 1:
        saved.append(
            say("fit.few-steps", "Its few-steps LoRA saves about {percent}% of the steps' time.", percent=round(100 - 100 * few_steps))
        )
    if share < 1:
        saved.append(say("fit.quicker", "Quicker saves about {percent}% of the steps' time.", percent=round(100 - 100 * share)))
    words = join(spoken, found.sentence, *elsewhere, time, *saved, *(cure.sentence for cure in found.cures))
    return (
        f'<p class="h-check"><span class="h-badge {level}">{html.escape(name)}</span> <span class="h-soft">{html.escape(words)}</span></p>'
    )


def job_view(desk: Desk, job: str, person: Person, spoken: Language) -> PictureView:
    """Return a picture job with its place in the queue, its results, those of its list of prompts, and what is left of the list that was stopped
    with it. What was begun together is counted together at the end."""
    progress = desk.keeper.get_progress(job)
    group = desk.jobs.find_group(job, person)
    drawn = picture_view(job, progress, spoken, desk.keeper.folder(job) / GUIDE)
    if (end := drawn["end"]) is not None and end["kind"] == "finished" and len(group) > 1:
        made = list_made_by(desk, group)
        drawn["end"] = {**end, "made": len(made), "elapsed_s": sum({each.job: each.elapsed_s for each in made}.values())}
    return {
        **drawn,
        "place": desk.jobs.queue_position(job),
        "results": results_view(desk, job) if progress.end else [],
        "listed": results_view(desk, *group) if group is desk.jobs.listed and len(group) > 1 else [],
        "left": desk.jobs.list_left(job) if isinstance(progress.end, Stopped) else [],
    }


def list_made_by(desk: Desk, jobs: Sequence[str]) -> list[Creation]:
    """List what jobs made, in their order, but for what is gone."""
    return [each for job in jobs for each in desk.keeper.shelf.list_of_job(job) if each.condition != "missing"]


def results_view(desk: Desk, *jobs: str) -> list[PictureResultView]:
    made = list_made_by(desk, jobs)
    return [
        {"url": f"hearth/creation/{each.id}", "id": each.id, "name": each.path.name, "text": each.text, **views.read_made(str(each.path))}
        for each in made
    ]


def grid_view(desk: Desk, person: Person, spoken: Language) -> GridView | None:
    grid = desk.jobs.grids.get(person.name)
    if grid is None:
        return None
    cells, stopped, cut = list[CellView](), list[str](), {job.id for job in desk.keeper.interrupted}
    for row in grid.jobs:
        for job in row:
            progress, found = desk.keeper.get_progress(job), results_view(desk, job)
            failed = progress.end is not None and not found and job not in cut
            if failed and isinstance(progress.end, Stopped):
                stopped.append(job)
            cells.append({"result": found[0] if found else None, "failed": failed, "preview": preview_url(job, progress)})
    across, down = (translate(paint_form.AXES[axis], spoken) for axis in (grid.across, grid.down))
    current = desk.jobs.find_current("picture", person)
    return {
        "across": across,
        "columns": grid.columns,
        "down": down,
        "rows": grid.rows,
        "cells": cells,
        "stopped": stopped,
        "latest": any(current in row for row in grid.jobs),
    }


def interrupted_view(desk: Desk, person: Person, spoken: Language) -> InterruptedView | None:
    """Return all interrupted jobs as one: a person resumes or discards them together. `kept`: whether anything of them is finished."""
    jobs = desk.keeper.interrupted
    if not jobs:
        return None
    group = desk.jobs.find_group(jobs[0].id, person)
    words = views.shorten_text(jobs[0].request)
    if len(group) > 1 and jobs[0].request.kind == "picture" and {job.id for job in jobs} <= {*group}:
        counts = {"total": len(group), "done": sum(bool(results_view(desk, job)) for job in group)}
        if group is desk.jobs.listed:
            said = say("interrupted.list", "A list of {total} {total:picture|pictures} was interrupted: {done} done.", **counts)
        else:
            said = say("interrupted.grid", "A grid of {total} {total:picture|pictures} was interrupted: {done} done.", **counts)
    elif len(jobs) > 1:
        said = say("interrupted.many", "{n} {n:job was|jobs were} interrupted. The first: {text}", n=len(jobs), text=words)
    else:
        said = say("interrupted.text", "This job was interrupted: {text}", text=words)
    kept = any(list_made(desk.keeper.folder(job.id)) for job in jobs)
    return {"jobs": [job.id for job in jobs], "text": translate(said, spoken), "kept": kept}


def list_grid_files(desk: Desk, person: Person) -> tuple[tuple[str, ...], tuple[str, ...], list[Path | None]] | None:
    grid = desk.jobs.grids.get(person.name)
    if grid is None:
        return None
    files = [desk.keeper.shelf.list_of_job(job) for row in grid.jobs for job in row]
    return grid.columns, grid.rows, [found[0].path if found else None for found in files]


def estimate_picture(desk: Desk, request: PictureRequest, model: Model, plan: Plan | None) -> float | None:
    """Estimate how long a picture takes by what was made with the model on such a plan; None where nothing was."""
    past = desk.keeper.shelf.find(Search(kind="picture", model=model.id, most=8))
    return estimate_seconds(request, model, list_alike(past, plan) if plan is not None else (), plan=plan)


def forecast_html(desk: Desk, request: PictureRequest, person: Person, spoken: Language, lines: int = 1) -> str:
    """Forecast the next picture, as HTML, and as many as its prompt has lines, where a list is offered; the running job's plan is for the Machine tab."""
    setup = desk.keeper.read_setup(desk.machine.read_choice(person), yields=not person.owner)
    if setup is None:
        return ""
    model = find_model(desk.keeper.home, request)
    kinds.require_kind(desk.keeper.home, request, model)
    found = make_forecast(setup, request, model)
    if setup.hardware.pretended:
        named = say(
            "forecast.simulated",
            "{forecast} That is the memory of the simulated {machine}.",
            machine=setup.hardware.name,
            forecast=found.sentence,
        )
        found = dataclasses.replace(found, sentence=named)
    if person.owner and request.upscale > 1:
        request = dataclasses.replace(request, enlarger=find_enlarger(desk.keeper.home, request.enlarger))
    seconds, few_steps = estimate_picture(desk, request, model, found.plan), compare_few_steps(request, model)
    elsewhere = redact_sentences(person, *look_elsewhere(desk.others, request)) if found.fit == "no" else ()
    return fit_html(found, seconds, estimate_share(request, model), few_steps, spoken, elsewhere, lines if person.owner else 1)
