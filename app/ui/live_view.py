"""The data that the page requests every second: the strip, the shown jobs, the queue; less of it for guests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from app.base import notices
from app.base.sentence import say_to_all
from app.base.trouble import NoMemory, Trouble
from app.compat.machine.chunk_curve import SIZES
from app.compat.planning.types import AUTO, Choice
from app.engine.jobs.events import Failed, Note
from app.engine.jobs.owners import is_guest
from app.engine.jobs.progress import Progress
from app.engine.keeper.state import EngineState
from app.engine.models.catalog import name_model
from app.engine.models.model_names import word_name
from app.ui.page import views
from app.ui.page.translate import Language, join, text, translate
from app.ui.page.view_types.live import JobsView, Live, RemarkView
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import NOT_MADE, redact_for, redact_sentences
from app.ui.state.other_machines import LARGER
from app.ui.state.person import OWNER, Person
from app.ui.tabs import enlarge, machine_view, other_machines, paint_view, pause, speak_view
from app.ui.tabs.curve_view import slider_step

_log = logging.getLogger(__name__)
_logged: set[tuple[str, str]] = set()
CHART_POINTS: Final = 120
"""Charts are sent only while someone views them."""


def owner_view(desk: Desk, person: Person, spoken: Language, with_charts: bool) -> Live:
    """Show the owner everything: the machine, their jobs, what was interrupted, what keeps jobs from running."""
    state = desk.keeper.state
    progress = desk.keeper.get_progress(state.job) if state.job else None
    looked_at = list(desk.keeper.status.charts.points)[-CHART_POINTS:] if with_charts else []
    answer: Live = {
        "strip": views.strip_view(
            state,
            progress,
            translate(word_name(name_model(_find_loaded(state, progress))), spoken),
            desk.machine.read_choice(OWNER),
            desk.keeper.chunk,
            spoken,
        ),
        "standing": views.blocker_view(state, spoken),
        "charts": views.charts_view(looked_at, spoken),
        "chunk": {"size": desk.keeper.chunk, "step": slider_step(desk.keeper.chunk), "sizes": SIZES},
        "checked": {"done": state.checked[0], "total": state.checked[1]},
        "notices": [{"id": str(each), "text": translate(each, spoken)} for each in notices.list_notices()],
    }
    with _alone("queue"):
        answer["queue"] = desk.jobs.list_queue(person, spoken)
    with _alone("making"):
        answer["making"] = desk.jobs.find_running(person, spoken)
    with _alone("pause"):
        answer["pause"] = pause.pause_view(desk, spoken)
    with _alone("interrupted"):
        answer["interrupted"] = paint_view.interrupted_view(desk, person, spoken)
    with _alone("strip"):
        running = desk.keeper.journal.find(state.job) if state.job else None
        answer["strip"]["of_guest"] = running is not None and is_guest(running.owner)
        answer["strip"]["guest_name"] = desk.jobs.find_nickname(running.owner) if running is not None else ""
        if progress is not None and progress.step is not None and progress.end is None:
            answer["strip"]["eta_s"] = desk.others.estimate_left(state.job, progress.step)
        elsewhere = other_machines.describe_elsewhere(desk.others)
        if not state.job and state.ready and state.obstacle is None and elsewhere is not None:
            answer["strip"]["doing"] = translate(elsewhere, spoken)
    with _alone("machines"):
        answer["machines"] = other_machines.machines_view(desk.others, spoken)
    jobs = _draw_jobs(desk, person, spoken)
    for view in filter(None, (jobs.get("speech"), jobs.get("picture"))):
        if (drawn := view["end"]) is not None and drawn["kind"] == "failed":
            end = desk.keeper.get_progress(view["job"]).end
            if isinstance(end, Failed) and isinstance(end.trouble, NoMemory) and not desk.others.known:
                drawn["text"] = join(spoken, end.sentence, *end.objections, LARGER)
            drawn["cure"] = desk.models.resolve_cure(drawn["cure"])
    answer = {**answer, **jobs}
    with _alone("grid"):
        if grid := paint_view.grid_view(desk, person, spoken):
            answer["grid"] = grid
    with _alone("enlarging"):
        answer["enlarging"] = enlarge.enlarging_view(desk)
    with _alone("measuring"):
        if desk.measuring.job:
            answer["measuring"] = machine_view.measuring_view(desk, spoken)
    return answer


@contextmanager
def _alone(area: str) -> Iterator[None]:
    """Draw one area of the page: where that fails it stays as it was, and all others are drawn. The page asks each second, so each
    kind of fault is logged once."""
    try:
        yield
    except Trouble:
        pass  # its record is gone: it is not shown
    except Exception as fault:
        if (once := (area, type(fault).__name__)) not in _logged:
            _logged.add(once)
            _log.exception("The page's %s cannot be drawn", area)


def _find_loaded(state: EngineState, progress: Progress | None) -> str:
    """Return the loaded model: a job that makes steps has its own loaded, also before the engine's next beat tells it."""
    return progress.model if progress is not None and progress.end is None and progress.step is not None else state.model


