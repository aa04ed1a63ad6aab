"""Tokenizers that would fill the memory: each is refused by file and number before a library reads it; those that models have pass."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.base.trouble import Trouble
from app.engine.models.tokenizer_facts import judge_tokenizer
from tests.support.broken_models import DOUBLING


def replace(content: str, **pattern: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def charsmap(longest: int) -> dict[str, Any]:
    """Return a step with a table of two words."""
    raw = (4).to_bytes(4, "little") + bytes(4) + b"a\0" + b"x" * longest + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(raw).decode()}


A, B = ({"Sequence": {"id": each, "type_id": 0}} for each in "AB")
END = {"SpecialToken": {"id": "</s>", "type_id": 0}}


def template(*single: object, pair: tuple[object, ...] = (), tokens: int = 1) -> dict[str, Any]:
    special = {"</s>": {"id": "</s>", "ids": [1] * tokens, "tokens": ["</s>"] * tokens}}
    return {"post_processor": {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}}


def together(*processors: object) -> dict[str, Any]:
    return {"post_processor": {"type": "Sequence", "processors": processors}}


ONE = template(A)["post_processor"]


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(steps)}


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "a doubled 40 times": ({"normalizer": DOUBLING}, "steps"),
    "a doubled 15 times": ({"normalizer": {**DOUBLING, "normalizers": DOUBLING["normalizers"][:15]}}, "letters for a letter"),
    "steps without their types": ({"normalizer": {"normalizers": [{"pattern": {"String": "a"}, "content": "aa"}] * 15}}, "letters for a letter"),
    "steps in steps": ({"normalizer": sequence(*[sequence(replace("x" * 9, Regex=""))] * 4)}, "letters for a letter"),
    "a long word for a letter": ({"normalizer": replace("x" * 5000, String="a")}, "letters for a letter"),
    "letters of bytes, again and again": ({"normalizer": sequence(*[{"type": "ByteLevel"}] * 12)}, "letters for a letter"),
    "a table that says much for a letter": ({"normalizer": charsmap(5000)}, "letters for a letter"),
    "a prompt 100,000 times": (template(*[A] * 100_000), "letters of its template"),
    "a prompt twice": (template(A, END, A), "prompts in its template"),
    "a prompt twice, as a list": (template(*[{"Sequence": ["A", 0]}] * 2), "prompts in its template"),
    "a prompt twice, its name as an object": (template(*[{"Sequence": {"id": {"A": None}, "type_id": 0}}] * 2), "prompts in its template"),
    "a second prompt where there is one": (template(B), "prompts in its template"),
    "a prompt twice in a pair": (template(A, pair=(A, B, A)), "prompts in its template"),
    "many tokens in each window": (template(*[END] * 76, A), "tokens around a prompt"),
    "a token that is many": (template(END, A, tokens=76), "tokens around a prompt"),
    "a template as a list": ({"post_processor": [[A, A], [A], {}]}, "lists in lists"),
    "a template as a list, among others": (together(ONE, [[A, A], [A], {}]), "lists in lists"),
    "a template for what a template made": (together(ONE, together(ONE)["post_processor"]), "templates"),
    "two million objects": ({"x": [{}] * 2_100_000}, "values"),
    "a word of a million letters": ({"model": {"vocab": {"a": 0, "x" * 1_000_000: 0}}}, "letters of a word"),
    "a scored word of a million letters": ({"model": {"type": "Unigram", "vocab": [["x" * 1_000_000, -1.0]]}}, "letters of a word"),
    "an added word of a million letters": ({"added_tokens": [{"id": 0, "content": "x" * 1_000_000}]}, "letters of a word"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_tokenizer_that_none_has(name: str, tmp_path: Path) -> None:
    values, field = HOSTILE[name]
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(Trouble) as told:
        judge_tokenizer(tmp_path)
    assert f"tokenizer.json says {field} " in str(told.value)


@pytest.mark.parametrize("name", ["tokenizer.json", "merges.txt", "spiece.model", "chat_template.jinja", "config.json"])
def test_a_file_of_a_terabyte(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    os.truncate(tmp_path / name, 1 << 40)
    with pytest.raises(Trouble, match=f"{name} says size in bytes 1099511627776"):
        judge_tokenizer(tmp_path)


def test_a_table_of_words_with_a_word_of_a_million_letters(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "x" * 1_000_000: 0}))
    with pytest.raises(Trouble, match="letters of a word 1000000"):
        judge_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("words", "told"), [("[" * 100_000, "recursion"), ('{"a": 1' + "0" * 5000 + "}", "digits"), ("{", "double quotes")]
)
def test_a_file_that_cannot_be_read_is_named(words: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(words)
    with pytest.raises(ValueError, match=rf"vocab\.json: .*{told}"):
        judge_tokenizer(tmp_path)


def test_a_step_whose_type_is_no_word(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"normalizer": {"type": [], "x": 1}}')
    judge_tokenizer(tmp_path)


def test_what_models_have_passes(tmp_path: Path) -> None:
    """CLIP's, T5's, Qwen's and ALBERT's steps, the longest of any; Unicode makes 18 letters of one."""
    for normalizer in (
        None,
        {"type": "NFC"},
        sequence({"type": "NFC"}, replace(" ", Regex=r"\s+"), {"type": "Lowercase"}),
        sequence(charsmap(33), {"type": "Strip", "strip_left": False, "strip_right": True}, replace("\u2581", Regex=" {2,}")),
        sequence(
            replace('"', String="``"), replace('"', String="''"), {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, charsmap(33),
            replace(" ", Regex=" {2,}"),
        ),
    ):  # fmt: skip
        words = {"a": 0, "\u0120" * 128: 1}
        values = {"normalizer": normalizer, "model": {"vocab": words}, "added_tokens": [{"content": "<s>"}]}
        (tmp_path / "tokenizer.json").write_text(json.dumps(values | template(END, A, END, pair=(A, END, B, END))))
        judge_tokenizer(tmp_path)
    bert = {"type": "BertProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0]}
    for around in (together({"type": "ByteLevel"}, ONE), {"post_processor": bert}, {"post_processor": None}):
        (tmp_path / "tokenizer.json").write_text(json.dumps(around))
        judge_tokenizer(tmp_path)
