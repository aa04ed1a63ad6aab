"""Words placed in sentences whose times are known: within them, whatever a recogniser says."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.engine.hearing.heard import Word
from app.engine.hearing.word_places import TOGETHER_S, fit, gather, list_shown, split_words
from app.engine.jobs.tasks import TimedSentence

TWO = [TimedSentence(1.0, 2.0, "[S1] Nobody asked."), TimedSentence(2.0, 4.0, "It (laughs) rained \u2014 again.")]


def place(*spans_s: tuple[float, float]) -> list[Word]:
    words = ["Nobody", "asked.", "It", "rained \u2014", "again."]
    return [Word(word, *span, 1.0) for word, span in zip(words, spans_s, strict=True)]


def test_sentences_are_looked_at_together() -> None:
    ten = [TimedSentence(place * 10.0, place * 10.0 + 9, "x") for place in range(10)]
    assert [len(each) for each in gather(ten)] == [2, 2, 2, 2, 2] and [each for some in gather(ten) for each in some] == ten
    assert [len(each) for each in gather([TimedSentence(0, TOGETHER_S + 9, "x"), TimedSentence(40, 41, "y")])] == [1, 1]
    assert list(gather([])) == []


def test_what_is_shown_is_words_and_sounds_in_brackets() -> None:
    assert list_shown(TWO[1].text) == ["It", "(laughs)", "rained \u2014", "again."]
    assert list_shown("[S2] \u4f60\u597d\u3002 (clears throat) Well \u2026") == ["\u4f60", "\u597d\u3002", "(clears throat)", "Well \u2026"]
    assert list_shown("") == []


def test_words_stay_in_their_sentences() -> None:
    found = place((0.9, 1.4), (1.5, 2.2), (2.1, 2.3), (2.3, 3.0), (3.2, 4.4))
    words = fit(TWO, found)
    assert [(word.text, word.begin_s, word.end_s) for word in words] == [
        ("Nobody", 1.0, 1.4),
        ("asked.", 1.5, 2.0),
        ("It", 2.1, 2.3),
        ("(laughs)", 2.3, 2.3),
        ("rained \u2014", 2.3, 3.0),
        ("again.", 3.2, 4.0),
    ]
    assert [[word.text for word in each] for each in split_words(TWO, words)] == [list_shown(each.text) for each in TWO]
    assert split_words(TWO, words[1:]) == []


@pytest.mark.parametrize("found", [[], place((5.0, 6.0), (6.0, 7.0), (7.0, 8.0), (8.0, 8.5), (8.5, 9.0))])
def test_a_sentence_whose_words_are_elsewhere_is_shared_out(found: list[Word]) -> None:
    words = fit(TWO, found)
    assert [word.text for word in words] == [word for each in TWO for word in list_shown(each.text)]
    assert words[0].begin_s == 1.0 and words[1].begin_s == pytest.approx(1.5) and words[1].end_s == pytest.approx(2.0)
    assert all(one.end_s <= other.begin_s + 1e-9 for one, other in pairwise(words)) and words[-1].end_s == pytest.approx(4.0)
