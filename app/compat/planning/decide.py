"""decide(): from facts and needs to a plan, every field with its reason. Pure, total, deterministic, no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final, get_args

from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Verdict, Verdicts
from app.compat.planning import attention_fields, precision_fields
from app.compat.planning import weight_fields as parts_of
from app.compat.planning.fallbacks import before_each, learned
from app.compat.planning.memory_formulas import BYTES, free_bytes
from app.compat.planning.options import (
    LEARNED_HERE,
    MEASURED_HERE,
    Situation,
    Objection,
    Option,
    FieldDecision,
    retirement,
    decide_field,
)
from app.compat.planning.quirk import Quirk, version
from app.compat.planning.quirk_table import QUIRKS, is_retired
from app.compat.planning.types import (
    AUTO,
    Choice,
    Chunk,
    Dtype,
    Gqa,
    Kernel,
    Need,
    Offload,
    Plan,
    Quantised,
    Reason,
    Rejected,
)
from app.sentence import Trouble, say

LONGEST_CHUNK: Final = 65536
OLDEST_TORCH: Final = "2.6"
_NOT_SETTLED: Final = ("because", "rejected", "warnings", "retired", "runs_on", "native_right")
SETTLED: Final = tuple(each.name for each in fields(Plan) if each.name not in _NOT_SETTLED)
"""The fields that have a reason, in their order."""
_SINGLE: Final = tuple(field for field in SETTLED if field not in ("kernels", "precision", "ways", "environment"))
"""Those that are one option of several."""
_NO_VERDICTS: Final[dict[str, Verdict]] = {}


def decide(
    hardware: Hardware,
    need: Need = Need(),  # noqa: B008 - frozen
    choice: Choice = Choice(),  # noqa: B008
    verdicts: Verdicts = _NO_VERDICTS,
    rows: tuple[Quirk, ...] = QUIRKS,
) -> Plan:
    """The best that is right on this machine. Trouble where a choice cannot work, or where nothing can."""
    check(hardware, rows)
    validate(choice, need)
    here = [row for each in rows if (row := each.here(hardware)) is not None]
    shows = tuple(row for row in here if not is_retired(row, verdicts))
    retired = tuple(row for row in here if is_retired(row, verdicts))
    case = Situation(hardware, need, choice, verdicts, shows, retired, learned(verdicts, need.model))
    plan, settled = _planned(case)
    return replace(plan, rejected=(*plan.rejected, *_given_up(case, settled)))


def _planned(case: Situation) -> tuple[Plan, dict[str, FieldDecision]]:
    hardware = case.hardware
    device = "cuda" if hardware.kind == "rocm" else hardware.kind
    settled = {"device": _device(case), "dtype": precision_fields.dtype(case), "attention": _attention(case)}
    dtype: Dtype = settled["dtype"].option  # type: ignore[assignment]
    parts = parts_of.parts(case, dtype, device)
    attention = attention_fields.attention(case, dtype, _beside(case, parts, dtype))
    environment = (("TRANSFORMERS_SDPA_FORCE_GQA", "1"), *(pair for row in case.rows for pair in row.sets))
    settled |= {**parts.settled, **attention.settled, "environment": _environment(case)}
    plan = Plan(
        device=device, dtype=dtype, score_dtype=attention.score_dtype, gqa=attention.gqa,  # type: ignore[arg-type]
        chunk_q=attention.chunk_q, chunk_most=attention.chunk_most, chunk_k=attention.chunk_k, budget_bytes=attention.budget_bytes, **attention.flags,
        kernels=attention.kernels, ways=attention.ways, precision=parts.precision, offload=parts.offload, vae=parts.vae,
        quantised=parts.quantised, attention="sdpa", environment=environment,
        because=tuple(settled[field].because for field in SETTLED),
        rejected=tuple(each for field in SETTLED for each in settled[field].rejected),
        warnings=(*_unseen(hardware), *(each for field in SETTLED for each in settled[field].warnings)),
        retired=tuple(Reason(row.id, retirement(row), MEASURED_HERE) for row in case.retired),
        runs_on="cpu" if hardware.pretended else device, native_right=attention.native_right,
    )  # fmt: skip
    return plan, settled


def _given_up(case: Situation, settled: dict[str, FieldDecision]) -> Iterator[Rejected]:
    """What a rung changed by the way: each field as it would be but for that rung's last step, where it does not say so itself."""
    said = {(each.field, each.option) for its in settled.values() for each in its.rejected}
    for rung, less in before_each(case.learned):
        try:
            _, before = _planned(replace(case, learned=less))
        except Trouble:
            continue  # What was asked for cannot work without that rung: nothing was before.
        for field in _SINGLE:
            was = before[field].option
            if was != settled[field].option and (field, was) not in said:
                said.add((field, was))
                yield Rejected(field, was, (Reason(field, rung.sentence, LEARNED_HERE),))


