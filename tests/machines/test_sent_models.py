"""Models that were sent: used only once they are whole and Hearth's own detection knows them; bounded, and tidied."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save_file

from app.base.paths import assets, home
from app.base.trouble import Trouble
from app.engine.models import catalog
from app.machines import wanted_models
from app.machines.tasks.portable import hash_file
from app.machines.tasks.portable_models import ModelFiles, describe
from app.machines.wanted_models import FREE_BYTES, UNUSED_S, SentModels
from tests.support.other_functions import set_in

PAINTER = assets() / "starter" / "painter"


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SentModels:
    set_in(monkeypatch, wanted_models, "shutil", disk_usage=lambda _: SimpleNamespace(free=1 << 50))
    return SentModels(home(tmp_path / "helper").create())


def arrive(sent: SentModels, folder: Path, title: str = "My painter") -> ModelFiles:
    """Put a model's files where they arrive, as they would from the main machine."""
    found = describe(folder, title, hash_file)
    assert found is not None
    model, paths = found
    assert sent.choose_missing(model) == {sha256: path.stat().st_size for sha256, path in paths.items()}
    for sha256, path in paths.items():
        shutil.copyfile(path, sent.unfinished(model) / sha256)
    assert sent.choose_missing(model) == {} and sent.find(model.key) is None, "it is not here before it is checked"
    return model


def test_a_folder_is_laid_together_and_found_by_its_hash(sent: SentModels) -> None:
    model = arrive(sent, PAINTER)
    path = sent.keep(model)
    assert path.name == "My painter" and sent.list_keys() == [model.key] and sent.find(model.key) == path
    assert {str(each.relative_to(path)) for each in path.rglob("*") if each.is_file()} == {str(Path(name)) for name in model.files}
    assert catalog.find(str(path)).title == "My painter" and not sent.unfinished(model).exists()


def test_a_single_file_keeps_its_title(sent: SentModels, tmp_path: Path) -> None:
    file = tmp_path / "nice one.safetensors"
    weights = {
        "model.diffusion_model.input_blocks.0.0.weight": np.zeros((1, 4, 1, 1), np.float16),
        "model.diffusion_model.input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight": np.zeros((1, 768), np.float16),
    }
    save_file(weights, file)
    model = arrive(sent, file, "nice one")
    assert sent.keep(model).name == "nice one.safetensors"
    assert sent.list_keys() == [], "the settings that it takes from a repository are not here"


@pytest.mark.parametrize("fault", ["pickle", "pickle aside", "code", "cut", "unknown"])
def test_what_is_no_model_of_hearths_is_deleted(fault: str, sent: SentModels, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    shutil.copytree(PAINTER, bad)
    weights = next(bad.glob("unet/*.safetensors"))
    if fault == "pickle":
        weights.write_bytes(b"\x80\x02" + b"x" * 100)
    elif fault == "pickle aside":
        (bad / "more").mkdir()  # in no part that detection reads
        (bad / "more" / "weights.safetensors").write_bytes(b"\x80\x02" + b"x" * 100)
    elif fault == "cut":
        weights.write_bytes(weights.read_bytes()[:-1])
    else:
        index = json.loads((bad / "model_index.json").read_text())
        index |= {"unet": ["my_code", "Net"]} if fault == "code" else {"_class_name": "MyPipeline"}
        (bad / "model_index.json").write_text(json.dumps(index))
    model = arrive(sent, bad)
    with pytest.raises(Trouble):
        sent.keep(model)
    assert sent.list_keys() == [] and not sent.unfinished(model).exists()


def test_room_is_made_for_a_model_by_those_unused_for_longest(sent: SentModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = []
    for place in range(3):
        folder = tmp_path / str(place)
        shutil.copytree(PAINTER, folder)
        (folder / "note.txt").write_text(str(place))
        models.append(arrive(sent, folder))
        sent.keep(models[-1])
        os.utime(tmp_path / "helper" / "scratch" / "machines" / "models" / models[-1].key.removeprefix("files:"), (place + 1e9,) * 2)
    used = sent.find(models[0].key, used=True)
    assert used is not None
    size = models[0].bytes
    monkeypatch.setattr(wanted_models, "MOST_BYTES", 3 * size + 10)
    new = ModelFiles("new", {"a.safetensors": ("2" * 64, size)})
    sent.choose_missing(new)
    assert {*sent.list_keys()} == {models[0].key, models[2].key}
    set_in(monkeypatch, wanted_models, "shutil", disk_usage=lambda _: SimpleNamespace(free=FREE_BYTES + size - 1))
    with pytest.raises(Trouble, match="10240 MB stay free"):
        sent.choose_missing(new, spare=[used])
    assert sent.list_keys() == [models[0].key], "what the engine uses stays"
    with pytest.raises(Trouble):
        sent.choose_missing(ModelFiles("huge", {"a.safetensors": ("3" * 64, 4 * size)}))


def test_what_no_task_needed_for_two_weeks_goes(sent: SentModels, tmp_path: Path) -> None:
    path = sent.keep(arrive(sent, PAINTER))
    sent.tidy()
    assert path.exists()
    os.utime(path.parent, (time.time() - UNUSED_S - 60,) * 2)
    sent.tidy()
    assert not path.exists()
