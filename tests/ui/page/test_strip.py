"""Test that the strip says what is true now: the chunk that ran beside the one asked for, and nothing of an engine that died."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from app.base.sentence import say
from app.compat.machine.meter import Reading
from app.compat.machine.pretended import machine
from app.compat.planning.decide import decide
from app.compat.planning.types import AUTO, Choice, Chunk, Ran
from app.engine.jobs.events import RESTART, Adjusted, PartDone, Step
from app.engine.jobs.request import SpeechRequest
from app.engine.keeper.state import EngineState
from app.engine.models.catalog import find
from app.engine.models.model import describe_need
from app.ui.live_view import owner_view
from app.ui.page.views import attention_text, chunk_now_text, chunk_text, machine_text, strip_memory, word_precision
from app.ui.state.person import OWNER
from app.ui.tabs import other_machines, paint_view
from tests.support.guests import desk_at

CARD = machine("gtx-1060")
GIB = 1 << 30
SD15 = describe_need(find("sd15"))


@pytest.mark.parametrize(
    ("ran", "asked", "words"),
    [
        (None, AUTO, "automatic chunk"),
        (None, 64, "automatic chunk (64 requested)"),
        (Ran("chunked", 64, 1024), 64, "chunk 64"),
        (Ran("chunked", 64, 1024), 512, "chunk 64 (512 requested)"),
        (Ran("chunked", 64, 1024), AUTO, "chunk 64"),
        (Ran("chunked", 1023, 1024), 64, "chunk 1023 (64 requested)"),
        (Ran("whole", 1024, 1024), AUTO, "not chunked"),
        (Ran("whole", 1024, 1024), 4096, "not chunked"),
        (Ran("whole", 1024, 1024), 64, "not chunked (64 requested)"),
        (Ran("whole", 1, 1), 64, "one query at a time"),
    ],
)
def test_the_strip_says_what_ran_and_what_is_asked_for_now(ran: Ran | None, asked: Chunk, words: str) -> None:
    """Moved to 64 in the middle of a run, the strip went on saying "not chunked" until the next step, and gave no size where all ran at once."""
    step = Step(1, 20, 2.0, "steps", 9.0, Reading(), ran=ran)
    assert chunk_text(decide(CARD, SD15, Choice()), step, asked, "en") == words
    assert ("requested" in words) == ("要求" in chunk_text(decide(CARD, SD15, Choice()), step, asked, "zh"))


def test_a_simulated_machine_is_called_that_in_the_strip() -> None:
    real = dataclasses.replace(CARD, pretended="")
    assert machine_text(real, None, "en") == CARD.name
    assert machine_text(CARD, None, "en") == f"{CARD.name} (simulated)"
    assert machine_text(CARD, decide(CARD, SD15, Choice()), "zh") == f"{CARD.name}（模拟）"


def test_what_engineers_read_stands_by_itself(tmp_path: Path) -> None:
    """Names, precision and attention were one line: "Starter voice, float32", "AMD EPYC, folded GQA, one query at a time"."""
    plan = decide(CARD, SD15, Choice())
    assert attention_text(plan, None, AUTO, "en") == "folded GQA, automatic chunk" and word_precision(plan) == plan.dtype
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(ready=True, hardware=CARD, model="sd15", plan=plan)
        strip = owner_view(desk, OWNER, "en", with_charts=False)["strip"]
        assert (strip["model"], strip["precision"], strip["machine"]) == (find("sd15").title, plan.dtype, f"{CARD.name} (simulated)")


def test_the_line_below_the_slider_names_both() -> None:
    step = Step(1, 20, 2.0, "steps", 9.0, Reading(), ran=Ran("chunked", 64, 1024))
    assert chunk_now_text(step, 512, "en") == "Requested: 512. The largest call processes 64 of 1024 queries at a time."
    assert chunk_now_text(step, AUTO, "en").startswith("Requested: automatic.")


@pytest.mark.parametrize(("free_gib", "device_gib"), [(15.3, None), (8.4, None), (4.0, 1.0), (2.0, 1.0)])
def test_a_total_is_a_total(free_gib: float, device_gib: float | None) -> None:
    """It was what is used plus what is free: "0.7 of 16 GB" became 9.1 on a computer of 24, as other programs came and went."""
    device = None if device_gib is None else int(device_gib * GIB)
    used = GIB if device is None else device
    reading = Reading(process_bytes=GIB, device_bytes=device, limit_bytes=used + int(free_gib * GIB), system_bytes=24 * GIB)
    real = dataclasses.replace(CARD, pretended="")
    assert strip_memory(EngineState(hardware=real, reading=reading))["total"] == (24 * GIB if device is None else real.memory_bytes)


def test_speech_takes_one_query_at_a_time_in_all_places() -> None:
    """The strip said so beside "46 of 46 queries", the script read at once before the first row. A call that was split is told."""
    read, split = (Step(1, 20, 2.0, "frames", 9.0, Reading(), ran=ran) for ran in (Ran("whole", 46, 46), Ran("chunked", 64, 300)))
    assert chunk_text(decide(CARD, SD15, Choice()), read, AUTO, "en") == "one query at a time" and chunk_now_text(read, AUTO, "en") == ""
    assert chunk_text(decide(CARD, SD15, Choice()), split, 64, "en") == "chunk 64" and "64 of 300" in chunk_now_text(split, 64, "en")


def test_a_dead_engines_speed_time_and_row_do_not_stand_on(tmp_path: Path) -> None:
    """Until the next engine's first step the strip showed the last one's frames/s and time left, and the row said it was speaking."""
    with desk_at(tmp_path) as desk:
        job = desk.jobs.begin(SpeechRequest("[S1] One. (pause 1s) [S2] Two."), OWNER)
        board, status = desk.keeper.board, desk.keeper.status
        status.set(ready=True, hardware=CARD, job=job, model="")
        board.set_plan(job, "dia-1.6b", decide(CARD, describe_need(find("dia-1.6b")), Choice()))
        board.post(job, PartDone(0, 2, str(tmp_path / "part-000.wav"), "[S1] One.", 5, 1.0))
        board.post(job, Step(80, 120, 86.0, "frames", 34.0, Reading(), realtime=1.0, part=1, parts=2))
        seen = owner_view(desk, OWNER, "en", with_charts=False)
        assert (seen["strip"]["rate"], seen["strip"]["eta_s"]) == ("86 frames/s, 1.0x realtime", 34.0)
        assert seen["strip"]["model"].startswith("Dia"), "what speaks is loaded, though the beat has not told it yet"
        assert [part["state"] for part in seen["speech"]["parts"]] == ["done", "now"]
        board.post(job, Adjusted(RESTART, say("test.died", "It died.")))
        seen = owner_view(desk, OWNER, "en", with_charts=False)
        assert (seen["strip"]["rate"], seen["strip"]["eta_s"], seen["strip"]["model"]) == ("", None, "")
        assert (seen["strip"]["doing"], seen["speech"]["doing"]) == ("starting", "")
        assert [part["state"] for part in seen["speech"]["parts"]] == ["done", "waits"], "what was finished is there"
        assert [each["kind"] for each in seen["speech"]["said"]] == ["adjusted"]


def test_the_charts_tell_each_move_of_the_slider_and_each_fallback_once(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        charts = desk.keeper.status.charts
        for chunk in (300, 64, 64, AUTO):
            desk.machine.set_chunk(chunk)
            if chunk in (300, AUTO):
                charts.mark(say("fallback.smaller-chunk", "Attention works in smaller chunks."))
            charts.add(None, Reading(), desk.keeper.chunk)
        seen = owner_view(desk, OWNER, "en", with_charts=True)["charts"]
        smaller = "Attention works in smaller chunks."
        assert [each["marks"] for each in seen] == [[smaller], ["chunk size 64"], [], [smaller, "chunk size automatic"]]


def test_an_area_that_cannot_be_drawn_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A step of another machine whose speed was NaN was the end of the whole page for as long as that machine had a task."""
    with desk_at(tmp_path) as desk:
        whole = owner_view(desk, OWNER, "en", with_charts=True)
        for area, owner in (("machines", other_machines), ("queue", desk.jobs), ("interrupted", paint_view), ("grid", paint_view)):
            name = {"machines": "machines_view", "queue": "list_queue"}.get(area, f"{area}_view")
            with monkeypatch.context() as patch, caplog.at_level("ERROR"):
                patch.setattr(type(owner) if area == "queue" else owner, name, lambda *_: 1 / 0)
                for _ in range(3):
                    assert owner_view(desk, OWNER, "en", with_charts=True).keys() == whole.keys() - {area}
            assert [each.getMessage() for each in caplog.records] == [f"The page's {area} cannot be drawn"], "told each second"
            caplog.clear()
