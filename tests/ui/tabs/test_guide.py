"""Test which control models Paint offers for a model, and finds again for an earlier picture."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from app.base.paths import Home
from app.engine.models import catalog
from app.engine.models.found import Found, Kept
from app.ui.tabs.beside_prompt import GUIDE
from tests.support.guests import desk_at
from tests.support.waiting import until


def write(path: Path, width: int, **more: torch.Tensor) -> Path:
    """Write what the header of a control model has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {"controlnet_cond_embedding.conv_in.weight": torch.zeros(2, 3, 3, 3)}
    save_file(first | {"down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_k.weight": torch.zeros(2, width)} | more, path)
    return path


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    home = Home(tmp_path / "home", tmp_path / "home" / "models")
    write(home.controls / "Canny.safetensors", 768)
    write(home.controls / "depth-xl.safetensors", 2048, **{"add_embedding.linear_1.weight": torch.zeros(2, 2)})
    save_file({"control_all_x_embedder.2-1.weight": torch.zeros(2, 132)}, home.controls / "Z-Union.safetensors")
    (home.controls / "broken.safetensors").write_bytes(b"?")
    other, pickle = write(tmp_path / "ComfyUI" / "pose.safetensors", 768), tmp_path / "ComfyUI" / "control.pth"
    pickle.write_bytes(b"?")
    found = tuple(Found(each, "control", each.stem, 1) for each in (other, pickle))
    return SimpleNamespace(
        keeper=SimpleNamespace(home=home), models=SimpleNamespace(finder=SimpleNamespace(kept=(Kept("ComfyUI", tmp_path, found),)))
    )


def test_only_what_fits_is_offered(desk: Any) -> None:
    sd15, sdxl, z_image = (GUIDE.list_fitting(desk, catalog.find(each)) for each in ("sd15", "sdxl", "z-image-turbo"))
    assert [title for title, _ in sd15] == ["Canny", "pose (ComfyUI)"] and [title for title, _ in sdxl] == ["depth-xl"]
    assert [title for title, _ in z_image] == ["Z-Union"]
    assert GUIDE.list_fitting(desk, catalog.find("flux1-schnell")) == [] == GUIDE.list_fitting(desk, catalog.find("starter-painter"))


def test_another_model_brings_its_own(desk: Any) -> None:
    (_, canny), (_, pose) = GUIDE.list_fitting(desk, catalog.find("sd15"))
    depth = GUIDE.list_fitting(desk, catalog.find("sdxl"))[0][1]
    assert GUIDE.offer(desk, "sd15", pose)["value"] == pose, "what fits stays"
    assert GUIDE.offer(desk, "sd15", depth)["value"] == canny and GUIDE.offer(desk, "sdxl", canny)["value"] == depth
    none = GUIDE.offer(desk, "flux1-schnell", canny)
    assert none["value"] == "" and str(desk.keeper.home.controls) in none["info"].key
    assert [id_ for _, id_ in GUIDE.offer(desk, "sd15", "")["choices"]] == ["", canny, pose]


def test_an_earlier_pictures_is_found_by_its_name(desk: Any) -> None:
    model = catalog.find("sd15")
    canny = str(desk.keeper.home.controls / "Canny.safetensors")
    for name in ("Canny.safetensors", "Canny", "/home/somebody/else/Canny.safetensors", r"C:\models\Canny.safetensors"):
        assert GUIDE.find_again(desk, model, name) == canny
    assert GUIDE.find_again(desk, model, "depth-xl") == "" == GUIDE.find_again(desk, model, "")


def test_another_programs_is_offered_before_models_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A1111's folder was found with its ControlNet, and Paint offered none until Models was opened once."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    hed = write(tmp_path / "stable-diffusion-webui/models/ControlNet/hed.safetensors", 768)
    (tmp_path / "stable-diffusion-webui/webui.py").write_text("")
    for allowed in (True, False):
        (folder := tmp_path / f"home {allowed}").mkdir()
        (folder / "settings.json").write_text(json.dumps({"finds": allowed}))
        with desk_at(folder) as desk:
            if allowed:
                until(lambda desk=desk: GUIDE.list_fitting(desk, catalog.find("sd15")) == [("hed (AUTOMATIC1111)", str(hed))])
            else:
                assert GUIDE.list_fitting(desk, catalog.find("sd15")) == []
