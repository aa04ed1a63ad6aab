"""Test the library of LoRAs: thousands of files at once, folders, names, and headers read in the background."""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from collections.abc import Hashable
from pathlib import Path

import pytest

from app.base.paths import Home
from app.engine.models import chosen, other_tools
from app.engine.models.fingerprint import BLOCK_BYTES, WHOLE_BYTES, fingerprint
from app.engine.models.lora_library import LoraFile, LoraNames, LoraReader, list_loras
from tests.support.waiting import until

KOHYA = "lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k.lora_down.weight"


def home_in(folder: Path) -> Home:
    return Home(folder, folder / "models")


def write_lora(path: Path, **words: str) -> Path:
    header = json.dumps({"__metadata__": words, KOHYA: {"dtype": "F16", "shape": [1, 768], "data_offsets": [0, 1536]}}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(1536))
    return path


def test_files_of_all_folders_by_name(tmp_path: Path) -> None:
    home, other = home_in(tmp_path / "home"), tmp_path / "other"
    for path in (
        home.loras / "styles" / "Ink.safetensors",
        home.loras / "b.SAFETENSORS",
        home.loras / ".hidden" / "x.safetensors",
        other / "c.safetensors",
    ):
        write_lora(path)
    (home.loras / "notes.txt").write_text("x")
    (other / "gone.safetensors").symlink_to(tmp_path / "nowhere")
    home.settings.write_text(json.dumps({"loras": [str(other), str(tmp_path / "unplugged"), 5]}))
    files = list_loras(home)
    assert [each.name for each in files] == ["b", "c", "styles/Ink"]
    for name in ("styles/Ink", "styles\\Ink", "Ink", "ink", "INK.safetensors", str(home.loras / "styles" / "Ink.safetensors")):
        found = LoraNames(files).find(name)
        assert found is not None and found.name == "styles/Ink", name
    assert LoraNames(files).find("in") is None and LoraNames(files).find("") is None
    below = LoraNames(files).find("loras/styles/Ink")
    assert below is not None and below.name == "styles/Ink", "where a folder above it was named before"


def test_those_of_other_programs_count_once_they_were_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, web = home_in(tmp_path / "home"), tmp_path / "stable-diffusion-webui"
    monkeypatch.setattr(other_tools, "list_places", lambda *_: other_tools.Places((("AUTOMATIC1111", web),)))
    glow = write_lora(web / "models" / "Lora" / "glow.safetensors")
    write_lora(web / "embeddings" / "neg.safetensors")
    home.settings.parent.mkdir(parents=True, exist_ok=True)
    home.settings.write_text("{}")
    assert list_loras(home) == [], "nobody asked"
    home.settings.write_text(json.dumps({"finds": True, "loras": [str(web / "models" / "Lora")]}))
    assert [each.name for each in list_loras(home)] == ["glow", "neg"]
    found = LoraNames(list_loras(home)).find("glow")
    assert found is not None and found.path == glow


