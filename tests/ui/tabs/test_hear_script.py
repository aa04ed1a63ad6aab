"""Play all on a script whose later parts were not known when it began: as loud as before, but never clipped."""

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
from app.engine.speech.sound import join_sound, sound
from app.ui import routes
from app.ui.state import json_routes
from app.ui.state.person import OWNER
from app.ui.tabs import hear_script
from tests.support.guests import desk_at

RATE = 16_000


@pytest.mark.parametrize(("loudness", "fits"), [(-14.0, True), (None, False)])
def test_a_loud_part_after_a_quiet_one_is_not_clipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loudness: float | None, fits: bool
) -> None:
    """Where nothing evens out the loudness, a part is as its voice made it, as in the joined file."""
    times = np.arange(RATE) / RATE
    tone = np.sin(2 * np.pi * 150 * times).astype(np.float32)
    with desk_at(tmp_path) as desk:
        monkeypatch.setattr(hear_script, "who", lambda request: OWNER)
        monkeypatch.setattr(json_routes, "who", lambda request: OWNER)
        page = TestClient(Starlette(routes=routes.routes(desk)))
        job = desk.keeper.journal.queue(
            SpeechRequest("[S1] One. (pause 1s) [S2] Two.", loudness_lufs=loudness), desk.machine.read_choice(OWNER)
        )
        desk.keeper.journal.withdraw(job.id)
        folder = desk.keeper.folder(job.id)
        folder.mkdir(parents=True)
        gain, heard = "0", list[float]()
        for index, loud in enumerate((0.05, 0.95)):
            sound.write(folder / f"part-{index}.wav", loud * tone, RATE)
            desk.keeper.board.post(job.id, PartDone(index, 2, str(folder / f"part-{index}.wav"), "One.", 1, 1.0))
            told = page.get(f"/hearth/heard/{job.id}/{index}?after=0&gain={gain}")
            samples, _ = soundfile.read(io.BytesIO(told.content))
            gain = told.headers[hear_script.GAIN]
            heard.append(float(np.abs(samples).max()))
    assert heard[1] == pytest.approx(join_sound.PEAK if fits else 0.95, abs=0.01)
    assert heard[0] == pytest.approx(0.325 if fits else 0.05, rel=0.05), "raised while it was all that was known"