def check(hardware: Hardware, rows: tuple[Quirk, ...] = QUIRKS) -> None:
    """Trouble on a machine that this torch cannot drive: what is missing, and the cure."""
    stopped = next((row for row in rows if row.stops and row.applies(hardware)), None)
    if stopped is not None:
        sentence = say(
            "check.stopped", "Hearth was asked to run on {machine}, with torch {torch}.",
            machine=hardware.name, torch=hardware.torch or "?",
        )  # fmt: skip
        raise Trouble(sentence, stopped.sentence, cure="repair")
    if () < version(hardware.torch) < version(OLDEST_TORCH):
        raise Trouble(
            say(
                "check.torch", "Hearth needs torch {oldest} or newer, and {torch} is installed. start.py repair installs it.",
                oldest=OLDEST_TORCH, torch=hardware.torch,
            ),
            cure="repair",
        )  # fmt: skip


def validate(choice: Choice, need: Need) -> None:
    """A choice and a need that mean something."""
    if choice.chunk != AUTO and (
        isinstance(choice.chunk, bool) or not isinstance(choice.chunk, int) or not 1 <= choice.chunk <= LONGEST_CHUNK
    ):
        raise Trouble(
            say(
                "choice.chunk", "A chunk of {chunk} was asked for. It is a whole number from 1 to {longest}, or left automatic.",
                chunk=repr(choice.chunk), longest=LONGEST_CHUNK,
            ),
            cure="automatic",
        )  # fmt: skip
    kernels = (choice.kernels,) if isinstance(choice.kernels, str) else choice.kernels
    if kernels is not None and not isinstance(kernels, (tuple, list)):
        kernels = (kernels,)
    asked = (
        ("gqa", (choice.gqa,), Gqa), ("dtype", (choice.dtype,), Dtype), ("offload", (choice.offload,), Offload),
        ("quantised", (choice.quantised,), Quantised), ("kernels", kernels or (), Kernel),
    )  # fmt: skip
    for field, values, known in asked:
        for value in values:
            if value is not None and value not in get_args(known):
                raise Trouble(
                    say(
                        "choice.unknown", "There is no {field} called {value}. Choose one of {known}, or leave it automatic.",
                        field=field, value=repr(value), known=", ".join(get_args(known)),
                    ),
                    cure="automatic",
                )  # fmt: skip
    if need.heads < 1 or need.kv_heads < 1 or need.heads % need.kv_heads:
        raise Trouble(
            say(
                "need.heads", "{heads} query heads cannot be shared out over {kv_heads} key heads: the first must be a multiple of the second.",
                heads=need.heads, kv_heads=need.kv_heads,
            )
        )  # fmt: skip


def chunk_of(text: str | None) -> Chunk:
    """As a person writes it."""
    if text is None or text == AUTO:
        return AUTO
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= LONGEST_CHUNK:
        raise Trouble(
            say(
                "chunk.bad", 'A chunk size of "{chunk}" cannot be used. Give a whole number from 1 to {longest}, or auto.',
                chunk=text, longest=LONGEST_CHUNK,
            )
        )  # fmt: skip
    return int(text)


def _device(case: Situation) -> FieldDecision:
    kind = case.hardware.kind
    own = Option(kind, say("device.own", "{machine} does the work.", machine=case.hardware.name), "this machine")
    if kind == "cpu":
        return decide_field(case, "device", (own,), None)
    processor = Option("cpu", say("device.cpu", "The processor does the work."))
    slower = Objection(say("device.slower", "The processor is slower than {machine}.", machine=case.hardware.name))
    return decide_field(case, "device", (own, processor), None, {"cpu": [slower]})


def _attention(case: Situation) -> FieldDecision:
    sdpa = Option(
        "sdpa",
        say(
            "attention.sdpa",
            "Models are told to use torch's attention: that is the one place where it can be watched and mended.",
        ),
    )
    insisted = case.need.attention
    if insisted in ("", "sdpa"):
        return decide_field(case, "attention", (sdpa,), None)
    own = Objection(
        say(
            "attention.own",
            "Attention other than torch's own cannot be watched or mended; torch holds the same kernels where the card has them.",
        )
    )
    other = Option(insisted, say("attention.insisted", "The model asks for {attention}.", attention=insisted))
    # The model's wish stands first, so that what speaks against it is what the plan says.
    return decide_field(case, "attention", (other, sdpa), None, {insisted: [own]})


def _environment(case: Situation) -> FieldDecision:
    because = Reason(
        "environment",
        say(
            "environment.gqa",
            "transformers is told to leave key heads as they are, so that nothing is repeated in vain.",
        ),
        "transformers' sdpa_attention.py",
    )
    told = next((Reason("environment", row.sentence, row.source) for row in case.rows if row.sets), because)
    return FieldDecision("environment", told)


def _beside(case: Situation, parts: parts_of.Parts, dtype: Dtype) -> int:
    """What is free once weights and caches lie in memory."""
    return free_bytes(case.hardware) - parts.resident_bytes - case.need.cache_bytes * BYTES[dtype] // 2


def _unseen(hardware: Hardware) -> tuple[Reason, ...]:
    if not hardware.unseen_card:
        return ()
    sentence = say(
        "device.unseen", "There is a {card} in this machine that this torch cannot use. start.py repair installs the one that can.",
        card=hardware.unseen_card,
    )  # fmt: skip
    return (Reason("device", sentence, "nvidia-smi"),)
