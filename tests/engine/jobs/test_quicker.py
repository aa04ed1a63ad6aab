"""Test which steps reuse earlier ones and what that is said to spare."""

from __future__ import annotations

from typing import Any

import pytest

from app.base.trouble import Trouble
from app.engine.jobs.quicker import LEAST_STEPS, QUICKER, estimate_share, reuses
from app.engine.jobs.request import PictureRequest, from_json, to_json


def test_every_second_step_reuses_the_one_before_it() -> None:
    assert [reuses("little", index, 12) for index in range(5)] == [False, True, False, True, False]
    assert not any(reuses("off", index, 50) for index in range(50))
    assert not any(reuses("much", index, LEAST_STEPS - 1) for index in range(LEAST_STEPS - 1))


def test_the_share_counts_what_is_spared() -> None:
    assert estimate_share("off", True, 0.4, 20) == 1
    assert estimate_share("little", True, 0.4, 20) == 0.75
    assert estimate_share("little", True, 0.4, 21) == pytest.approx(16 / 21)
    assert estimate_share("much", True, 0.4, 20) == pytest.approx(0.6)
    assert estimate_share("much", False, 0.4, 20) == pytest.approx(0.7)


def test_a_request_keeps_its_setting_and_refuses_others() -> None:
    for setting in QUICKER:
        assert from_json(to_json(PictureRequest("a", quicker=setting))) == PictureRequest("a", quicker=setting)
    old = to_json(PictureRequest("a"))
    del old["quicker"]
    assert from_json(old) == PictureRequest("a")
    odd: tuple[Any, ...] = ("", "Much", None, [], 1)
    for wrong in odd:
        with pytest.raises(Trouble):
            PictureRequest("a", quicker=wrong)
