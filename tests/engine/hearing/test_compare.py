"""Words heard against words meant: faults are marked where they are, other spellings of the same sounds are not."""

from __future__ import annotations

import pytest

from app.engine.hearing.compare import Mark, compare, list_words, mark, measure
from app.engine.hearing.heard import Meant, join_words
from app.engine.hearing.spelling import spell
from app.engine.hearing.word_places import list_said
from tests.support.combinations import combine

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


def weigh(without: float = -99.0, twice: float = -99.0, other: float = -99.0, likely: float = -0.1) -> list[Meant]:
    """Return the words of TEXT, all but the fourteenth, "struck", said without doubt."""
    doubts = (likely, without, twice, other)
    return [Meant(word, 0.0, 0.1, *(doubts if place == 13 else (-0.1, -99.0, -99.0, -99.0))) for place, word in enumerate(TEXT.split())]


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


def test_two_witnesses_together_mark_a_word() -> None:
    assert mark(weigh(without=-2.0, likely=-12.0), ANOTHER, spell) == [Mark("wrong", 13, 14, "window")]
    assert mark(weigh(without=-2.0, likely=-6.0), ANOTHER, spell) == [], "a small word is seldom likelier"
    assert mark(weigh(without=-12.0, likely=-12.0), ANOTHER, spell) == [], "it was heard, though nobody expected it"


def test_a_word_that_is_as_likely_twice_is_marked() -> None:
    assert mark(weigh(twice=-6.5), TEXT, spell) == [Mark("doubled", 13, 14, "")]
    assert mark(weigh(twice=-8.0), TEXT, spell) == []
    assert mark(weigh(twice=-8.0), TEXT.replace("struck", "struck struck"), spell)[0].kind == "doubled"


def test_a_second_word_may_stand_for_what_was_written_there() -> None:
    for written in (ANOTHER, TEXT.replace("struck", "struck the")):
        assert mark(weigh(twice=-6.5), written, spell) == [], "what the recogniser wrote is likelier than the word said twice"
        assert mark(weigh(twice=-4.0), written, spell)[0].kind == "doubled"


def test_several_words_that_were_added_are_marked() -> None:
    assert mark(weigh(), f"{TEXT} Thank you for watching.", spell) == [Mark("added", 15, 15, "Thank you for watching")]
    assert mark(weigh(), f"{TEXT} Oh.", spell) == []


def test_sounds_of_a_kind_are_near() -> None:
    assert measure(spell("bet"), spell("bed")) < measure(spell("bet"), spell("best")) <= 1 < measure(spell("bet"), spell("lamp"))


LANGUAGES = {
    "en": ("Mr. Hale paid 12 % more, $4.50 in all, at 7:30 in the morning.",
           "Mister Hale paid twelve percent more, four dollars and fifty cents in all, at seven thirty in the morning"),
    "de": ("Dr. Weiß zahlte am 3. März 1.250 € für 12,5 kg Mehl, d. h. viel zu viel.",
           "Doktor Weiss zahlte am dritten März 1250 Euro für zwölf Komma fünf Kilogramm Mehl, das heißt viel zu viel."),
    "fr": ("M. Petit a payé 21 € pour 3 kg de pommes à 8 h 30, c'est-à-dire trop.",
           "Monsieur Petit a payé vingt-et-un euros pour trois kilos de pommes à huit heures trente, c'est à dire trop."),
    "es": ("El Sr. Vega pagó 21 € por 3 kg de uvas a las 8:30, el 50 % más.",
           "El señor Bega pagó veintiún euros por tres kilos de uvas a las ocho y treinta, el cincuenta por ciento más."),
    "it": ("Il dott. Rossi ha pagato 28 € per 3 kg di pane alle 8:30, il 50% in più.",
           "Il dottor Rossi ha pagato ventotto euro per tre chili di pane alle otto e trenta, il cinquanta per cento in più."),
    "pt": ("O Sr. Lima pagou 21 € por 3 kg de carne às 8:30, 50% a mais.",
           "O senhor Lima pagou vinte e um euros por três quilos de carne às oito horas e trinta, cinquenta por cento a mais."),
    "zh": ("2024年3月5日他花了12.5元买了3kg苹果，比昨天多50%。", "二零二四年三月五日她花了十二点五元买了三公斤苹果，比昨天多百分之五十。"),
}  # fmt: skip
"""A text as it is written stands before what is said for it."""
PLANTED = {
    "en": ("fifty", "ninety", "$4.50"), "de": ("Mehl", "Holz", "Mehl,"), "fr": ("pommes", "chaises", "pommes"), "es": ("cincuenta", "setenta", "50 %"),
    "it": ("pane", "legno", "pane"), "pt": ("carne", "livro", "carne"), "zh": ("苹", "香", "苹"),
}  # fmt: skip
"""The first word is said, the second stands in its place, and the third is what that was meant to be."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_figures_and_abbreviations_are_compared_as_they_are_said(language: str) -> None:
    written, said = LANGUAGES[language]
    for heard in (said, written):
        assert compare(list_said(written), heard, spell, language) == [], "whichever way the recogniser writes it"


@pytest.mark.parametrize(("fault", "language"), combine(("cut", "doubled", "swapped"), LANGUAGES))
def test_a_planted_fault_is_found_in_every_language(fault: str, language: str) -> None:
    written, said = LANGUAGES[language]
    word, other, meant = PLANTED[language]
    blank = "" if language == "zh" else " "
    heard = said.replace(word, {"cut": "", "doubled": f"{word}{blank}{word}", "swapped": other}[fault], 1)
    (found,) = compare(list_said(written), heard, spell, language)
    assert found.kind == "doubled" if fault == "doubled" else found.kind in ("lost", "wrong")
    if fault != "doubled":
        assert join_words(list_said(written)[found.first : found.last]) == meant
