"""What machines say of a request before they get it: the helper's own forecast, what of it is believed, and who comes first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.base.duration import word_duration
from app.base.paths import home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.compat.machine.pretended import MACHINES
from app.compat.planning.types import AUTO, Chunk
from app.engine.jobs.events import Failed, Finished, Step
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest, VoicePrompt, to_json
from app.engine.models.planned import Setup
from app.machines import outlook
from app.machines.helping_machine import HelpingMachine
from app.machines.outlook import (
    LOADING_S,
    LONGEST_S,
    UNKNOWN_S,
    WAITED_MOST_S,
    Asking,
    Foresight,
    Outlook,
    estimate_shared,
    explain,
    explain_unused,
    is_endless,
    is_sooner,
    put_in_order,
    read_outlook,
)
from app.machines.tasks.portable_models import read_id
from tests.support.other_functions import set_in

GIB = 1 << 30
PICTURE = PictureRequest("a ball", "starter-painter", steps=10)
SPEECH = SpeechRequest("[S1] hello. good morning. " * 40, "starter-voice")


@pytest.mark.parametrize(("at", "missing", "others", "left_s"), [
    ((0, 0, 1), 8, [], 80.0), ((0, 0, 1), 8, [10.0, 10.0], 80 / 3), ((2, 5, 1), 4, [10.0], 17.5), ((0, 5, 4), 8, [10.0], 30.0),
    ((0, 0, 1), 8, [None], 40.0), ((0, 0, 1), 8, [0.0], 0.008), ((6, 5, 1), 8, [], 15.0),
])  # fmt: skip
def test_the_time_left_of_a_shared_batch_counts_who_shares_it(
    at: tuple[int, int, int], missing: int, others: list[float | None], left_s: float
) -> None:
    """Eight pictures of ten seconds each; `at`: picture, steps done of ten, pictures at once."""
    part, done, together = at
    eta_s = 10.0 * (8 - part - together * done / 10)
    step = Step(done, 10, 1.0, "steps", eta_s, Reading(), part=part, parts=8, at_once=together)
    assert estimate_shared(step, missing, others) == pytest.approx(left_s, rel=1e-3)


def test_the_time_left_of_a_script_counts_who_shares_it() -> None:
    step = Step(100, 400, 10.0, "frames", 30.0, Reading(), part=1, parts=4)
    assert estimate_shared(step, 3, [10.0]) == pytest.approx(15.0)
    assert estimate_shared(Step(0, 0, 0.0, "steps", None, Reading()), 3, [10.0]) is None


def foresee(folder: Path, hardware: Hardware | None, loaded: str = "", chunk: Chunk = AUTO) -> Foresight:
    state, shelf = SimpleNamespace(hardware=hardware, model=loaded), SimpleNamespace(find=lambda search: [])
    setup = None if hardware is None else Setup(home(folder), hardware, chunk=chunk, yields=True)
    keeper = SimpleNamespace(home=home(folder), state=state, shelf=shelf, read_setup=lambda choice, yields: setup if yields else None)
    return Foresight(keeper, require_id)  # type: ignore[arg-type]


def require_id(name: str) -> str:
    if not (id_ := read_id(name)):
        raise Trouble(say("test.none", "no model"))
    return id_


def ask(foresight: Foresight, request: Request) -> object:
    return foresight.answer(json.dumps({"request": to_json(request.without_files()), "files": {}}))


def test_a_helper_speaks_of_its_own_memory_and_models(tmp_path: Path) -> None:
    small = Hardware(kind="cpu", name="small", memory_bytes=4 * GIB, free_bytes=2 * GIB, ram_bytes=4 * GIB)
    big = PictureRequest("a ball", "flux1-schnell")
    assert ask(foresee(tmp_path, small, "starter-painter"), PICTURE) == {"fit": "fits", "loaded": True, "seconds": None}
    assert ask(foresee(tmp_path, small), PICTURE) == {"fit": "fits", "loaded": False, "seconds": None}
    assert read_outlook(ask(foresee(tmp_path, small), big)) == Outlook("no")
    assert ask(foresee(tmp_path, None), PICTURE) == {"fit": "fits", "loaded": False, "seconds": None}, "its engine is starting"


def test_a_helper_counts_its_own_chunk_size_unless_that_would_give_way(tmp_path: Path) -> None:
    """768 x 768 is refused at this size, so the work for another machine runs at automatic; at 512 it runs, and memory is too small."""
    for side, fit in ((768, "fits"), (512, "no")):
        asked = PictureRequest("a", "sd15", width=side, height=side)
        assert foresee(tmp_path, MACHINES["m1-8gb"], chunk=1 << 16).foresee(asked).fit == fit
        assert foresee(tmp_path, MACHINES["m1-8gb"]).foresee(asked).fit == "fits"


@pytest.mark.parametrize("body", ["", "{}", "[]", '{"request": 5}', json.dumps({"request": to_json(PictureRequest("a", "no-such-model"))})])
def test_an_odd_question_has_no_answer(body: str, tmp_path: Path) -> None:
    assert foresee(tmp_path, Hardware(kind="cpu", name="x")).answer(body) is None


def test_it_learns_its_speed_from_what_it_makes_for_others(tmp_path: Path) -> None:
    foresight = foresee(tmp_path, Hardware(kind="cpu", name="x"))
    foresight.note(PICTURE, Finished((), 9.0, 2.0, "steps", 0))
    foresight.note(SPEECH, Finished((), 9.0, 40.0, "frames", 0))
    for useless in (Finished((), 1.0, 0.0, "steps", 0), Finished((), 1.0, math.inf, "steps", 0), Failed(say("test.fails", "it fails"))):
        foresight.note(PICTURE, useless)
    assert read_outlook(ask(foresight, PICTURE)) == Outlook(seconds=5.0)
    assert read_outlook(ask(foresight, PictureRequest("a", "starter-painter", steps=20, batch=3))) == Outlook(seconds=30.0)
    whole, part = (read_outlook(ask(foresight, each)) for each in (SPEECH, SpeechRequest(SPEECH.text, SPEECH.model, only_parts=(1,))))
    assert whole is not None and part is not None and whole.seconds is not None and part.seconds is not None
    assert 0 < part.seconds < whole.seconds / 5


def test_a_question_names_no_file() -> None:
    asked = PictureRequest("a ball", image="/home/me/secret.png", mask="/home/me/mask.png").without_files()
    assert "/home/me" not in json.dumps(to_json(asked))
    assert "clip" not in json.dumps(to_json(SpeechRequest("[S1] hello.", voice=VoicePrompt("clip.wav", "hello.")).without_files()))


@pytest.mark.parametrize(
    "given",
    [
        None,
        5,
        [],
        {"fit": "perhaps"},
        {"seconds": -1},
        {"seconds": 1e308},
        {"seconds": math.inf},
        {"seconds": math.nan},
        {"seconds": "soon"},
        {"more": 1},
    ],
)
def test_odd_answers_are_not_believed(given: object) -> None:
    assert read_outlook(given) is None
    assert read_outlook({"fit": "tight", "loaded": True, "seconds": 3}) == Outlook("tight", True, 3.0)


def name(*outlooks: Outlook | None) -> list[str]:
    machines = [HelpingMachine(str(place), "") for place in range(len(outlooks))]
    return [each.id for each in put_in_order(machines, {str(place): each for place, each in enumerate(outlooks) if each is not None})]


def test_the_one_that_would_be_done_first_comes_first() -> None:
    assert name(Outlook(loaded=True, seconds=9), Outlook(loaded=True, seconds=3), Outlook("tight", True, 5)) == ["1", "2", "0"]
    assert name(Outlook("no", True, 1), Outlook(loaded=True, seconds=50)) == ["1"], "what does not fit is not asked for"
    assert name(Outlook(seconds=3), Outlook(loaded=True, seconds=3 + LOADING_S - 1)) == ["1", "0"], "loading takes time"
    assert name(Outlook(seconds=3), Outlook(loaded=True, seconds=3 + LOADING_S + 1)) == ["0", "1"]
    assert name(Outlook(loaded=True, seconds=9), None, Outlook(loaded=True), Outlook(loaded=True, seconds=10)) == ["0", "2", "3", "1"]
    assert name(None, Outlook(), Outlook(loaded=True)) == ["2", "0", "1"]


def test_each_choice_has_its_sentence() -> None:
    said = [explain(each) for each in (None, Outlook(), Outlook(loaded=True), Outlook(seconds=2.1), Outlook(loaded=True, seconds=2.1))]
    assert len({each.key for each in said}) == 5 and all(dict(each.values) == {"time": word_duration(2.1)} for each in said[3:])


@pytest.mark.parametrize(
    ("there", "fetches", "outlook", "key"),
    [
        ({"sd15@1"}, False, None, None),
        ({"sd15@1"}, False, Outlook("tight"), None),
        ({"sd15@1"}, True, Outlook("no"), "unused.memory"),
        ({"sd15@2"}, True, None, "unused.revision"),
        ({"sdxl@1"}, False, None, "unused.lacks"),
        ({"sdxl@1"}, True, None, None),
    ],
)
def test_a_machine_that_cannot_do_a_job_has_a_reason(there: set[str], fetches: bool, outlook: Outlook | None, key: str | None) -> None:
    said = explain_unused(HelpingMachine("a", "", models=frozenset(there), fetches=fetches), "sd15@1", "SD 1.5", outlook)
    assert (said.key if said is not None else None) == key
    assert said is None or dict(said.values) == {"model": "SD 1.5"}


class Switchboard:
    """A hub that notes what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.tell: Callable[[str, str, object], None]

    def ask(self, machine: str, question: str, body: str, answered: Callable[[str, str, object], None]) -> None:
        self.asked.append((machine, question))
        self.tell = answered


