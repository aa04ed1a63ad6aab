"""Make a failed request smaller: a picture of half the pixels, a script in parts half as long. Pure."""

from __future__ import annotations

import dataclasses

from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.models.model import Model
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.text import script

STEP_PIXELS = 64
SMALLEST_PIXELS = 128
SHORTEST_S = 1.0
MORE_ROOM = say("owner.more-room", "Choose another model or close other programs.")


def shrink_picture(request: PictureRequest, model: Model) -> tuple[PictureRequest, Sentence]:
    """Halve the pixels, at the same proportions."""
    before = request.width or model.settings.width, request.height or model.settings.height
    least = max(SMALLEST_PIXELS, model.settings.least)
    width, height = (max(least, int(side * 0.5**0.5) // STEP_PIXELS * STEP_PIXELS) for side in before)
    if (width, height) >= before or width * height >= before[0] * before[1]:
        raise Trouble(
            say_to_all(
                "smaller.least",
                "{width} x {height} is the smallest size for this model. {advice}",
                width=before[0],
                height=before[1],
                advice=MORE_ROOM,
            ),
            cure="models",
        )
    words = say_to_all("smaller.picture", "Restarted at {width} x {height}.", width=width, height=height)
    return dataclasses.replace(request, width=width, height=height), words


def shrink_speech(request: SpeechRequest, limits: VoiceLimits) -> tuple[SpeechRequest, Sentence]:
    """Halve the parts of a script, split by pauses of almost no length."""
    longest_s = max((part.seconds for part in script.parse_script(request.text, limits).parts), default=0.0)
    half = dataclasses.replace(limits, part_least_s=0.0, part_aim_s=longest_s / 2, part_most_s=longest_s / 2)
    parts = script.parse_script(request.text, half).parts
    if longest_s < SHORTEST_S or max(part.seconds for part in parts) >= longest_s:
        raise Trouble(
            say_to_all("smaller.shortest", "The parts of this script cannot get any shorter. {advice}", advice=MORE_ROOM), cure="models"
        )
    text = "".join((f" (pause {max(part.pause_before_s, 0.01):g}s) " if place else "") + part.text for place, part in enumerate(parts))
    words = say_to_all("smaller.speech", "Restarted in {parts} shorter {parts:part|parts}.", parts=len(parts))
    return dataclasses.replace(request, text=text, only_parts=(), keep=()), words
