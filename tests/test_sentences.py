"""Every sentence and label of Hearth, in English and Chinese."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.ui.page.bundle import SCRIPT_SENTENCE
from tests.support.places import TOP
from tests.support.sentences import ENGLISH, SCRIPTS, SPOKEN

CATALOG = TOP / "app" / "locale" / "zh.json"
UNTRANSLATED = {"bench.hearth", "paint.loras", "speak.top-p"}
"""Names: the same in both languages."""


CHINESE: dict[str, str] = json.loads(CATALOG.read_text("utf-8"))


def blanks(template: str) -> set[tuple[str, str | None, str | None]]:
    return {(name, form, turn) for _, name, form, turn in string.Formatter().parse(template) if name is not None}


def test_a_key_means_one_sentence() -> None:
    clashes = [(key, english, place) for key, english, place in SPOKEN if ENGLISH[key] != english]
    assert not clashes


def test_all_has_chinese_and_no_chinese_is_left_over() -> None:
    assert len(ENGLISH) > 500
    missing = sorted({f"{key} ({place})" for key, _, place in SPOKEN if key not in CHINESE})
    assert not missing
    assert not sorted(CHINESE.keys() - ENGLISH.keys())


def faults(english: str, chinese: str, name: bool) -> Iterator[str]:
    if blanks(chinese) != blanks(english):
        yield "other blanks"
    if bool(re.search(r"[\u4e00-\u9fff]", chinese)) == name:
        yield "not Chinese"
    if re.search(r"[\u4e00-\u9fff][,.;:!?()]|[,.;:!?(][\u4e00-\u9fff]", chinese):
        yield "punctuation of the other language"


def test_chinese_has_the_same_blanks_and_reads_as_chinese() -> None:
    both = ((key, ENGLISH[key], CHINESE[key]) for key in CHINESE.keys() & ENGLISH.keys())
    assert not [(key, fault) for key, one, other in both for fault in faults(one, other, key in UNTRANSLATED)]


def test_the_catalog_is_kept_in_order() -> None:
    """So that two people who add a sentence rarely meet in one line."""
    kept = CATALOG.read_text("utf-8")
    assert kept == json.dumps(CHINESE, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    pairs = json.loads(kept, object_pairs_hook=list)
    assert len(pairs) == len({key for key, _ in pairs})


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_call_of_the_scripts_is_overlooked(path: Path) -> None:
    """Counted without the expression that collects them: each t( that is not the end of a longer name."""
    source = path.read_text("utf-8")
    pieces = source.split("t(")[:-1]
    calls = sum(not (piece[-1:].isalnum() or piece[-1:] in ("_", "$")) for piece in pieces)
    assert len(SCRIPT_SENTENCE.findall(source)) == calls
