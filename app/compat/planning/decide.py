"""decide(): turn facts and needs into a plan, with a reason for each field. Pure, total, deterministic, no torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, Final, get_args

from app.base.sentence import say
from app.base.trouble import Impossible, Trouble
from app.compat.machine.hardware import Hardware, as_processor
from app.compat.machine.verdicts import Subject, Verdict, Verdicts
from app.compat.planning.attention_fields import decide_attention
from app.compat.planning.fallbacks import before_each_fallback, learned
from app.compat.planning.heads_field import decide_heads
from app.compat.planning.memory_formulas import BYTES, free_bytes, needed_bytes, resident_bytes, too_much, usable_bytes, work_bytes
from app.compat.planning.metal import metal_paths, need_path, parts_on
from app.compat.planning.options import LEARNED_HERE, MEASURED_HERE, FieldDecision, Option, Situation, decide_field, retired_sentence
from app.compat.planning.order_field import decide_order
from app.compat.planning.plan_words import FIELDS
from app.compat.planning.precision_fields import decide_dtype, list_dtypes
from app.compat.planning.product_field import decide_product
from app.compat.planning.quirk import Quirk, version
from app.compat.planning.quirk_table import QUIRKS, is_retired
from app.compat.planning.row_field import decide_row
from app.compat.planning.types import AUTO, Choice, Chunk, Dtype, Gqa, Kernel, ModelPart, Need, Offload, Plan, Quantised, Reason, Rejected
from app.compat.planning.weight_fields import decide_weights
from app.compat.planning.wrong_parts import object_to_device

LONGEST_CHUNK: Final = 65536
OLDEST_TORCH: Final = "2.6"
CARD_KINDS: Final = ("cuda", "rocm")
"""The makers of these kinds have a library for convolutions: cuDNN, MIOpen."""
_NOT_DECIDED: Final = ("because", "rejected", "warnings", "retired", "runs_on", "native_right", "path", "others")
DECIDED_FIELDS: Final = tuple(each.name for each in fields(Plan) if each.name not in _NOT_DECIDED)
"""Each of these fields has a reason, in this order."""
_SINGLE: Final = tuple(field for field in DECIDED_FIELDS if field not in ("kernels", "precision", "ways", "environment"))
"""Each of these fields is one option of several."""
NO_VERDICTS: Final[dict[Subject, Verdict]] = {}


def decide(
    hardware: Hardware,
    need: Need = Need(),  # noqa: B008 - frozen
    choice: Choice = Choice(),  # noqa: B008
    verdicts: Verdicts = NO_VERDICTS,
    quirks: tuple[Quirk, ...] = QUIRKS,
    *,
    chunk: Chunk = AUTO,
) -> Plan:
    """Return the best plan that is correct on this machine. `chunk`: the chunk size asked for. Raise Trouble if what was chosen
    cannot work, or nothing can."""
    check_machine(hardware, quirks)
    check_choice(choice, need)
    check_chunk(chunk)
    situation = _situate(hardware, need, choice, chunk, verdicts, quirks)
    where = _decide_device(situation)
    if where.option != hardware.kind:
        # What was seen of the device, or chosen for it, says nothing about the processor; what runs taught, stays.
        of_runs = {subject: each for subject, each in verdicts.items() if subject.kind == "rung"}
        situation = _situate(as_processor(hardware), need, Choice(), chunk, of_runs, quirks)
    plan, decisions = _make_plan(situation, where)
    return replace(plan, rejected=(*plan.rejected, *_replaced_by_fallbacks(situation, where, decisions)))


def _situate(hardware: Hardware, need: Need, choice: Choice, chunk: Chunk, verdicts: Verdicts, quirks: tuple[Quirk, ...]) -> Situation:
    here = [found for each in quirks if (found := each.here(hardware)) is not None]
    shows = tuple(quirk for quirk in here if not is_retired(quirk, verdicts))
    retired = tuple(quirk for quirk in here if is_retired(quirk, verdicts))
    return Situation(hardware, need, choice, chunk, verdicts, shows, retired, learned(verdicts, need.model))


def _make_plan(situation: Situation, where: FieldDecision) -> tuple[Plan, dict[str, FieldDecision]]:
    hardware = situation.hardware
    device = "cuda" if hardware.kind == "rocm" else hardware.kind
    decisions = {"device": where, "dtype": decide_dtype(situation), "attention": _decide_implementation(situation)}
    dtype: Dtype = decisions["dtype"].option  # type: ignore[assignment]
    convolution = _decide_convolution(situation)
    # A Mac's own processor has no oneDNN.
    plain = hardware.kind == "cpu" and (hardware.system, hardware.processor) == ("macos", "arm64")
    unfolds = plain or (hardware.kind in CARD_KINDS and convolution.option == "torch")
    weights, weight_decisions = decide_weights(situation, dtype, device, unfolds)
    row = decide_row(situation, dtype, weights["quantised"], weights["offload"])
    product = decide_product(situation, dtype, weights["precision"], weights["quantised"])
    paths = metal_paths(hardware)
    heads = decide_heads(situation, dtype, paths)
    order = decide_order(situation, dtype)
    pads = heads.option == "yes"
    path = need_path(paths, situation.need, pads)
    parts = {each: parts_on(paths, each, situation.need, pads) for each in (path, *paths)}
    beside = {each: _beside(situation, weights, its) for each, its in parts.items()}
    computed = {each: _computed_in(situation, weights, its) for each, its in parts.items()}
    attention, attention_decisions = decide_attention(situation, path, dtype, beside[path], computed[path])
    environment = (("TRANSFORMERS_SDPA_FORCE_GQA", "1"), *(pair for quirk in situation.quirks for pair in quirk.sets))
    decisions |= (
        weight_decisions
        | attention_decisions
        | {"environment": _decide_environment(situation), "convolution": convolution, "product": product, "row": row, "pad_heads": heads}
        | {"channels_last": order}
    )
    plan = Plan(
        device=device,
        dtype=dtype,
        **attention,
        **weights,
        product=product.option,  # type: ignore[arg-type]
        row=row.option,  # type: ignore[arg-type]
        attention="sdpa",
        convolution=convolution.option,  # type: ignore[arg-type]
        channels_last=order.option == "yes",
        pad_heads=pads,
        environment=environment,
        **_explain(situation, decisions),
        retired=tuple(Reason(quirk.id, retired_sentence(quirk), MEASURED_HERE) for quirk in situation.retired),
        runs_on="cpu" if hardware.pretended else device,
        path=path,
    )
    elsewhere = replace(situation, chunk=AUTO)  # a size by hand reaches every call as it is made
    others = []
    for other in (each for each in paths if each != path):
        attention, of_other = decide_attention(elsewhere, other, dtype, beside[other], computed[other])
        others.append(replace(plan, path=other, **attention, **_explain(situation, decisions | of_other)))
    return replace(plan, others=tuple(others)), decisions


def _explain(situation: Situation, decisions: Mapping[str, FieldDecision]) -> dict[str, Any]:
    of_fields = [decisions[field] for field in DECIDED_FIELDS]
    return {
        "because": tuple(each.because for each in of_fields),
        "rejected": tuple(gone for each in of_fields for gone in each.rejected),
        "warnings": (*_unseen(situation.hardware), *_moved(decisions["device"]), *(said for each in of_fields for said in each.warnings)),
    }


def _replaced_by_fallbacks(situation: Situation, where: FieldDecision, decisions: dict[str, FieldDecision]) -> Iterator[Rejected]:
    """Yield what each fallback replaced: every field as it would be without that fallback's last step."""
    said = {(each.field, each.option) for its in decisions.values() for each in its.rejected}
    for fallback, less in before_each_fallback(situation.learned):
        try:
            _, before = _make_plan(replace(situation, learned=less), where)
        except Trouble:
            continue  # That fallback was required: without it the request cannot work, so there was nothing to replace.
        for field in _SINGLE:
            was = before[field].option
            if was != decisions[field].option and (field, was) not in said:
                said.add((field, was))
                yield Rejected(field, was, (Reason(field, fallback.sentence, LEARNED_HERE),))


