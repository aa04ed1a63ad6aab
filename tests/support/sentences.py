"""Every sentence that Hearth says, as its source has it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache

from app.ui.page.bundle import SCRIPT_SENTENCE
from tests.support.places import TOP
from tests.support.source_trees import tree_of, walk

SCRIPTS = sorted((TOP / "app" / "ui" / "page" / "static").rglob("*.js"))


def called(tree: ast.AST, labels: bool) -> Iterator[ast.Call]:
    """say() and say_to_all() anywhere; in the window's files also word() and text(), but for where a shorter word() hands its own two on."""
    names = {"say", "say_to_all", *(("word", "text") if labels else ())}
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            handed_on = [getattr(each, "id", "") for each in node.args[:2]] == ["key", "english"]
            yield from () if handed_on else (node,)


PYTHON = sorted([*(TOP / "app").rglob("*.py"), *(TOP / "bench").rglob("*.py")])


def _find_spoken() -> Iterator[tuple[str, str, str]]:
    for path in PYTHON:
        name = path.relative_to(TOP).as_posix()
        for call in called(tree_of(path), labels=name.startswith("app/ui/")):
            place = f"{name}:{call.lineno}"
            key, english = (each.value if isinstance(each, ast.Constant) else None for each in call.args[:2])
            assert isinstance(key, str) and isinstance(english, str), f"{place}: literals only"
            yield key, english, place
    for path in SCRIPTS:
        for key, english in SCRIPT_SENTENCE.findall(path.read_text("utf-8")):
            yield key, json.loads(f'"{english}"'), path.name


def heard_by_guests() -> set[str]:
    """Keys of the sentences that guests may hear."""
    calls = (call for path in PYTHON for call in called(tree_of(path), labels=False))
    return {
        str(call.args[0].value) for call in calls if getattr(call.func, "id", "") == "say_to_all" and isinstance(call.args[0], ast.Constant)
    }


@cache
def find_spoken() -> list[tuple[str, str, str]]:
    """Key, English and place of all that Hearth says."""
    return list(_find_spoken())


@cache
def find_english() -> dict[str, str]:
    return {key: words for key, words, _ in find_spoken()}
