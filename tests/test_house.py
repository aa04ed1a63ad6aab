"""The house rules that a machine can hold: arrows, first lines, quiet imports, nothing of the makers' machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from tests.support.places import TOP

FILES = sorted((TOP / "app").rglob("*.py"))
TREES = {path.relative_to(TOP).as_posix(): ast.parse(path.read_text("utf-8")) for path in FILES}
COMPUTE = (
    "app.compat.attention", "app.compat.selftest", "app.engine.loading", "app.engine.pictures", "app.engine.pipelines",
    "app.engine.session", "app.engine.speech", "app.cli.bench.cases", "app.cli.bench.full_size", "app.cli.bench.speech_rows",
)  # fmt: skip
"""The rooms that may import torch; import-linter's contract in pyproject.toml lists all others."""
EXTRA = "app.machines.cluster"
"""Imports dask, of the extra machines; only the machines process imports it."""


def test_arrows_and_circles(capsys: pytest.CaptureFixture[str]) -> None:
    """The contracts of pyproject.toml: layers, no circles, who may know torch, Gradio and argparse."""
    from importlinter.cli import lint_imports

    broken = lint_imports(config_filename=str(TOP / "pyproject.toml"), no_cache=True)
    assert not broken, capsys.readouterr().out


def test_no_relative_imports() -> None:
    for name, tree in TREES.items():
        assert not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)), name


@pytest.mark.parametrize("command", [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]], ids=" ".join)
def test_style_and_types(command: list[str]) -> None:
    words = [] if command == ["mypy"] else ["."]
    done = subprocess.run([sys.executable, "-m", *command, *words], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", TREES)
def test_every_file_says_what_it_is(name: str) -> None:
    assert ast.get_docstring(TREES[name]), f"{name} has no first line"


def test_importing_does_nothing() -> None:
    """Every module of a room without torch: no torch comes with it, no environment is written, no logging set up."""
    names = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in TREES]
    quiet = [name for name in names if not name.startswith((*COMPUTE, EXTRA)) and name != "app.__main__"]
    code = (
        "import logging, os, sys; from importlib import import_module; import gradio; before = dict(os.environ)\n"
        f"for name in {quiet!r}: import_module(name)\n"
        "loaded = {'torch', 'transformers', 'diffusers', 'dask', 'distributed'} & sys.modules.keys()\n"
        "assert not loaded, loaded\n"
        "assert dict(os.environ) == before and not logging.getLogger().handlers\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_public_face_of_compat() -> None:
    import app.compat

    assert app.compat.__all__ == ["Choice", "Hardware", "Need", "Plan", "applied", "decide", "probe"]
    code = "import sys, app.compat; assert 'torch' not in sys.modules; [getattr(app.compat, each) for each in app.compat.__all__]"
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nothing_of_the_makers_machine_is_in_the_project() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True).stdout.splitlines()
    pattern = re.compile(r"(^|[\s\"'(=])/" + r"(work|farm)/|pypi\.org/simple" + r"|registry\.npmjs", re.MULTILINE)
    for name in listed:
        path = TOP / name
        if path.is_file():
            assert path.stat().st_size < 25 << 20, name
            if path.suffix in {".py", ".md", ".toml", ".txt", ".sh", ".yml", ".json", ".js", ".css", ".bat", ".command"}:
                assert not pattern.search(path.read_text("utf-8", errors="ignore")), name


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/inside.md", "docs/words.md"])
def test_every_path_that_a_document_names_is_there(document: str) -> None:
    named = set(re.findall(r"`?((?:app|tests|docs|assets)/[\w./-]*\w)", (TOP / document).read_text("utf-8")))
    assert named and not [path for path in named if not (TOP / path).exists()]
