"""A part whose length cannot be right is begun anew with other seeds; only what stays wrong is told and marked."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from app.base.paths import home
from app.engine.jobs.control import Control
from app.engine.jobs.doubt import word_doubt
from app.engine.jobs.events import Event, PartDone, Sound, Step, Stopped
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import SpeechRequest
from app.engine.kinds import parts_of
from app.engine.speech.families.dia.decoder import Decoding
from app.engine.speech.family import VoiceContext
from app.engine.speech.run import loader
from app.engine.speech.run.part import ROOM, ROOM_S, SEEDS_APART
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.text import script
from tests.support import speech_fixtures
from tests.support.speech_fixtures import find_result, run

folders, plan, speakers = speech_fixtures.folders, speech_fixtures.plan, speech_fixtures.speakers
ONE = "[S1] One two three, and four."
TWO = f"{ONE} (pause 0.1s) [S1] Five six seven, and eight."
SEED = 5
RIGHT, EARLY = 60, 4
"""They count frames."""
Begun = list[tuple[int, int]]
"""Each attempt has its seed and its most rows here."""


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[int, int]], Begun]:
    """Let a seed's speech end after so many frames, and any other's never; without weights, so that it is quick."""

    def begin(frames: Mapping[int, int]) -> Begun:
        begun: Begun = []
        make = Decoding.__init__
        ends: dict[int, float] = {}

        def remember(decoding: Decoding, model: Any, device: str, given: Any, *more: Any) -> None:
            make(decoding, model, device, given, *more)
            begun.append((given.seed, given.new_rows))
            ends[id(decoding)] = frames.get(given.seed, float("inf"))

        def compute(decoding: Decoding) -> torch.Tensor:
            logits = torch.zeros(1, len(decoding._delays), decoding._codes)
            logits[0, 0, decoding._eos] = 100.0 if decoding.made >= ends[id(decoding)] else -100.0
            return logits.expand(2, -1, -1).clone()

        monkeypatch.setattr(Decoding, "__init__", remember)
        monkeypatch.setattr(Decoding, "compute_logits", compute)
        return begun

    return begin


def attempt(number: int, seed: int = SEED) -> int:
    return seed + number * SEEDS_APART


def speak(speaker: loader.Speaker, job: Path, text: str = ONE, **settings: Any) -> list[Event]:
    return run(speaker, job, text=text, **{"max_frames": None, **settings})


def list_parts(events: list[Event]) -> list[PartDone]:
    return [each for each in events if isinstance(each, PartDone)]


@pytest.mark.slow
@pytest.mark.parametrize("name", speech_fixtures.SHAPES)
@pytest.mark.parametrize("wrong", [{}, {attempt(0): EARLY, attempt(1): EARLY}], ids=["too long", "too short"])
def test_a_part_that_comes_out_wrong_is_begun_anew(
    name: str, wrong: dict[int, int], speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path
) -> None:
    begun = ending({**wrong, attempt(2): 2 * RIGHT if name == "dia" else RIGHT})
    first = speak(speakers[name], tmp_path / "first")
    assert [seed for seed, _ in begun] == [attempt(0), attempt(1), attempt(2)]
    (part,) = list_parts(first)
    assert part.doubt == "" and part.seed == SEED and word_doubt(part) is None
    saved = spoken_parts.find(Path(part.path))
    assert saved is not None and saved.frames == (2 * RIGHT if name == "dia" else RIGHT)
    again = speak(speakers[name], tmp_path / "again")
    assert Path(list_parts(again)[0].path).read_bytes() == Path(part.path).read_bytes(), "the same request gives the same sound"
    assert not list((tmp_path / "first").glob("unfinished-*"))


def test_what_outgrows_its_text_ends_at_that_row_and_only_the_last_attempt_may_go_on(
    speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path
) -> None:
    begun, limits = ending({}), speakers["starter"].limits
    (part,) = list_parts(speak(speakers["starter"], tmp_path))
    seconds = script.parse_script(ONE, limits).parts[0].seconds
    most = [(rows - limits.delay - 2) / limits.frame_rate for _, rows in begun]
    assert most == pytest.approx([limits.outgrown * seconds] * 3 + [ROOM * seconds + ROOM_S], abs=1 / limits.frame_rate)
    assert part.doubt == "long" and part.whole and part.seconds == pytest.approx(most[-1], abs=2 / limits.frame_rate)
    told = word_doubt(part)
    assert told is not None and str(told).startswith("Part 1 ran on, much ")
    assert list_parts(speak(speakers["starter"], tmp_path)) == [part] and len(begun) == 4, "running again does nothing twice"


def test_a_last_attempt_that_ends_by_itself_is_kept_whole_and_marked(
    speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path
) -> None:
    limits = speakers["starter"].limits
    beyond = int((limits.outgrown * script.parse_script(ONE, limits).parts[0].seconds + 1) * limits.frame_rate)
    ending(dict.fromkeys(map(attempt, range(4)), beyond))
    (part,) = list_parts(speak(speakers["starter"], tmp_path))
    assert part.doubt == "long" and part.seconds == pytest.approx(beyond / limits.frame_rate)


def test_words_that_stay_left_out_are_told(speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path) -> None:
    begun = ending(dict.fromkeys(map(attempt, range(4)), EARLY))
    (part,) = list_parts(speak(speakers["starter"], tmp_path))
    assert len(begun) == 4 and part.doubt == "short" and str(word_doubt(part)).startswith("Part 1 ended much sooner ")


def test_whoever_sets_the_length_gets_it(speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path) -> None:
    begun = ending({})
    events = speak(speakers["starter"], tmp_path, max_frames=400)
    assert len(begun) == 1 and list_parts(events)[0].doubt == ""


@pytest.mark.slow
def test_a_mark_stays_while_other_parts_are_redone_and_goes_with_its_own_redo(
    speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path
) -> None:
    """Of the two parts both are wrong."""
    ending({88: RIGHT, 89: RIGHT})
    first = list_parts(speak(speakers["starter"], tmp_path / "first", TWO))
    assert [part.doubt for part in first] == ["long", "long"]
    request = SpeechRequest(TWO, model=str(tmp_path / "gone"), seed=SEED)
    assert [part.doubt for part in parts_of(home(tmp_path / "home"), request, tmp_path / "first").done()] == ["long", "long"]
    events = speak(speakers["starter"], tmp_path / "second", TWO, seed=88, only_parts=(1,), keep=tuple(part.path for part in first))
    progress = Progress()
    for event in events:
        progress = progress.add(event)
    assert [part.doubt for part in progress.parts] == ["long", ""]
    keep = tuple(part.path for part in progress.parts)
    third = list_parts(speak(speakers["starter"], tmp_path / "third", TWO, seed=88, only_parts=(0,), keep=keep))
    assert {part.index: part.doubt for part in third} == {0: "", 1: ""}


def stop_after(rows: int, monkeypatch: pytest.MonkeyPatch, control: Control) -> None:
    step, made = Decoding.step, [0]

    def stopping(decoding: Decoding) -> None:
        step(decoding)
        made[0] += 1
        if made[0] == rows:
            control.stop()

    monkeypatch.setattr(Decoding, "step", stopping)


@pytest.mark.slow
@pytest.mark.parametrize("into", [-40, 0, 30], ids=["in the first attempt", "as it outgrows", "in the second attempt"])
def test_a_stopped_part_goes_on_with_the_attempt_it_was_at(
    into: int, speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = ending({attempt(2): RIGHT})
    whole = find_result(speak(speakers["starter"], tmp_path / "whole"))
    outgrown = begun[0][1]
    begun.clear()
    control = Control()
    with monkeypatch.context() as patch:
        stop_after(outgrown + into, patch, control)
        stopped = speak(speakers["starter"], tmp_path / "job", control=control)
    assert isinstance(stopped[-1], Stopped) and not any(part.whole or part.doubt for part in list_parts(stopped))
    assert [seed for seed, _ in begun] == [attempt(0), attempt(1)][: 1 + (into > 0)]
    at = len(begun) - 1
    begun.clear()
    resumed = speak(speakers["starter"], tmp_path / "job")
    assert [seed for seed, _ in begun] == [attempt(number) for number in range(at, 3)]
    assert list_parts(resumed)[0].doubt == ""
    assert (sound.read(find_result(resumed))[0] == sound.read(whole)[0]).all()


@pytest.mark.parametrize("given", [4, "x", None, *(pytest.param(each, marks=pytest.mark.slow) for each in (-1, [1], 1.5))])
def test_an_odd_attempt_begins_the_part_anew(
    given: object, speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have come from another machine."""
    begun, control = ending({attempt(0): RIGHT}), Control()
    with monkeypatch.context() as patch:
        stop_after(30, patch, control)
        speak(speakers["starter"], tmp_path, control=control)
    kept = tmp_path / "unfinished-000.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "attempt": given}))
    (part,) = list_parts(speak(speakers["starter"], tmp_path))
    assert part.whole and {seed for seed, _ in begun} == {attempt(0)}


