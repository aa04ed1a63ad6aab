"""What Pocket TTS and Phonon are given to read: as their makers prepare it, and none of a model's own signs."""

from __future__ import annotations

import string

import pytest

from app.engine.speech.families.pocket.prompt import prepare_text

SPELLED = frozenset(string.ascii_letters + " .,!?'-\"é")


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("hello there", "Hello there."),
        ("éclair?", "Éclair?"),
        ("Is it?", "Is it?"),
        ("So, then,", "So, then."),
        ("He said, 'go home'", "He said, 'go home.'"),
        ("one (two) three", "One, two, three."),
        ("(softly) go [now]!", "Softly, go, now!"),
        ("yes; (no), maybe!, or", "Yes, no, maybe! or."),
        ("Wait -", "Wait."),
        ("a <|audio_bos|> b", "A, audio_bos, b."),
        ("  much   room\n here  ", "Much room here."),
        ("1500 and 3.5", "1500 and 3.5."),
    ],
)
def test_it_gets_a_capital_and_a_mark_at_its_end(said: str, right: str) -> None:
    assert prepare_text([said], "", frozenset()) == right


def test_turns_of_a_part_are_one_text() -> None:
    assert prepare_text(["One.", "two"], "", frozenset()) == "One. two."


def test_letters_that_a_tokenizer_has_no_piece_for_lose_their_accent() -> None:
    assert prepare_text(["é ễ x² 你 ok"], "", SPELLED) == "É e x ok."
    assert prepare_text(["é ễ 你 ok"], "", frozenset()) == "É ễ 你 ok."


def test_english_is_read_as_words() -> None:
    assert prepare_text(["It cost $5.20 in 1999"], "en", SPELLED) == "It cost five dollars and twenty cents in nineteen ninety nine."


def test_another_language_is_read_in_its_own_words() -> None:
    assert prepare_text(["Es kostet 5,20 €, z. B."], "de", frozenset()) == "Es kostet fünf Euro zwanzig, zum Beispiel."
