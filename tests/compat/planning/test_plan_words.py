"""Plan values in words: every field of every pretended machine's plan has a name and a value that a person can read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.base.sentence import in_words
from app.compat.machine.pretended import MACHINES
from app.compat.planning.decide import DECIDED_FIELDS, decide
from app.compat.planning.plan_words import FIELDS, word_option, word_value
from app.compat.planning.quickest_way import OWN, Shape
from app.compat.planning.types import Vae
from app.engine.models.catalog import find
from app.engine.models.model import describe_need


def test_every_field_has_a_name() -> None:
    assert tuple(FIELDS) == DECIDED_FIELDS


@pytest.mark.parametrize("model", ["dia-1.6b", "sdxl"])
@pytest.mark.parametrize("name", MACHINES)
def test_no_value_reads_like_a_program(name: str, model: str) -> None:
    plan = decide(MACHINES[name], describe_need(find(model)))
    for field in DECIDED_FIELDS:
        words = str(in_words(word_value(plan, field)))
        assert words and not any(each in words for each in ("None", "True", "False", "(,", "[", "Vae", "Precision")), field


def test_the_values_are_those_of_the_plan() -> None:
    plan = decide(MACHINES["t4"], describe_need(find("sdxl")))
    shape = Shape(1, 8, 8, 64, 64, 64, False, False, "float16")
    found = replace(
        plan,
        budget_bytes=768 << 20,
        chunk_q=256,
        chunk_k=None,
        chunk_most=None,
        score_dtype=None,
        kernels=(),
        ways=((shape, OWN),),
        vae=Vae(True, 512),
        offload="model",
        contiguous=True,
        explicit_mask=False,
        precision=(replace(plan.precision[0], part="text", compute="float32", storage="float16", device="cpu"),),
    )
    said = {field: str(in_words(word_value(found, field))) for field in DECIDED_FIELDS}
    assert said["budget_bytes"] == "768 MiB" and said["chunk_q"] == "256" and said["chunk_k"] == "automatic"
    assert said["chunk_most"] == "no limit" and said["score_dtype"] == "the kernel's own" and said["kernels"] == "Hearth's own"
    assert said["ways"] == "1 measured" and said["vae"] == "tiles of 512 pixels" and said["offload"] == "one component at a time"
    assert said["contiguous"] == "made contiguous" and said["explicit_mask"] == "no"
    assert said["precision"] == "text: float32 (float16), cpu"
    assert str(in_words(word_value(replace(found, vae=Vae(True, 0)), "vae"))) == "in one piece"
    assert word_option("precision", "vae: float16") == "vae: float16"
