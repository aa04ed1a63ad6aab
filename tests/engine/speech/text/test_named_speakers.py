"""Scripts that name their speakers, and others that merely have colons."""

from __future__ import annotations

import pytest

from app.engine.speech.text.named_speakers import NAMES_MOST, find_named


@pytest.mark.parametrize(
    ("text", "voices", "names"),
    [
        ("Anna: Hello there.\nBen: Hi.\nAnna: Well.", {"Anna": 1, "Ben": 2}, ["Anna: ", "Ben: ", "Anna: "]),
        ("Anna: Hello. Ben: Hi!", {"Anna": 1, "Ben": 2}, ["Anna: ", "Ben: "]),
        ("  ANNA: Hello.\n\nBen:  Hi.\nAnna: Yes.", {"ANNA": 1, "Ben": 2}, ["ANNA: ", "Ben:  ", "Anna: "]),
        ("Mrs. Smith: Hello.\nOld Man: Hi.", {"Mrs. Smith": 1, "Old Man": 2}, ["Mrs. Smith: ", "Old Man: "]),
        (
            "\u5c0f\u660e\uff1aHello\n\u5c0f\u7ea2\uff1aHi",
            {"\u5c0f\u660e": 1, "\u5c0f\u7ea2": 2},
            ["\u5c0f\u660e\uff1a", "\u5c0f\u7ea2\uff1a"],
        ),
        ("Anna: One.\nBen: Two. Remember: three.\nAnna: Four.", {"Anna": 1, "Ben": 2}, ["Anna: ", "Ben: ", "Anna: "]),
        (
            "Anna: 1\nBen: 2\nClara: 3\nAnna: 4\nClara: 5",
            {"Anna": 1, "Ben": 2, "Clara": 2},
            ["Anna: ", "Ben: ", "Clara: ", "Anna: ", "Clara: "],
        ),
        ("Anna: 1\nBen: 2\nClara: 3\nBen: 4", {"Anna": 1, "Ben": 2, "Clara": 1}, ["Anna: ", "Ben: ", "Clara: ", "Ben: "]),
    ],
)
def test_each_name_has_one_voice_and_neighbours_differ(text: str, voices: dict[str, int], names: list[str]) -> None:
    found = find_named(text)
    assert found is not None and found.voices == voices
    assert [text[begin:end] for begin, end, _ in found.tags] == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Remember: it is late.",
        "He said: no.\nShe said: yes.",
        "The list: apples, pears.\nAnna: hi\nBen: ho",
        "[S1] Anna: Hello.\nBen: Hi.",
        "Anna: Hello.\nAnna: Are you there?",
        "At 10:30 we left. See https://example.org: it is there.",
        "Once upon a time there were Anna and Ben.\nAnna: Hello.\nBen: Hi.",
        "\n".join(f"Name{chr(65 + each)}: a row" for each in range(NAMES_MOST + 1)),
    ],
)
def test_a_script_that_merely_has_a_colon_is_left_alone(text: str) -> None:
    assert find_named(text) is None
