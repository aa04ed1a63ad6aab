"""Decide whether heads are padded to a size that Metal's prefill kernel takes: where that was seen to be right and quicker."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from app.base.sentence import say
from app.compat.machine.verdicts import Subject
from app.compat.planning.attention_fields import decide_kernels, narrow_to_kernels
from app.compat.planning.metal import metal_path, padded_dim
from app.compat.planning.options import MEASURED_HERE, FieldDecision, Option, Situation, decide_field, object_to_pace, percent_of_time
from app.compat.planning.types import Dtype, Path, Reason

RIGHT: Final = "pad_heads/yes"
PADDED: Final = "padded-heads"


def decide_heads(situation: Situation, dtype: Dtype, paths: Collection[Path]) -> FieldDecision:
    need = situation.need
    kept = Option("no", say("pad_heads.no", "Heads have the size that the model gives them."))
    plain, padded = (metal_path(paths, need.queries, need.keys, need.head_dim, need.head_dim, pads) for pads in (False, True))
    if "prefill" not in paths or plain == padded:
        return decide_field(situation, "pad_heads", (kept,), dtype)
    pace = situation.verdicts.get(Subject.quicker(PADDED, dtype))
    words = say(
        "pad_heads.yes",
        "Heads of {size} are padded with zeros to {padded} for Metal's kernel that stores no scores: {percent}% of the time here.",
        size=need.head_dim,
        padded=padded_dim(need.head_dim),
        percent=percent_of_time(pace),
    )
    against = {"yes": list(_object(situation, dtype))}
    return decide_field(situation, "pad_heads", (Option("yes", words, MEASURED_HERE), kept), dtype, against)


def _object(situation: Situation, dtype: Dtype) -> Iterator[Reason]:
    right, pace = situation.verdicts.get(Subject.path(RIGHT, dtype)), situation.verdicts.get(Subject.quicker(PADDED, dtype))
    if not decide_kernels(narrow_to_kernels(situation, "prefill"), dtype)[0]:
        yield Reason("pad_heads", say("pad_heads.no-kernel", "Metal's kernel that stores no scores is not used here."))
    if right is None or pace is None:
        words = say("pad_heads.unseen", "Whether padded heads are right and quicker here is measured while Hearth is idle.")
        yield Reason("pad_heads", words)
    elif right.passed and not pace.passed:
        slower = say(
            "pad_heads.slower", "Padded heads take {percent}% of the time here, so too little is gained.", percent=percent_of_time(pace)
        )
        yield object_to_pace("pad_heads", pace, slower)
