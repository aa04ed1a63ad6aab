"""Test what routes keep of what several windows of the owner send."""

from __future__ import annotations

import pytest

from app.ui.routes import merge_texts


@pytest.mark.parametrize(
    ("saved", "given", "kept"),
    [
        (None, ["mine"], ["mine"]),
        (["theirs"], ["mine"], ["mine", "theirs"]),
        (["theirs", "old", "older"], ["mine", "old", "older"], ["mine", "theirs", "old"]),
        (["a", "b", "c"], ["mine", "a", "b"], ["mine", "a", "b"]),
        (["a", "b", "c"], ["b", "c", "a"], ["b", "c", "a"]),
        (["a", "b"], [], ["a", "b"]),
    ],
    ids=["the first", "of a window that knew nothing", "of a window beside it", "the oldest goes", "in another order", "nothing"],
)
def test_a_text_that_another_window_kept_is_not_lost(saved: object, given: list[str], kept: list[str]) -> None:
    assert merge_texts(saved, given, 3) == kept