def test_nobody_is_chosen_before_it_has_answered_or_was_silent_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, woken = SimpleNamespace(now_s=100.0), list[int]()
    set_in(monkeypatch, outlook, "time", monotonic=lambda: clock.now_s)
    hub, machines = Switchboard(), [HelpingMachine(each, "") for each in ("a", "b")]
    board = Asking(hub.ask, lambda: woken.append(1))

    def choose() -> list[str]:
        return [each.id for each in board.choose("job", PICTURE, machines)]

    assert choose() == [] == choose() and hub.asked == [("a", "job"), ("b", "job")], "each is asked once"
    hub.tell("b", "job", {"fit": "fits", "loaded": True, "seconds": 3})
    hub.tell("c", "job", {"fit": "fits"})
    hub.tell("a", "other", {"fit": "fits"})
    assert choose() == ["b"] and woken and board.find("job", "b") == Outlook(loaded=True, seconds=3.0) and board.find("job", "a") is None
    clock.now_s += outlook.PATIENCE_S + 0.1
    assert choose() == ["b", "a"]
    clock.now_s += outlook.AGAIN_S
    assert choose() == ["b", "a"] and len(hub.asked) == 4, "asked again, and used meanwhile"
    hub.tell("b", "job", {"fit": "no"})
    assert choose() == ["a"]
    for number in range(outlook.KEPT_MOST + 1):
        board.choose(str(number), PICTURE, machines)
    assert board.find("job", "b") is None


