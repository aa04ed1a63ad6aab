"""A family of voices is a package and a row: one that is nothing like Dia is found, checked, planned, forecast, spoken, stopped, gone on with and
redone by what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.base.paths import home
from app.base.trouble import Trouble
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.types import Choice
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Failed, Finished, Note, PartDone, Sound, Step, Stopped
from app.engine.jobs.request import SpeechRequest, VoicePrompt
from app.engine.kinds import check, kind_of, parts_of
from app.engine.models import catalog
from app.engine.models.forecast import make_forecast
from app.engine.models.on_disk import find_limits
from app.engine.models.planned import Setup, find_need, make_plan
from app.engine.models.voice_families import FAMILIES
from app.engine.session.session import Session
from app.engine.speech.sound import arrived, sound, spoken_parts
from app.engine.speech.text import script
from app.ui.state.person import OWNER
from app.ui.tabs.speak_view import script_view
from tests.support import open_session
from tests.support.guests import desk_at
from tests.support.tone_voice import ROW, save_tone
from tests.support.tone_voice.voice import Humming

pytestmark = pytest.mark.long

TEXT = "This is the first sentence, which is quite long. Here comes a second one, about as long as the first. And a third."
Run = Callable[..., list[Event]]
session = open_session.session


@pytest.fixture
def tone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(FAMILIES, "tone", ROW)
    return save_tone(tmp_path / "tone")


@pytest.fixture
def run(session: Session, tone: Path, tmp_path: Path) -> Run:
    def run(job: str, control: Control | None = None, stop_after: int = 0, text: str = TEXT, **more: Any) -> list[Event]:
        control, events = control or Control(), list[Event]()
        request = SpeechRequest(text, model=str(tone), **{"seed": 3, **more})
        for event in session.run(request, Choice(), control, tmp_path / job, lambda model, plan: None):
            events.append(event)
            if stop_after and sum(isinstance(each, Sound) for each in events) == stop_after:
                control.stop()
        return events

    return run


def list_parts(events: list[Event]) -> list[PartDone]:
    return [each for each in events if isinstance(each, PartDone)]


def list_verdicts() -> list[Verdict]:
    """What makes a plan pack Dia's layers, capture its rows and multiply in half precision."""
    half = ("float32", "float16", "bfloat16")
    faster = [Verdict(Subject.quicker(name, dtype), True, 0.5) for name in ("graph", "int8") for dtype in half]
    right = [Verdict(Subject.path(name, dtype), True, 0.0) for name in ("row/graph", "quantised/int8", "linear/float16") for dtype in half]
    return [*faster, *right]


def read_result(events: list[Event]) -> tuple[sound.Samples, int]:
    assert isinstance(events[-1], Finished), events[-1]
    return sound.read(Path(events[-1].files[0]))


def test_it_is_found_and_listed(tone: Path, tmp_path: Path) -> None:
    found = catalog.find(str(tone))
    assert (found.kind, found.family, found.title, found.path) == ("speech", "tone", "tone", str(tone))
    limits = find_limits(home(tmp_path / "home").create(), str(tone))
    assert (limits.name, limits.rate, limits.frame_rate, limits.speakers) == ("Tone", 24_000, 50, 1)
    with desk_at(tmp_path / "desk") as desk:
        desk.settings.put({"models": [str(tone)]})
        assert (found.title, found.id) in desk.models.list_choices("speech")


