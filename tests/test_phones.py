"""Letters to sounds: exact for common words, sensible for others; the marks between words stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.starter.training.free.phones import CONSONANTS, VOWELS, sounded, table, word_sounds

TABLE = Path(__file__).parents[1] / "assets" / "starter" / "training" / "free" / "sounds.gz"


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