@pytest.mark.parametrize(
    ("here", "there", "gone_s", "sooner"),
    [
        (Outlook("fits", True, 10.0), Outlook("fits", True, 100.0), 0.0, True),
        (Outlook("fits", True, 10.0), Outlook("fits", True, 100.0), 89.0, True),
        (Outlook("fits", True, 10.0), Outlook("fits", True, 100.0), 91.0, False),
        (Outlook("fits", True, 100.0), Outlook("fits", True, 10.0), 9.0, False),
        (Outlook("fits", True, 100.0), Outlook("fits", True, 10.0), 99.0, False),
        (Outlook("fits", True, 100.0), Outlook("fits", True, 10.0), 101.0, True),
        (Outlook("fits", True, 30.0), None, 29.0, False),
        (Outlook("fits", True, 30.0), Outlook("fits", True), 31.0, True),
        (Outlook("fits", False, 10.0), Outlook("fits", True, 100.0), 75.0, False),
        (Outlook("fits", True), Outlook("fits", True, 100.0), 1000.0, False),
        (Outlook("no", True, 1.0), Outlook("fits", True, 100.0), 1000.0, False),
        (Outlook(seconds=None), None, UNKNOWN_S - 1, False),
        (Outlook(seconds=None), None, UNKNOWN_S + 1, True),
        (Outlook(seconds=None), Outlook(seconds=9000.0, loaded=True), 17_999.0, False),
        (Outlook(seconds=None), Outlook(seconds=9000.0, loaded=True), 18_001.0, True),
        (Outlook(seconds=None), Outlook(seconds=LONGEST_S / 2), WAITED_MOST_S + 1, True),
        (Outlook("no"), None, WAITED_MOST_S + 1, False),
    ],
)
def test_who_would_be_done_sooner(here: Outlook, there: Outlook | None, gone_s: float, sooner: bool) -> None:
    assert is_sooner(here, there, gone_s) is sooner


@pytest.mark.parametrize(
    ("said_s", "limit_s"), [(None, WAITED_MOST_S), (10.0, UNKNOWN_S), (UNKNOWN_S, 4 * UNKNOWN_S), (LONGEST_S, WAITED_MOST_S)]
)
def test_nobody_waits_without_end(said_s: float | None, limit_s: float) -> None:
    assert not is_endless(said_s, limit_s) and is_endless(said_s, limit_s + 1)
