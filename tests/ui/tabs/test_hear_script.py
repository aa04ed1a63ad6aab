"""Play all on a script whose later parts were not known when it began: each voice as loud as before, all voices alike, and nothing clipped."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.engine.jobs.events import PartDone
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.kind import list_segments
from app.engine.speech.sound import join_sound, sound
from app.engine.speech.sound.join_sound import Finish
from app.ui import routes
from app.ui.state import json_routes
from app.ui.state.person import OWNER
from app.ui.tabs import hear_script
from tests.support.guests import desk_at

RATE = 16_000


@pytest.mark.parametrize(
    ("second", "loudness", "peaks", "joined"),
    [
        (1, -14.0, (0.325, join_sound.PEAK), (0.072, 0.454)),
        (2, -14.0, (0.325, 0.325), (0.325, 0.325)),
        (2, None, (0.15, 0.95), (0.15, 0.95)),
    ],
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
    """The first part is raised as it is all that is known of its voice; once both are there, they are heard as in the joined file."""
    times = np.arange(RATE) / RATE
    tone = np.sin(2 * np.pi * 150 * times).astype(np.float32)
    with desk_at(tmp_path) as desk:
        monkeypatch.setattr(hear_script, "who", lambda request: OWNER)
        monkeypatch.setattr(json_routes, "who", lambda request: OWNER)
        page = TestClient(Starlette(routes=routes.routes(desk)))
        job = desk.keeper.journal.queue(
            SpeechRequest(f"[S1] One. (pause 1s) [S{second}] Two.", loudness_lufs=loudness), desk.machine.read_choice(OWNER)
        )
        desk.keeper.journal.withdraw(job.id)
        folder = desk.keeper.folder(job.id)
        folder.mkdir(parents=True)
        gains, heard = "{}", list[float]()
        for index, loud in enumerate((0.15, 0.95)):
            sound.write(folder / f"part-{index}.wav", loud * tone, RATE)
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


def find_peak(wav: bytes) -> float:
    samples, _ = soundfile.read(io.BytesIO(wav))
    return float(np.abs(samples).max())
