"""Play all while a script is spoken: each part as the joined file will have it, from where the page has heard it so far."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import soundfile
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.engine.jobs.progress import Progress
from app.engine.speech.kind import as_script
from app.engine.speech.sound import heard_part, join_sound
from app.ui.state.asked import Asked, Id, Word
from app.ui.state.desk import Desk
from app.ui.state.person import who

GAIN, UNTIL = "Hearth-Gain", "Hearth-Until"
"""The first header is the gain, with which the page asks for the rest, so that nothing grows louder on the way; the second says how far the
sound is."""
GAIN_MOST: Final = 1e6


class HeardAsked(Asked):
    job: Word
    part: Id
    after: float = Field(0.0, ge=0, le=86_400)
    gain: float = Field(0.0, ge=0, le=GAIN_MOST)
    """0: the gain is not known yet."""


def send_heard(desk: Desk, request: Request, asked: HeardAsked) -> Response:
    """Send what comes next of a part; 204 where there is nothing yet."""
    if not desk.jobs.owns(asked.job, who(request)):
        return Response(status_code=404)
    wanted, progress = as_script(desk.keeper.journal.get(asked.job).request), desk.keeper.get_progress(asked.job)
    files, done = find_files(progress, asked.part)
    if wanted is None or not all(each.is_file() for each in files):
        return Response(status_code=404)
    if not files:
        return Response(status_code=204)
    split = desk.jobs.split_script(asked.job, wanted)
    part = split[asked.part] if asked.part < len(split) else None
    spoken, rate = heard_part.read_part(files)
    spoken = join_sound.make_louder(spoken, part.volume_db if part is not None else 0.0)
    gain = asked.gain
    if not gain:
        known = [heard_part.measure_file(Path(each.path)) for each in progress.parts if Path(each.path).is_file()]
        known += [] if done else [join_sound.measure_loudness(spoken, rate)]
        gain = float(join_sound.choose_gain(known, wanted.loudness_lufs))
    if wanted.loudness_lufs is not None:
        gain = heard_part.lower_gain(gain, spoken)
    found = heard_part.cut_next(spoken, rate, done, asked.after, wanted.speed * (part.pace if part is not None else 1.0), gain)
    headers = {GAIN: str(gain), UNTIL: str(found.until_s), "Cache-Control": "no-store"}
    if not len(found.samples):
        return Response(status_code=204, headers=headers)
    file = io.BytesIO()
    soundfile.write(file, found.samples, rate, subtype="PCM_16", format="WAV")
    return Response(file.getvalue(), media_type="audio/wav", headers=headers)


def find_files(progress: Progress, index: int) -> tuple[list[Path], bool]:
    """Find the sound of a part, and whether it is all of it."""
    done = [Path(part.path) for part in progress.parts if part.index == index]
    return (done, True) if done else ([Path(each.path) for each in progress.sounds if each.part == index], False)
