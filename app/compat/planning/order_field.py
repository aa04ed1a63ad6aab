"""Decide in which order a UNet's convolutions hold their numbers: channels last where that was seen to be right and quicker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.base.sentence import say
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject
from app.compat.planning.card_quirks import GTX16
from app.compat.planning.options import MEASURED_HERE, FieldDecision, Option, Situation, decide_field, object_to_pace, percent_of_time
from app.compat.planning.types import HALVES, Dtype, Reason

RIGHT: Final = "channels_last/yes"
LAST: Final = "channels-last"


def list_halves(hardware: Hardware) -> tuple[Dtype, ...]:
    """Return the half precisions that a card's tensor cores multiply. A GTX 16 has none, though it is of their generation."""
    capability = hardware.capability or (0, 0)
    if hardware.kind != "cuda" or capability < (7, 0) or GTX16.holds(hardware):
        return ()
    return HALVES if capability >= (8, 0) else ("float16",)


def decide_order(situation: Situation, dtype: Dtype) -> FieldDecision:
    usual = Option("no", say("channels_last.no", "Numbers lie in torch's usual order."))
    if dtype not in list_halves(situation.hardware) or not any(part.name == "unet" for part in situation.need.parts):
        return decide_field(situation, "channels_last", (usual,), dtype)
    words = say(
        "channels_last.yes",
        "Convolutions hold their numbers channels last, as tensor cores read them: {percent}% of the time here.",
        percent=percent_of_time(situation.verdicts.get(Subject.quicker(LAST, dtype))),
    )
    against = {"yes": list(_object(situation, dtype))}
    return decide_field(situation, "channels_last", (Option("yes", words, MEASURED_HERE), usual), dtype, against)


def _object(situation: Situation, dtype: Dtype) -> Iterator[Reason]:
    right, pace = situation.verdicts.get(Subject.path(RIGHT, dtype)), situation.verdicts.get(Subject.quicker(LAST, dtype))
    if right is None or pace is None:
        words = say(
            "channels_last.unseen", "Whether convolutions are right and quicker with channels last is measured while Hearth is idle."
        )
        yield Reason("channels_last", words)
    elif right.passed and not pace.passed:
        slower = say(
            "channels_last.slower",
            "With channels last convolutions take {percent}% of the time here, so too little is gained.",
            percent=percent_of_time(pace),
        )
        yield object_to_pace("channels_last", pace, slower)
