"""The house rules that a machine can hold: arrows, first lines, quiet imports, nothing of the makers' machine."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache

import pytest

from app.engine.models.voice_families import FAMILIES
from tests.support.places import TOP
from tests.support.source_trees import tree_of, walk

FILES = sorted(path for folder in ("app", "bench") for path in (TOP / folder).rglob("*.py") if "node_modules" not in path.parts)
NAMES = [path.relative_to(TOP).as_posix() for path in FILES]
(_TORCH,) = (
    each
    for each in tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    if "torch" in each.get("protected_modules", ())
)
COMPUTE = (
    *({*_TORCH["allowed_importers"]} - {"bench"}),
    "bench.cases",
    "bench.full_size",
    "bench.speech_codec",
    "bench.speech_rows",
    "bench.voice_parts",
)
"""Importing these modules may bring torch: those where the contract lets it be named; of the benches, these alone."""
EXTRA = "app.machines.cluster"
"""It imports dask, of the extra machines; only the machines process imports it."""


def test_arrows_and_circles() -> None:
    """The contracts of pyproject.toml: layers, no circles, who may know torch, Gradio and argparse. In a process of its own: import-linter
    disables every logger that there is, and later tests would find an empty log."""
    command = [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout


def test_no_relative_imports() -> None:
    for name in NAMES:
        tree = tree_of(TOP / name)
        assert not any(isinstance(node, ast.ImportFrom) and node.level for node in walk(tree)), name


def test_no_test_changes_the_time_of_all_threads() -> None:
    """Others wait and sleep by it meanwhile; set_in of tests.support.other_functions changes it for one module."""
    changed = re.compile(r"setattr\(\s*(\w+\.)?time,|setattr\(\s*\"time\.")
    assert [path.name for path in (TOP / "tests").rglob("*.py") if changed.search(path.read_text("utf-8"))] == []


WAITS = {"sleep", "wait_for_timeout"}
LIKELY = re.compile(r"\.(sleep|wait_for_timeout)\(|\.(wait|join)\([0-9]*\.")
MAY_WAIT = {
    "tests/browser/test_window_looks.py": "it measures what an open page costs in a second",
    "tests/machines/cluster/test_heartbeats.py": "what must not come with dask's heartbeats, of which nobody is told",
    "tests/machines/cluster/test_floods.py": "a bad helper's own pace",
    "tests/machines/test_spreading.py": "between a beginning and its stop, sixty moments are tried",
}
"""Tests may wait for a fixed time in these files alone. Any other waits for something: `until`, `pass_turns` and `WatchedLock` in
tests/support/waiting.py, `until_seen` and `pass_looks` in tests/support/window.py."""


def list_waits(node: ast.AST, within: int = 0) -> Iterator[ast.Call]:
    """List the calls that wait for a fixed time. A function within a function stands in for something slow, and may; a coroutine is the test."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and within < 2:
            first = each.args[0].value if each.args and isinstance(each.args[0], ast.Constant) else None
            if (each.func.attr in WAITS and first != 0) or (each.func.attr in {"wait", "join"} and isinstance(first, float)):
                yield each
        yield from list_waits(each, within + isinstance(each, (ast.FunctionDef, ast.Lambda)))


def test_no_test_waits_for_a_fixed_time() -> None:
    """Whether nothing happens is seen by what comes after it, not by the time that passed, which is too short on a busy machine."""
    tests = [path for path in (TOP / "tests").rglob("test_*.py") if "endurance" not in path.parts]
    looked = [path for path in tests if LIKELY.search(path.read_text("utf-8"))]
    waiting = {path.relative_to(TOP).as_posix(): lines for path in looked if (lines := [each.lineno for each in list_waits(tree_of(path))])}
    assert not {name: lines for name, lines in waiting.items() if name not in MAY_WAIT}
    assert MAY_WAIT.keys() <= waiting.keys()


MAY_REACH = {
    "tests/browser/no_engine/conftest.py": "settings as before the first start, which nobody can ask for",
    "tests/fuzz_models.py": "looks at a model that are still under way",
    "tests/fuzz_routes.py": "the share's own server, whatever address leads to it",
    "tests/support/bad_helper.py": "a helper that is let in without a person",
    "tests/support/refused.py": "what a processor was found to refuse, which a process never takes back",
    "tests/support/saved_home.py": "files as a Hearth of that time wrote them",
    "tests/support/silent_helper.py": "a helper that says nothing of an end",
    "tests/support/watched_engine.py": "an engine that is watched from within",
    "tests/ui/api/test_transcriptions.py": "openai's own HTTP client, for what openai would not send",
}
"""Tests use private names of the room that they test alone; these files use another room's."""
PRIVATE = re.compile(r"_[a-zA-Z]")
REACH = re.compile(r"[.\"]_[a-zA-Z]|import .*\b_[a-zA-Z]")


