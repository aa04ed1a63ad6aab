"""Every pattern of Hearth's, and every reader of foreign text, takes time in proportion to its input: nothing that a guest sends can hold the interpreter."""

from __future__ import annotations

import ast
import importlib
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.base import bounded_json
from app.base.paths import assets
from app.base.trouble import Trouble
from app.engine.jobs.creation import make_file_name
from app.engine.models.voice_limits import DIA
from app.engine.pictures.files import foreign_settings
from app.engine.pictures.prompts import prompt_weights, starter_words
from app.engine.speech.text import script
from app.engine.speech.text.named_speakers import find_named
from app.engine.speech.text.pronunciations import restore_spelling
from app.engine.speech.text.said_by import find_quotes
from app.engine.speech.text.unknown import find_in_script
from tests.support.places import TOP
from tests.support.source_trees import parse_source

pytestmark = pytest.mark.long

ANCHORED = ("match", "fullmatch")
CALLS = {"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
COMPUTED = {
    "app/compat/planning/quirk.py", "app/compat/planning/quirk_table.py", "app/engine/pictures/families/placement.py", "app/launcher/pip_command.py",
    "app/base/graphics_cards.py", "app/launcher/machine_facts.py", "app/base/private_words.py", "app/engine/pictures/prompts/starter_words.py",
    "app/engine/pictures/run/active_embeddings.py", "app/engine/speech/text/other_languages.py",
    "app/engine/hearing/spelling.py", "app/engine/speech/text/chinese.py",
}  # fmt: skip
"""The patterns of these files are columns of Hearth's own tables, over names of cards, layers and pip's own lines, or this user's names, or
words of a prompt, escaped."""
LETTERS = 8192
SLOWEST_S = 0.03
"""LETTERS letters may take so long. A linear pattern takes a tenth of a millisecond, a quadratic one a hundred."""
FIRST = 1024
QUICK_S = SLOWEST_S * (FIRST / LETTERS) ** 2 / 2
"""Where the first letters take less, all of them do not take SLOWEST_S even in quadratic time: most patterns need not read them."""


@cache
def list_patterns() -> tuple[tuple[str, str, int, bool], ...]:
    """Place, pattern and flags of every call of re that is written out, and whether it is looked for anywhere in a text."""
    return tuple(dict.fromkeys(_find_patterns()))


def _find_patterns() -> Iterator[tuple[str, str, int, bool]]:
    sources = {path.relative_to(TOP).as_posix(): path.read_text("utf-8") for path in sorted((TOP / "app").rglob("*.py"))}
    for name, source in sources.items():
        if not re.search(r"\bre\.\w", source):  # six of seven
            continue
        nodes = [*ast.walk(parse_source(source))]
        names = {
            id(node.value): node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            for node in nodes
            if isinstance(node, ast.Assign | ast.AnnAssign)
        }
        for node in nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS):
                continue
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
                continue
            first, target = node.args[0], names.get(id(node))
            pattern: Any
            if isinstance(first, ast.Constant):
                pattern = first.value
            elif name not in COMPUTED and isinstance(target, ast.Name):  # put together of others
                pattern = getattr(importlib.import_module(name.removesuffix(".py").replace("/", ".")), target.id).pattern
            else:
                assert name in COMPUTED, f"{name}:{node.lineno}: this test cannot see the pattern"
                continue
            words, way = ast.unparse(node), node.func.attr
            flags = sum(getattr(re, each) for each in ("IGNORECASE", "DOTALL", "MULTILINE") if f"re.{each}" in words)
            anywhere = way not in ("compile", *ANCHORED)
            if way == "compile" and isinstance(target, ast.Name):
                used = re.compile(rf"\b{target.id}\.(?!(?:{'|'.join(ANCHORED)})\()|, {target.id}[,)]")
                anywhere = any(target.id in each and used.search(each) for each in sources.values())
            yield (f"{name}:{node.lineno}", pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern, flags, anywhere)


