"""How the lines of a row are multiplied, decided from what was seen; and what packed weights on a card follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.fallbacks import next_fallback
from app.compat.planning.heads_field import PADDED, RIGHT
from app.compat.planning.memory_formulas import GIB, MIB, peak_bytes, usable_bytes, weights_bytes
from app.compat.planning.product_field import ALL, Weights, quicker_subject, right_subject
from app.compat.planning.types import HALVES, Choice, Dtype, Plan, Product
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need

DIA, STARTER, PICTURE = (describe_need(BY_ID[name]) for name in ("dia-1.6b", "starter-voice", "sd15"))
MAC = replace(MACHINES["m3-max-64gb"], free_bytes=20 * GIB)
OLD = MACHINES["gtx-1060"]
SMALL = replace(OLD, name="NVIDIA GeForce GTX 1050 Ti", memory_bytes=4096 * MIB, free_bytes=3496 * MIB, packages=())
HALF_IS_RIGHT = {Subject.path("linear/float16", "float16"): Verdict(Subject.path("linear/float16", "float16"), True)}
Seen = dict[Subject, Verdict]


def see(shares: Mapping[tuple[Product, Weights], float], dtype: Dtype, right: bool = True) -> Seen:
    """Return verdicts of ways that take these shares of torch's time."""
    found: Seen = {}
    for (way, weights), share in shares.items():
        for subject, passed, error in (
            (right_subject(way, weights, dtype), right, 1e-4 if right else 0.5),
            (quicker_subject(way, weights, dtype), share <= 0.9, share),
        ):
            found[subject] = Verdict(subject, passed, error)
    return found


def see_torchs_own(dtype: Dtype, share: float) -> Seen:
    subject = Subject.quicker("int8", dtype)
    return {subject: Verdict(subject, share <= 0.8, share)}


ON_OLD_CARD = (
    see({("kernel", "half"): 0.8, ("kernel", "int8"): 0.1, ("kernel", "int4"): 0.1}, "float32")
    | see_torchs_own("float32", 4.0)
    | HALF_IS_RIGHT
)


def why(plan: Plan, field: str) -> str:
    return next(each.sentence.key for each in plan.because if each.field == field)


def objections(plan: Plan, field: str, option: str) -> list[str]:
    return [each.sentence.key for gone in plan.rejected if (gone.field, gone.option) == (field, option) for each in gone.objections]


def test_a_way_is_used_once_it_was_seen_to_be_right_and_quicker() -> None:
    plan = decide(MAC, DIA, Choice(), see({("kernel", "half"): 0.41}, "float16"))
    assert plan.dtype == "float16" and plan.product == "kernel" and why(plan, "product") == "product.quicker"
    assert "41%" in str(next(each.sentence for each in plan.because if each.field == "product"))
    for seen, said in (
        ({}, "product.unseen"),
        (see({("kernel", "half"): 0.41}, "bfloat16"), "product.unseen"),
        (dict(list(see({("kernel", "half"): 0.41}, "float16").items())[:1]), "product.unseen"),
        (see({("kernel", "half"): 0.95}, "float16"), "product.slower"),
        (see({("kernel", "half"): 0.41}, "float16", right=False), "plan.failed"),
    ):
        refused = decide(MAC, DIA, Choice(), seen)
        assert refused.product == "torch" and objections(refused, "product", "kernel") == [said]


@pytest.mark.parametrize("machine", ["gtx-1060", "t4", "m2-16gb", "m3-max-64gb"])
@pytest.mark.parametrize("right", [True, False])
def test_a_way_that_could_not_be_timed_is_not_used(machine: str, right: bool) -> None:
    """A question that raised, hung or died is stored with an infinite time."""
    seen, told = dict[Subject, Verdict](), set[str]()
    for dtype in ("float32", *HALVES):
        ways: list[tuple[Product, Weights]] = [(product, weights) for product in ("kernel", "lines") for weights in ALL]
        rights = [Subject.path(RIGHT, dtype), Subject.path("row/graph", dtype), *(right_subject(*each, dtype) for each in ways)]
        paces = [*(Subject.quicker(each, dtype) for each in ("int8", "graph", PADDED)), *(quicker_subject(*each, dtype) for each in ways)]
        seen |= {each: Verdict(each, right, 1e-4 if right else math.inf, words="it hung") for each in rights}
        seen |= {each: Verdict(each, False, math.inf, words="it hung") for each in paces}
    for need in (DIA, STARTER, PICTURE, describe_need(BY_ID["sdxl"])):
        plan = decide(MACHINES[machine], need, Choice(), seen)
        assert (plan.product, plan.row, plan.pad_heads) == ("torch", "calls", False)
        told |= {reason.sentence.key for each in plan.rejected for reason in each.objections}
    assert ("plan.untimed" in told) == right and ("plan.failed" in told) != right


@pytest.mark.parametrize(
    ("kernel", "lines", "taken"), [(0.4, 0.6, "kernel"), (0.7, 0.6, "lines"), (1.2, 0.6, "lines"), (1.2, 0.95, "torch")]
)
def test_of_several_ways_the_quickest_is_used(kernel: float, lines: float, taken: Product) -> None:
    assert decide(MAC, DIA, Choice(), see({("kernel", "half"): kernel, ("lines", "half"): lines}, "float16")).product == taken


