"""The page's scripts as modules: what bundle.py understands of them, what they import of each other, and their one global."""

from __future__ import annotations

import re

import pytest

from app.ui.page.bundle import EXPORT, FOLDERS, IMPORT
from tests.support.places import TOP

SCRIPTS = {path.stem: path.read_text("utf-8") for path in sorted(FOLDERS[".js"].glob("*.js"))}
OUTSIDE = [path.read_text("utf-8") for folder in ("app", "assets", "tests") for path in (TOP / folder).rglob("*.py")]
"""They call the page's global: Gradio's events, the window's process, tests, the maker of screenshots."""


def imported(name: str) -> set[str]:
    return {module for _, module in IMPORT.findall(SCRIPTS[name])}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_module_is_understood_and_imports_what_there_is(name: str) -> None:
    source = SCRIPTS[name]
    assert len(IMPORT.findall(source)) == len(re.findall(r"^\s*import\b", source, re.MULTILINE))
    assert len(EXPORT.findall(source)) == len(re.findall(r"^\s*export\b", source, re.MULTILINE))
    for names, module in IMPORT.findall(source):
        assert set(names.split(", ") if names else ()) <= set(EXPORT.findall(SCRIPTS[module])), module


def test_the_first_module_brings_all() -> None:
    reached, left = set[str](), {"main"}
    while left:
        reached |= left
        left = {module for name in left for module in imported(name)} - reached
    assert reached == set(SCRIPTS)


def test_what_is_exported_is_imported_somewhere() -> None:
    taken = {
        (module, name) for source in SCRIPTS.values() for names, module in IMPORT.findall(source) for name in names.split(", ") if name
    }
    assert taken == {(module, name) for module, source in SCRIPTS.items() for name in EXPORT.findall(source)}


def test_the_one_global_has_what_is_called_from_outside() -> None:
    early = (FOLDERS[".js"].parent / "early.js").read_text("utf-8")
    made = {name for source in (*SCRIPTS.values(), early) for name in re.findall(r"\b(?:window|globalThis)\.(\w+) = ", source)}
    assert made == {"Hearth", "fetch", "requestAnimationFrame"}, "the last two are the browser's own"
    given = re.sub(r"//.*", "", SCRIPTS["main"].partition("window.Hearth = {")[2].partition("};")[0])
    called = {name or "live" for source in OUTSIDE for name in re.findall(r"\bHearth\??\.(?:(\w+)\(|live\b)", source)}
    assert set(re.findall(r"\w+", given)) == called
