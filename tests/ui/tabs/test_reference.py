"""Test which IP-Adapters Paint offers for a model, and finds again for an earlier picture."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from app.base.paths import Home
from app.engine.models import catalog
from app.engine.models.found import Found, Kept
from app.ui.tabs.beside_prompt import REFERENCE


def write(path: Path, width: int, reads: int = 1024) -> Path:
    """Write what the header of an adapter has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({"ip_adapter.1.to_k_ip.weight": torch.zeros(2, width), "image_proj.proj.weight": torch.zeros(4, reads)}, path)
    return path


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    home = Home(tmp_path / "home", tmp_path / "home" / "models")
    write(home.adapters / "Style.safetensors", 768)
    write(home.adapters / "style-xl.safetensors", 2048)
    write(home.adapters / "unread.safetensors", 768, 77)
    (home.adapters / "broken.safetensors").write_bytes(b"?")
    encoder = {
        "vision_model.embeddings.patch_embedding.weight": torch.zeros(1280, 3, 14, 14), "visual_projection.weight": torch.zeros(1024, 1280),
        "vision_model.embeddings.position_embedding.weight": torch.zeros(257, 1280),
        "vision_model.encoder.layers.0.mlp.fc1.weight": torch.zeros(2, 1280),
    }  # fmt: skip
    save_file(encoder, home.adapters / "CLIP-H.safetensors")
    other = write(tmp_path / "ComfyUI" / "models" / "ipadapter" / "face.safetensors", 768)
    found = (Found(other, "adapter", "face", 1), Found(other.with_suffix(".bin"), "adapter", "face", 1))
    return SimpleNamespace(
        keeper=SimpleNamespace(home=home), models=SimpleNamespace(finder=SimpleNamespace(kept=(Kept("ComfyUI", tmp_path, found),)))
    )


def test_only_what_fits_and_can_be_read_is_offered(desk: Any) -> None:
    sd15, sdxl = (REFERENCE.list_fitting(desk, catalog.find(each)) for each in ("sd15", "sdxl"))
    assert [title for title, _ in sd15] == ["Style", "face (ComfyUI)"] and [title for title, _ in sdxl] == ["style-xl"]
    assert (
        REFERENCE.list_fitting(desk, catalog.find("flux1-schnell")) == [] == REFERENCE.list_fitting(desk, catalog.find("starter-painter"))
    )


def test_another_model_brings_its_own_and_an_earlier_one_is_found_by_name(desk: Any) -> None:
    (_, style), (_, face) = REFERENCE.list_fitting(desk, catalog.find("sd15"))
    large = REFERENCE.list_fitting(desk, catalog.find("sdxl"))[0][1]
    assert REFERENCE.offer(desk, "sd15", face)["value"] == face, "what fits stays"
    assert REFERENCE.offer(desk, "sd15", large)["value"] == style and REFERENCE.offer(desk, "sdxl", style)["value"] == large
    none = REFERENCE.offer(desk, "flux1-schnell", style)
    assert none["value"] == "" and str(desk.keeper.home.adapters) in none["info"].key
    for name in ("Style.safetensors", "Style", r"C:\models\Style.safetensors"):
        assert REFERENCE.find_again(desk, catalog.find("sd15"), name) == style
    assert REFERENCE.find_again(desk, catalog.find("sd15"), "style-xl") == ""
