"""Pause on the page: what keeps jobs waiting, whether the battery is asked about, and what the owner's buttons do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.routing import Route

from app.base.sentence import say
from app.ui.page.translate import Language, join, translate
from app.ui.page.view_types.live import PauseView
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import act_route
from app.ui.state.pausing import word_minutes

HELPERS: Final = say("pause.helpers", "Computers that help this one go on.")
NIGHT: Final = (22 * 60, 7 * 60)
"""Pause offers these hours first."""


class PauseAsked(Asked):
    act: Word
    until: Word = ""
    when: Word = "any"
    begin: Word = ""
    end: Word = ""


ACTIONS: Final[dict[str, Callable[[Desk, PauseAsked], None]]] = {
    "hold": lambda desk, asked: desk.pausing.hold(asked.until),
    "resume": lambda desk, asked: desk.pausing.go_on(),
    "plan": lambda desk, asked: desk.pausing.plan(asked.when, asked.begin, asked.end),
    "wait": lambda desk, asked: desk.pausing.answer_battery(wait=True),
    "go-on-battery": lambda desk, asked: desk.pausing.answer_battery(wait=False),
}


def routes(desk: Desk) -> list[Route]:
    return [act_route(desk, "/hearth/pause/{act}", ACTIONS, PauseAsked)]


def pause_view(desk: Desk, spoken: Language) -> PauseView:
    rules, reason = desk.pausing.rules, desk.keeper.state.paused
    begin, end = rules.get("hours") or NIGHT
    return {
        "reason": join(spoken, reason, *([HELPERS] if desk.others.known else [])) if reason is not None else "",
        "asks": translate(say("pause.asks", "This computer runs on its battery. Pause until it is plugged in?"), spoken)
        if desk.pausing.asks
        else "",
        "when": "hours" if rules.get("hours") else "away" if rules.get("away") else "any",
        "begin": word_minutes(begin),
        "end": word_minutes(end),
        "plugged": bool(rules.get("plugged")),
    }
