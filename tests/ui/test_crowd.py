"""The page, its live answers and Stop answer at once, whatever programs and guests do; what was accepted is in the journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.ui.state.jobs_desk import PROGRAMS_MOST
from tests.endurance import worst_day
from tests.support import crowd, patient_http
from tests.support.crowd import Place

pytestmark = pytest.mark.long

AT_ONCE_S = 0.5
BUSY_S = 2.5
"""It may take so long where other tests run beside it. The old server answered nothing for as long as the calls waited."""
OWNERS_PATHS = ["/v1/audio/speech", "/sdapi/v1/txt2img", "/gradio_api/queue/join", "/gradio_api/run/predict", "/hearth/check"]
GUESTS_PATHS = ["/gradio_api/queue/join", "/gradio_api/run/predict", "/hearth/check"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with crowd.hearth(tmp_path) as place:
        yield place


def cookie_of(place: Place) -> str:
    with patient_http.Client(base_url=place.share) as client:
        assert client.post("/hearth/login", data={"password": place.password}).status_code == 303
        return f"hearth_guest={client.cookies['hearth_guest']}"


def attack(place: Place, name: str, *given: Any, most_s: float = AT_ONCE_S) -> Any:
    """Look at the page while an attack goes on, until its outcome is known."""
    with crowd.crowd(name, *given) as begin, crowd.looking(place.owner) as looks:
        told = begin()
    print(f"\n{name}{given[1:]}: {told}\n  " + "\n  ".join(map(looks.describe, crowd.PATHS)))
    assert not looks.faults, looks.faults[:5]
    for path in crowd.PATHS:
        assert looks.percentile(path, 0.99) < most_s, f"{name}: {looks.describe(path)}"
    return told


@pytest.mark.slow
def test_sixty_of_each(place: Place) -> None:
    """More than the server has threads. The full counts and times are in the slow tests: here the machine may be busy."""
    assert attack(place, "waiting_calls", place.owner, 60, 3.0, most_s=BUSY_S) == {"waits": 60}
    assert attack(place, "gradio_joins", place.owner, 60, most_s=BUSY_S) == {"200": 60}
    assert len(place.jobs()) == 120, "what was accepted is in the journal, also of calls whose client is gone"
    for address, paths, cookie in ((place.owner, OWNERS_PATHS, ""), (place.share, GUESTS_PATHS, cookie_of(place))):
        told = attack(place, "nested_bodies", address, paths, 1, 2 << 20, cookie, most_s=BUSY_S)
        assert set(told) <= {"400", "413", "cut off"}


@pytest.mark.slow
def test_two_hundred_waiting_calls(place: Place) -> None:
    told = attack(place, "waiting_calls", place.owner, PROGRAMS_MOST + 50, 20.0)
    assert told == {"waits": PROGRAMS_MOST, "503 retry": 50} and len(place.jobs()) == PROGRAMS_MOST


@pytest.mark.slow
def test_five_hundred_joins_of_gradios_queue(place: Place) -> None:
    told = attack(place, "gradio_joins", place.owner, 500)
    assert told == {"200": PROGRAMS_MOST, "503": 500 - PROGRAMS_MOST} and len(place.jobs()) == PROGRAMS_MOST


@pytest.mark.slow
def test_by_gradios_own_client(place: Place) -> None:
    told = attack(place, "submit", place.owner, 500)
    assert told == {"Queue is full! Please try again.": 500 - PROGRAMS_MOST} and len(place.jobs()) == PROGRAMS_MOST


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "given"), [("nested_bodies", (OWNERS_PATHS, 5, 2 << 20)), ("slow_readers", (50, 20.0)), ("half_open", (500, 20.0))]
)
def test_other_lines(place: Place, name: str, given: tuple[Any, ...]) -> None:
    attack(place, name, place.owner, *given)


@pytest.mark.slow
def test_a_guests_worst_day_beside_an_owner_who_notices_nothing(tmp_path: Path) -> None:
    worst_day.live_through(tmp_path, seed=1, seconds=60)
