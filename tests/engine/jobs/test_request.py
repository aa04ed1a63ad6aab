"""What a request may ask for, to the last number that is taken, and what it asks for if nothing is said."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from app.base.trouble import Trouble
from app.engine.jobs.request import PictureRequest, SpeechRequest, from_json, to_json
from app.engine.jobs.settings import STARTER_ENLARGER

SPEECH_ENDS: dict[str, tuple[Any, Any, float]] = {
    "guidance": (1.0, 10.0, 0.01), "temperature": (0.0, 5.0, 0.01), "top_p": (0.01, 1.0, 0.01), "speed": (0.5, 2.0, 0.01),
    "loudness_lufs": (-60.0, 0.0, 0.01), "tail_s": (0.0, 10.0, 0.01), "seed": (0, 2**32 - 1, 1), "cfg_filter": (1, 1024, 1),
    "max_frames": (17, 3072, 1),
}  # fmt: skip
PICTURE_ENDS: dict[str, tuple[Any, Any, float]] = {
    "width": (64, 4096, 8), "height": (64, 4096, 8), "steps": (1, 200, 1), "seed": (0, 2**32 - 1, 1), "batch": (1, 16, 1), "upscale": (1, 4, 0.01),
    "preview_every": (0, 100, 1), "guidance": (0.0, 50.0, 0.01), "strength": (0.01, 1.0, 0.01),
}  # fmt: skip


@pytest.mark.parametrize(
    ("make", "field", "least", "most", "beyond"),
    [(make, field, *ends) for make, table in ((SpeechRequest, SPEECH_ENDS), (PictureRequest, PICTURE_ENDS)) for field, ends in table.items()],
)  # fmt: skip
def test_a_number_is_taken_up_to_its_ends(make: Any, field: str, least: Any, most: Any, beyond: Any) -> None:
    for value in (least, most):
        assert getattr(make("a", **{field: value}), field) == value
    for value in (least - beyond, most + beyond, math.nan, math.inf, -math.inf, 10**400, True):
        with pytest.raises(Trouble):
            make("a", **{field: value})


@pytest.mark.parametrize(("size", "near"), [(65, 64), (100, 96), (1023, 1024), (4094, 4096)])
def test_a_size_that_is_no_multiple_of_8_gets_the_nearest(size: int, near: int) -> None:
    with pytest.raises(Trouble) as told:
        PictureRequest("a", width=size)
    assert dict(told.value.sentence.values)["near"] == near


def test_what_is_not_asked_for_stays_as_it_is() -> None:
    speech, picture = SpeechRequest("a"), PictureRequest("a")
    assert (speech.speed, speech.loudness_lufs, speech.tail_s, speech.format, speech.carry_voice) == (1.0, -18.0, 0.3, "wav", True)
    assert (picture.batch, picture.upscale, picture.seed, picture.width) == (1, 1, None, None)


@pytest.mark.parametrize("enlarger", ["", STARTER_ENLARGER, "/home/me/mine.safetensors"])
def test_what_enlarges_a_picture_is_stored(enlarger: str) -> None:
    """The formula became the starter's network in the journal, and on the way to another machine."""
    request = PictureRequest("p", upscale=2, enlarger=enlarger)
    assert from_json(to_json(request)) == request


@pytest.mark.parametrize(("times", "stored"), [(2, "2"), (2.0, "2"), (1.0, "1"), (1.5, "1.5"), (2.25, "2.25")])
def test_a_whole_upscale_is_stored_as_ever(times: float, stored: str) -> None:
    """Jobs that are the same have the same fingerprint, whoever wrote the number."""
    assert json.dumps(to_json(PictureRequest("p", upscale=times))["upscale"]) == stored


def test_a_mask_needs_a_picture() -> None:
    assert PictureRequest("a", image="a.png", mask="b.png").mask == "b.png"
    with pytest.raises(Trouble, match="a mask but no picture"):
        PictureRequest("a", mask="b.png")


@pytest.mark.parametrize(
    "more",
    [{"keep": [5]}, {"model": ["x"]}, {"only_parts": [["x"]]}, {"only_parts": [-1]}, {"only_parts": [True]}, {"voice": {"path": 5, "transcript": ""}},
     {"voice": {"path": "a", "transcript": None}}],
)  # fmt: skip
def test_a_script_of_other_types_is_no_request(more: dict[str, Any]) -> None:
    with pytest.raises(Trouble, match="cannot be read"):
        from_json({"kind": "speech", "text": "a", **more})


@pytest.mark.parametrize(
    "more", [{"image": 5}, {"image": {}}, {"image": "a", "mask": 5}, {"scheduler": 5}, {"model": None}, {"loras": [{"path": 5}]}]
)
def test_a_picture_of_other_types_is_no_request(more: dict[str, Any]) -> None:
    with pytest.raises(Trouble, match="cannot be read"):
        from_json({"kind": "picture", "prompt": "a", **more})


@pytest.mark.parametrize(
    ("kind", "more", "told"),
    [
        ("picture", {"batch": None}, "number of pictures is None"), ("picture", {"strength": None}, "strength is None"),
        ("picture", {"loras": [{"path": "a", "weight": None}]}, "weight of a is None"), ("speech", {"speed": None}, "speed is None"),
        ("speech", {"carry_voice": [[1]]}, r"every part is \[\[1\]\]; it must be one of True, False"), ("speech", {"carry_voice": None}, "is None"),
    ],
)  # fmt: skip
def test_only_what_the_model_may_choose_can_be_left_to_it(kind: str, more: dict[str, Any], told: str) -> None:
    """A database, a picture or another machine may hold it: the run would break at it."""
    with pytest.raises(Trouble, match=told):
        from_json({"kind": kind, "text" if kind == "speech" else "prompt": "a", **more})
