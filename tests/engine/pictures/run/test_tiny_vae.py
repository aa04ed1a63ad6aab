"""A tiny VAE beside a model decodes when Quicker is "much", and only then; one that does not fit is told."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import diffusers
import pytest
import torch

from app.base.trouble import Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run import tiny_vae
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL

pytest_plugins = ["tests.support.picture_fixtures"]


def make_tiny(folder: Path, **config: Any) -> Any:
    """Save one of the published shape, with random weights."""
    torch.manual_seed(0)
    kind: Any = diffusers.AutoencoderTiny
    vae = kind(**config).eval()
    vae.save_pretrained(folder)
    return vae


def load(folder: Path) -> picture_painter.Painter:
    model = catalog.find(str(folder))
    return picture_painter.load(folder, model, tiny.make_plan(model), {})


def paint(paints: picture_painter.Painter, job: Path, quicker: str) -> list[Event]:
    return list(paints.run(PictureRequest("a red ball", **SMALL, quicker=quicker), Control(), None, job))  # type: ignore[arg-type]


def test_one_that_came_with_the_model_is_taken(folders: dict[str, Path], tmp_path: Path) -> None:
    """From its own repository; else the one in the model's folder."""
    model = catalog.find(str(folders["sd15"]))
    companions = {"tiny-vae": tmp_path / "taesdxl"}
    for given, folder in ((companions, companions["tiny-vae"]), ({}, None)):
        paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model), given)
        assert (paints._tiny_vae.folder if paints._tiny_vae else None) == folder


@pytest.mark.slow
@pytest.mark.parametrize(("family", "channels"), [("sd15", 4), ("sd3", 16)])
def test_it_decodes_when_quicker_is_much(
    family: str, channels: int, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders[family], folder)
    small = make_tiny(folder / tiny_vae.FOLDER, latent_channels=channels)
    paints, own = load(folder), []
    vae = paints.pipe.vae
    decode = vae.decode
    monkeypatch.setattr(vae, "decode", lambda latents, **how: own.append(latents) or decode(latents, **how))
    without, much = (paint(paints, tmp_path / quicker, quicker) for quicker in ("off", "much"))
    assert isinstance(without[-1], Finished) and isinstance(much[-1], Finished)
    (latents,) = own  # of the first picture; the second has the same
    config = vae.config
    with torch.no_grad():
        right = small.decode((latents - (config.shift_factor or 0)) * config.scaling_factor, return_dict=False)[0]
    torch.testing.assert_close(decoded[1], right, rtol=1e-4, atol=1e-5)
    assert decoded[0].shape == decoded[1].shape == (1, 3, 64, 64) and not torch.allclose(decoded[0], decoded[1], atol=0.01)
    said = [[event.sentence.key for event in events if isinstance(event, Note)] for events in (without, much)]
    assert said == [[], ["quicker.tiny-vae"]], "not that Quicker changes nothing"


@pytest.mark.slow
def test_it_decodes_in_tiles_as_the_plan_says(folders: dict[str, Path], tmp_path: Path) -> None:
    """Else it would take 1 GiB for 1,024 x 1,024, on machines whose plan has tiles because that much is not there."""
    make_tiny(tmp_path)
    vae, own = tiny_vae.TinyVae(tmp_path), load(folders["sd15"]).pipe.vae
    latents, seen = torch.randn(1, 4, 24, 24, generator=torch.Generator().manual_seed(1)), list[int]()
    with torch.no_grad():
        whole = vae.decode(latents, own)
        vae._vae.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape[-1]))
        own.enable_tiling()
        own.tile_sample_min_size, own.tile_latent_min_size = 128, 16
        tiled = vae.decode(latents, own)
        own.disable_tiling()
        again = vae.decode(latents, own)
    assert max(seen[:-1]) == 16 and seen[-1] == 24
    assert tiled.shape == whole.shape and torch.equal(again, whole)
    assert float((tiled - whole).abs().mean()) < 0.05 * float(whole.std())


@pytest.mark.slow
def test_one_of_another_family_or_damaged_is_told(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["sd15"], folder)
    make_tiny(folder / tiny_vae.FOLDER, latent_channels=16)
    with pytest.raises(Trouble, match="another family"):
        paint(load(folder), tmp_path / "other", "much")
    make_tiny(folder / tiny_vae.FOLDER)
    weights = next((folder / tiny_vae.FOLDER).glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(Trouble, match="cannot be used"):
        paint(load(folder), tmp_path / "damaged", "much")
    assert isinstance(paint(load(folder), tmp_path / "off", "off")[-1], Finished)


def test_it_lies_in_the_models_folder_or_beside_its_file(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    assert tiny_vae.find(file) is None and tiny_vae.find(tmp_path) is None
    make_tiny(tmp_path / tiny_vae.FOLDER)
    assert tiny_vae.find(file) == tiny_vae.find(tmp_path) == tmp_path / tiny_vae.FOLDER
