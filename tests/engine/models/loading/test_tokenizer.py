"""Which of a tokenizer's files is read: one of its own that its config names for this version of transformers, judged like the usual one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from app.base.trouble import Trouble
from app.engine.models.loading.tokenizer import choose_file, load_tokenizer


def write(path: Path, *words: str) -> None:
    tokenizer = Tokenizer(WordLevel({"<unk>": 0, **{word: 1 + place for place, word in enumerate(words)}}, "<unk>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(path))


def name_files(folder: Path, *names: object) -> None:
    values = {"tokenizer_class": "TokenizersBackend", "fast_tokenizer_files": names, "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(values), "utf-8")


@pytest.mark.parametrize(
    ("named", "version", "right"),
    [
        (["tokenizer.5.0.0.json"], "5.23.0", "tokenizer.5.0.0.json"),
        (["tokenizer.5.9.0.json", "tokenizer.5.10.0.json", "tokenizer.5.24.0.json"], "5.23.0.dev1", "tokenizer.5.10.0.json"),
        (["tokenizer.6.0.0.json"], "5.23.0", "tokenizer.json"),
        (["../tokenizer.5.0.0.json", "tokenizer.5.0.0.json/../x", "vocab.json", 5, None], "5.23.0", "tokenizer.json"),
        ("tokenizer.5.0.0.json", "5.23.0", "tokenizer.json"),
    ],
)
def test_the_newest_that_is_not_for_a_later_version_is_chosen(named: object, version: str, right: str) -> None:
    assert choose_file({"fast_tokenizer_files": named}, version) == right


def test_it_is_read_in_place_of_the_usual_one(tmp_path: Path) -> None:
    write(tmp_path / "tokenizer.json", "two", "one")
    write(tmp_path / "tokenizer.5.0.0.json", "one", "two")
    name_files(tmp_path, "tokenizer.5.0.0.json")
    assert load_tokenizer(PreTrainedTokenizerFast, tmp_path).encode("one two") == [1, 2]
    name_files(tmp_path)
    assert load_tokenizer(PreTrainedTokenizerFast, tmp_path).encode("one two") == [2, 1]


def test_it_is_judged_like_the_usual_one(tmp_path: Path) -> None:
    write(tmp_path / "tokenizer.json", "one")
    write(tmp_path / "tokenizer.5.0.0.json", "x" * 5000)
    name_files(tmp_path, "tokenizer.5.0.0.json")
    with pytest.raises(Trouble, match=r"tokenizer\.5\.0\.0\.json says letters of a word 5000"):
        load_tokenizer(PreTrainedTokenizerFast, tmp_path)
