"""Decide how large a piece of attention may be: chunks of queries and keys, and bytes for one call's scores."""

from __future__ import annotations

from app.base.sentence import Sentence, Value, say
from app.compat.machine.verdicts import RunFailure
from app.compat.planning.fallbacks import CHUNK_FALLBACK, Learned, describe_failure
from app.compat.planning.memory_formulas import COPIES_OF_SCORES, MIB, SCORES_AT_LEAST, SCORES_AT_MOST, free_bytes, scores_bytes
from app.compat.planning.options import LEARNED_HERE, FieldDecision, Option, Situation, decide_field
from app.compat.planning.quirk import Unit
from app.compat.planning.types import AUTO, Chunk, Dtype, Reason, Rejected


def decide_chunk_k(situation: Situation, dtype: Dtype) -> tuple[int | None, FieldDecision]:
    caps = _find_limits(situation, "chunk_k", dtype, "keys")
    cap = min((most for _, most in caps), default=None)
    whole = Option(
        "automatic", say("chunk_k.automatic", "Keys are processed all at once, and split only if one row of scores is too large.")
    )
    if cap is None:
        return None, decide_field(situation, "chunk_k", (whole,), dtype)
    pieces = Option(str(cap), say("chunk_k.capped", "Keys are processed {keys} at a time.", keys=cap))
    decision = decide_field(situation, "chunk_k", (whole, pieces), dtype, {"automatic": [each for each, _ in caps]})
    return (cap if decision.option == pieces.name else None), decision


def decide_chunk_q(
    situation: Situation, dtype: Dtype, score: Dtype, streams: bool, keys: int | None, budget: int
) -> tuple[Chunk, FieldDecision]:
    """`streams`: torch stores no scores, so that memory asks for no chunks."""
    need, asked = situation.need, None if situation.chunk == AUTO else str(situation.chunk)
    words = say("chunk_q.automatic", "The chunk size is taken from free memory at every call; if everything fits, nothing is split.")
    if need.queries == 1 or need.kind == "speech":
        words = say(
            "chunk_q.decode",
            "Speech is generated one query at a time, so there is nothing to split; the chunk size applies to reading the prompt.",
        )
    elif streams and situation.hardware.kind == "mps":
        words = say("chunk_q.streams", "Metal's kernel for this attention never stores all scores, so it is not split.")
    automatic = Option("automatic", words)
    options = [automatic, Option("whole", say("chunk_q.whole", "All queries at once."))]
    if asked is not None:
        words = say("chunk_q.forced", "{chunk} {chunk:query|queries} at a time, as you asked.", chunk=situation.chunk)
        options.append(Option(asked, words))
    sizes = {each.name: need.queries if each.name == "whole" else int(each.name) for each in options if each is not automatic}
    more = {name: _too_large(situation, dtype, score, streams=streams, rows=rows, keys=keys, budget=budget) for name, rows in sizes.items()}
    decision = decide_field(situation, "chunk_q", options, dtype, more, forced=asked)
    most = _memory_fallback(situation)
    if most is not None and decision.option.isdigit() and int(decision.option) > most.seen.chunk_most:  # type: ignore[operator]
        decision = _bounded(decision, most)
    return (int(decision.option) if decision.option.isdigit() else AUTO), decision


def decide_chunk_most(situation: Situation) -> tuple[int | None, FieldDecision]:
    """Limit the chunk if memory ran out in an earlier run."""
    most = _memory_fallback(situation)
    if most is None:
        free = say("chunk_most.none", "This model has never run out of memory here, so the chunk is not limited.")
        return None, FieldDecision("none", Reason("chunk_most", free))
    why = say(
        "chunk_most.learned",
        "Attention processes at most {chunk} {chunk:query|queries} at a time. {seen}",
        chunk=most.seen.chunk_most or 0,
        seen=describe_failure(most.seen),
    )
    none = Rejected("chunk_most", "none", (Reason("chunk_most", describe_failure(most.seen), LEARNED_HERE),))
    return most.seen.chunk_most, FieldDecision(str(most.seen.chunk_most), Reason("chunk_most", why, LEARNED_HERE), (none,))


def _memory_fallback(situation: Situation) -> Learned | None:
    return next((each for each in situation.learned if each.fallback.id == CHUNK_FALLBACK and each.seen.chunk_most), None)


def _bounded(decision: FieldDecision, most: Learned) -> FieldDecision:
    """Lower a chunk set by hand that is larger than memory allowed before."""
    runs = str(most.seen.chunk_most)
    values: dict[str, Value] = {"asked": int(decision.option), "chunk": most.seen.chunk_most or 0, "seen": describe_failure(most.seen)}
    why = say("chunk_q.bounded", "You asked for {asked}; {chunk} is used. {seen}", **values)
    because = Reason("chunk_q", why, LEARNED_HERE, decision.option)
    gone = tuple(each for each in decision.rejected if each.option != runs)
    return FieldDecision(runs, because, (*gone, Rejected("chunk_q", decision.option, (because,))), decision.warnings)


