"""Test the sentences for what cannot be painted: broken weights, bad pictures, wrong LoRAs, unknown captions."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from app.base.sentence import Sentence
from app.base.trouble import Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, Note, PartDone
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.foreign_settings import read_a1111
from app.engine.pictures.prompts import starter_words
from app.engine.pictures.run import batch, prompt_embeddings
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run.final_settings import resolve_settings
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, load_painter
from training.pictures.captions import grammar

pytest_plugins = ["tests.support.picture_fixtures"]


def test_the_starter_names_what_it_paints_instead(folders: dict[str, Path], tmp_path: Path) -> None:
    """Its only size is used, and what it cannot paint left out, and both are told; what it can is painted without a note."""
    folder, row = tmp_path / "starter", catalog.find("starter-painter")
    shutil.copytree(folders["sd15"], folder)
    shutil.copy(Path(row.path) / "starter.json", folder)
    settings = replace(row.settings, width=64, height=64, least=64, most=64)
    model = replace(row, path=str(folder), settings=settings)
    paints = picture_painter.load(folder, model, tiny.make_plan(model), {})

    def run(prompt: str, **more: Any) -> tuple[list[Sentence], PictureRequest]:
        request = PictureRequest(prompt, steps=1, preview_every=0, **more)
        events = list(paints.run(request, Control(), None, tmp_path / str(hash((prompt, *more)))))
        assert isinstance(events[-1], Finished)
        written = picture_settings.read(Path(events[-1].files[0])).request
        return [event.sentence for event in events if isinstance(event, Note)], written

    learned = "a big red circle on a white background"
    said, written = run(learned)
    assert not said and written.prompt == learned
    said, written = run("A red circle & a dragon on (Mars:1.2)", width=128)
    assert [each.key for each in said] == ["starter.nearest", "prompt.no-weights", "paint.one-size"]
    assert dict(said[0].values)["words"] == ("dragon", "mars")
    assert written.prompt == "A red circle & a dragon on (Mars:1.2)"
    assert dict(said[0].values)["caption"] == "a red circle"
    assert (written.width, written.height) == (64, 64)


def test_a_starter_that_reads_scenes_paints_what_was_read_and_keeps_what_was_typed(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text encoder gets the plain caption and no negative prompt; the file has the typed words, and what they were read as beside them."""
    folder, row = tmp_path / "starter", catalog.find("starter-painter")
    shutil.copytree(folders["sd15"], folder)
    card = folder / "starter.json"
    card.write_text(json.dumps({"grammar": grammar(), "examples": ["a cat"]}), "utf-8")
    model = replace(row, path=str(folder), settings=replace(row.settings, width=64, height=64, least=64, most=64))
    paints = picture_painter.load(folder, model, tiny.make_plan(model), {})
    encoded: list[tuple[str, str]] = []
    embed = prompt_embeddings.embed_prompts

    def record(pipe: Any, prompt: str, negative: str, kept: Any) -> Any:
        encoded.append((prompt, negative))
        return embed(pipe, prompt, negative, kept)

    monkeypatch.setattr(prompt_embeddings, "embed_prompts", record)
    job = tmp_path / "job"
    asked = PictureRequest("A puppy, a kitten & a dragon", negative="cats, blurry", steps=1, seed=3, preview_every=0)
    events = list(paints.run(asked, Control(), None, job))
    assert isinstance(events[-1], Finished)
    (read_as, negative), *others = encoded
    assert read_as == starter_words.choose_caption(folder, asked.prompt, asked.negative, 3) and "dog" in read_as and "cat" not in read_as
    assert not negative and not others
    assert [event.sentence.key for event in events if isinstance(event, Note)] == ["starter.nearest"]
    assert [event.text for event in events if isinstance(event, PartDone)] == [asked.prompt]
    file = Path(events[-1].files[0])
    written = picture_settings.read(file).request
    assert (written.prompt, written.negative) == (asked.prompt, asked.negative)
    with Image.open(file) as picture:
        ours, lines = json.loads(picture.info["hearth"]), picture.info["parameters"]
    assert ours["read_as"] == read_as and f'Read as: "{read_as}"' in lines
    assert read_a1111(lines).request.prompt == asked.prompt
    before = batch.list_pictures(resolve_settings(asked, model, job), model, job)[0].fingerprint
    card.write_text(json.dumps({"grammar": {**grammar(), "also": {"puppy": "small dog"}}, "examples": ["a cat"]}), "utf-8")
    after = batch.list_pictures(resolve_settings(asked, model, job), model, job)[0].fingerprint
    assert before != after, "a checkpoint of another caption is not resumed"


