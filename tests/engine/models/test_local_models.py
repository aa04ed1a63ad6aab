"""Local models are looked at beside whoever asks: a dead disk holds nobody, and what was found is kept until a file changes."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.base.paths import home
from app.base.trouble import Trouble
from app.engine.models import catalog, local_models, safetensors
from app.ui.state.models_desk import ModelsDesk
from tests.support import tiny_pictures, tiny_voices
from tests.support.waiting import until


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_pictures.save("sd15", tmp_path_factory.mktemp("good") / "sd15")


@pytest.fixture
def model(good: Path, tmp_path: Path) -> Path:
    return shutil.copytree(good, tmp_path / "model")


class DeadDisk:
    """Nothing on it answers until it is connected again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connected, self.asked, self._list = threading.Event(), 0, local_models._list_files
        monkeypatch.setattr(local_models, "_list_files", self.list_files)

    def list_files(self, path: Path) -> Any:
        self.asked += 1
        self.connected.wait()
        return self._list(path)


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadDisk]:
    disk = DeadDisk(monkeypatch)
    yield disk
    disk.connected.set()
    end_looks()


def end_looks() -> None:
    for each in [*local_models._looks.values()]:
        assert each.ended.wait(30)


def test_a_dead_disk_is_waited_for_once_and_asked_once(model: Path, dead: DeadDisk) -> None:
    assert not catalog.look_at_all([str(model)], wait_s=0.05)[str(model)].answers
    begun_s = time.monotonic()
    for _ in range(50):
        with pytest.raises(Trouble, match=r"The disk of .* does not answer"):
            catalog.find(str(model))
    assert time.monotonic() - begun_s < 25 * local_models.WAIT_S, "it was waited for each time"
    until(lambda: dead.asked == 1)
    dead.connected.set()
    end_looks()
    assert catalog.find(str(model)).family == "sd15" and dead.asked == 2


def test_what_was_known_stays_while_the_disk_is_silent(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = catalog.find(str(model))
    disk = DeadDisk(monkeypatch)
    silent = catalog.look_at_all([str(model)], wait_s=0.05)[str(model)]
    assert not silent.answers and silent.model == known and silent.bytes > 0
    desk = ModelsDesk(keeper(tmp_path), {"models": [str(model), str(tmp_path)], "paint": {"model": str(tmp_path)}})  # type: ignore[arg-type]
    catalog.look_at_all([str(tmp_path)], wait_s=0.05)
    assert [id_ for _, id_ in desk.list_choices("picture")][-2:] == [str(model), str(tmp_path)], "a choice is not lost as a disk sleeps"
    assert str(tmp_path) not in [id_ for _, id_ in desk.list_choices("speech")]
    assert known not in desk.list_all()
    disk.connected.set()
    end_looks()
    assert known in desk.list_all()


def keeper(tmp_path: Path) -> Any:
    class Keeper:
        home = home(tmp_path / "home").create()

    return Keeper()


def test_no_more_looks_hang_than_are_allowed(tmp_path: Path, dead: DeadDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_models, "THREADS_MOST", 3)
    paths = [str(tmp_path / f"{index}") for index in range(6)]
    for each in paths:
        Path(each).mkdir()
    assert not any(seen.answers for seen in catalog.look_at_all(paths, wait_s=0.05).values())
    until(lambda: dead.asked == 3)
    assert len(local_models._looks) == 3


def test_a_look_reads_no_file_again_until_one_changes(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    header = safetensors.read_header
    monkeypatch.setattr(safetensors, "read_header", lambda path: read.append(path.parent.name) or header(path))
    first = catalog.find(str(model))
    assert sorted(read) == ["text_encoder", "unet", "vae"]
    assert catalog.find(str(model)) is first and len(read) == 3
    config = json.loads((model / "unet" / "config.json").read_text())
    (model / "unet" / "config.json").write_text(json.dumps(config | {"sample_size": 16}))
    assert catalog.find(str(model)).settings.width == 2 * first.settings.width and len(read) == 6


@pytest.mark.parametrize("fault", [RecursionError, MemoryError, RuntimeError, OverflowError])
def test_whatever_reading_raises_is_one_models_trouble(
    fault: type[Exception], model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: Any) -> None:
        raise fault("of others")

    monkeypatch.setattr(local_models, "detect_model", fail)
    with caplog.at_level(logging.ERROR), pytest.raises(Trouble, match=f"cannot be used: reading it failed \\({fault.__name__}\\)"):
        catalog.find(str(model))
    assert "of others" in caplog.text


@pytest.mark.parametrize("way", ["file", "folder", "weights", "circle"])
def test_a_link_out_of_the_model_is_not_followed(way: str, model: Path, tmp_path: Path) -> None:
    outside = shutil.copytree(model / "vae", tmp_path / "outside")
    place = {"folder": "vae", "file": "vae/config.json", "weights": "vae/diffusion_pytorch_model.safetensors", "circle": "vae/config.json"}[
        way
    ]
    shutil.rmtree(model / place) if way == "folder" else (model / place).unlink()
    (model / place).symlink_to({"folder": outside, "circle": model / place}.get(way, outside / Path(place).name))
    with pytest.raises(Trouble, match=f"its {place} leads out of the model's folder"):
        catalog.find(str(model))


def test_links_inside_and_those_of_the_hubs_cache_are_followed(model: Path, tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "models--cache" / "snapshots" / "abc", tmp_path / "models--cache" / "blobs"
    snapshot.parent.mkdir(parents=True)
    blobs.mkdir()
    shutil.move(model, snapshot)
    for index, file in enumerate(sorted(each for each in snapshot.rglob("*") if each.is_file())):
        file.rename(blobs / str(index))
        file.symlink_to(os.path.relpath(blobs / str(index), file.parent))
    assert catalog.find(str(snapshot)).family == "sd15"
    (snapshot / "unet" / "config.json").rename(snapshot / "unet" / "own.json")
    (snapshot / "unet" / "config.json").symlink_to("own.json")
    assert catalog.find(str(snapshot)).family == "sd15"


@pytest.mark.parametrize("file", ["../vae/x.safetensors", "/tmp/x.safetensors", "pytorch_model.bin"])
def test_an_index_names_weights_beside_it_alone(file: str, model: Path) -> None:
    (model / "text_encoder" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": file}}))
    with pytest.raises(Trouble, match=r"its text_encoder/model\.safetensors\.index\.json says weight_map"):
        catalog.find(str(model))


def test_a_voice_keeps_its_limits_and_reads_no_letters_from_elsewhere(tmp_path: Path) -> None:
    voice = tiny_voices.save_voice(tmp_path / "voice", tiny_voices.STARTER)
    (voice / "starter.json").write_text(json.dumps({"name": "Own", "letters": "letters.bin"}))
    seen = catalog.look(str(voice))
    assert seen.limits is not None and (seen.limits.name, seen.limits.rows_most) == ("Own", 3072)
    (voice / "starter.json").write_text(json.dumps({"name": "Own", "letters": "../letters.bin"}))
    with pytest.raises(Trouble, match=r"its starter\.json says letters \.\./letters\.bin"):
        catalog.find(str(voice))
