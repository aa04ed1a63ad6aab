"""Which files of a local model travel, and which lists of them are refused: names that lead elsewhere, code, odd sizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.machines.tasks.portable import hash_file
from app.machines.tasks.portable_models import SINGLE, ModelFiles, describe, from_json, is_key, is_name, list_files, to_json

HASH = "1" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "model_index.json", "unet/config.json", "unet/weights.safetensors", "tokenizer/merges.txt", "README.md", "unet/run.py", "old.bin",
        "a/b/deep.json", ".hidden.json", "unet/con.json",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def test_only_weights_settings_and_words_travel(folder: Path) -> None:
    assert [*list_files(folder)] == ["model_index.json", "tokenizer/merges.txt", "unet/config.json", "unet/weights.safetensors"]
    assert list_files(folder / "unet" / "weights.safetensors") == {SINGLE: folder / "unet" / "weights.safetensors"}
    assert list_files(folder / "old.bin") == list_files(folder / "gone") == list_files(folder / "tokenizer") == {}


def test_a_model_that_would_lack_its_tokenizer_there_stays(folder: Path) -> None:
    known = [*list_files(folder)]
    (folder / "tokenizer" / "spiece.model").touch()
    assert list_files(folder) == {} and describe(folder, "My model", hash_file) is None
    (folder / "tokenizer" / "tokenizer.json").touch()
    assert [*list_files(folder)] == sorted([*known, "tokenizer/tokenizer.json"]), "it has the same as JSON"


def test_what_a_link_leads_to_elsewhere_stays(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A model can come with links, as git makes them; a helper would get what they lead to."""
    known, home = list_files(folder), tmp_path_factory.mktemp("private")
    (home / "id.txt").write_text("secret")
    (home / "x.safetensors").write_text("weights")
    (folder / "LICENSE.txt").symlink_to(home / "id.txt")
    (folder / "docs").symlink_to(home)
    (folder / "unet" / "x.safetensors").symlink_to(home / "x.safetensors")
    (folder / "same.json").symlink_to(folder / "model_index.json")
    assert list_files(folder).keys() == known.keys() | {"same.json"}


def test_a_model_is_known_by_its_files_and_not_by_its_name(folder: Path) -> None:
    found = describe(folder, "My model", hash_file)
    assert found is not None
    model, paths = found
    assert model.title == "My model" and is_key(model.key) and {hash_file(path) for path in paths.values()} == paths.keys()
    assert from_json(json.loads(json.dumps(to_json(model)))) == model
    assert str(folder) not in json.dumps(to_json(model))
    other = describe(folder, "../x", hash_file)
    assert other is not None and other[0].title == "model" and other[0].key == model.key
    (folder / "unet" / "weights.safetensors").write_bytes(b"else")
    changed = describe(folder, "My model", hash_file)
    assert changed is not None and changed[0].key != model.key
    assert describe(folder / "tokenizer", "x", hash_file) is None


@pytest.mark.parametrize(
    "name",
    ["../a.json", "/a.json", "a/../b.json", "a//b.json", "a/b/c.json", "C:\\a.json", "a\\b.json", "a.py", "a.bin", "a.pkl", "a.ckpt", "a", "",
     ".json", ".a.json", "unet/.a.json", "con.json", "unet/COM1.json", "nul.x.json", "a\x00.json", "a\n.json", "a:b.json", "x" * 200 + ".json",
     "a.json/", "a.json ", "a.safetensors.py", 3, None],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_or_is_of_another_kind_is_refused(name: object) -> None:
    assert not is_name(name)
    with pytest.raises(Trouble, match="did not arrive as it says"):
        from_json({"title": "x", "files": {"model_index.json": [HASH, 1], name: [HASH, 1]}})


@pytest.mark.parametrize("given", [
    None, [], {}, {"title": "x"}, {"title": "x", "files": {}}, {"title": "x", "files": [["a.json", HASH, 1]]}, {"files": {"a.json": [HASH, 1]}},
    {"title": "../x", "files": {"a.json": [HASH, 1]}}, {"title": "con", "files": {"a.json": [HASH, 1]}}, {"title": "x.", "files": {"a.json": [HASH, 1]}},
    {"title": "x", "files": {"a.json": [HASH, -1]}}, {"title": "x", "files": {"a.json": [HASH, True]}}, {"title": "x", "files": {"a.json": [HASH, 1.0]}},
    {"title": "x", "files": {"a.json": ["../" + HASH, 1]}}, {"title": "x", "files": {"a.json": [HASH]}}, {"title": "x", "files": {"a.json": HASH}},
    {"title": "x", "files": {"a.json": [HASH, 1], "A.json": [HASH, 1]}}, {"title": "x", "files": {f"{n}.json": [HASH, 1] for n in range(257)}},
], ids=str)  # fmt: skip
def test_an_odd_list_is_refused(given: object) -> None:
    with pytest.raises(Trouble, match="did not arrive as it says"):
        from_json(given)


def test_a_single_file_has_one_name_on_its_way() -> None:
    assert ModelFiles("x", {SINGLE: (HASH, 1)}).single and not ModelFiles("x", {"other.safetensors": (HASH, 1)}).single