def test_only_its_folder_without_the_row_is_unknown(tone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(FAMILIES, "tone")
    with pytest.raises(Trouble, match="does not know the model"):
        catalog.find(str(tone))


def test_what_it_cannot_do_is_said_before_it_is_loaded(tone: Path, tmp_path: Path) -> None:
    place, model = home(tmp_path / "home").create(), catalog.find(str(tone))
    request = SpeechRequest(TEXT, model=str(tone))
    check(place, request, model)
    check(place, replace(request, text="[S1] One. [S2] Two."), model)  # each has a voice of its own, of this model or another
    with pytest.raises(Trouble, match="Tone cannot imitate recordings"):
        check(place, replace(request, voice=VoicePrompt(str(tmp_path / "clip.wav"), "Hello.")), model)
    said = script.parse_script("Привіт (laughs) [gong] — “yes”.", find_limits(place, str(tone))).problems
    words = " ".join(str(each.sentence) for each in said)
    assert "Tone does not know the sound (laughs)" in words and "does not know the tag [gong]" in words
    assert "Dia" not in words and "[S2]" not in words and "П" not in words


def test_every_machine_has_a_plan_for_it(tone: Path, tmp_path: Path) -> None:
    """Also where it would not fit, and where Dia's weights would be packed, widened, sent, or a row of it captured."""
    place, found, large = home(tmp_path / "home").create(), catalog.find(str(tone)), 3_000_000_000
    model, seen = (
        replace(found, parts=(replace(found.parts[0], parameters=large, linear=large),)),
        {each.subject: each for each in list_verdicts()},
    )
    for name, machine in MACHINES.items():
        assert find_need(place, machine, model).batch == 1, "there is no guidance"
        for choice, itself in ((Choice(), True), (Choice(quantised="int8"), False)):
            plan = make_plan(place, machine, model, choice, seen, itself=itself)
            speech = plan.of("speech")
            assert speech is not None and speech.storage == speech.compute and speech.linear is None, name
            assert (plan.quantised, plan.row) == ("none", "calls") and plan.offload in ("none", "model"), name
        with pytest.raises(Trouble):
            make_plan(place, machine, model, Choice(offload="group"))


def test_it_is_forecast_as_the_page_shows_it(tone: Path, tmp_path: Path, session: Session) -> None:
    model, request = catalog.find(str(tone)), SpeechRequest(TEXT, model=str(tone))
    forecast = make_forecast(Setup(session.home, session.hardware), request, model)
    assert forecast.fit == "fits" and forecast.plan is not None
    seconds = len(TEXT.encode()) / 15
    kind = kind_of(request)
    assert kind.measure_work(session.home, request) == pytest.approx(50 * seconds, rel=0.05)
    assert not any(part.chained for part in kind.plan_parts(session.home, request)), "each can be made on another computer"
    with desk_at(tmp_path / "desk") as desk:
        view = script_view(desk, TEXT, str(tone), OWNER, "en")
        second = script_view(desk, "A [S2] gong.", str(tone), OWNER, "en")
        named = script_view(desk, "Anna: Hello there.\nBen: Hello!", str(tone), OWNER, "en")
    assert (view["tags"], view["nonverbals"]) == (["[S1]"], []) and "of speech" in view["about"]
    assert not second["marks"] and [each["name"] for each in second["cast"]] == ["S1", "S2"]
    assert [each["cure"] for each in named["problems"]] == ["voices"]


def test_it_speaks_as_long_as_its_text_and_is_heard_meanwhile(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.speech.run.part.STEP_EVERY_S", 0.0)
    events = run("job")
    samples, rate = read_result(events)
    parts = list_parts(events)
    assert rate == 24_000 and len(parts) > 1 and all(part.whole and not part.doubt for part in parts)
    assert sum(part.seconds for part in parts) == pytest.approx(len(TEXT.encode()) / 15, rel=0.05)
    sounds, steps = [each for each in events if isinstance(each, Sound)], [each for each in events if isinstance(each, Step)]
    assert {each.part for each in sounds} == set(range(len(parts))) and len(sounds) > len(parts), "in pieces"
    assert steps[-1].total == pytest.approx(steps[-1].done, rel=0.2) and steps[-1].realtime == pytest.approx(steps[-1].rate / 50)
    pieces = np.concatenate([sound.read(Path(each.path))[0] for each in sounds if each.part == 0])
    assert np.array_equal(pieces, sound.read(Path(parts[0].path))[0])
    assert np.array_equal(read_result(run("again"))[0], samples), "a seed means the same"
    assert not np.array_equal(read_result(run("other", seed=4))[0], samples)


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 2, 6])
def test_stopped_anywhere_it_ends_as_if_it_had_not_been(run: Run, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    step, steps = Humming.step, list[int]()

    def count(making: Humming) -> None:
        step(making)
        steps.append(making.made)

    monkeypatch.setattr(Humming, "step", count)
    whole, _ = read_result(run("whole"))
    needed, steps[:] = len(steps), []
    stopped = run("job", stop_after=after)
    assert isinstance(stopped[-1], Stopped) and stopped[-1].files and len(steps) < needed
    events = run("job")
    assert np.array_equal(read_result(events)[0], whole)
    assert len(steps) == needed, "no step is made twice"
    first = next(each for each in events if isinstance(each, Sound))
    assert first.start_s > 0, "what was heard before is not sent again"


def test_a_state_of_anybodys_begins_anew(run: Run, tmp_path: Path) -> None:
    whole, _ = read_result(run("whole"))
    run("job", stop_after=1)
    (begun,) = (tmp_path / "job").glob("unfinished-*")
    begun.write_text(begun.read_text("utf-8").replace('"rows": [', '"rows": [99, '), "utf-8")
    assert np.array_equal(read_result(run("job"))[0], whole)


def test_a_setting_that_it_lacks_is_told_and_ignored(run: Run) -> None:
    plain, _ = read_result(run("plain"))
    events = run("guided", guidance=4.0, temperature=1.0)
    assert [str(each.sentence) for each in events if isinstance(each, Note)] == ["Tone has no guidance; yours was ignored."]
    assert np.array_equal(read_result(events)[0], plain)


def test_one_part_is_redone_and_the_others_stay(run: Run, session: Session, tone: Path, tmp_path: Path) -> None:
    first = list_parts(run("first"))
    keep = tuple(part.path for part in first)
    events = run("second", seed=9, only_parts=(1,), keep=keep)
    second = {part.index: part for part in list_parts(events)}
    same = [Path(second[part.index].path).read_bytes() == Path(part.path).read_bytes() for part in first]
    assert same == [index != 1 for index in range(len(first))] and isinstance(events[-1], Finished)
    request = SpeechRequest(TEXT, model=str(tone), seed=9, only_parts=(1,), keep=keep)
    assert [part.index for part in parts_of(session.home, request, tmp_path / "second").done()] == list(range(len(first)))


def test_codes_that_cannot_be_kept_are_done_without(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a model that makes numbers, and no codes: a part still says how long it is, and is found again."""
    whole, _ = read_result(run("whole"))
    codes = Humming.get_codes
    monkeypatch.setattr(Humming, "get_codes", lambda making, first, last: codes(making, first, last).float())
    events = run("job")
    assert np.allclose(read_result(events)[0], whole, atol=1e-3)
    for part in list_parts(events):
        saved = spoken_parts.find(Path(part.path))
        assert saved is not None and saved.codes is None and saved.frames == round(50 * part.seconds) and arrived.is_sound(Path(part.path))
    assert not any(isinstance(each, Sound) for each in run("job")), "running again does nothing twice"


def test_a_part_made_elsewhere_is_the_same_one(run: Run, session: Session, tone: Path) -> None:
    parts = list_parts(run("whole"))
    request = SpeechRequest(TEXT, model=str(tone), seed=3)
    kind = kind_of(request)
    (alone,) = list_parts(run("alone", seed=parts[1].seed, only_parts=(1,)))
    assert kind.ask_alone(request, 1, parts[1].seed).only_parts == (1,)
    assert kind.is_part([Path(alone.path)], alone.text, alone.seed) and alone.text == parts[1].text


def test_damaged_weights_are_told(run: Run, tone: Path) -> None:
    weights = tone / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    (*_, end) = run("job")
    assert isinstance(end, Failed)
    assert str(tone) in str(end.sentence)