def test_what_a_starters_prompt_leaves_open_differs_in_a_batch_and_not_where_a_picture_shows_it(
    folders: dict[str, Path], tmp_path: Path, gradient: Path
) -> None:
    """Each picture of a batch is what its seed paints alone, as its file says; a picture to start from leaves nothing open."""
    folder, row = tmp_path / "starter", catalog.find("starter-painter")
    shutil.copytree(folders["sd15"], folder)
    (folder / "starter.json").write_text(json.dumps({"grammar": grammar(), "examples": ["a cat"]}), "utf-8")
    model = replace(row, path=str(folder), settings=replace(row.settings, width=64, height=64, least=64, most=64))
    paints = picture_painter.load(folder, model, tiny.make_plan(model), {})

    def run(name: str, **more: Any) -> list[tuple[str, bytes]]:
        events = list(paints.run(PictureRequest("a cat", steps=2, preview_every=0, **more), Control(), None, tmp_path / name))
        assert isinstance(events[-1], Finished)
        found = []
        for file in events[-1].files:
            with Image.open(file) as picture:
                found.append((json.loads(picture.info["hearth"]).get("read_as", "a cat"), picture.tobytes()))
        return found

    together = run("together", seed=5, batch=4)
    assert len({caption for caption, _ in together}) > 2
    alone = [run(str(seed), seed=seed)[0] for seed in range(5, 9)]
    assert [caption for caption, _ in together] == [caption for caption, _ in alone]
    for (_, one), (_, other) in zip(together, alone, strict=True):
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 1
    assert {caption for caption, _ in run("begun", seed=5, batch=4, image=str(gradient), strength=0.5)} == {"a cat"}


def test_guidance_that_would_wash_colours_out_is_rescaled_and_from_a_picture_held_and_told(tmp_path: Path, gradient: Path) -> None:
    row = catalog.find("starter-painter")
    asked = PictureRequest("a big red circle on a white background", guidance=6.0)
    strong = resolve_settings(asked, row, tmp_path)
    assert strong.request.guidance == 6.0 and 0.7 < strong.guidance_rescale < 1 and not strong.notes
    onwards = resolve_settings(replace(asked, image=str(gradient)), row, tmp_path)
    assert onwards.request.guidance == row.settings.most_guidance and onwards.guidance_rescale == 0
    assert "paint.most-guidance" in [each.key for each in onwards.notes]
    weak = resolve_settings(replace(asked, guidance=1.2), row, tmp_path)
    assert weak.request.guidance == 1.2 and weak.guidance_rescale == 0 and not weak.notes
    other = resolve_settings(PictureRequest("a cat", guidance=12.0), catalog.find("sd15"), tmp_path)
    assert other.request.guidance == 12.0 and other.guidance_rescale == 0


def broken(path: Path, how: str) -> None:
    ways: dict[str, Callable[[], object]] = {
        "cut off": lambda: path.write_bytes(path.read_bytes()[:-100]),
        "cut off in its header": lambda: path.write_bytes(path.read_bytes()[:200]),
        "empty": lambda: path.write_bytes(b""),
        "a text": lambda: path.write_text("hello"),
        "a pickle": lambda: path.write_bytes(pickle.dumps({"a": 1})),
        "gone": path.unlink,
        "a pickle by name": lambda: path.rename(path.with_suffix(".bin")),
    }
    ways[how]()


