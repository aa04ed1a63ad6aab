"""Which files belong to a model's folder, wherever their names, links and indexes lead."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.engine.models import model_folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    part = tmp_path / "model" / "text_encoder"
    part.mkdir(parents=True)
    (part / "config.json").write_text("{}")
    (part / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "private.safetensors").write_bytes(b"of somebody else")
    return tmp_path / "model"


def refused(part: Path, model: Path) -> str:
    with pytest.raises(Trouble) as told:
        model_folder.check_part(part, model)
    return told.value.sentence.key


def test_a_plain_folder_passes(model: Path) -> None:
    model_folder.check_part(model / "text_encoder", model)
    assert model_folder.choose_weights(model / "text_encoder") == [model / "text_encoder" / "model.safetensors"]


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "merges.txt", "spiece.model", "chat_template.jinja", "more/one.jinja"]
)
@pytest.mark.parametrize("target", ["../../private.safetensors", "nowhere", "circle"])
def test_a_link_out_of_the_folder_is_refused(model: Path, name: str, target: str) -> None:
    file = model / "text_encoder" / name
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    file.symlink_to(file if target == "circle" else model / "text_encoder" / target)
    assert refused(model / "text_encoder", model) == "model.outside"


def test_a_folder_that_is_a_link_out_is_refused(model: Path) -> None:
    (model / "text_encoder").rename(model.parent / "other")
    (model / "text_encoder").symlink_to(model.parent / "other")
    assert refused(model / "text_encoder", model) == "model.outside"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_what_is_no_regular_file_is_refused_unopened(model: Path) -> None:
    (model / "text_encoder" / "config.json").unlink()
    os.mkfifo(model / "text_encoder" / "config.json")
    assert refused(model / "text_encoder", model) == "model.outside"


@pytest.mark.parametrize(
    "named", ["x.bin", "../../private.safetensors", "/private.safetensors", "..\\x.safetensors", "C:x.safetensors", 7, None]
)
@pytest.mark.parametrize(
    "index", ["model.safetensors.index.json", "model.safetensors.index.fp16.json", "diffusion_pytorch_model.safetensors.index.json"]
)
def test_an_index_names_weights_beside_it_only(model: Path, named: object, index: str) -> None:
    (model / "text_encoder" / "x.bin").write_bytes(b"pickle")
    (model / "text_encoder" / index).write_text(json.dumps({"weight_map": {"a": named}}))
    assert refused(model / "text_encoder", model) == "model.index"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": 3}', '{"weight_map": ["a"]}', "[" * 99])
def test_a_damaged_index_is_told(model: Path, text: str) -> None:
    (model / "text_encoder" / "model.safetensors.index.json").write_text(text)
    assert refused(model / "text_encoder", model) == "model.unread"


def test_an_index_that_names_a_link_out_or_nothing_is_refused(model: Path) -> None:
    part = model / "text_encoder"
    (part / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "one.safetensors"}}))
    assert refused(part, model) == "model.outside"
    (part / "one.safetensors").symlink_to(model.parent / "private.safetensors")
    assert refused(part, model) == "model.outside"


def test_the_index_of_a_pickle_that_nobody_reads_is_left_alone(model: Path) -> None:
    (model / "text_encoder" / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"a": "pytorch_model-1.bin"}}))
    model_folder.check_part(model / "text_encoder", model)


def test_links_within_the_hubs_cache_are_its_own(tmp_path: Path) -> None:
    repository = tmp_path / "models--maker--one"
    snapshot, stranger = repository / "snapshots" / "abc", tmp_path / "models--maker--two" / "blobs"
    for folder in (snapshot / "vae", repository / "blobs", tmp_path / "blobs" / "ab", stranger):
        folder.mkdir(parents=True)
        (folder / "blob").write_bytes(b"weights")
    file = snapshot / "vae" / "model.safetensors"
    for target in (repository / "blobs" / "blob", tmp_path / "blobs" / "ab" / "blob"):
        file.unlink(missing_ok=True)
        file.symlink_to(os.path.relpath(target, file.parent))
        model_folder.check_part(file.parent, snapshot)
    file.unlink()
    file.symlink_to(stranger / "blob")
    assert refused(file.parent, snapshot) == "model.outside"


def test_shards_and_halves_are_found_as_the_libraries_find_them(model: Path) -> None:
    part = model / "text_encoder"
    (part / "model.fp16.safetensors").write_bytes(b"half")
    assert model_folder.choose_weights(part) == [part / "model.safetensors"]
    (part / "model.safetensors").unlink()
    assert model_folder.choose_weights(part) == [part / "model.fp16.safetensors"]
    (part / "model.fp16.safetensors").unlink()
    for half in ("", ".fp16"):
        shards = [f"model{half}-0000{each}-of-00002.safetensors" for each in (1, 2)]
        for name in shards:
            (part / name).write_bytes(b"shard")
        (part / f"model.safetensors.index{half}.json").write_text(json.dumps({"weight_map": dict(zip("ab", shards, strict=True))}))
    assert [each.name for each in model_folder.choose_weights(part)] == [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ]
    for file in (*part.glob("model-*"), part / "model.safetensors.index.json"):
        file.unlink()
    assert all(".fp16-" in each.name for each in model_folder.choose_weights(part))
