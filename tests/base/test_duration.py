"""Durations, sizes, nouns and sentences in a row: worded by one function each, on the server and on the page, which say the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import playwright
import pytest

from app.base.duration import word_duration
from app.base.languages import templates
from app.base.sentence import join_sentences, say
from app.cli.models import word_size
from tests.support.places import TOP

NODE = next((Path(playwright.__file__).parent / "driver").glob("node*"))
"""Playwright brings this one: the page's words need no browser."""
WORDS = TOP / "app" / "ui" / "page" / "static" / "js" / "words.js"
SECONDS = (
    0,
    0.04,
    0.4,
    1.94,
    9.95,
    10,
    42.4,
    59.4,
    59.6,
    60,
    61,
    65,
    90,
    363,
    594,
    599,
    600,
    2722,
    3570,
    3599,
    3600,
    3660,
    7199,
    35_990,
    36_000,
    90_000,
)

BYTES = (0, 48_000, 1_230_000, 99_949_999, 99_950_000, 100_000_000, 4_270_000_000, 10**12)
TOGETHER = (["It is full.", "Free some."], ["磁盘满了。", "请腾出空间。"], ["磁盘满了。", "It is full."])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "1 s"), (42.4, "42 s"), (59.6, "1 min"), (61, "1 min"),
        (65, "1 min 10 s"), (120, "2 min"), (363, "6 min"), (595, "10 min"),
        (2722, "45 min"), (3599, "1 h"), (3660, "1 h 1 min"),
        (90_000, "25 h"),
    ],
)  # fmt: skip
def test_a_guess_is_no_more_exact_than_it_can_be(seconds: float, words: str) -> None:
    assert str(word_duration(seconds)) == words


def test_what_was_measured_has_tenths_below_ten_seconds() -> None:
    assert [str(word_duration(each, exact=True)) for each in (0.04, 1.94, 9.96, 61)] == ["0.0 s", "1.9 s", "10 s", "1 min 1 s"]


def test_a_noun_agrees_with_its_number() -> None:
    told = [str(say("x", "{n} {n:picture is|pictures are} here", n=n)) for n in (0, 1, 2)]
    assert told == ["0 pictures are here", "1 picture is here", "2 pictures are here"]


def test_chinese_sentences_stand_without_spaces() -> None:
    assert [join_sentences(each) for each in TOGETHER] == ["It is full. Free some.", "磁盘满了。请腾出空间。", "磁盘满了。It is full."]


def test_a_blank_that_turns_out_chinese_loses_the_space_beside_it() -> None:
    asked = say("plan", "You asked for {option}, of {kind} weights.", option=say("option", "folded"), kind="int8")
    chinese = {"plan": "你选择了 {option} ，权重是 {kind} 的。", "option": "折叠"}
    assert asked.translate(chinese) == "你选择了折叠，权重是 int8 的。"
    assert str(asked) == "You asked for folded, of int8 weights."


def test_a_number_has_the_decimal_mark_of_its_reader() -> None:
    sentence = say("forecast.fits", "Takes about {peak} of the {free} GB that are free.", peak=1.5, free=4.0)
    assert str(sentence) == "Takes about 1.5 of the 4.0 GB that are free."
    assert sentence.translate(templates("de")) == "Braucht etwa 1,5 von 4,0 GB, die frei sind."


@pytest.mark.parametrize("language", ["en", "de", "zh"])
def test_the_page_says_the_same(language: str) -> None:
    told = run_script(f"""
        import {{ learn, sentences, size, t, time }} from {json.dumps(WORDS.as_uri())};
        learn({json.dumps(templates(language))});
        console.log(JSON.stringify([
          ...{json.dumps(SECONDS)}.flatMap(each => [time(each), time(each, true)]),
          ...[0, 1, 2].map(n => t("x", "{{n}} {{n:picture is|pictures are}} here", {{n}})),
          ...{json.dumps(TOGETHER)}.map(sentences),
          ...{json.dumps(BYTES)}.map(size),
        ]));""")
    here = [word_duration(each, exact).translate(templates(language)) for each in SECONDS for exact in (False, True)]
    counted = ["0 pictures are here", "1 picture is here", "2 pictures are here"]
    assert told == [*here, *counted, *map(join_sentences, TOGETHER), *(word_size(each).translate(templates(language)) for each in BYTES)]


def run_script(script: str) -> object:
    done = subprocess.run([NODE, "--input-type=module", "-"], input=script, capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
