"""The chunk curve as the Machine tab draws it: predicted memory, measured speed, and why another size runs than was asked for."""

from __future__ import annotations

import math
from typing import Final

from app.base.sentence import say
from app.compat.machine.chunk_curve import SIZES, Curve
from app.compat.planning.fallbacks import count_at_once
from app.compat.planning.memory_formulas import COPIES_OF_SCORES, scores_bytes
from app.compat.planning.plan_words import word_chunk
from app.compat.planning.types import AUTO, Chunk, Need, Plan
from app.engine.models.planned import chunk_differs
from app.ui.page.translate import Language, text, translate
from app.ui.page.view_types.machine import CurvePointView, CurveView

CURVE_SIZES: Final = (64, 128, 256, 512, 1024, 2048, 4096, 8192)


def curve_view(need: Need, plan: Plan, measured: Curve | None, chunk: Chunk, spoken: Language) -> CurveView:
    """Return predicted memory and measured speed by chunk size, and the size that runs now."""
    speeds = {point.chunk: point.seconds for point in measured.points} if measured else {}
    points: list[CurvePointView] = [
        {
            "chunk": size,
            "bytes": COPIES_OF_SCORES
            * scores_bytes(need.batch, need.heads, min(size, need.queries), need.keys, plan.score_dtype or plan.dtype),
            "seconds": speeds.get(size),
        }
        for size in CURVE_SIZES
    ]
    note = ""
    if need.kind == "speech":
        note = text(
            "curve.decode",
            "Speech is generated one query at a time, so the chunk size has no effect there. It only affects the text encoder and voice prompts.",
            spoken,
        )
    elif need.queries <= CURVE_SIZES[0]:
        note = text("curve.small", "This model's attention is small; the chunk size makes no difference.", spoken)
    return {
        "points": points,
        "chunk": None if chunk == AUTO else chunk,
        "at": plan.chunk_q if plan.chunk_q != AUTO else count_at_once(plan, need) if plan.chunk_most is not None else None,
        "runs": explain_chunk(plan, chunk, spoken),
        "knee": measured.knee if measured else None,
        "budget": plan.budget_bytes,
        "note": note,
    }


def slider_step(chunk: Chunk) -> int:
    """Return the slider's place for a size: 0 is automatic; a size that it lacks stands at the nearest."""
    return 0 if chunk == AUTO else 1 + min(range(len(SIZES)), key=lambda place: abs(math.log2(SIZES[place] / chunk)))


def explain_chunk(plan: Plan, chunk: Chunk, spoken: Language) -> str:
    """Say why the plan allows another chunk than was asked for; empty where it does not."""
    chunk_q = plan.chunk_q
    if chunk_q == chunk and (chunk_q != AUTO or plan.chunk_most is None):
        return ""
    why = {reason.field: reason for reason in plan.because}
    decided_for = why["chunk_q"].asked
    if (decided_for or AUTO) != str(chunk):  # a running plan lags behind the slider until its next step
        sentence = say(
            "curve.until",
            "You asked for {asked}; {chunk} stays in use until the next step.",
            asked=word_chunk(chunk),
            chunk=word_chunk(chunk_q),
        )
    elif chunk_q == AUTO == chunk:
        sentence = why["chunk_most"].sentence
    elif decided_for:
        sentence = why["chunk_q"].sentence
    else:
        sentence = chunk_differs(chunk, chunk_q, why["chunk_q"].sentence)
    return translate(sentence, spoken)
