"""Sound is made beside the loop: in order, one piece at a time, with its faults told, and not where it would gain nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, PartDone, Sound, Stopped
from app.engine.jobs.request import SpeechRequest
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.families.dia.codec import Codec
from app.engine.speech.families.dia.decoder import Decoding
from app.engine.speech.run import loader, sounding
from app.engine.speech.sound import sound
from app.engine.speech.sound.sound import Samples
from tests.support import speech_fixtures
from tests.support.other_functions import set_in
from tests.support.speech_fixtures import LONG, find_result, run

folders, plan, speakers = speech_fixtures.folders, speech_fixtures.plan, speech_fixtures.speakers


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As for a small voice on a computer with a core to spare."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    set_in(monkeypatch, sounding, "os", cpu_count=lambda: 2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("device", "threads", "cores"), [("cuda", 1, 2), ("mps", 1, 2), ("cpu", 2, 2), ("cpu", 1, 1)])
def test_where_it_gains_nothing_the_loop_does_it(
    device: str, threads: int, cores: int, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sounding.open_beside("cpu", "cpu") as beside:
        assert beside is not None
    torch.set_num_threads(threads)
    set_in(monkeypatch, sounding, "os", cpu_count=lambda: cores)
    with sounding.open_beside(device, device) as beside:
        assert beside is None


@pytest.mark.parametrize(("device", "threads", "cores"), [("cuda", 2, 2), ("mps", 2, 2), ("cuda", 1, 1)])
def test_a_codec_that_left_the_device_works_beside_it(
    device: str, threads: int, cores: int, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(threads)
    set_in(monkeypatch, sounding, "os", cpu_count=lambda: cores)
    with sounding.open_beside(device, "cpu") as beside:
        assert beside is not None
    with sounding.open_beside("cpu", device) as beside:
        assert beside is None, "only one thread may use the device"


@pytest.mark.slow
def test_frames_are_made_while_a_piece_is_decoded(
    speakers: dict[str, loader.Speaker], tmp_path: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second piece waits for ten more rows: in the loop they would never come."""
    step, decode, rows, more = Decoding.step, Codec.decode, [0], threading.Event()
    decoded_by: list[str] = []

    def count(decoding: Decoding) -> None:
        step(decoding)
        rows[0] += 1
        if len(decoded_by) == 2:
            rows.append(rows[0])
        if len(rows) > 10:
            more.set()

    def wait(codec: Codec, *args: Any) -> Samples:
        decoded_by.append(threading.current_thread().name)
        if len(decoded_by) == 2:
            assert more.wait(30)
        return decode(codec, *args)

    monkeypatch.setattr(Decoding, "step", count)
    monkeypatch.setattr(Codec, "decode", wait)
    events = run(speakers["starter"], tmp_path, text=LONG, max_frames=300)
    assert find_result(events) and more.is_set()
    assert decoded_by[0] == "MainThread" and decoded_by[1].startswith("sounding"), "the first is not kept waiting"
    assert not [each for each in threading.enumerate() if each.name.startswith("sounding")], "the thread ends with the run"


@pytest.mark.slow
def test_the_same_pieces_in_the_same_order(
    speakers: dict[str, loader.Speaker], tmp_path: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = run(speakers["starter"], tmp_path / "beside", text=LONG, max_frames=300)
    set_in(monkeypatch, sounding, "os", cpu_count=lambda: 1)
    within = run(speakers["starter"], tmp_path / "within", text=LONG, max_frames=300)

    def tell(events: list[Event]) -> list[tuple[Any, ...]]:
        return [
            (event.part, event.start_s, event.seconds, Path(event.path).name) if isinstance(event, Sound) else (event.index,)
            for event in events
            if isinstance(event, Sound | PartDone)
        ]

    assert tell(beside) == tell(within) and len(tell(beside)) > 4
    assert np.array_equal(sound.read(find_result(beside))[0], sound.read(find_result(within))[0])


@pytest.mark.slow
def test_a_fault_beside_the_loop_is_told_and_the_run_resumes(
    speakers: dict[str, loader.Speaker], tmp_path: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = find_result(run(speakers["starter"], tmp_path / "whole", text=LONG, max_frames=300))
    decode, calls = Codec.decode, [0]

    def fail(codec: Codec, *args: Any) -> Samples:
        calls[0] += 1
        if calls[0] == 2:
            raise NumbersBroke(0, "codec")
        return decode(codec, *args)

    with monkeypatch.context() as patch, pytest.raises(NumbersBroke):
        patch.setattr(Codec, "decode", fail)
        run(speakers["starter"], tmp_path / "broken", text=LONG, max_frames=300)
    assert not [each for each in threading.enumerate() if each.name.startswith("sounding")]
    again = run(speakers["starter"], tmp_path / "broken", text=LONG, max_frames=300)
    assert np.abs(sound.read(find_result(again))[0] - sound.read(whole)[0]).max() < 1e-3, "cut elsewhere, and a tiny codec reaches further"
    heard = [event for event in again if isinstance(event, Sound) and event.part == 0]
    assert heard[0].start_s < 1, "it goes on where the sound broke off"


def test_stop_keeps_the_piece_that_is_being_made(speakers: dict[str, loader.Speaker], tmp_path: Path, one_thread: None) -> None:
    control, events = Control(), list[Event]()
    request = SpeechRequest(text=LONG, seed=5, max_frames=300)
    for event in speakers["starter"].run(request, control, None, tmp_path):
        events.append(event)
        if isinstance(event, Sound) and len([each for each in events if isinstance(each, Sound)]) == 2:
            control.stop()
    last = events[-1]
    assert isinstance(last, Stopped) and last.seconds > 0
    heard = sum(event.seconds for event in events if isinstance(event, Sound))
    part = next(event for event in events if isinstance(event, PartDone))
    assert part.seconds == pytest.approx(heard)
