"""Words heard against words meant: faults are marked where they are, other spellings of the same sounds are not."""

from __future__ import annotations

import pytest

from app.engine.hearing.compare import Mark, compare, list_words, mark, measure
from app.engine.hearing.heard import Meant
from app.engine.hearing.spelling import spell

TEXT = "The ferryman looked at the sea for a long time when the clock struck seven."


def found(meant: str, heard: str) -> list[Mark]:
    return compare(meant.split(), heard, spell)


@pytest.mark.parametrize(
    ("meant", "heard"),
    [
        (TEXT, "the ferry man looked at the see for a long time, when the clock struck 7"),
        ("Who walked down to the harbour?", "Who walked down to the harbor"),
        ("Everyone knew that it was twelve percent.", "Every one new that it was 12%."),
        ("[S1] Yes. (laughs) No.", "yes no"),
        ("It is a mistake \u2014 yours.", "It is a mistake, yours."),
        ("\u4f60\u597d", "\u4f60\u597d"),
    ],
)
def test_the_same_sounds_are_no_fault(meant: str, heard: str) -> None:
    assert found(" ".join(list_words(meant)), heard) == []


@pytest.mark.parametrize(
    ("heard", "mark"),
    [
        ("The looked at the sea for a long time when the clock struck seven", Mark("lost", 1, 2, "")),
        ("The ferryman looked at the sea when the clock struck seven", Mark("lost", 6, 7, "")),
        ("The ferryman looked looked at the sea for a long time when the clock struck seven", Mark("doubled", 3, 3, "looked")),
        ("The ferryman looked at the sea for a long time when the garden struck seven", Mark("wrong", 12, 13, "garden")),
        (
            "The ferryman looked at the sea for a long time and then again when the clock struck seven",
            Mark("added", 10, 10, "and then again"),
        ),
    ],
)
def test_a_fault_is_marked_in_its_place(heard: str, mark: Mark) -> None:
    assert found(TEXT, heard)[0] == mark


def weigh(without: float = -99.0, twice: float = -99.0, other: float = -99.0) -> list[Meant]:
    """Return the words of TEXT, all but the fourteenth, "struck", said without doubt."""
    doubts = (without, twice, other)
    return [Meant(word, 0.0, 0.1, -0.1, *(doubts if place == 13 else (-99.0,) * 3)) for place, word in enumerate(TEXT.split())]


ANOTHER = TEXT.replace("struck", "window")


def test_a_recognisers_spelling_alone_is_no_proof() -> None:
    assert mark(weigh(), ANOTHER, spell) == []
    assert mark(weigh(other=7.0), ANOTHER, spell) == [], "the word that is meant is not so much less likely"
    assert mark(weigh(other=9.0), ANOTHER, spell) == [Mark("wrong", 13, 14, "window")]
    assert mark(weigh(other=9.0), TEXT, spell) == [], "it wrote the word"


def test_what_is_likelier_without_a_word_is_marked() -> None:
    assert mark(weigh(without=5.0), TEXT, spell) == [Mark("lost", 13, 14, "")], "whatever was written"
    assert mark(weigh(without=5.0), ANOTHER, spell) == [Mark("wrong", 13, 14, "window")]
    assert mark(weigh(without=2.0), TEXT, spell) == []
    assert mark(weigh(without=2.0), TEXT.replace("struck ", ""), spell) == [], "it was not written, but is nearly as likely"


def test_a_word_that_is_as_likely_twice_is_marked() -> None:
    assert mark(weigh(twice=-4.0), TEXT, spell) == [Mark("doubled", 13, 14, "")]
    assert mark(weigh(twice=-6.0), TEXT, spell) == []
    assert mark(weigh(twice=-6.0), TEXT.replace("struck", "struck struck"), spell)[0].kind == "doubled"


def test_several_words_that_were_added_are_marked() -> None:
    assert mark(weigh(), f"{TEXT} Thank you for watching.", spell) == [Mark("added", 15, 15, "Thank you for watching")]
    assert mark(weigh(), f"{TEXT} Oh.", spell) == []


def test_sounds_of_a_kind_are_near() -> None:
    assert measure(spell("bet"), spell("bed")) < measure(spell("bet"), spell("best")) <= 1 < measure(spell("bet"), spell("lamp"))
