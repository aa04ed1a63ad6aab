"""Letters to sounds: exact for common words, sensible for others; a voice that reads sounds speaks any English, and the script keeps its own words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from app.engine import script
from app.engine.hearing import composed
from app.engine.limits import Limits, limits_of
from app.engine.phones import CONSONANTS, VOWELS, sounded, table, word_sounds

TABLE = Path(__file__).parents[1] / "assets" / "starter" / "training" / "free" / "sounds.gz"


@pytest.fixture
def limits(tmp_path: Path) -> Limits:
    """Of a voice whose starter.json says that it reads sounds."""
    shutil.copyfile(TABLE, tmp_path / "sounds.gz")
    told = {"name": "Free voice", "sounds": "sounds.gz", "bytes_per_s": 14.0, "longest_s": 10.0}
    (tmp_path / "starter.json").write_text(json.dumps(told))
    return limits_of(tmp_path)


def test_the_table_is_small_and_every_sound_has_its_own_sign() -> None:
    assert TABLE.stat().st_size < 1_000_000
    signs = "".join(CONSONANTS.values()) + "".join(VOWELS.values())
    assert (
        len(set(signs)) == len(signs) == 24 + 2 * 16 and signs.isascii() and not set(signs) & set(" ,.;:!?[]#$%&*/<>")
    )
    assert {sign for said in table(TABLE).values() for sign in said} <= set(signs)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("hello", "h0lN"), ("does", "dUz"), ("the", "D0"), ("i", "B"), ("a", "0"), ("don't", "dNnt"), ("computer", "k0mpyMt6"),
        ("people", "pXp0l"), ("thought", "TOt"), ("through", "TrM"), ("calendar", "kQl0nd6"), ("boys", "bJz"), ("o'clock", "8klAk"),
        ("W", "dUb0ly="), ("dog's", "dOgz"), ("cat's", "kQts"), ("boss's", "bAs0z"), ("we'll", "wXl"),
    ],
)  # fmt: skip
def test_common_words_sound_as_flite_says_them(word: str, said: str) -> None:
    assert word_sounds(word, TABLE) == said


def test_a_word_that_no_list_has_is_read_by_its_letters() -> None:
    assert word_sounds("hearthware", TABLE) == "hArTwEr"
    assert word_sounds("blorpish", TABLE)[:2] == "bl" and word_sounds("blorpish", TABLE)[-1] == "S"


def test_text_becomes_sounds_with_its_marks() -> None:
    assert sounded("The apple: does it work? 2 cats.", TABLE) == "Dx Qp0l: dUz It wRk? tM kQts."


def test_a_voice_of_sounds_speaks_any_english_and_keeps_the_words(limits: Limits) -> None:
    text = "[S1] Defenestrate 12 elephants, Dr. Who! [S2] “Why?” (laughs) [S1] It's 5:30."
    checked = script.check(text, limits)
    assert not checked.problems
    assert checked.parts[0].text == '[S1] Defenestrate 12 elephants, Dr. Who! [S2] "Why?" (laughs) [S1] It\'s 5:30.'
    read = composed(checked.parts[0].turns, limits)
    assert read.startswith("[S1] ") and " [S2] wB? " in read and read.endswith("[S1] Its fBv TRdx.")
    assert checked.bytes_longest == len(read.encode()) and read.isascii()


def test_parts_are_as_long_as_they_sound(limits: Limits) -> None:
    """Figures are short to write and long to say."""
    checked = script.check("[S1] " + "1234567 " * 30 + "9" * 400, limits)
    assert len(checked.parts) > 30
    for part in checked.parts:
        assert part.seconds <= limits.part_most_s and len(composed(part.turns, limits)) <= limits.bytes_most
    figures = "".join(turn.text for part in checked.parts for turn in part.turns).replace(" ", "")
    assert figures == "1234567" * 30 + "9" * 400


def test_signs_without_a_sound_are_told_before_anything_is_loaded(limits: Limits) -> None:
    (problem,) = script.check("[S1] Hello 你好.", limits).problems
    assert problem.severity == "fatal" and dict(problem.sentence.values)["signs"] == "你 好"
    (problem,) = script.check("[S1] Hello 😀.", limits).problems
    assert problem.severity == "warning" and "😀" in str(problem.sentence)
    assert composed(script.check("[S1] Hello 😀.", limits).parts[0].turns, limits) == "[S1] h0lN."
