"""What the window says of a picture that is too large for this computer: who has room for it, or that another computer could help."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.base.sentence import say
from app.base.trouble import NoMemory
from app.compat.machine.pretended import MACHINES
from app.engine.jobs.events import Failed
from app.engine.jobs.request import PictureRequest
from app.machines.helping_machine import HelpingMachine
from app.ui.live_view import guest_view, owner_view
from app.ui.page.translate import Language
from app.ui.page.view_types.live import Live
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER, Person
from app.ui.tabs.paint_view import forecast_html
from tests.support.guests import desk_at

LARGE, SMALL = PictureRequest("a ball", "sdxl"), PictureRequest("a ball", "sd15")
ADA = Person("visitor-a-b", owner=False)
COULD = {"en": "Another computer of yours that has more memory can do it", "zh": "你另一台内存更大的电脑可以来做"}
HAS_ROOM = {"en": "Attic has room for it.", "zh": "Attic 的内存放得下。"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(hardware=MACHINES["m1-8gb"])
        yield desk


def let_in(desk: Desk, roomy: str) -> None:
    """Know a machine; `roomy`: the name that the spreader answers with."""
    known = [HelpingMachine("a", "Attic", online=True)]
    desk.others.hub = SimpleNamespace(list_machines=lambda: known, pairing=None)  # type: ignore[assignment]
    spreader = SimpleNamespace(find_room=lambda request: roomy, explain_unused=lambda machine: None, models=SimpleNamespace(title=str))
    desk.others.spreader = spreader  # type: ignore[assignment]


@pytest.mark.parametrize("spoken", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_the_forecast_says_who_has_room(desk: Desk, spoken: Language) -> None:
    assert COULD[spoken] in forecast_html(desk, LARGE, OWNER, spoken) and COULD[spoken] not in forecast_html(desk, SMALL, OWNER, spoken)
    assert COULD[spoken] not in forecast_html(desk, LARGE, ADA, spoken)
    let_in(desk, "Attic")
    said = forecast_html(desk, LARGE, OWNER, spoken)
    assert HAS_ROOM[spoken] in said and COULD[spoken] not in said and "too large" in forecast_html(desk, LARGE, OWNER, "en")
    assert HAS_ROOM[spoken] not in forecast_html(desk, SMALL, OWNER, spoken)
    assert "Attic" not in forecast_html(desk, LARGE, ADA, spoken), "which machines there are is nothing for guests"
    let_in(desk, "")
    said = forecast_html(desk, LARGE, OWNER, spoken)
    assert "Attic" not in said and COULD[spoken] not in said


def end_text(live: Live) -> str:
    """Return what the page says of how the picture ended."""
    end = live["picture"]["end"]
    assert end is not None and end["kind"] == "failed"
    return end["text"]


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_a_failure_for_lack_of_memory_names_the_way_out(desk: Desk, spoken: Language) -> None:
    failed = Failed.of(NoMemory(say("session.no-memory", "There is not enough memory."), cure="smaller"))
    for person in (OWNER, ADA):
        desk.keeper.board.post(desk.jobs.begin(LARGE if person is OWNER else PictureRequest("a ball"), person), failed)
    assert COULD[spoken] in end_text(owner_view(desk, OWNER, spoken, False))
    assert COULD[spoken] not in end_text(guest_view(desk, ADA, spoken))
    let_in(desk, "")
    assert COULD[spoken] not in end_text(owner_view(desk, OWNER, spoken, False))


def test_another_failure_says_nothing_of_other_computers(desk: Desk) -> None:
    desk.keeper.board.post(desk.jobs.begin(LARGE, OWNER), Failed(say("test.other", "Something else.")))
    assert end_text(owner_view(desk, OWNER, "en", False)) == "Something else."


def test_the_strip_says_which_other_machine_is_at_work_while_this_one_is_idle(desk: Desk) -> None:
    """It said "ready" while a helper painted."""
    let_in(desk, "")
    attic = HelpingMachine("a1", "Attic", online=True, tasks=("t",), doing="a red\n ball")
    box = HelpingMachine("b1", "Box", online=True, tasks=("u",), doing="a red ball")
    known: list[HelpingMachine] = []
    desk.others.hub.list_machines = lambda: known  # type: ignore[union-attr, method-assign]
    desk.keeper.status.set(ready=True)

    def doing(spoken: Language = "en") -> str:
        return str(owner_view(desk, OWNER, spoken, False)["strip"]["doing"])

    assert doing() == "ready"
    known[:] = [attic, HelpingMachine("c1", "Cellar", online=True)]
    assert (doing(), doing("zh")) == ("Attic is working on: a red ball", "Attic 正在处理：a red ball")
    known[:] = [attic, box]
    assert doing() == "Attic, Box are working on: a red ball"
    known[:] = [attic, HelpingMachine("b2", "Attic", online=True, tasks=("v",), doing="[S1] Hello.")]
    assert doing() == "Attic (a1), Attic (b2) are working on: a red ball · [S1] Hello."
    assert guest_view(desk, ADA, "en")["strip"]["doing"] == "ready", "nothing for guests"
    known[:] = [HelpingMachine("a1", "Attic", tasks=("t",), doing="a red ball")]
    assert doing() == "ready", "it is away"
    known[:] = [attic]
    for state, said in (({"obstacle": say("test.full", "full")}, "paused"), ({"obstacle": None, "ready": False}, "engine starting")):
        desk.keeper.status.set(**state)
        assert doing() == said
    desk.keeper.status.set(ready=True, job=desk.jobs.begin(PictureRequest("a ball"), OWNER))
    assert doing() == "starting", "what the engine here does comes first"
