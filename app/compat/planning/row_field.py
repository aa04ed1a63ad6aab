"""Decide how a card is given a row of speech: call by call, or as one captured graph where that was seen to be right and quicker."""

from __future__ import annotations

from collections.abc import Iterator

from app.base.sentence import say
from app.compat.machine.verdicts import Subject
from app.compat.planning.options import MEASURED_HERE, FieldDecision, Option, Situation, decide_field, object_to_pace, percent_of_time
from app.compat.planning.quantisation_field import PACKED
from app.compat.planning.types import Dtype, Offload, Quantised, Reason


def decide_row(situation: Situation, dtype: Dtype, quantised: Quantised, offload: Offload) -> FieldDecision:
    calls = Option("calls", say("row.calls", "Each operation of a row is started by itself."))
    if situation.need.kind != "speech":
        calls = Option("calls", say("row.nothing", "No speech is made here."))
    # ROCm's index_copy_ has given NaN (ROCm/pytorch #2896); Metal and processors have no graphs.
    if situation.need.kind != "speech" or situation.need.plain or situation.hardware.kind != "cuda":
        return decide_field(situation, "row", (calls,), dtype)
    pace = situation.verdicts.get(Subject.quicker("graph", dtype))
    words = say("row.graph", "A row is one captured graph, which takes {percent}% of the time here.", percent=percent_of_time(pace))
    more = {"graph": list(_object_to_graph(situation, dtype, quantised, offload))}
    return decide_field(situation, "row", (Option("graph", words, MEASURED_HERE), calls), dtype, more)


def _object_to_graph(situation: Situation, dtype: Dtype, quantised: Quantised, offload: Offload) -> Iterator[Reason]:
    pace, right = situation.verdicts.get(Subject.quicker("graph", dtype)), situation.verdicts.get(Subject.path("row/graph", dtype))
    if offload != "none":
        yield Reason("row", say("row.offload", "Weights are moved to the card while it speaks, which a captured graph cannot do."))
    if quantised not in ("none", *PACKED):  # what is packed is multiplied by one launch of Hearth's kernel on a card
        yield Reason("row", say("row.quantised", "A captured graph was only tried with whole weights and those that Hearth packs."))
    if pace is None or right is None:
        yield Reason("row", say("row.unseen", "Whether a captured graph is right and quicker here is measured while Hearth is idle."))
    elif not pace.passed and right.passed:
        slower = say(
            "row.slower", "A captured graph takes {percent}% of the time here, so too little is gained.", percent=percent_of_time(pace)
        )
        yield object_to_pace("row", pace, slower)