def test_the_exact_name_goes_first(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    for name in ("a/ink", "ink", "z/INK"):
        write_lora(home.loras / f"{name}.safetensors")
    files = list_loras(home)
    assert [found.name for name in ("ink", "a/ink", "INK") if (found := LoraNames(files).find(name))] == ["ink", "a/ink", "z/INK"]


def test_a_name_that_had_its_last_folder_twice_is_found(tmp_path: Path) -> None:
    home, other = home_in(tmp_path / "home"), tmp_path / "other"
    write_lora(home.loras / "styles" / "ink.safetensors")
    home.settings.write_text(json.dumps({"loras": [str(other)]}))
    found = LoraNames(list_loras(home)).find("styles/styles/ink")
    assert found is not None and found.name == "styles/ink", "the other one went"
    second = write_lora(other / "styles" / "ink.safetensors", ss_tag="another")
    found = LoraNames(list_loras(home)).find("styles/styles/ink.safetensors")
    assert found is not None and found.path == second, "the second had this name"
    assert LoraNames(list_loras(home)).find("other/styles/oil") is LoraNames(list_loras(home)).find("oil/styles/ink") is None


def test_a_name_of_many_folders_is_looked_for_twice_at_most(tmp_path: Path) -> None:
    """Each folder that was there twice was taken away and looked for with two calls: a picture from elsewhere could name one for ever."""
    home = home_in(tmp_path)
    write_lora(home.loras / "a" / "ink.safetensors")
    assert LoraNames(list_loras(home)).find("a/" * 1_200 + "ink") is None


@pytest.mark.slow
def test_five_thousand_are_listed_in_a_second_and_read_behind(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    first = write_lora(home.loras / "0.safetensors", **{"modelspec.title": "first"})
    for place in range(1, 5_000):
        (home.loras / f"{place}.safetensors").hardlink_to(first)
    begun_s = time.thread_time()
    files, reader = list_loras(home), LoraReader()
    known = reader.look(files)
    assert len(files) == 5_000 and time.thread_time() - begun_s < 1 and len(known) < 5_000
    until(lambda: len(reader.look(files)) == 5_000)
    known = reader.look(files)
    assert {each.title for each in known.values()} == {"first"} and len(known) == 5_000


def test_only_files_of_the_same_bytes_count_as_the_same(tmp_path: Path) -> None:
    home, reader = home_in(tmp_path), LoraReader()
    size = WHOLE_BYTES + 1
    for name, place, byte in (
        ("a", 0, b"1"),
        ("b", 0, b"1"),
        ("other", 0, b"2"),
        ("other inside", BLOCK_BYTES, b"2"),
        ("longer", size, b"1"),
    ):
        path = home.loras / f"{name}.safetensors"
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.write(b"1")
            file.truncate(size)
            file.seek(place)  # the samples of two differ in nothing
            file.write(byte)
    assert fingerprint(home.loras / "a.safetensors") == fingerprint(home.loras / "other inside.safetensors")

    def group() -> list[list[str]]:
        until(lambda: reader.compare(files)[1] == 0)
        same: dict[Hashable, list[str]] = {}
        for each in files:
            same.setdefault(reader.compare(files)[0][each.path], []).append(each.name)
        return [*same.values()]

    files = list_loras(home)
    assert group() == [["a", "b"], ["longer"], ["other"], ["other inside"]]
    (home.loras / "b.safetensors").unlink()
    files = [*list_loras(home), LoraFile("gone", home.loras / "gone.safetensors", (size, 0))]
    assert group() == [["a"], ["longer"], ["other"], ["other inside"], ["gone"]]


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    home, reader = home_in(tmp_path), LoraReader()
    path = write_lora(home.loras / "a.safetensors", **{"modelspec.title": "one"})
    until(lambda: bool(reader.look(list_loras(home))))
    path.unlink()
    write_lora(path, **{"modelspec.title": "two, longer"})
    until(lambda: bool(reader.look(list_loras(home))))
    assert reader.look(list_loras(home))[path].title == "two, longer"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_linked_folders_are_walked_once_and_equal_names_stay_apart(tmp_path: Path) -> None:
    home, other = home_in(tmp_path / "home"), tmp_path / "other"
    write_lora(home.loras / "ink.safetensors")
    write_lora(other / "ink.safetensors", ss_tag="another")
    write_lora(other / "glow.safetensors")
    write_lora(tmp_path / "third" / "mist.safetensors")
    (home.loras / "third").symlink_to(tmp_path / "third")
    (tmp_path / "third" / "again").symlink_to(tmp_path / "third")
    (home.loras / "mine").symlink_to(other)
    (other / "round").symlink_to(home.loras)
    home.settings.write_text(json.dumps({"loras": [str(other)]}))
    files = list_loras(home)
    assert [each.name for each in files] == ["glow", "ink", "other/ink", "third/mist"]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are Unicode there")
def test_a_link_in_a_circle_and_a_name_in_another_encoding_hide_nothing(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    for name in "abcdefgh":
        write_lora(home.loras / f"{name}.safetensors")
    (home.loras / "circle").symlink_to("circle")
    write_lora(home.loras / os.fsdecode(b"\xe4.safetensors"))
    assert [each.name for each in list_loras(home)] == [*"abcdefgh"]


def test_every_file_is_listed_once_under_a_name_of_its_own(tmp_path: Path) -> None:
    home = home_in(tmp_path / "home")
    folders = [home.loras, tmp_path / "a" / "loras", tmp_path / "b" / "loras", home.loras / "styles"]
    for folder in folders[:3]:  # of one size
        for name in ("ink", "styles/wash"):
            os.utime(write_lora(folder / f"{name}.safetensors"), (1, 1))
    home.settings.write_text(json.dumps({"loras": [str(each) for each in folders[1:]]}))
    listed = {each.name: each.path for each in list_loras(home)}
    assert listed == {
        name: tmp_path / place / "loras" / file
        for names, file in (
            (("ink", "loras/ink", "b/loras/ink"), "ink.safetensors"),
            (("styles/wash", "loras/styles/wash", "b/loras/styles/wash"), "styles/wash.safetensors"),
        )
        for name, place in zip(names, ("home", "a", "b"), strict=True)
    }


def test_what_invokeai_has_in_its_list_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_in(tmp_path / "home")
    inky = write_lora(tmp_path / "invokeai" / "models" / "def" / "l.safetensors")
    tool = other_tools.Tool(
        "InvokeAI", tmp_path / "invokeai", (), (("lora", inky, "Inky"), ("lora", tmp_path / "gone.safetensors", "Gone"))
    )
    monkeypatch.setattr(chosen, "find_tools", lambda: (tool,))
    home.settings.parent.mkdir(parents=True, exist_ok=True)
    home.settings.write_text(json.dumps({"finds": True}))
    assert [(each.name, each.path) for each in list_loras(home)] == [("Inky", inky)]
