"""Scripts that name their speakers, and others that merely have colons."""

from __future__ import annotations

import pytest

from app.engine.speech.text.named_speakers import NAMES_MOST, find_named


@pytest.mark.parametrize(
    ("text", "speakers", "names"),
    [
        ("Anna: Hello there.\nBen: Hi.\nAnna: Well.", ["Anna", "Ben"], ["Anna: ", "Ben: ", "Anna: "]),
        ("Anna: Hello. Ben: Hi!", ["Anna", "Ben"], ["Anna: ", "Ben: "]),
        ("  ANNA: Hello.\n\nBen:  Hi.\nAnna: Yes.", ["ANNA", "Ben"], ["ANNA: ", "Ben:  ", "Anna: "]),
        ("Mrs. Smith: Hello.\nOld Man: Hi.", ["Mrs. Smith", "Old Man"], ["Mrs. Smith: ", "Old Man: "]),
        ("\u5c0f\u660e\uff1aHello\n\u5c0f\u7ea2\uff1aHi", ["\u5c0f\u660e", "\u5c0f\u7ea2"], ["\u5c0f\u660e\uff1a", "\u5c0f\u7ea2\uff1a"]),
        ("Anna: One.\nBen: Two. Remember: three.\nAnna: Four.", ["Anna", "Ben"], ["Anna: ", "Ben: ", "Anna: "]),
        ("Anna: 1\nBen: 2\nClara: 3\nAnna: 4\nClara: 5", ["Anna", "Ben", "Clara"], ["Anna: ", "Ben: ", "Clara: ", "Anna: ", "Clara: "]),
        ("It was late.\nAnna: 1\nBen: 2\nAnna: 3", ["Anna", "Ben"], ["Anna: ", "Ben: ", "Anna: "]),
        ("Anna: 1\nBen: 2\nClara: 3\nBen: 4", ["Anna", "Ben", "Clara"], ["Anna: ", "Ben: ", "Clara: ", "Ben: "]),
    ],
)
def test_each_name_is_found_with_its_colon(text: str, speakers: list[str], names: list[str]) -> None:
    found = find_named(text)
    assert [*dict.fromkeys(each.name for each in found)] == speakers
    assert [text[each.begin : each.end] for each in found] == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Remember: it is late.",
        "He said: no.\nShe said: yes.",
        "The list: apples, pears.\nAnna: hi\nBen: ho",
        "A cake.\nFlour: 200 g.\nSugar: 100 g.",
        "[S1] Anna: Hello.\nBen: Hi.",
        "Anna: Hello.\nAnna: Are you there?",
        "At 10:30 we left. See https://example.org: it is there.",
        "第一章：风\n风来了。\n第二章：雨\n下雨了。",
        "Chapter One: The Ferry\n\nIt left.\n\nChapter Two: The Fjord\n\nIt came.",
        "Once upon a time there were Anna and Ben.\nAnna: Hello.\nBen: Hi.",
        "\n".join(f"Name{chr(65 + each)}: a row" for each in range(NAMES_MOST + 1)),
    ],
)
def test_a_script_that_merely_has_a_colon_is_left_alone(text: str) -> None:
    assert not find_named(text)
