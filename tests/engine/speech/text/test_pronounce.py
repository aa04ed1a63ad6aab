"""Words become sounds: known ones from a list, others by the letters around each letter."""

from __future__ import annotations

import dataclasses
import json
import zlib
from pathlib import Path

import pytest

from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.families.dia.voice_prompt import compose_text, count_least_frames
from app.engine.speech.text import pronounce, sounds
from app.engine.speech.text.script import parse_script
from app.engine.speech.text.turns import Turn

WORDS = {"the": "D@", "of": "@v", "apple": "Qp@l", "one": "wUn", "two": "tK", "a": "@", "ay": "Y", "bee": "bW", "eff": "Ef", "i": "I"}
RULES = {
    ".c.": "k",
    ".c.e": "s",
    ".a.": "q",
    ".t.": "t",
    ".e.": "E",
    "#.e.l": "e",
    ".l.": "l",
    ".s.": "s",
    ".h.": "h",
    "s.h.e": "",
    ".s.h": "S",
}
LETTERS = pronounce.Letters(WORDS, RULES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("one two", "wUn tK"),
        ("Cat, cell.", "kqt, sEll."),  # c before e
        ("shell", "SEll"),
        ("the apple of the cat!", "D$ Qp@l @v D@ kqt!"),
        ("F B I", "Ef bW I"),
        ("A cat", "@ kqt"),
        ("F A, a B", "Ef Y, @ bW"),
        ("cat's", "kqts"),
        ("apple's", "Qp@lz"),
        (", one", "wUn"),
        ("the bb", "D@ bW bW"),
        ("THE A CAT", "D$ @ kqt"),
        ("", ""),
    ],
)  # fmt: skip
def test_text_becomes_sounds(text: str, said: str) -> None:
    assert pronounce.to_sounds(text, LETTERS) == said


def test_the_widest_context_that_is_known_decides() -> None:
    assert pronounce.context("cell", 0, 0, 1) == ".c.e" and pronounce.context("cell", 3, 2, 2) == "el.l.##"
    assert pronounce.apply_rules(RULES, "el") == "el" and pronounce.apply_rules(RULES, "tel") == "tEl"


def test_the_rules_read_a_word_once_however_often_a_book_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, real = [], pronounce.apply_rules
    monkeypatch.setattr(pronounce, "apply_rules", lambda rules, word: asked.append(word) or real(rules, word))
    monkeypatch.setattr(pronounce, "READ_MOST", 2)
    letters = pronounce.Letters({}, {".a.": "q", ".b.": "w"})
    assert [letters.spell(word) for word in ("ab", "ba", "ab", "b", "ab")] == ["qw", "wq", "qw", "w", "qw"]
    assert asked == ["ab", "ba", "b", "ab"] and len(letters.read) <= 2


def test_every_sound_has_a_sign_of_its_own_that_no_mark_voice_or_tag_uses() -> None:
    signs = "".join([*sounds.CONSONANTS.values(), *sounds.VOWELS.values()])
    assert len(set(signs)) == len(signs) == len(sounds.CONSONANTS) + 2 * len(sounds.VOWELS)
    assert signs.isascii() and not set(signs) & set(sounds.MARKS + "0123456789 []<>")
    assert sounds.sign("k", True) == sounds.sign("k", False) and sounds.sign("ae", True) != sounds.sign("ae", False)


def test_a_voice_that_reads_sounds_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "letters.bin"
    path.write_bytes(zlib.compress(json.dumps({"signs": sounds.SIGNS, "words": WORDS, "rules": RULES}).encode()))
    limits = VoiceLimits(letters=path, carries=False)
    script = parse_script("[S1] 2 cats, 1 cell. [S2] The apple", limits)
    assert script.parts[0].text == "[S1] two cats, one cell. [S2] The apple"
    assert compose_text(script.parts[0].turns, limits) == "[S1] tK kqts, wUn sEll. [S2] D$ Qp@l."
    assert compose_text((Turn(2, "one"), Turn(2, "two")), limits) == "[S2] wUn tK."
    quick = dataclasses.replace(limits, signs_per_s_most=2.0, frame_rate=40.0)
    assert count_least_frames((Turn(2, "one"), Turn(2, "two")), quick) == 40 * (5 / 2 - 0.25)
    assert count_least_frames((Turn(2, "one"),), limits) == 0


def test_a_script_without_a_word_to_read_is_refused(tmp_path: Path) -> None:
    limits = VoiceLimits(letters=tmp_path / "letters.bin", carries=False)
    assert parse_script("[S1] \u4f60\u597d", limits).fatal