def check_machine(hardware: Hardware, quirks: tuple[Quirk, ...] = QUIRKS) -> None:
    """Raise Trouble, with the missing part and the cure, if this torch cannot run on the machine."""
    stopped = next((each for each in quirks if each.stops and each.applies(hardware)), None)
    if stopped is not None:
        sentence = say(
            "check.stopped", "Hearth cannot run on {machine} with torch {torch}.", machine=hardware.name, torch=hardware.torch or "?"
        )
        raise Trouble(sentence, stopped.sentence, cure="repair")
    if () < version(hardware.torch) < version(OLDEST_TORCH):
        raise Trouble(
            say(
                "check.torch",
                "Hearth needs torch {oldest} or newer, but {torch} is installed. Run {hearth} repair to update it.",
                oldest=OLDEST_TORCH,
                torch=hardware.torch,
            ),
            cure="repair",
        )


def check_choice(choice: Choice, need: Need) -> None:
    """Check that a choice and a need are valid."""
    kernels = (choice.kernels,) if isinstance(choice.kernels, str) else choice.kernels
    if kernels is not None and not isinstance(kernels, (tuple, list)):
        kernels = (kernels,)
    chosen = (
        ("gqa", (choice.gqa,), Gqa), ("dtype", (choice.dtype,), Dtype), ("offload", (choice.offload,), Offload),
        ("quantised", (choice.quantised,), Quantised), ("kernels", kernels or (), Kernel),
    )  # fmt: skip
    for field, values, options in chosen:
        for value in values:
            if value is not None and value not in get_args(options):
                raise Impossible(
                    say(
                        "choice.unknown",
                        '{value} is not a valid choice for "{field}". Choose one of {options}, or leave it automatic.',
                        field=FIELDS[field],
                        value=repr(value),
                        options=get_args(options),
                    ),
                    cure="automatic",
                    field=field,
                )
    if need.heads < 1 or need.kv_heads < 1 or need.heads % need.kv_heads:
        raise Trouble(
            say(
                "need.heads",
                "{heads} query {heads:head does|heads do} not divide evenly among {kv_heads} key {kv_heads:head|heads}. "
                "Make the first a multiple of the second.",
                heads=need.heads,
                kv_heads=need.kv_heads,
            )
        )


