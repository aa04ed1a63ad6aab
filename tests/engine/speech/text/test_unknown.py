"""What a model does not know is found where it stands, with the nearest that it knows."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from app.base.unknown_words import MARKED_MOST
from app.engine.models.voice_limits import DIA, VoiceLimits, read_limits
from app.engine.pictures.prompts.starter_words import list_unknown, match_prompt
from app.engine.pictures.prompts.wordless import note_wordless
from app.engine.speech.text.script import parse_script
from app.engine.speech.text.unknown import find_in_script
from tests.support.places import TOP

STARTER = read_limits(TOP / "assets" / "starter" / "voice")
PAINTER = TOP / "assets" / "starter" / "painter"
CARD = json.loads((PAINTER / "starter.json").read_text("utf-8"))


def marked(text: str, limits: VoiceLimits) -> dict[str, tuple[str, ...]]:
    return {text[each.begin : each.end]: each.near for each in find_in_script(text, limits)}


@pytest.mark.parametrize(
    ("text", "limits", "found"),
    [
        ("[S1] All of this is read, caf\u00e9 and na\u00efve: \u201cyes\u201d \u2026 $3.50 (pause 0.5s).", STARTER, {}),
        ("[S3] Hello [S2].", STARTER, {"[S3]": ("[S1]", "[S2]")}),
        ("[Anna] Hello.", DIA, {"[Anna]": ("[S1]", "[S2]")}),
        ("[laugh] Hello.", DIA, {"[laugh]": ("(laughs)", "[S1]", "[S2]")}),
        ("Hello (laugh), (sigh) and (an aside of words).", DIA, {"(laugh)": ("(laughs)",), "(sigh)": ("(sighs)", "(sings)")}),
        ("Hello (laughs) and (an aside).", STARTER, {"(laughs)": ()}),
        ("Hello (laughs).", DIA, {}),
        ("Wait (pause long) here.", STARTER, {"(pause long)": ("(pause 0.5s)",)}),
        ("One \u4e16\u754c, two \U0001f409\U0001f409!", STARTER, {"\u4e16\u754c": (), "\U0001f409\U0001f409": ()}),
        ("e\u0301 is an accent, \u4e16\u0301 is none", STARTER, {"\u4e16\u0301": ()}),
        ("[\u5f20] speaks", STARTER, {"[\u5f20]": ("[S1]", "[S2]")}),
    ],
)
def test_in_a_script(text: str, limits: VoiceLimits, found: dict[str, tuple[str, ...]]) -> None:
    assert marked(text, limits) == found
    warned = [each for each in parse_script(text, limits).problems if each.severity != "note" and each.sentence.key != "script.short"]
    assert bool(warned) == bool(found), "what is underlined is said, and what is said is underlined"


def test_marks_stand_side_by_side_and_there_is_an_end_to_them() -> None:
    found = find_in_script("[S3] \u4e16 (pause x) [a\u4e16b] " * 200, STARTER)
    assert 0 < len(found) <= MARKED_MOST
    assert all(one.end <= other.begin for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("a red circle on a white background", {}),
        ("a (red:1.3) circle", {}),
        ("A GREN housse by Midnight", {"GREN": "green", "housse": "house"}),
        ("a (dragon:1.2) on Mars", {"dragon": "diamond", "Mars": "mare"}),
        ("a yacht on the lake with a xylophone", {"xylophone": ""}),
        ("green hills at dawn, and the rising sun", {"at dawn": "at sunset", "rising sun": "sun at sunset"}),
    ],
)
def test_in_a_prompt(prompt: str, found: dict[str, str]) -> None:
    marks = list_unknown(PAINTER, prompt)
    assert {prompt[each.begin : each.end]: (*each.near, "")[0] for each in marks} == found


def test_what_is_left_out_is_underlined_though_it_is_known() -> None:
    prompt = "A lake, a xylophone and a Lakeside LAKE"
    marks = list_unknown(PAINTER, prompt, lost=("lake", "xylophone"))
    assert [prompt[each.begin : each.end] for each in marks if each.end - each.begin == 4] == ["lake", "LAKE"]
    assert all(one.end <= other.begin for one, other in pairwise(marks))
    asked = "a castle in the sea"
    lost = match_prompt(PAINTER, asked).lost
    assert lost and {asked[each.begin : each.end] for each in list_unknown(PAINTER, asked, lost)} == set(lost)


def test_no_word_that_was_learned_is_marked_and_none_that_is_offered() -> None:
    grammar = CARD["grammar"]
    assert not list_unknown(PAINTER, ", ".join([*grammar["nouns"], *grammar["colours"], *grammar["also"], *CARD["examples"]]))
    offered = [near for each in list_unknown(PAINTER, "lantern, circl, hous, moonlitt") for near in each.near]
    assert len(offered) > 4 and not list_unknown(PAINTER, ", ".join(offered))


@pytest.mark.parametrize("prompt", ["\U0001f409\U0001f525", "\u2764\ufe0f", "...", "(!)"])
def test_a_prompt_without_words_is_told(prompt: str) -> None:
    told = note_wordless(prompt)
    assert told is not None and prompt in str(told)
    match = match_prompt(PAINTER, prompt)
    assert match.note is not None and match.note.key == "starter.unknown" and not match.caption and match.offered
    assert dict(match.note.values)["words"] == (prompt,)


@pytest.mark.parametrize("prompt", ["a dragon \U0001f409", "\u4e00\u53ea\u732b", "7", " "])
def test_a_prompt_with_words_is_not(prompt: str) -> None:
    assert note_wordless(prompt) is None