def decide_budget(situation: Situation, dtype: Dtype, score: Dtype, beside_bytes: int) -> tuple[int, FieldDecision]:
    """Decide the bytes for scores: a quarter of the memory left beside the model, 16 MiB to 1 GiB, within the limits of quirks and chunk."""
    most = min(max(beside_bytes // 4, SCORES_AT_LEAST), SCORES_AT_MOST)
    because = Reason("budget_bytes", _share(most, beside_bytes))
    gone: list[Rejected] = []
    units: tuple[tuple[Unit, int], ...] = (("bytes", 1), ("elements", scores_bytes(1, 1, 1, 1, score)))
    limits = [(limit * share, why) for unit, share in units for why, limit in _find_limits(situation, "budget_bytes", dtype, unit)]
    limit, why = min(limits, key=lambda each: each[0], default=(most, None))
    if why is not None and limit < most:
        gone.append(Rejected("budget_bytes", str(most), (why,)))
        limited = say(
            "budget.limit",
            "The scores of one call may take {mib} MiB, the most that is safe on this machine. {why}",
            mib=limit // MIB,
            why=why.sentence,
        )
        most, because = limit, Reason("budget_bytes", limited, why.source)
    need, learned = situation.need, _memory_fallback(situation)
    if learned is not None:
        rows = learned.seen.chunk_most or 0
        enough = scores_bytes(need.batch, need.heads, rows, need.keys, score) * COPIES_OF_SCORES
        if max(SCORES_AT_LEAST, enough) < most:
            gone.append(Rejected("budget_bytes", str(most), (Reason("budget_bytes", describe_failure(learned.seen), LEARNED_HERE),)))
            most = max(SCORES_AT_LEAST, enough)
            because = Reason("budget_bytes", _lowered(most, enough, learned.seen), LEARNED_HERE)
    return most, FieldDecision(str(most), because, tuple(gone))


def _share(most: int, beside_bytes: int) -> Sentence:
    if beside_bytes // 4 < most:
        return say(
            "budget.least",
            "The scores of one call may take {mib} MiB, the minimum: a quarter of the memory left beside the model is less.",
            mib=most // MIB,
        )
    return say(
        "budget.quarter",
        "The scores of one call may take {mib} MiB: a quarter of the memory left beside the model, at most 1024.",
        mib=most // MIB,
    )


def _lowered(most: int, enough: int, failure: RunFailure) -> Sentence:
    values: dict[str, Value] = {"mib": most // MIB, "chunk": failure.chunk_most or 0, "seen": describe_failure(failure)}
    if enough < most:
        return say(
            "budget.learned-least",
            "The scores of one call may take {mib} MiB, the minimum: {chunk} {chunk:query|queries} at a time {chunk:needs|need} less. {seen}",
            **values,
        )
    return say(
        "budget.learned", "The scores of one call may take {mib} MiB, enough for {chunk} {chunk:query|queries} at a time. {seen}", **values
    )


def _find_limits(situation: Situation, field: str, dtype: Dtype, unit: Unit) -> list[tuple[Reason, int]]:
    return [
        (Reason(field, quirk.sentence, quirk.source, fatal=quirk.fatal), free_bytes(situation.hardware) if unit == "free" else most)
        for quirk in situation.quirks
        for counted, most in quirk.limits
        if counted == unit and quirk.concerns(situation.need, dtype)
    ]


def _too_large(
    situation: Situation, dtype: Dtype, score: Dtype, *, streams: bool, rows: int, keys: int | None, budget: int
) -> list[Reason]:
    need = situation.need
    rows, keys = min(rows, need.queries), min(need.keys, keys or need.keys)
    elements = need.batch * need.heads * rows * keys
    sizes: dict[Unit, int] = {"elements": elements, "bytes": scores_bytes(need.batch, need.heads, rows, keys, score), "pairs": rows * keys}
    sizes["free"] = sizes["bytes"]
    found = [each for unit, size in sizes.items() for each, most in _find_limits(situation, "chunk_q", dtype, unit) if size > most]
    if not streams and (needed := sizes["bytes"] * COPIES_OF_SCORES) > budget:
        words = say(
            "chunk_q.budget",
            "Its scores and their copies take {mib} MiB; attention may take {most} MiB.",
            mib=-(-needed // MIB),
            most=budget // MIB,
        )
        found.append(Reason("chunk_q", words))
    return found