@pytest.mark.parametrize("how", ["cut off", "cut off in its header", "empty", "a text", "a pickle", "gone", "a pickle by name"])
def test_broken_weights_are_told(how: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["sd15"], folder)
    model = catalog.find(str(folder))
    broken(folder / "unet" / "diffusion_pytorch_model.safetensors", how)
    with pytest.raises(Trouble) as told:
        picture_painter.load(folder, model, tiny.make_plan(model), {})
    assert str(folder / "unet") in str(told.value)


@pytest.mark.parametrize("part", ["unet/config.json", "tokenizer/vocab.json", "tokenizer/tokenizer.json", "model_index.json"])
def test_broken_configs_are_told(part: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["sd15"], folder)
    model = catalog.find(str(folder))
    for path in folder.glob(part):
        path.write_text("{")
        with pytest.raises(Trouble):
            picture_painter.load(folder, model, tiny.make_plan(model), {})


def png(path: Path, size: tuple[int, int]) -> Path:
    Image.new("RGB", size, "red").save(path)
    return path


BAD_PICTURES: dict[str, Callable[[Path], Any]] = {
    "image.missing": lambda path: None,
    "image.not-a-picture": lambda path: path.write_text("a text file"),
    "image.too-small": lambda path: png(path, (1, 1)),
    "image.too-large": lambda path: path.write_bytes(huge()),
}


def huge() -> bytes:
    """Write a PNG whose header says 20,000 x 20,000 pixels: 1.2 GB when opened."""
    head = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    data = b"IDAT" + zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each)) for each in (chunk, data, b"IEND")
    )


@pytest.mark.parametrize("key", BAD_PICTURES)
def test_a_bad_picture_to_start_from_is_told(key: str, folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    path = tmp_path / "start.png"
    BAD_PICTURES[key](path)
    with pytest.raises(Trouble) as told:
        list(paints.run(PictureRequest("a", image=str(path), **SMALL), Control(), None, tmp_path / "job"))
    assert told.value.sentence.key == key
    assert (str(path) in str(told.value)) == (key == "image.missing"), "the path of a command's copy says nothing"


def test_a_cut_off_picture_is_told(folders: dict[str, Path], tmp_path: Path, gradient: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    path = tmp_path / "start.png"
    path.write_bytes(gradient.read_bytes()[:-300])
    with pytest.raises(Trouble):
        list(paints.run(PictureRequest("a", image=str(path), **SMALL), Control(), None, tmp_path / "job"))


@pytest.mark.parametrize(
    ("key", "family", "more"),
    [
        ("image.multiple", "flux", {"width": 72}),
        ("scheduler.unknown", "sd15", {"scheduler": "Magic"}),
        ("paint.no-image", "pixart-sigma", {"image": "GRADIENT"}),
        ("paint.no-image", "pixart-sigma", {"image": "GRADIENT", "mask": "GRADIENT"}),
        ("lora.missing", "sd15", {"loras": (Lora("nowhere.safetensors"),)}),
        ("detect.pickle", "sd15", {"loras": (Lora("PICKLE"),)}),
        ("lora.misfit", "sd15", {"loras": (Lora("MISFIT"),)}),
        ("lora.none", "pixart-sigma", {"loras": (Lora("MISFIT"),)}),
    ],
)
def test_what_cannot_be_painted_is_told(
    key: str, family: str, more: dict[str, Any], folders: dict[str, Path], tmp_path: Path, gradient: Path
) -> None:
    (tmp_path / "evil.ckpt").write_bytes(pickle.dumps({"a": 1}))
    save_file({"some.layer.weight": torch.zeros(2, 2)}, tmp_path / "misfit.safetensors")
    names = {"GRADIENT": str(gradient), "PICKLE": str(tmp_path / "evil.ckpt"), "MISFIT": str(tmp_path / "misfit.safetensors")}
    more = {name: names.get(value, value) if isinstance(value, str) else value for name, value in more.items()}
    if "loras" in more:
        more["loras"] = tuple(replace(each, path=names.get(each.path, each.path)) for each in more["loras"])
    paints, _ = load_painter(folders[family])
    with pytest.raises(Trouble) as told:
        list(paints.run(PictureRequest("a", **{**SMALL, **more}), Control(), None, tmp_path / "job"))
    assert told.value.sentence.key == key
