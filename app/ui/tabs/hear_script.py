"""Play all while a script is spoken: each part as the joined file will have it, from where the page has heard it so far."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import soundfile
from pydantic import Field, Json
from starlette.requests import Request
from starlette.responses import Response

from app.engine.jobs.progress import Progress
from app.engine.speech.kind import as_script, list_segments
from app.engine.speech.sound import heard_part, join_sound, sound
from app.engine.speech.sound.join_sound import Loudness, Segment
from app.ui.state.asked import Asked, Id, Word
from app.ui.state.desk import Desk
from app.ui.state.person import who

GAINS, UNTIL = "Hearth-Gains", "Hearth-Until"
"""The first header has each voice's gain, with which the page asks for the rest, so that nothing grows louder on the way; the second says how far the
sound is."""
GAIN_MOST: Final = 1e6
KNOWN_S: Final = 1.0
"""So much of a voice tells how loud it is; its first moment may be quiet."""


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
    gains = choose_gains(asked.gains, known, segment, done, wanted.loudness_lufs)
    if not gains:
        return Response(status_code=204)
    if wanted.loudness_lufs is not None:
        peak, gain = float(np.abs(spoken).max(initial=0)) * segment.volume, gains[segment.voice]
        gains = {voice: each * (join_sound.lower_gain(gain, peak) / gain) for voice, each in gains.items()}
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


def choose_gains(
    heard: dict[int, float], known: Sequence[tuple[Segment, Loudness]], segment: Segment, done: bool, wanted_lufs: float | None
) -> dict[int, float]:
    """Add the gain of the voice of this segment to those that were heard, none where too little of it is known; for its peaks the others become
    quieter too, as in the joined file."""
    if segment.voice in heard:
        return heard
    others = [(each, loudness) for each, loudness in known if each.voice != segment.voice]
    own_s = sum(loudness.seconds for each, loudness in known if each.voice == segment.voice)
    if wanted_lufs is not None and not done and own_s < KNOWN_S:
        return {}
    before, after = join_sound.choose_gains(others, wanted_lufs), join_sound.choose_gains(known, wanted_lufs)
    quieter = {voice: gain * min(1.0, after[voice] / before[voice]) for voice, gain in heard.items() if voice in before}
    return quieter | {segment.voice: after[segment.voice]}


def find_files(progress: Progress, index: int) -> tuple[list[Path], bool]:
    """Find the sound of a part, and whether it is all of it."""
    done = [Path(part.path) for part in progress.parts if part.index == index]
    return (done, True) if done else ([Path(each.path) for each in progress.sounds if each.part == index], False)
