"""Play all on a script whose later parts were not known when it began: each voice as loud as before, all voices alike, and nothing clipped."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import numpy as np
import pytest
import soundfile
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.engine.jobs.events import PartDone, Sound
from app.engine.jobs.journal import Job
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.kind import list_segments
from app.engine.speech.sound import join_sound, sound
from app.engine.speech.sound.heard_part import measure_file
from app.engine.speech.sound.join_sound import Finish
from app.ui import routes
from app.ui.state import json_routes
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs import hear_script
from tests.support.guests import desk_at

RATE = 16_000
TONE = np.sin(2 * np.pi * 150 * np.arange(RATE) / RATE).astype(np.float32)


@contextmanager
def hearing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, loudness: float | None
) -> Iterator[tuple[Desk, TestClient, Job, Path]]:
    """A script that is being spoken, as it is asked for by its owner's page."""
    with desk_at(tmp_path) as desk:
        monkeypatch.setattr(hear_script, "who", lambda request: OWNER)
        monkeypatch.setattr(json_routes, "who", lambda request: OWNER)
        job = desk.keeper.journal.queue(SpeechRequest(script, loudness_lufs=loudness), desk.machine.read_choice(OWNER))
        desk.keeper.journal.withdraw(job.id)
        folder = desk.keeper.folder(job.id)
        folder.mkdir(parents=True)
        yield desk, TestClient(Starlette(routes=routes.routes(desk))), job, folder


@pytest.mark.parametrize(
    ("second", "loudness", "peaks", "joined"),
    [(1, -14.0, (0.325, 0.454), (0.072, 0.454)), (2, -14.0, (0.325, 0.325), (0.325, 0.325)), (2, None, (0.15, 0.95), (0.15, 0.95))],
    ids=["one voice", "two voices", "as they were made"],
)
def test_a_loud_part_after_a_quiet_one_is_not_clipped(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    second: int,
    loudness: float | None,
    peaks: tuple[float, float],
    joined: tuple[float, float],
) -> None:
    """The first part is raised as it is all that is known of its voice; the second, and the first heard again, are as in the joined file."""
    with hearing(tmp_path, monkeypatch, f"[S1] One. (pause 1s) [S{second}] Two.", loudness) as (desk, page, job, folder):
        gains, heard = "{}", list[float]()
        for index, loud in enumerate((0.15, 0.95)):
            sound.write(folder / f"part-{index}.wav", loud * TONE, RATE)
            desk.keeper.board.post(job.id, PartDone(index, 2, str(folder / f"part-{index}.wav"), "One.", 1, 1.0))
            told = page.get(f"/hearth/heard/{job.id}/{index}", params={"after": 0, "gains": gains})
            gains = told.headers[hear_script.GAINS]
            heard.append(find_peak(told.content))
        assert heard == pytest.approx(peaks, rel=0.05)
        again = [page.get(f"/hearth/heard/{job.id}/{index}", params={"after": 0}).content for index in (0, 1)]
        assert [find_peak(each) for each in again] == pytest.approx(joined, rel=0.05)
        segments = list_segments(desk.jobs.split_script(job.id, job.request), {each: folder / f"part-{each}.wav" for each in (0, 1)})
        join_sound.join(segments, tmp_path / "joined.wav", Finish(loudness_lufs=loudness), {})
        samples, _ = sound.read(tmp_path / "joined.wav")
        assert [float(np.abs(each).max()) for each in (samples[:RATE], samples[RATE:])] == pytest.approx(joined, rel=0.05)
        assert page.get(f"/hearth/heard/{job.id}/7").status_code == 404, "the script has no such part"
        for wrong in ("1", '{"1": 0}', '{"a": 1}', '{"1": 1e999}', "{"):
            assert page.get(f"/hearth/heard/{job.id}/0", params={"gains": wrong}).status_code == 400


def test_a_voice_is_heard_once_a_second_of_it_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its quiet begin alone it would be raised too much."""
    with hearing(tmp_path, monkeypatch, "[S1] One. (pause 1s) [S2] Two.", -30.0) as (desk, page, job, folder):

        def ask(index: int, after: float = 0.0, gains: str = "{}") -> httpx2.Response:
            return page.get(f"/hearth/heard/{job.id}/{index}", params={"after": after, "gains": gains})

        for place, (loud, seconds) in enumerate(((0.01, 0.6), (0.3, 1.0))):
            sound.write(folder / f"sound-{place}.wav", np.float32(loud) * np.resize(TONE, int(seconds * RATE)), RATE)
            desk.keeper.board.post(job.id, Sound(0, str(folder / f"sound-{place}.wav"), 0.0, seconds))
            if not place:
                assert ask(0).status_code == 204
        told = ask(0)
        assert told.status_code == 200 and json.loads(told.headers[hear_script.GAINS])["1"] < 0.5
        sound.write(folder / "part-1.wav", np.float32(0.1) * TONE[: RATE // 2], RATE)
        desk.keeper.board.post(job.id, PartDone(1, 2, str(folder / "part-1.wav"), "Two.", 1, 0.5))
        assert ask(1, gains=told.headers[hear_script.GAINS]).status_code == 200, "a part that is whole waits for nothing"


def test_what_a_later_peak_needs_all_voices_get_and_none_by_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hearing(tmp_path, monkeypatch, "[S1] One. (pause 1s) [S2] Two. (pause 1s) [S1] Three.", -8.0) as (desk, page, job, folder):
        gains, clicks = "{}", 0.3 * TONE
        clicks[::4000] = 1.0
        for index, (samples, after) in enumerate(((0.2 * TONE, 0.0), (0.4 * clicks, 0.0), (np.concatenate([0.2 * TONE, TONE, TONE]), 1.0))):
            sound.write(folder / f"part-{index}.wav", samples, RATE)
            desk.keeper.board.post(job.id, PartDone(index, 3, str(folder / f"part-{index}.wav"), "One.", 1, 1.0))
            told, before = page.get(f"/hearth/heard/{job.id}/{index}", params={"after": after, "gains": gains}), json.loads(gains)
            gains = told.headers[hear_script.GAINS]
            if index == 1:
                segments = list_segments(
                    desk.jobs.split_script(job.id, job.request), {each: folder / f"part-{each}.wav" for each in (0, 1)}
                )
                joined = join_sound.choose_gains([(each, measure_file(each.path)) for each in segments], -8.0)
                assert {int(voice): gain for voice, gain in json.loads(gains).items()} == pytest.approx(joined, rel=0.01)
                assert joined[1] < 0.9 * before["1"]
        now, (samples, _) = json.loads(gains), soundfile.read(io.BytesIO(told.content))
        assert now["1"] < 0.7 * before["1"] and now["2"] == pytest.approx(before["2"]), "it is louder than it began, not the other"
        assert np.abs(samples).max() <= join_sound.PEAK + 1e-3


def find_peak(wav: bytes) -> float:
    samples, _ = soundfile.read(io.BytesIO(wav))
    return float(np.abs(samples).max())