def parse_chunk(text: str | None) -> Chunk:
    """Parse a chunk size as the user writes it."""
    if text is None or text == AUTO:
        return AUTO
    number = text.isascii() and text.isdigit() and len(text) <= len(str(LONGEST_CHUNK))
    return check_chunk(int(text) if number else text)


def check_chunk(chunk: object) -> Chunk:
    if chunk == AUTO or (type(chunk) is int and 1 <= chunk <= LONGEST_CHUNK):
        return chunk
    raise Trouble(
        say(
            "choice.chunk",
            "{chunk} is not a valid chunk size. Use a whole number from 1 to {longest}, or auto.",
            chunk=repr(chunk),
            longest=LONGEST_CHUNK,
        ),
        cure="automatic",
        field="chunk_q",
    )


def _decide_device(situation: Situation) -> FieldDecision:
    kind = situation.hardware.kind
    own = Option(kind, say("device.own", "{machine} is used.", machine=situation.hardware.name), "this machine")
    if kind == "cpu":
        return decide_field(situation, "device", (own,), None)
    processor = Option("cpu", say("device.cpu", "The processor is used."))
    slower = Reason("device", say("device.slower", "The processor is slower than {machine}.", machine=situation.hardware.name))
    against = object_to_device(situation, list_dtypes(situation.hardware)) or _object_to_small_card(situation)
    return decide_field(situation, "device", (own, processor), None, {kind: against} if against else {"cpu": [slower]})