def test_a_later_attempt_is_further_than_the_one_before(tmp_path: Path) -> None:
    def measure(state: dict[str, Any]) -> int:
        (tmp_path / "unfinished-000.json").write_text(json.dumps(state))
        return spoken_parts.measure_begun(tmp_path / "unfinished-000.json")

    assert measure({"rows": [[1]] * 300}) == 300
    assert measure({"attempt": 1, "rows": [[1]]}) > measure({"attempt": 0, "rows": [[1]] * 3000})


def test_who_listens_hears_no_words_twice(speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path) -> None:
    """Pieces of a new attempt take the place of those before, under names of their own; what was sent is not sent again."""
    ending({attempt(1): 3 * RIGHT // 2})
    progress, names = Progress(), list[str]()
    for event in speak(speakers["starter"], tmp_path):
        progress = progress.add(event)
        if isinstance(event, Sound):
            names.append(event.path)
            assert {piece.attempt for piece in progress.sounds} == {event.attempt} and progress.sounds[0].start_s == 0
    assert len(names) == len(set(names)) > 3 and not progress.sounds


def test_the_time_left_grows_by_what_is_begun_anew(
    speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.speech.run.part.STEP_EVERY_S", 0.0)
    begun = ending({attempt(1): RIGHT, SEED + 1: RIGHT})
    steps = [each for each in speak(speakers["starter"], tmp_path, TWO) if isinstance(each, Step)]
    first = [step for step in steps if step.part == 0]
    assert all(one.done <= other.done <= other.total for one, other in itertools.pairwise(first)), "what was given up was work"
    before, after = first[begun[0][1] - 1], first[begun[0][1]]
    assert after.total - after.done > before.total - before.done, "all of the part is to be made once more"


@pytest.mark.slow
def test_a_part_that_is_likely_wrong_is_no_example_for_the_next(
    speakers: dict[str, loader.Speaker], ending: Callable[..., Begun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three parts the second runs on; the third goes on from the first."""
    ending({SEED: 2 * RIGHT, SEED + 2: 2 * RIGHT})
    heard: list[list[int]] = []

    def choose(part: object, clip: object, before: Iterable[VoiceContext]) -> VoiceContext | None:
        found = list(before)
        heard.append([len(each.codes) for each in found])
        return found[0] if found else None

    monkeypatch.setattr("app.engine.speech.run.run.choose_context", choose)
    parts = list_parts(speak(speakers["dia"], tmp_path, f"{TWO} (pause 0.1s) {ONE}"))
    assert [part.doubt for part in parts] == ["", "long", ""]
    assert heard[2][0] == 2 * RIGHT < heard[2][1]
