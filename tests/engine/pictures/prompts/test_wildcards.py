"""Test that wildcards stand for lines of their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.paths import Home
from app.base.trouble import Trouble
from app.engine.pictures.prompts.wildcards import LINES_MOST, put_lines


def write(home: Home, name: str, *lines: str) -> None:
    (home.root / "wildcards").mkdir(exist_ok=True)
    (home.root / "wildcards" / f"{name}.txt").write_text("\n".join(lines), "utf-8")


def test_a_wildcard_stands_for_its_lines(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    write(home, "animal", "# mine", "cat", "", "dog")
    write(home, "one", "a __animal__")
    write(home, "many", *map(str, range(100)))
    assert put_lines(home, "see __animal__ __x") in ("see {cat|dog} __x", "see {dog|cat} __x")
    assert put_lines(home, "__one__") in ("a cat", "a dog")
    assert put_lines(home, "__many__").count("|") == LINES_MOST - 1
    assert put_lines(home, "nothing") == "nothing"
    (home.root / "wildcards" / "wild animals").mkdir()
    write(home, "wild animals/great-cat", "lion")
    write(home, "颜色", "红")
    assert put_lines(home, "__wild animals/great-cat__ __颜色__") == "lion 红"
    for plain in ("a __ b __ c", "____", "__/etc/x__", "__a/../b__", "__a//b__", "a__b and c__d", "EasyNegative__v2__x"):
        assert put_lines(home, plain) == plain


def test_one_that_names_itself_or_is_not_there_is_told(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    write(home, "a", "x __b__")
    write(home, "b", "y __a__")
    write(home, "empty", "# nothing")
    write(home, "wide", *["__wider__" * 30] * 30)
    write(home, "wider", "__widest__" * 30)
    write(home, "widest", "x")
    for prompt, key in (
        ("__wide__", "wildcard.many"),
        ("__a__", "wildcard.itself"),
        ("__gone__", "wildcard.missing"),
        ("__empty__", "wildcard.missing"),
    ):
        with pytest.raises(Trouble) as told:
            put_lines(home, prompt)
        assert told.value.sentence.key == key
        assert key != "wildcard.itself" or "a > b > a" in str(told.value)
