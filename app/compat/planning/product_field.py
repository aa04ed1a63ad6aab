"""Decide how the few lines of a row of speech are multiplied by its weights: as torch does, or a way that was seen to be right and quicker here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from app.base.sentence import Sentence, say
from app.compat.machine.hardware import Hardware, Kind
from app.compat.machine.verdicts import Subject
from app.compat.planning.options import (
    MEASURED_HERE,
    FieldDecision,
    Option,
    Situation,
    decide_field,
    failed_sentence,
    object_to_pace,
    percent_of_time,
)
from app.compat.planning.quirk import version
from app.compat.planning.types import HALVES, Dtype, Precision, Product, Quantised, Reason

Weights = Literal["half", "int8", "int4"]
"""The weights of a product are held so: in a half precision, or packed by Hearth."""
ALL: Final[tuple[Weights, ...]] = ("half", "int8", "int4")


@dataclass(frozen=True, slots=True)
class Way:
    """A way of multiplying few lines beside torch's own, and where it may be tried."""

    product: Product
    kind: Kind
    weights: tuple[Weights, ...]
    dtypes: tuple[Dtype, ...]
    """Lines and products are computed in these."""
    torch: str = "2.6"
    """torch has what it takes from this version on."""


WAYS: Final = (
    Way("kernel", "cuda", ALL, ("float32", *HALVES)),
    Way("kernel", "mps", ALL, HALVES, "2.7"),
    Way("lines", "mps", ("half",), HALVES),
)
"""Metal's kernels for matrices read a weight three times as slowly for two lines as its own kernel for one does (ml-explore/mlx #3661). Cards have
no kernel of torch's for packed weights that is quick. ROCm would take its own words for the kernel's text."""
_WORDS: Final[dict[Product, Sentence]] = {
    "kernel": say("product.kernel", "Hearth's own kernel reads the weights once for all lines of a row"),
    "lines": say("product.lines", "Each line of a row is multiplied by itself"),
}


def list_ways(hardware: Hardware, dtype: Dtype, weights: Weights) -> tuple[Product, ...]:
    """Return the ways that may be tried on this machine. A card from before 8.0 computes nothing in bfloat16."""
    if dtype == "bfloat16" and hardware.kind == "cuda" and (hardware.capability or (8, 0)) < (8, 0):
        return ()
    return tuple(
        way.product
        for way in WAYS
        if way.kind == hardware.kind and weights in way.weights and dtype in way.dtypes and version(hardware.torch) >= version(way.torch)
    )


def right_subject(product: Product, weights: Weights, dtype: Dtype) -> Subject:
    return Subject.path(f"product/{product}-{weights}", dtype)


def quicker_subject(product: Product, weights: Weights, dtype: Dtype) -> Subject:
    return Subject.quicker(f"{product}-{weights}", dtype)


def list_objections(situation: Situation, product: Product, weights: Weights, dtype: Dtype) -> list[Reason]:
    """Say what keeps a way from being used: what was seen here, or not yet."""
    right = situation.verdicts.get(right_subject(product, weights, dtype))
    pace = situation.verdicts.get(quicker_subject(product, weights, dtype))
    found = [
        Reason("product", each.fallback.sentence, overrules=True)
        for each in situation.learned
        if f"product/{product}" in each.fallback.against
    ]
    if right is not None and not right.passed:
        found.append(Reason("product", failed_sentence(_WORDS[product], right), MEASURED_HERE, fatal=True))
    elif right is None or pace is None:
        words = say("product.unseen", "Whether Hearth's own way is right here and quicker than torch's is measured while Hearth is idle.")
        found.append(Reason("product", words))
    elif not pace.passed:
        slower = say("product.slower", "It takes {percent}% of torch's time here, so too little is gained.", percent=percent_of_time(pace))
        found.append(object_to_pace("product", pace, slower))
    return found


def is_admitted(situation: Situation, product: Product, weights: Weights, dtype: Dtype) -> bool:
    return product in list_ways(situation.hardware, dtype, weights) and not list_objections(situation, product, weights, dtype)


def find_share(situation: Situation, weights: Weights, dtype: Dtype) -> float:
    """Return the time of the quickest way that is used as a share of torch's own."""
    paces = (
        situation.verdicts[quicker_subject(each, weights, dtype)].error
        for each in list_ways(situation.hardware, dtype, weights)
        if is_admitted(situation, each, weights, dtype)
    )
    return min(paces, default=1.0)


def decide_product(situation: Situation, dtype: Dtype, how: Sequence[Precision], quantised: Quantised) -> FieldDecision:
    weights = _find_weights(situation, how, quantised)
    ranked = [(1.0, Option("torch", say("product.torch", "torch multiplies each row's lines by the weights.")))]
    against: dict[str, list[Reason]] = {}
    for way in () if weights is None else list_ways(situation.hardware, dtype, weights):
        # What a run taught, decide_field() adds.
        against[way] = [each for each in list_objections(situation, way, weights, dtype) if not each.overrules]  # type: ignore[arg-type]
        pace = situation.verdicts.get(quicker_subject(way, weights, dtype))  # type: ignore[arg-type]
        share = 0.99 if pace is None else min(pace.error, 0.99)
        words = say("product.quicker", "{way}, which takes {percent}% of torch's time here.", way=_WORDS[way], percent=round(100 * share))
        ranked.append((share, Option(way, words, MEASURED_HERE)))
    return decide_field(situation, "product", [option for _, option in sorted(ranked, key=lambda each: each[0])], None, against)


def _find_weights(situation: Situation, how: Sequence[Precision], quantised: Quantised) -> Weights | None:
    """Return how the weights that each row reads are held; None if no way but torch's takes them."""
    voice = next((each for each in how if each.role == "speech"), None)
    if voice is None:
        return None
    if quantised == "int8" or quantised == "int4":
        return quantised
    halves = quantised == "none" and not situation.need.plain and (voice.linear or voice.storage) in HALVES
    return "half" if halves else None
