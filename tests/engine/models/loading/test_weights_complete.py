"""Test that voices, folders, single files and GGUF that lack a weight are refused, and that unused ones are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from app.base.paths import home
from app.base.trouble import Trouble
from app.compat.machine.hardware import probe
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, ModelPart, Need
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, Note
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.pictures.run import painter
from app.engine.session.session import Session
from app.engine.speech.run import loader
from tests.support import tiny_pictures as tiny
from tests.support import tiny_single_files as single
from tests.support.combinations import combine
from tests.support.picture_fixtures import SMALL, make_gguf, write_gguf
from tests.support.tiny_voices import save_voice

pytest_plugins = ["tests.support.picture_fixtures"]
VOICE = (ModelPart("model", "speech", 10_000), ModelPart("codec", "codec", 10_000))


def dropped(folder: Path, part: str, take: bool, put: dict[str, torch.Tensor] | None = None, place: int = 0) -> str:
    file = next((folder / part).glob("*.safetensors"))
    weights = load_file(file)
    gone = sorted(weights)[place] if take else ""
    save_file({name: value for name, value in weights.items() if name != gone} | (put or {}), file, {"format": "pt"})
    return gone


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("place", "part"), combine((0, -1), ("", "codec")))
def test_a_voice_that_lacks_a_weight_is_refused(part: str, place: int, tmp_path: Path) -> None:
    folder = save_voice(tmp_path / "voice")
    plan = decide(probe(), Need(kind="speech", parts=VOICE), Choice(dtype="float32"), {})
    loader.load(folder, plan).close()
    gone = dropped(folder, part, take=True, place=place)
    with pytest.raises(Trouble) as told:
        loader.load(folder, plan)
    assert told.value.sentence.key == "weights.missing" and gone in str(told.value) and str(folder / part) in str(told.value)


@pytest.mark.parametrize("part", ["unet", pytest.param("vae", marks=pytest.mark.slow), "text_encoder"])
def test_a_folder_that_lacks_a_weight_is_refused(part: str, tmp_path: Path) -> None:
    folder = tiny.save("sd15", tmp_path / "model")
    gone = dropped(folder, part, take=True)
    row = catalog.find(str(folder))
    with pytest.raises(Trouble) as told:
        painter.load(folder, row, tiny.make_plan(row), {})
    assert told.value.sentence.key == "weights.missing" and gone in str(told.value)


@pytest.mark.parametrize("part", ["unet", pytest.param("vae", marks=pytest.mark.slow), "text_encoder"])
def test_a_weight_of_another_shape_is_refused(part: str, tmp_path: Path) -> None:
    folder = tiny.save("sd15", tmp_path / "model")
    file = next((folder / part).glob("*.safetensors"))
    weights = load_file(file)
    name = sorted(weights)[0]
    save_file(weights | {name: torch.zeros(3, 5)}, file, {"format": "pt"})
    row = catalog.find(str(folder))
    with pytest.raises(Trouble) as told:
        painter.load(folder, row, tiny.make_plan(row), {})
    assert told.value.sentence.key in ("weights.missing", "load.broken") and str(folder) in str(told.value)


def test_weights_that_nothing_uses_are_told(tmp_path: Path) -> None:
    folder = tiny.save("sd15", tmp_path / "model")
    dropped(folder, "unet", take=False, put={"stranger.weight": torch.zeros(2)})
    session = Session(home(tmp_path / "home").create())
    request = PictureRequest("a", model=str(folder), **{**SMALL, "steps": 1})
    events = list(session.run(request, Choice(), Control(), tmp_path / "job", lambda *_: None))
    session.free()
    assert isinstance(events[-1], Finished)
    assert any("stranger.weight" in str(event.sentence) for event in events if isinstance(event, Note))


@pytest.mark.parametrize(
    "mark",
    [
        "model.diffusion_model.out.2",
        pytest.param("first_stage_model.decoder.conv_out", marks=pytest.mark.slow),
        pytest.param("cond_stage_model.transformer.text_model.final", marks=pytest.mark.slow),
    ],
)
def test_a_single_file_that_lacks_a_weight_is_refused(mark: str, tmp_path: Path) -> None:
    folder, file = single.save("sd15", tmp_path)
    configs = {"configs": single.copy_configs(folder, tmp_path / "configs")}
    weights = load_file(file)
    gone = next(name for name in sorted(weights) if name.startswith(mark))
    save_file({name: value for name, value in weights.items() if name != gone}, file)
    row = catalog.find(str(file))
    with pytest.raises(Trouble) as told:
        painter.load(file, row, tiny.make_plan(row), configs)
    assert told.value.sentence.key.startswith("weights.missing"), told.value


def test_a_single_file_tells_what_it_has_beside(tmp_path: Path) -> None:
    folder, file = single.save("sd15", tmp_path)
    save_file(load_file(file) | {"model_ema.decay": torch.zeros(1), "stranger.weight": torch.zeros(1)}, file)
    row = catalog.find(str(file))
    paints = painter.load(file, row, tiny.make_plan(row), {"configs": single.copy_configs(folder, tmp_path / "configs")})
    (note,) = paints.notes
    assert "stranger.weight" in str(note) and "model_ema" not in str(note)


@pytest.mark.parametrize(
    ("mark", "named"),
    combine(
        ("all_final_layer.2-1.linear.bias", "layers.0.attention.to_", "layers.0.attention_norm1"),
        ("as the hub has it", "as diffusers has it"),
    ),
)
def test_a_gguf_that_lacks_a_weight_is_refused(mark: str, named: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder, original = folders["z-image"], named == "as the hub has it"
    row = catalog.find(str(folder))
    plan = tiny.make_plan(row, quantised="gguf")
    painter.load(folder, row, plan, {"gguf": make_gguf(folder, tmp_path / "whole.gguf", original=original)}).close()
    with pytest.raises(Trouble) as told:
        painter.load(folder, row, plan, {"gguf": make_gguf(folder, tmp_path / "less.gguf", mark, original)})
    assert told.value.sentence.key.startswith("weights.missing") and "less.gguf" in str(told.value), told.value


def test_a_gguf_of_another_model_or_cut_off_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    row, whole = catalog.find(str(folders["flux"])), make_gguf(folders["flux"], tmp_path / "whole.gguf")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole.read_bytes()[:-5000])
    (tmp_path / "text.gguf").write_text("no weights at all")
    lying = tmp_path / "lying.gguf"
    lying.write_bytes(whole.read_bytes()[:8] + (1 << 60).to_bytes(8, "little") + whole.read_bytes()[16:])
    for file in (make_gguf(folders["z-image"], tmp_path / "other.gguf"), cut, tmp_path / "text.gguf", lying):
        with pytest.raises(Trouble) as told:
            painter.load(folders["flux"], row, tiny.make_plan(row, quantised="gguf"), {"gguf": file})
        assert told.value.cure == "models", file
    assert f"number of tensors {1 << 60}" in str(told.value)


def test_a_gguf_that_lacks_what_is_looked_up_first_is_told_by_its_name(folders: dict[str, Path], tmp_path: Path) -> None:
    row, file = catalog.find(str(folders["flux"])), tmp_path / "less.gguf"
    write_gguf({f"{kind}_blocks.0.norm.scale": torch.ones(4) for kind in ("double", "single")}, file)
    with pytest.raises(Trouble) as told:
        painter.load(folders["flux"], row, tiny.make_plan(row, quantised="gguf"), {"gguf": file})
    assert told.value.sentence.key == "weights.missing" and "time_in.in_layer.weight" in str(told.value)
