"""Play all while a script is spoken: each part as the joined file will have it, from where the page has heard it so far."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Annotated, Final

import soundfile
from pydantic import Field, Json
from starlette.requests import Request
from starlette.responses import Response

from app.engine.jobs.progress import Progress
from app.engine.speech.kind import as_script, list_segments
from app.engine.speech.sound import heard_part, join_sound, sound
from app.ui.state.asked import Asked, Id, Word
from app.ui.state.desk import Desk
from app.ui.state.person import who

GAINS, UNTIL = "Hearth-Gains", "Hearth-Until"
"""The first header has each voice's gain, with which the page asks for the rest, so that no part grows louder on its way; the second says how far the
sound is."""
GAIN_MOST: Final = 1e6


class HeardAsked(Asked):
    job: Word
    part: Id
    after: float = Field(0.0, ge=0, le=86_400)
    gains: Json[dict[int, Annotated[float, Field(gt=0, le=GAIN_MOST)]]] = Field(default_factory=dict)
    """Of voices that are not in it the gain is not known yet."""


def send_heard(desk: Desk, request: Request, asked: HeardAsked) -> Response:
    """Send what comes next of a part; 204 where there is nothing yet."""
    if not desk.jobs.owns(asked.job, who(request)):
        return Response(status_code=404)
    wanted, progress = as_script(desk.keeper.journal.get(asked.job).request), desk.keeper.get_progress(asked.job)
    files, done = find_files(progress, asked.part)
    split = desk.jobs.split_script(asked.job, wanted) if wanted is not None else ()
    if wanted is None or asked.part >= len(split) or not all(each.is_file() for each in files):
        return Response(status_code=404)
    if not files:
        return Response(status_code=204)
    spoken, rate = heard_part.read_part(files)
    (segment,) = list_segments(split, {asked.part: files[0]})
    there = {each.index: Path(each.path) for each in progress.parts if each.index < len(split) and Path(each.path).is_file()}
    known = [(each, heard_part.measure_file(each.path)) for each in list_segments(split, there)]
    known += [] if done else [(segment, join_sound.measure_loudness(spoken[slice(*sound.find_spoken_span(spoken, rate))], rate))]
    gains = heard_part.choose_gains(asked.gains, known, segment, done, wanted.loudness_lufs, begins=not asked.after)
    if not gains:
        return Response(status_code=204)
    gain, ceiling = gains[segment.voice], join_sound.choose_ceiling(wanted.loudness_lufs)
    before = asked.gains.get(segment.voice, gain)
    found = heard_part.cut_next(
        spoken, rate, done, asked.after, wanted.speed * segment.pace, gain * segment.volume, ceiling, before * segment.volume
    )
    if not len(found.samples):
        return Response(status_code=204)
    headers = {GAINS: json.dumps(gains), UNTIL: str(found.until_s), "Cache-Control": "no-store"}
    file = io.BytesIO()
    soundfile.write(file, found.samples, rate, subtype="PCM_16", format="WAV")
    return Response(file.getvalue(), media_type="audio/wav", headers=headers)


def find_files(progress: Progress, index: int) -> tuple[list[Path], bool]:
    """Find the sound of a part, and whether it is all of it."""
    done = [Path(part.path) for part in progress.parts if part.index == index]
    return (done, True) if done else ([Path(each.path) for each in progress.sounds if each.part == index], False)
