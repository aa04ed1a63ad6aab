"""The house rules that a machine can hold: arrows, first lines, quiet imports, nothing of the makers' machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.places import TOP

FILES = sorted((TOP / "app").rglob("*.py"))
TREES = {path.relative_to(TOP).as_posix(): ast.parse(path.read_text("utf-8")) for path in FILES}
FORBIDDEN = {
    "app/compat/": ("app.engine", "app.ui", "gradio"),
    "app/engine/": ("app.ui", "gradio"),
    "app/ui/": ("torch", "transformers", "diffusers"),
}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "absolute imports only"
            yield node.module or ""
            yield from (f"{node.module}.{each.name}" for each in node.names)


@pytest.mark.parametrize("name", TREES)
def test_arrows_run_from_window_to_engine_to_compat(name: str) -> None:
    for room, forbidden in FORBIDDEN.items():
        if name.startswith(room):
            back = [used for used in imported(TREES[name]) if used.startswith(forbidden)]
            assert not back, f"{name} imports {back}"


@pytest.mark.parametrize("name", TREES)
def test_every_file_says_what_it_is(name: str) -> None:
    assert ast.get_docstring(TREES[name]), f"{name} has no first line"


def test_importing_does_nothing() -> None:
    """No torch for the value types, no environment written, no logging set up, no folder made."""
    code = (
        "import logging, os, sys; before = dict(os.environ)\n"
        "import app.sentence, app.paths, app.compat, app.compat.planning.decide, app.compat.machine.hardware, app.compat.machine.verdicts\n"
        "import app.compat.machine.meter, app.engine.jobs.events, app.engine.jobs.request, app.engine.jobs.control, app.__main__\n"
        "assert 'torch' not in sys.modules and 'gradio' not in sys.modules and 'transformers' not in sys.modules\n"
        "assert dict(os.environ) == before and not logging.getLogger().handlers\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nothing_of_the_makers_machine_is_in_the_project() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True).stdout.splitlines()
    pattern = re.compile(r"(^|[\s\"'(=])/" + r"(work|farm)/|pypi\.org/simple" + r"|registry\.npmjs", re.MULTILINE)
    for name in listed:
        path = TOP / name
        if path.is_file():
            assert path.stat().st_size < 25 << 20, name
            if path.suffix in {
                ".py",
                ".md",
                ".toml",
                ".txt",
                ".sh",
                ".yml",
                ".json",
                ".js",
                ".css",
                ".bat",
                ".command",
            }:
                assert not pattern.search(path.read_text("utf-8", errors="ignore")), name
