"""The pretended machines: their facts hold together, and an unknown one gets a sentence that lists them."""

from __future__ import annotations

import pytest

from app.base.trouble import Trouble
from app.compat.machine.pretended import MACHINES, machine


def test_every_machine_of_the_promise_is_there() -> None:
    assert list(MACHINES) == [
        "m1-8gb",
        "m1-8gb-browser",
        "m1-8gb-full",
        "m2-16gb",
        "m3-max-64gb",
        "gtx-1060",
        "gtx-1660",
        "t4",
        "rtx-3060",
        "cpu",
    ]


@pytest.mark.parametrize("name", MACHINES)
def test_facts_hold_together(name: str) -> None:
    facts = machine(name)
    assert facts.pretended == name
    assert 0 < facts.free_bytes < facts.memory_bytes
    assert (facts.capability is not None) == bool(facts.arch_list) == bool(facts.driver) == (facts.kind == "cuda")
    assert facts.unified == (facts.kind != "cuda")
    assert facts.cores > 0 and facts.torch and facts.processor


def test_an_unknown_machine_lists_the_known_ones() -> None:
    with pytest.raises(Trouble) as caught:
        machine("gtx-9999")
    assert "gtx-9999" in str(caught.value)
    assert all(name in str(caught.value) for name in MACHINES)


@pytest.mark.parametrize("name", [name for name in MACHINES if name.startswith("m")])
def test_a_mac_knows_what_metal_recommends(name: str) -> None:
    facts = machine(name)
    assert facts.free_bytes < facts.limit_bytes < facts.memory_bytes