def guest_view(desk: Desk, person: Person, spoken: Language) -> Live:
    """Show a guest their own work and whether the engine is busy; nothing of the machine or of others."""
    state = desk.keeper.state
    own = state.job if state.job and desk.jobs.owns(state.job, person) else ""
    strip = views.strip_view(replace(state, job=own), desk.keeper.get_progress(own) if own else None, "", Choice(), AUTO, spoken)
    queue = desk.jobs.list_queue(person, spoken)
    if queue and not own and not views.is_held(state):
        strip["doing"] = translate(say_to_all("guest.place", "your job is number {place} in the queue", place=queue[0]["place"]), spoken)
    elif state.job and not own:
        strip["doing"] = text("guest.busy", "busy with another person's job", spoken)
    answer: Live = {
        "strip": {**strip, "guest": True, "memory": None, "machine": "", "precision": "", "attention": "", "chunk": "", "plan": ""},
        "queue": queue,
        "making": desk.jobs.find_running(person, spoken),
    }
    jobs = _draw_jobs(desk, person, spoken)
    for view in filter(None, (jobs.get("speech"), jobs.get("picture"))):
        view["said"] = _remarks_for(desk, view["job"], person, spoken)
        if (drawn := view["end"]) is not None and drawn["kind"] == "failed":
            view["end"] = {**drawn, "text": _failure_for(desk, view["job"], person, spoken), "cure": ""}
    return {**answer, **jobs}


def _draw_jobs(desk: Desk, person: Person, spoken: Language) -> JobsView:
    """Draw this person's current speech and picture as their tabs do."""
    drawn: JobsView = {}
    speech, picture = (desk.jobs.find_current(kind, person) for kind in ("speech", "picture"))
    with _alone("speech"):
        if speech:
            drawn["speech"] = speak_view.job_view(desk, speech, spoken)
    with _alone("picture"):
        if picture:
            drawn["picture"] = paint_view.job_view(desk, picture, person, spoken)
    return drawn


def _remarks_for(desk: Desk, job: str, person: Person, spoken: Language) -> list[RemarkView]:
    """Return what a guest is told while a job runs: notes on the request, as what a prompt was read as. The rest is the owner's machine's."""
    progress = desk.keeper.get_progress(job)
    notes = [each.sentence for each in progress.said if isinstance(each, Note)]
    heard = tuple(map(Note, redact_sentences(person, *notes)))
    return views.remarks_view(replace(progress, said=heard), spoken)


def _failure_for(desk: Desk, job: str, person: Person, spoken: Language) -> str:
    end = desk.keeper.get_progress(job).end
    trouble = end.trouble if isinstance(end, Failed) else Trouble(NOT_MADE)
    heard = redact_for(person, trouble)
    return join(spoken, heard.sentence, *heard.objections)
