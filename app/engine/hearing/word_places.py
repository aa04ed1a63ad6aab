"""Place the words of sentences whose times are known: which are looked for together, and where each word is in its sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from app.engine.hearing.heard import Word, is_wide
from app.engine.jobs.tasks import TimedSentence
from app.engine.speech.text.subtitles import strip_tags

TOGETHER_S: Final = 24.0
"""Sentences that last this long are looked at as one sound: a recogniser takes as long for one word."""
_SHOWN: Final = re.compile(r"\([^()]*+\)|[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]++")


def gather(sentences: Sequence[TimedSentence]) -> Iterator[list[TimedSentence]]:
    """Yield sentences that follow one another, as many as last TOGETHER_S; a longer one alone."""
    some: list[TimedSentence] = []
    for each in sentences:
        if some and each.end_s - some[0].begin_s > TOGETHER_S:
            yield some
            some = []
        some.append(each)
    if some:
        yield some


def list_shown(text: str) -> list[str]:
    """List the words of a sentence as they are shown: a sound in brackets is one, a mark belongs to the word before it."""
    made: list[str] = []
    for found in _SHOWN.finditer(strip_tags(text)):
        if made and not any(map(str.isalnum, found[0])):
            made[-1] += found[0] if is_wide(found[0]) else f" {found[0]}"
        else:
            made.append(found[0])
    return made


def is_said(word: str) -> bool:
    return not word.startswith("(")


def list_said(text: str) -> list[str]:
    """List the words of a text that are said, as they are written."""
    return [word for word in list_shown(text) if is_said(word)]


def fit(sentences: Sequence[TimedSentence], placed: Sequence[Word]) -> list[Word]:
    """Return all words of the sentences, each within its own; `placed`: those that are said, where a recogniser finds them, or none. Where
    it finds a word elsewhere, the sentence's time is shared out by letters."""
    found, made = iter(placed), list[Word]()
    for each in sentences:
        shown = list_shown(each.text)
        words, at_s = list[Word](), each.begin_s
        for word in shown:
            here = next(found, None) if is_said(word) else Word(word, at_s, at_s, 1.0)
            if here is not None:
                at_s = min(max(here.end_s, at_s), each.end_s)
                words.append(replace(here, begin_s=min(max(here.begin_s, words[-1].end_s if words else each.begin_s), at_s), end_s=at_s))
        whole = len(words) == len(shown) and all(word.end_s > word.begin_s or not is_said(word.text) for word in words)
        made += words if whole else _share_out(each, shown)
    return made


def _share_out(sentence: TimedSentence, words: Sequence[str]) -> list[Word]:
    letters, at = sum(map(len, words)), 0
    made = []
    for word in words:
        begin, at = at, at + len(word)
        begin_s, end_s = (sentence.begin_s + (sentence.end_s - sentence.begin_s) * place / letters for place in (begin, at))
        made.append(Word(word, begin_s, end_s, 0.0))
    return made


def split_words(sentences: Sequence[TimedSentence], words: Sequence[Word]) -> list[list[Word]]:
    """Return the words of each sentence; none if they are those of other sentences."""
    shown = [list_shown(each.text) for each in sentences]
    if [word.text for word in words] != [word for each in shown for word in each]:
        return []
    rest = iter(words)
    return [[next(rest) for _ in each] for each in shown]
