"""Test what routes keep of what several windows of the owner send."""

from __future__ import annotations

import pytest

from app.ui.routes import merge_texts


@pytest.mark.parametrize(
    ("saved", "given", "kept"),
    [
        (None, ["mine"], ["mine"]),
        (["theirs"], ["mine"], ["mine", "theirs"]),
        (["theirs", "old", "older"], ["mine", "old", "older"], ["mine", "old", "older", "theirs"]),
        (["a", "b", "c"], ["b", "c", "a"], ["b", "c", "a"]),
        (["a", "b", "c", "d", "e"], ["1", "2"], ["1", "2", "a", "b", "c", "d"]),
        (["a", "b"], [], ["a", "b"]),
    ],
    ids=["the first", "of a window that knew nothing", "of a window beside it", "in another order", "the oldest goes", "nothing"],
)
def test_a_text_that_another_window_kept_is_not_lost(saved: object, given: list[str], kept: list[str]) -> None:
    assert merge_texts(saved, given, 3) == kept