def _object_to_small_card(situation: Situation) -> list[Reason]:
    """Object to a card on which a voice does not fit even if its layers are sent for each row, where the computer's memory holds it."""
    hardware, need, choice = situation.hardware, situation.need, situation.choice
    if need.kind != "speech" or hardware.unified or choice.offload is not None or choice.quantised is not None:
        return []
    dtype: Dtype = decide_dtype(situation).option  # type: ignore[assignment]
    made, _ = decide_weights(situation, dtype, hardware.kind, unfolds=False)
    needed = needed_bytes(need, made["precision"], made["quantised"], made["offload"], made["vae"])
    halves = sum(part.parameters for part in need.parts) * BYTES["bfloat16"]
    if needed <= usable_bytes(hardware) or halves > free_bytes(as_processor(hardware)):
        return []
    words = say(
        "device.small",
        "The voice needs {gib} GiB of the card even if its layers are sent for each row, more than 85% of the {free} GiB free, so it "
        "computes on the processor.",
        **too_much(needed, hardware),
    )
    return [Reason("device", words, slower=True)]


def _decide_implementation(situation: Situation) -> FieldDecision:
    words = say("attention.sdpa", "Models use torch's attention, the only one that Hearth can monitor and correct.")
    sdpa = Option("sdpa", words)
    insisted = situation.need.attention
    if insisted in ("", "sdpa"):
        return decide_field(situation, "attention", (sdpa,), None)
    own = Reason(
        "attention",
        say(
            "attention.own",
            "Hearth cannot monitor or correct other attention libraries; torch has the same kernels if the card supports them.",
        ),
    )
    other = Option(insisted, say("attention.insisted", "The model requires {attention}.", attention=insisted))
    # The model's preference comes first, so that the plan gives the objections to it.
    return decide_field(situation, "attention", (other, sdpa), None, {insisted: [own]})


def _decide_convolution(situation: Situation) -> FieldDecision:
    """Decide by float32: a library without code for the card fails in every dtype. Where one dtype alone fails, another is taken."""
    own = Option("torch", say("convolution.torch", "torch computes convolutions itself."))
    words = say("convolution.library", "The library of the card's maker computes convolutions: the fastest way.")
    options = (Option("library", words), own) if situation.hardware.kind in CARD_KINDS else (own,)
    return decide_field(situation, "convolution", options, "float32")


def _decide_environment(situation: Situation) -> FieldDecision:
    words = say("environment.gqa", "transformers passes key heads unchanged, which avoids needless copies.")
    because = Reason("environment", words, "transformers' sdpa_attention.py")
    reason = next((Reason("environment", each.sentence, each.source) for each in situation.quirks if each.sets), because)
    return FieldDecision("environment", reason)


def _beside(situation: Situation, weights: Mapping[str, Any], parts: tuple[ModelPart, ...]) -> int:
    """Return the memory left for scores beside weights, caches and working memory while the largest of these parts runs."""
    need, how, quantised = situation.need, weights["precision"], weights["quantised"]
    taken = (
        resident_bytes(need, how, quantised, weights["offload"], part) + work_bytes(need, part, its, quantised)
        for part, its in zip(need.parts, how, strict=True)
        if part in parts
    )
    return usable_bytes(situation.hardware) - max(taken, default=0)


def _computed_in(situation: Situation, weights: Mapping[str, Any], parts: tuple[ModelPart, ...]) -> frozenset[Dtype]:
    """Return the dtypes that these parts compute in: what overflows in the plan's dtype has another."""
    return frozenset(how.compute for part, how in zip(situation.need.parts, weights["precision"], strict=True) if part in parts)


def _moved(where: FieldDecision) -> tuple[Reason, ...]:
    """Warn of a device that is not used because it computes wrongly or is too small."""
    return (where.because,) if where.because.slower else ()


def _unseen(hardware: Hardware) -> tuple[Reason, ...]:
    if not hardware.unseen_card:
        return ()
    sentence = say(
        "device.unseen",
        "This machine has a {card}, but the installed torch cannot use it, so Hearth computes on the processor. {hearth} repair says why, "
        "and installs one that can where there is one.",
        card=hardware.unseen_card,
    )
    return (Reason("device", sentence, "the system's list of cards"),)
