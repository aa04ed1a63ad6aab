"""Scripts that a voice cannot read, or not all of: each gets a sentence, and what can be read stays."""

from __future__ import annotations

import pytest

from app.engine.models.voice_limits import DIA, VoiceLimits, read_limits
from app.engine.speech.text.script import parse_script
from tests.support.places import TOP

STARTER = read_limits(TOP / "assets" / "starter" / "voice")
SEVERAL = VoiceLimits(name="Pocket TTS", languages=("en", "de", "fr"), nonverbals=frozenset(), speakers_a_part=1)
CHINESE = VoiceLimits(name="VibeVoice", languages=("en", "zh"), nonverbals=frozenset(), speakers_a_part=1)
GERMAN = VoiceLimits(name="Pocket TTS", languages=("de",), nonverbals=frozenset(), speakers_a_part=1)
HEBREW = "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd"
ARABIC = "\u202b\u0645\u0631\u062d\u0628\u0627\u202c"
EMOJI = "\U0001f600\U0001f469\u200d\U0001f680"


@pytest.mark.parametrize("limits", [STARTER, DIA, SEVERAL], ids=lambda each: each.name)
@pytest.mark.parametrize("odd", [HEBREW, ARABIC, EMOJI, "\u4f60\u597d"], ids=["Hebrew", "Arabic", "emoji", "Chinese"])
def test_what_a_voice_cannot_read_is_told_and_the_rest_is_spoken(odd: str, limits: VoiceLimits) -> None:
    found = parse_script(f"[S1] Good evening. {odd} And good night.", limits)
    assert not found.fatal and any(
        each.severity == "warning" and odd.strip("\u202b\u202c")[0] in str(each.sentence) for each in found.problems
    )
    said = " ".join(part.text for part in found.parts)
    assert "Good evening." in said and "And good night." in said
    assert not set(said) & {"\u202b", "\u202c"}, "signs that turn the direction of writing are none of the text"


@pytest.mark.parametrize("limits", [STARTER, DIA, CHINESE], ids=lambda each: each.name)
@pytest.mark.parametrize("odd", [HEBREW, EMOJI, "\u202b\u202c", "\u0301" * 40], ids=["Hebrew", "emoji", "marks", "accents"])
def test_a_script_of_nothing_else_is_a_sentence_and_no_fault(odd: str, limits: VoiceLimits) -> None:
    found = parse_script(f"[S1] {odd}", limits)
    assert found.problems and all(str(each.sentence) for each in found.problems)


def test_two_languages_in_one_script_are_no_fault_where_the_voice_speaks_both() -> None:
    mixed = "[S1] Good evening, and welcome. [S2] \u4f60\u597d\uff0c\u6b22\u8fce\u3002"
    assert not parse_script(mixed, CHINESE).fatal
    assert [turn.text for part in parse_script(mixed, CHINESE).parts for turn in part.turns] == [
        "Good evening, and welcome.",
        "\u4f60\u597d\uff0c\u6b22\u8fce\u3002",
    ]
    assert any("\u4f60" in str(each.sentence) for each in parse_script(mixed, STARTER).problems)


def test_a_language_that_the_voice_lacks_is_named() -> None:
    told = [str(each.sentence) for each in parse_script("[S1] This is not what I have been asked to read to you.", GERMAN).problems]
    assert any("seems to be English" in each and "German only" in each for each in told)
