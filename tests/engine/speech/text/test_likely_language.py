"""A script in a language that the voice does not speak is told before it is spoken, and no English one is."""

from __future__ import annotations

import dataclasses
import re

import pytest

from app.engine.models.voice_limits import DIA
from app.engine.speech.text.likely_language import choose_language, guess_language
from app.engine.speech.text.script import parse_script
from tests.support.places import TOP

GERMAN = "Guten Morgen, liebe Familie! Wie geht es euch?"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (GERMAN, "de"), ("Bonjour, je suis très content de vous voir.", "fr"), ("Hola, ¿cómo está usted? Hoy es un día muy bueno.", "es"),
        ("Buongiorno, come stai? Non ho dormito.", "it"), ("Olá, eu não sei o que você quer.", "pt"), ("Hallo, ik ben blij dat je er bent.", "nl"),
        ("Dzień dobry, jak się masz? To jest mój dom.", "pl"), ("[Anna] It is warm, and that is all I know. (laughs)", "en"),
        ("La la la la la, de de de", ""), ("Das Haus.", ""), ("[S1] Hello.", ""), ("", ""),
        ("The German said: Guten Morgen, wie geht es euch? And I said nothing.", "en"), ("Jean Luc de la Cruz met Don Juan de la Mancha.", ""),
    ],
)  # fmt: skip
def test_the_language_is_told_by_its_small_words(text: str, code: str) -> None:
    assert guess_language(text) == code


def test_no_english_prose_seems_to_be_anything_else() -> None:
    pages = [*TOP.glob("*.md"), *TOP.glob("docs/*.md")]
    paragraphs = [
        each for page in pages for each in re.split(r"\n\s*\n", page.read_text("utf-8")) if len(each.split()) > 12 and "|" not in each
    ]
    assert len(paragraphs) > 200
    assert not [each for each in paragraphs if guess_language(each) not in ("en", "")]


def test_a_voice_that_speaks_another_language_warns() -> None:
    (problem,) = [each for each in parse_script(f"[S1] {GERMAN}", DIA).problems if each.sentence.key == "script.other-language"]
    assert problem.severity == "warning" and problem.sentence.for_all
    assert str(problem.sentence) == "This seems to be German. Dia speaks English only, so it may not be understood."
    german = dataclasses.replace(DIA, languages=("en-GB", "de-DE"))
    for script, limits in ((GERMAN, german), ("It is warm, and that is all I know.", DIA)):
        assert not [each for each in parse_script(script, limits).problems if each.sentence.key == "script.other-language"]


@pytest.mark.parametrize(
    ("text", "spoken", "code"),
    [
        ("Das Haus.", ("de",), "de"), ("\u4f60\u597d", ("en", "zh"), "zh"), ("Hello.", ("en", "zh"), "en"), (GERMAN, ("en-GB", "de"), "de"),
        ("\u3053\u3093\u306b\u3061\u306f\u4e16\u754c", ("en", "ja"), "ja"), ("Oui.", ("en", "fr"), "en"), ("Hello.", (), ""),
        ("The sign above the door read \u51fa\u53e3, and she ran.", ("en", "zh"), "en"), ("\u4ed6\u8bf4 OK\u3002", ("en", "zh"), "zh"),
    ],
)  # fmt: skip
def test_the_language_of_a_part_is_one_that_its_voice_speaks(text: str, spoken: tuple[str, ...], code: str) -> None:
    assert choose_language(text, spoken) == code