def draw_inputs(pattern: str, rng: random.Random, count: int) -> Iterator[str]:
    """Long repetitions of what the pattern speaks of, between a beginning and an end that may or may not match."""
    words = re.findall(r"[A-Za-z]{2,}", pattern)
    signs = sorted({*pattern, " ", "a", "1", "\n", ".", "\\"})
    pieces = [*signs, *words, "<lora:", "(pause 1", '"\\', ": ", "[s", "a:", "(a", "http"]
    for each in (" ", "\n", ",", "(", "[", '"', "1", "a", ":", "<lora:", "(pause 1", "\\"):
        yield each * (LETTERS // len(each))
        yield each * (LETTERS // len(each)) + "\0"  # which no pattern takes at its end
        yield f"(pause 1{each * (LETTERS // len(each))}x)"
        yield f"1{each * (LETTERS // len(each))}x"
    for _ in range(count):
        pump = "".join(rng.choices(pieces, k=rng.choice((1, 1, 2, 3))))
        before, after = ("".join(rng.choices(pieces, k=rng.randrange(3))) for _ in range(2))
        yield before + pump * (LETTERS // len(pump)) + after


def measure(run: Callable[[str], object], text: str, most_s: float = SLOWEST_S) -> float:
    """Return the processor's seconds, the least of three where it was slow. A short beginning is tried first, so that a cubic pattern ends."""
    for length in (256, 1024, len(text)):
        seconds = measure_one(run, text, length, most_s)
        if seconds > most_s:
            break
    return seconds


def check_pattern(pattern: str, flags: int, anywhere: bool, seed: int, count: int) -> None:
    compiled = re.compile(pattern, flags)
    for text in draw_inputs(pattern, random.Random(f"{seed}{pattern}"), count):
        ways: list[Callable[[str], object]] = [compiled.fullmatch, *([compiled.findall] if anywhere else [])]
        for way in ways:
            assert not takes_too_long(way, text), f"{text[:60]!r}... takes too long"


def takes_too_long(run: Callable[[str], object], text: str) -> bool:
    """Tell whether it takes longer than SLOWEST_S and far more than in proportion: a machine may be slow, but four times the text takes no sixteen
    times the time there."""
    for length in (256, FIRST, len(text)):
        seconds = measure_one(run, text, length, SLOWEST_S)
        if seconds > SLOWEST_S and seconds > 8 * measure_one(run, text, length // 4, 0.0):
            return True
        if length == FIRST and seconds < QUICK_S:
            return False
    return False


def measure_one(run: Callable[[str], object], text: str, length: int, most_s: float) -> float:
    taken_s: list[float] = []
    while not taken_s or (most_s < min(taken_s) < 10 * most_s and len(taken_s) < 3):
        begun_s = time.thread_time()
        run(text if length == len(text) else text[: length - 8] + text[-8:])
        taken_s.append(time.thread_time() - begun_s)
    return min(taken_s)


def check_all(subtests: pytest.Subtests, seed: int, count: int) -> None:
    """They are looked for here, not where the file is imported: each process of a run imports it."""
    assert len(list_patterns()) > 200
    for place, pattern, flags, anywhere in list_patterns():
        with subtests.test(place):
            check_pattern(pattern, flags, anywhere, seed, count)


@pytest.mark.timeout(1800)
def test_patterns_are_linear(subtests: pytest.Subtests) -> None:
    check_all(subtests, seed=1, count=8)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_patterns_are_linear_for_many_inputs(subtests: pytest.Subtests) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    check_all(subtests, seed, count=2000)


def test_the_bad_ones_of_old_are_found() -> None:
    """The measurement bites: the cubic and the quadratic patterns that froze the window."""
    for pattern in (r'\s*([\w /-]+):\s*("(?:\\.|[^\\"])*"|[^,]*)(?:,|$)', r"<(?:lora|lyco|hypernet):([^:>]+)(?::[^>]*)?>"):
        with pytest.raises(AssertionError, match="takes too long"):
            check_pattern(pattern, 0, True, seed=1, count=8)


def read_graph(text: str) -> object:
    try:
        return foreign_settings.read_comfyui(text)
    except (ValueError, StopIteration, AttributeError, Trouble):
        return None


def read_lines(text: str) -> object:
    try:
        return foreign_settings.read_a1111(text + "\nSteps: 1," + text)
    except Trouble:
        return None


def parse(text: str) -> object:
    try:
        return bounded_json.parse_json(text)
    except ValueError:
        return None


READERS: dict[str, Callable[[str], object]] = {
    "script": lambda text: script.parse_script.__wrapped__(text), "weights": prompt_weights.split_weights, "a1111": read_lines, "comfyui": read_graph,
    "json": parse, "name": lambda text: make_file_name(text, ".wav", 0.0),
    "prompt": lambda text: starter_words.match_prompt(assets() / "starter" / "painter", text, text),
    "words": lambda text: starter_words.list_unknown(assets() / "starter" / "painter", text),
    "marks": lambda text: find_in_script(text, DIA), "names": find_named, "quotes": find_quotes,
}  # fmt: skip
PIECES = (
    " ", "\n", ",", "(", ")", "(a", "[", "]", "[x]", "(x)", "[S1] ", "[S1] a [S2] b ", "<lora:", "<lora:a:1>", "a", "a ", "a. ",
    "abcde fgh ", ".", "a.'", '"', "\\",
    '"\\', ":", ": ", "a: b, ", "1", "”", "\u0301\u0316", "[[", "{", '{"a":', '"",', "[],", "(pause 1", "(pause) a ",
    "Steps: 1, ", "\nNegative prompt:", "zwölf ", "red ", "two red ", "a cat ", "on the left ", "no ", "one and ",
    "“", "„", "‘a", "« ", "“a,” said Anna. ", "“a,” said Anna\n", "— a, dit Anna\n", "“a”", "”李雷说：“", "「a」と太郎は言った。",
)  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_reader_is_linear(name: str) -> None:
    """In quadratic time so many letters would take longer than a second."""
    letters = {"prompt": 2000, "words": 2000, "script": 6000, "quotes": 6000}.get(name, 16_000)
    for piece in PIECES:
        text = piece * (letters // len(piece)) + ")" * (letters // len(piece))
        assert measure(READERS[name], text, 0.3) < 0.3, piece


@pytest.mark.parametrize("text", ["— a — dit Anna — b" + " — b" * 125_000, "“a\n" + " " * 250_000 + "“a” x " * 42_000])
def test_quotes_of_one_long_line_are_found_in_linear_time(text: str) -> None:
    """For each dash the rest of the line was looked at, and for each quote all that the line begins with."""
    assert measure(find_quotes, text, 2) < 2


def test_a_crowd_of_chinese_speakers_is_read_in_linear_time() -> None:
    """For each quote all names of the text were looked for."""
    names = [f"李{chr(0x4E00 + number % 97)}{chr(0x6000 + number)}" for number in range(9000)]
    text = "\n".join(f"{name}说：“好。”\n{name}走了：“好。”" for name in names)
    assert measure(find_quotes, text, 4) < 4


def test_spelling_is_restored_in_linear_time() -> None:
    """For each word that nothing spoken holds, or only within others, all that was spoken was looked through."""
    rows = tuple((f"name{number}", f"spoken{number}") for number in range(10_000))
    text, spoken = " ".join(word for word, _ in rows), " ".join(f"un{said}" for _, said in rows) * 8
    assert measure(lambda text: restore_spelling([spoken], text, rows), text, 2) < 2


def test_accents_in_a_row_are_not_sorted() -> None:
    """Python normalises in quadratic time: 80,000 of them took eleven seconds, during which nothing else ran."""
    text = "[S1] a" + "\u0301\u0316" * 40_000
    assert measure(lambda text: script.parse_script.__wrapped__(text), text, 0.5) < 0.5


def link(*names: str) -> dict[str, object]:
    return {f"in{index}": [name, 0] for index, name in enumerate(names)}


@pytest.mark.parametrize(
    "nodes",
    [
        {"1": link("1", "1", "1")},
        {"1": link("2", "2"), "2": link("1", "1")},
        {str(n): link(*[str(n + 1)] * 9) for n in range(60)},
        {str(n): link(str(n + 1)) for n in range(5000)},
    ],
    ids=["itself", "in a circle", "nine links each", "a long chain"],
)
def test_graphs_that_never_end(nodes: dict[str, dict[str, object]]) -> None:
    graph = {each: {"class_type": "Node", "inputs": inputs} for each, inputs in nodes.items()}
    graph["s"] = {"class_type": "KSampler", "inputs": {"positive": ["1", 0], "negative": ["1", 0], "steps": 3}}
    assert measure(lambda text: read_graph(json.dumps(graph)), "") < 0.5


def test_a_text_behind_other_nodes_is_still_found() -> None:
    graph = {
        "s": {"class_type": "KSampler", "inputs": {"positive": ["c", 0], "negative": ["e", 0]}},
        "c": {"class_type": "Combine", "inputs": {"first": ["z", 0], "second": ["t", 0]}},
        "z": {"class_type": "ZeroOut", "inputs": {"of": ["c", 0]}},
        "t": {"class_type": "CLIPTextEncode", "inputs": {"text": ["p", 0]}},
        "p": {"class_type": "Primitive", "inputs": {"value": "a boat"}},
    }
    assert foreign_settings.read_comfyui(json.dumps(graph)).request.prompt == "a boat"


def test_every_file_of_patterns_is_seen() -> None:
    """Patterns are written in calls of re, and nowhere else, so that the walk above finds them."""
    for path in sorted((TOP / "app").rglob("*.py")):
        source = path.read_text("utf-8")
        assert not re.search(r"^from re import|^import re as|^import regex", source, re.MULTILINE), path
    assert {Path(place.partition(":")[0]).name for place, *_ in list_patterns()} >= {
        "foreign_settings.py",
        "script_marks.py",
        "request_guard.py",
    }