def test_only_weights_in_half_precision_or_packed_have_other_ways() -> None:
    everything = {**ON_OLD_CARD, **see({("kernel", each): 0.3 for each in ALL}, "float16")}
    assert (
        decide(MAC, PICTURE, Choice(), everything).product == "torch" == decide(MAC, replace(DIA, plain=True), Choice(), everything).product
    )
    assert decide(OLD, STARTER, Choice(), everything).product == "torch", "a small voice has weights in float32"
    stored = decide(OLD, DIA, Choice(dtype="float32", quantised="none"), everything)
    assert {each.storage for each in stored.precision if each.role == "speech"} == {"float16"}
    assert stored.product == "kernel", "it sums in float32 what others would widen first"
    assert decide(MACHINES["cpu"], DIA, Choice(), everything).product == "torch"


def test_packed_weights_of_every_voice_have_hearths_kernel() -> None:
    vibe = describe_need(BY_ID["vibevoice-1.5b"])
    assert vibe.plain
    plan = decide(replace(OLD, free_bytes=5325 * MIB), vibe, Choice(), ON_OLD_CARD)
    assert plan.device == "cuda" and plan.quantised in ("int8", "int4") and plan.product == "kernel"


def test_an_old_card_multiplies_halves_by_the_kernel() -> None:
    room = replace(OLD, free_bytes=5600 * MIB)
    plan = decide(room, DIA, Choice(quantised="none"), ON_OLD_CARD)
    assert plan.dtype == "float32" and plan.of("speech").linear == "float16" and plan.product == "kernel"  # type: ignore[union-attr]


def test_an_old_card_has_8_bits_where_its_kernel_is_right_and_quicker() -> None:
    before, after = decide(OLD, DIA, Choice(), HALF_IS_RIGHT), decide(OLD, DIA, Choice(), ON_OLD_CARD)
    assert before.quantised == "none" and "quantised.packed-cards" in objections(before, "quantised", "int8")
    assert "product.unseen" in objections(before, "quantised", "int8"), "what is missing is told"
    assert (
        after.quantised == "int8"
        and after.product == "kernel"
        and after.offload == "none"
        and why(after, "quantised") == "quantised.quicker"
    )
    assert "50%" in str(next(each.sentence for each in after.because if each.field == "quantised")), (
        "4.0 x 0.1 of torch's, of a kernel's 0.8"
    )
    assert weights_bytes(DIA, after) < 0.65 * weights_bytes(DIA, before)
    slow = ON_OLD_CARD | see_torchs_own("float32", 7.0)
    assert decide(OLD, DIA, Choice(), slow).quantised == "none", "0.7 of torch's halves, but 0.88 of the kernel's"
    wrong = ON_OLD_CARD | see({("kernel", "int8"): 0.1}, "float32", right=False)
    assert decide(OLD, DIA, Choice(), wrong).quantised == "none"
    with pytest.raises(Trouble) as told:
        decide(OLD, DIA, Choice(quantised="int8"), wrong)
    assert "plan.failed" in {each.key for each in told.value.objections}


def test_a_card_of_4_gb_holds_the_whole_voice_in_8_bits() -> None:
    before, after = decide(SMALL, DIA, Choice(), HALF_IS_RIGHT), decide(SMALL, DIA, Choice(), ON_OLD_CARD)
    assert before.offload != "none" or before.device == "cpu"
    assert (after.device, after.quantised, after.offload) == ("cuda", "int8", "none") and peak_bytes(DIA, after) <= usable_bytes(SMALL)
    tiny = replace(SMALL, free_bytes=2950 * MIB)
    four = decide(tiny, DIA, Choice(), ON_OLD_CARD)
    assert (four.quantised, four.product) == ("int4", "kernel") and peak_bytes(DIA, four) <= usable_bytes(tiny)


def test_packed_weights_are_not_sent_layer_by_layer() -> None:
    with pytest.raises(Trouble) as told:
        decide(OLD, DIA, Choice(quantised="int8", offload="group"), ON_OLD_CARD)
    assert "quantised.packed-stays" in {each.key for each in told.value.objections}
    with pytest.raises(Trouble) as told:
        decide(replace(OLD, free_bytes=1200 * MIB), DIA, Choice(quantised="int4"), ON_OLD_CARD)
    assert "quantised.packed-stays" in {each.key for each in told.value.objections}


@pytest.mark.parametrize("machine", [OLD, MAC])
def test_what_breaks_a_run_is_given_up_before_the_weights_are(machine: Hardware) -> None:
    dtype: Dtype = "float32" if machine is OLD else "float16"
    seen = ON_OLD_CARD if machine is OLD else see({("kernel", "half"): 0.4}, dtype)
    taken = next_fallback(lambda verdicts: decide(machine, DIA, Choice(), verdicts), DIA, seen, RunFailure("crash", 3))
    assert taken is not None
    learned, _, after = taken
    assert learned.fallback.id == "products-by-torch" and after.product == "torch" and after.quantised == "none"
    gone = next(each for each in after.rejected if (each.field, each.option) == ("product", "kernel"))
    assert [each.sentence.key for each in gone.objections] == ["learned"] and "torch multiplies" in str(gone.objections[0].sentence)


def test_a_graph_holds_packed_weights_too() -> None:
    graph = {each: Verdict(each, True, 0.5) for each in (Subject.path("row/graph", "float32"), Subject.quicker("graph", "float32"))}
    assert decide(OLD, DIA, Choice(), ON_OLD_CARD | graph).row == "graph"
    bnb = decide(replace(OLD, packages=("bitsandbytes",)), DIA, Choice(quantised="bnb-nf4"), ON_OLD_CARD | graph)
    assert bnb.row == "calls" and "row.quantised" in objections(bnb, "row", "graph") and bnb.product == "torch"
