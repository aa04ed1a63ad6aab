"""Guesses at who speaks in a story, which a person confirms."""

from __future__ import annotations

import time

import pytest

from app.engine.jobs.request import SpeechRequest
from app.engine.models.voice_limits import DIA
from app.engine.speech.text.cast_script import parse_request
from app.engine.speech.text.said_by import guess_speakers

STORY = """It was late. \u201cCome in,\u201d said Anna, \u201cand sit down.\u201d She waited.
\u201cThank you,\u201d Ben replied. \u201cIt is cold.\u201d
Ben whispered: "Very." He laughed.
"I know," he said."""


def put_in(text: str) -> str:
    for each in reversed(guess_speakers(text)):
        text = f"{text[: each.begin]}[{each.name}] {text[each.end :]}"
    return text


def test_quotes_go_to_whom_the_words_beside_them_name_and_the_rest_to_the_narrator() -> None:
    assert put_in(STORY) == (
        "It was late. [Anna] \u201cCome in,\u201d [Narrator] said Anna, [Anna] \u201cand sit down.\u201d [Narrator] She waited.\n"
        "[Ben] \u201cThank you,\u201d [Narrator] Ben replied. [Ben] \u201cIt is cold.\u201d\n"
        '[Narrator] Ben whispered: [Ben] "Very." [Narrator] He laughed.\n"I know," he said.'
    )
    parsed = parse_request(SpeechRequest(put_in(STORY), "dia"), lambda _: DIA)
    assert [each.name for each in parsed.actors] == ["Narrator", "Anna", "Ben"], "and the script has these speakers"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "He left.",
        '"Yes," said Anna.',
        '"Yes," he said. "No," she said.',
        "[Anna] Hi. \u201cYes,\u201d said Ben. \u201cNo,\u201d said Ben.",
    ],
)
def test_what_names_nobody_or_once_is_left_alone(text: str) -> None:
    assert not guess_speakers(text)


def test_it_takes_linear_time() -> None:
    began_s = time.monotonic()
    for text in (
        '"' * 200_000,
        "\u201c" * 200_000,
        "Anna said " * 20_000,
        '"a" ' * 50_000 + "said Anna",
        '"a" said Anna ' * 14_000,
        '"a" said Anna\n' * 14_000,
    ):
        guess_speakers(text)
    assert time.monotonic() - began_s < 10