def find_room(path: str) -> str:
    """Return the room of a file, or of what a test tests, as tests mirror the rooms: `ui`, `engine/keeper`."""
    folders = re.sub(r"^(app|tests)/", "", path).split("/")[:-1]
    return "/".join(folders[: 2 if folders[:1] in (["engine"], ["compat"]) else 1])


def list_defined(tree: ast.Module) -> Iterator[str]:
    """List the private names of a file: functions, classes, variables, attributes of its objects."""
    for node in walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) if PRIVATE.match(name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(ast.Name("self"), name, ast.Store()) if PRIVATE.match(name):
                yield name


def list_reached(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """List the names that a file takes from modules and objects of others, each with its line."""
    for node in walk(tree):
        match node:
            case ast.Attribute(ast.Name("self" | "cls") | ast.Call(ast.Name("super"))):
                pass
            case ast.Attribute(attr=name):
                yield name, node.lineno
            case ast.ImportFrom(names=names):
                yield from ((each.name, node.lineno) for each in names)
            case ast.Call(ast.Attribute(attr="setattr" | "object"), [_, ast.Constant(str(name)), *_]):
                yield name, node.lineno


def test_no_test_reaches_into_another_room() -> None:
    """What one room's test needs of another is public there, or is seen by what it does."""
    rooms: dict[str, set[str]] = {}
    for name in NAMES:
        for private in list_defined(tree_of(TOP / name)):
            rooms.setdefault(private, set()).add(find_room(name))
    del rooms["_replace"]  # every named tuple has it
    reaching: dict[str, list[str]] = {}
    for path in (each for each in sorted((TOP / "tests").rglob("*.py")) if REACH.search(each.read_text("utf-8"))):
        name, own = path.relative_to(TOP).as_posix(), {*list_defined(tree_of(path))}
        for private, line in list_reached(tree_of(path)):
            if private not in own and find_room(name) not in rooms.get(private, {find_room(name)}):
                reaching.setdefault(name, []).append(f"{line}: {private}")
    assert not {name: lines for name, lines in reaching.items() if name not in MAY_REACH}
    assert MAY_REACH.keys() == reaching.keys()


@pytest.mark.parametrize(
    "command",
    [["ruff", "check"], ["ruff", "format", "--check"], pytest.param(["mypy"], marks=[pytest.mark.long, pytest.mark.slow])],
    ids=" ".join,
)
def test_style_and_types(command: list[str]) -> None:
    words = [] if command == ["mypy"] else ["."]
    done = subprocess.run([sys.executable, "-m", *command, *words], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_style_and_types_of_the_pages_scripts() -> None:
    page, npm = TOP / "app" / "ui" / "page", shutil.which("npm")
    if npm is None or not (page / "node_modules").is_dir():
        pytest.skip("the page's scripts were not looked at: `npm install --no-package-lock` in app/ui/page brings tsc and eslint")
    done = subprocess.run([npm, "run", "--silent", "lint"], cwd=page, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_says_what_it_is() -> None:
    assert not [name for name in NAMES if not ast.get_docstring(tree_of(TOP / name))], "without a first line"


@pytest.mark.long
def test_importing_does_nothing() -> None:
    """Every module of a room without torch: no torch comes with it, no environment is written, no logging set up."""
    names = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in NAMES]
    facts = {f"{family.package}.facts" for family in FAMILIES.values()}
    quiet = [name for name in names if (name in facts or not name.startswith((*COMPUTE, EXTRA))) and name != "app.__main__"]
    code = (
        "import logging, os, sys; from importlib import import_module; from app.base.fast_import import skipping_stubs\n"
        "with skipping_stubs(): import gradio\n"
        "before = dict(os.environ)\n"
        f"for name in {quiet!r}: import_module(name)\n"
        "loaded = {'torch', 'transformers', 'diffusers', 'dask', 'distributed'} & sys.modules.keys()\n"
        "assert not loaded, loaded\n"
        "assert dict(os.environ) == before and not logging.getLogger().handlers\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


READERS = {
    "PIL.Image.open", "soundfile.read", "soundfile.info", "soundfile.blocks", "soundfile.SoundFile", "av.open", "zipfile.ZipFile", "tarfile.open",
    "shutil.unpack_archive", "wave.open",
}  # fmt: skip
OPENER = "app/base/foreign_formats.py"
UNPACKER = "app/launcher/release_archive.py"
"""It unpacks before there is an environment, and only what Hearth's key has signed."""
RUNNERS = {"subprocess", "os.system", "os.popen", "os.startfile", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"}
GIVES_FILES = {"app/engine/speech/sound/convert_sound.py", "app/engine/speech/book/pdf.py"}
"""The second hands a PDF to a process of Hearth's own, which may take so much."""


def is_table(value: ast.AST | None) -> bool:
    """Tell whether an expression is a table of values, or one with a name around it."""
    match value:
        case ast.Dict() | ast.List() | ast.Tuple() | ast.Set():
            return True
        case ast.BinOp(left, _, right):
            return is_table(left) or is_table(right)
        case ast.Call(ast.Name("frozenset" | "tuple" | "dict" | "list" | "set" | "MappingProxyType"), [only]):
            return is_table(only)
        case ast.Call(ast.Attribute(of, "items")):
            return is_table(of)
        case ast.Subscript(ast.Name("Literal")):
            return True
    return False


def list_tables(tree: ast.Module) -> Iterator[ast.AST]:
    """List what may keep the layout that a person gave it: what a module states, tables within, and the cases of a test."""
    yield from (each for each in tree.body if isinstance(each, (ast.Assign, ast.AnnAssign)))
    for node in walk(tree):
        match node:
            case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.AugAssign(value=value) if is_table(value):
                yield node
            case ast.For(iter=over) if is_table(over):
                yield over
            case ast.FunctionDef(decorator_list=marks) | ast.AsyncFunctionDef(decorator_list=marks) | ast.ClassDef(decorator_list=marks):
                yield from (each for each in marks if isinstance(each, ast.Call))


def test_only_tables_keep_a_layout_of_their_own() -> None:
    loose = []
    for path in (each for folder in ("app", "bench", "training", "tests") for each in (TOP / folder).rglob("*.py")):
        source = path.read_text("utf-8")
        skipped = [number for number, line in enumerate(source.splitlines(), 1) if line.rstrip().endswith("# fmt: skip")]
        if skipped:
            tables = [range(each.lineno, (each.end_lineno or each.lineno) + 1) for each in list_tables(tree_of(path))]  # type: ignore[attr-defined]
            loose += [f"{path.relative_to(TOP).as_posix()}:{number}" for number in skipped if not any(number in table for table in tables)]
    assert not loose


@cache
def list_calls(name: str) -> list[tuple[str, ast.Call]]:
    """List every call of a file with its full name, whatever the file calls the module."""
    return list(_name_calls(tree_of(TOP / name)))


def _name_calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    full = dict[str, str]()
    for node in walk(tree):
        if isinstance(node, ast.Import):
            full.update({(each.asname or each.name): each.name for each in node.names})
        elif isinstance(node, ast.ImportFrom):
            full.update({(each.asname or each.name): f"{node.module}.{each.name}" for each in node.names})
    for node in walk(tree):
        if isinstance(node, ast.Call):
            first, dot, rest = ast.unparse(node.func).partition(".")
            yield full.get(first, first) + dot + rest, node


def test_only_a_kind_asks_whether_a_request_is_its_own() -> None:
    """Others ask the request itself: its kind, its words, what tells it apart."""
    asked = {
        name
        for name in NAMES
        if name.startswith("app/") and not name.startswith(("app/engine/speech/", "app/engine/pictures/"))
        for node in walk(tree_of(TOP / name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
        if re.search(r"\b(Speech|Picture)Request\b", ast.unparse(node))
    }
    assert not asked


def test_foreign_files_are_opened_in_one_place() -> None:
    """A picture, sound or archive by foreign_formats.py alone, which says what it may be; anything else may only write such files."""
    found = set()
    for name in NAMES:
        for called, node in list_calls(name):
            given = [*node.args[1:2], *(each.value for each in node.keywords if each.arg == "mode")]
            writes = [each.value for each in given if isinstance(each, ast.Constant)] == ["w"]
            if called in READERS and not writes:
                found.add((called, name))
    assert found == {
        ("PIL.Image.open", OPENER),
        ("soundfile.SoundFile", OPENER),
        ("zipfile.ZipFile", OPENER),
        ("zipfile.ZipFile", UNPACKER),
    }
    opened = [node for called, node in list_calls(OPENER) if called == "PIL.Image.open"]
    assert all("formats" in {each.arg for each in node.keywords} for node in opened)


def test_two_files_hand_foreign_files_to_other_processes() -> None:
    """The rooms that meet them start no other program."""
    found = set()
    for name in NAMES:
        if name.startswith(("app/engine", "app/machines", "app/ui/api", "app/ui/state", "app/ui/page")):
            found |= {name for called, _ in list_calls(name) if called.startswith(tuple(RUNNERS))}
    assert found == GIVES_FILES


def test_no_library_reads_pictures_or_sounds_by_itself() -> None:
    """diffusers' and transformers' readers take any format, and addresses; librosa, torchaudio and pydub start ffmpeg."""
    for name in NAMES:
        tree = tree_of(TOP / name)
        for node in walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = getattr(node, "module", "") or ""
                names = {each.name for each in node.names} | {module, *(f"{module}.{each.name}" for each in node.names)}
                roots = {each.partition(".")[0] for each in names}
                assert not roots & {"librosa", "torchaudio", "pydub", "torchcodec", "imageio", "cv2"}, name
                assert not names & {"load_image", "load_video", "load_audio"}, name


@pytest.mark.long
def test_the_public_face_of_compat() -> None:
    import app.compat

    assert app.compat.__all__ == ["Choice", "Hardware", "Need", "Plan", "applied", "decide", "probe"]
    assert all(getattr(app.compat, each) for each in app.compat.__all__)  # torch comes with none of it: test_importing_does_nothing


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
