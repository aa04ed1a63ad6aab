"""What may leave the machine for a bug report names no folder of it: an error message, and the report of a start that failed."""

from __future__ import annotations

import pytest

from app.base.private_words import hide_private
from app.base.sentence import say
from app.launcher import failure

SENTENCE = say("start.unknown", "Hearth could not start. The report below shows the reason.")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ('File "/data/olivia/hearth/app/ui/launch.py", line 3', "File .../launch.py, line 3"),
        ("D:\\olivia smith\\hearth.log is locked", ".../hearth.log is locked"),
        ("\\\\nas\\olivia\\x.png", ".../x.png"),
        ("2 of 3/4 are right", "2 of 3/4 are right"),
    ],
)
def test_of_a_folder_outside_the_home_only_the_last_part_is_told(words: str, told: str) -> None:
    assert hide_private(words) == told
    assert failure.describe(words, SENTENCE).report == failure.describe_untranslated("no", words).report == told
