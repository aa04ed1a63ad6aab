"""Test what a LoRA's header tells: family, trigger words and tags in the layouts that trainers write, and nothing that a liar writes."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from app.engine.models import catalog
from app.engine.models.lora_facts import WORD_MOST, WORDS_MOST, describe, explain_misfit, read_facts
from app.engine.models.safetensors import Entry

Shapes = dict[str, tuple[int, ...]]
KOHYA = "lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k.lora_down.weight"
LAYOUTS: dict[str, tuple[Shapes, dict[str, str], str]] = {
    "kohya, SD 1.5": ({KOHYA: (8, 768)}, {}, "sd15"),
    "kohya, SD 2": ({KOHYA: (8, 1024)}, {}, "sd2"),
    "kohya, SDXL": ({KOHYA: (8, 2048)}, {}, "sdxl"),
    "kohya, a convolution": ({KOHYA: (8, 768, 1, 1)}, {}, "sd15"),
    "kohya, SDXL's second encoder alone": ({"lora_te2_text_model_encoder_layers_0_mlp_fc1.lora_down.weight": (8, 1280)}, {}, "sdxl"),
    "peft, SDXL": ({"unet.mid_block.attentions.0.transformer_blocks.0.attn2.to_v.lora_A.weight": (4, 2048)}, {}, "sdxl"),
    "diffusers, SD 1.5": ({"unet.up_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k.lora.down.weight": (4, 768)}, {}, "sd15"),
    "kohya, FLUX.1": ({"lora_unet_double_blocks_0_img_attn_proj.lora_down.weight": (16, 3072)}, {}, "flux"),
    "kohya, Chroma": (
        {"lora_unet_double_blocks_0_img_attn_proj.lora_down.weight": (16, 3072)}, {"modelspec.architecture": "chroma/lora"}, "chroma",
    ),
    "diffusers, Lumina 2": ({"transformer.layers.0.attn.to_q.lora_A.weight": (16, 2304)}, {}, "lumina-2"),
    "kohya, Lumina 2": (
        {"lora_unet_layers_0_attention_qkv.lora_down.weight": (16, 2304)}, {"modelspec.architecture": "lumina-2/lora"}, "lumina-2",
    ),
    "diffusers, FLUX.1": ({"transformer.single_transformer_blocks.0.attn.to_k.lora_A.weight": (16, 3072)}, {}, "flux"),
    "diffusers, FLUX.2": ({"transformer.single_transformer_blocks.0.attn.to_qkv_mlp_proj.lora_A.weight": (16, 3072)}, {}, "flux2-klein"),
    "kohya, SD 3": ({"lora_unet_joint_blocks_0_context_block_attn_qkv.lora_down.weight": (16, 1536)}, {}, "sd3"),
    "Z-Image": ({"diffusion_model.layers.0.attention.to_q.lora_A.weight": (16, 3840)}, {}, "z-image"),
    "said by modelspec": ({"lora_unet_mid.lora_down.weight": (8, 320)}, {"modelspec.architecture": "stable-diffusion-xl-v1-base/lora"}, "sdxl"),
    "said by kohya": ({"lora_unet_mid.lora_down.weight": (8, 320)}, {"ss_base_model_version": "sd_v1"}, "sd15"),
    "nothing said": ({"lora_unet_mid.lora_down.weight": (8, 320)}, {}, ""),
    "shapes before words": ({KOHYA: (8, 768)}, {"ss_base_model_version": "sdxl_base_v1-0"}, "sd15"),
}  # fmt: skip
EMBEDDINGS: dict[str, tuple[Shapes, str]] = {
    "A1111, SD 1.5": ({"emb_params": (8, 768)}, "sd15"),
    "diffusers, one vector": ({"<cat-toy>": (768,)}, "sd15"),
    "SD 2": ({"emb_params": (4, 1024)}, "sd2"),
    "SDXL": ({"clip_l": (8, 768), "clip_g": (8, 1280)}, "sdxl"),
    "of no known model": ({"emb_params": (2, 32)}, ""),
}


def entries(shapes: Shapes) -> dict[str, Entry]:
    return {name: Entry("F16", shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_family_of_a_lora(name: str) -> None:
    shapes, words, family = LAYOUTS[name]
    found = describe(entries(shapes), words)
    assert found is not None and (found.kind, found.family) == ("lora", family)


@pytest.mark.parametrize(
    ("shapes", "kind"),
    [
        ({"lora_unet_x.hada_w1_a": (2, 2)}, "LoHa"), ({"lycoris_x.lokr_w1": (2, 2)}, "LoKr"), ({"x.oft_blocks": (2, 2, 2)}, "OFT"),
        ({KOHYA: (8, 768), "lora_unet_x.hada_w1_a": (2, 2)}, ""),
    ],
)  # fmt: skip
def test_a_kind_that_hearth_does_not_use_is_told_before_anything_is_loaded(shapes: Shapes, kind: str) -> None:
    found = describe(entries(shapes), {})
    assert found is not None and found.kind == "lora" and (kind == "") == (found.trouble is None)
    why = explain_misfit(found, catalog.BY_ID["sd15"])
    assert kind in str(why) if kind else why is None


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_the_family_of_an_embedding(name: str) -> None:
    shapes, family = EMBEDDINGS[name]
    found = describe(entries(shapes), {})
    assert found is not None and (found.kind, found.family) == ("embedding", family)


@pytest.mark.parametrize("shapes", [{}, {"decoder.conv_in.weight": (64, 4, 3, 3)}, {"model.embed": (49_408, 768)}])
def test_what_is_neither(shapes: Shapes) -> None:
    assert describe(entries(shapes), {}) is None


def test_words_of_the_makers() -> None:
    tags = {"10_ink": {"1girl": 40, "ink wash": 90, "sea": 3}, "5_more": {"ink wash": 10, "bad": "x"}}
    found = describe(
        entries({KOHYA: (8, 768)}),
        {"modelspec.trigger_phrase": "inkwash, soft  paper", "modelspec.title": "Ink\nwash\x1b[2J", "ss_tag_frequency": json.dumps(tags)},
    )
    assert found is not None and found.triggers == ("inkwash", "soft paper") and found.tags == ("ink wash", "1girl", "sea")
    assert found.title == "Ink wash?[2J"
    other = describe(entries({"double_blocks.0.img_attn.lora_A.weight": (8, 64)}), {"ss_base_model_version": "sd_v2"})
    assert other is not None and other.family, "a family that Hearth does not have goes by its tensors"
    folders = describe(entries({KOHYA: (8, 768)}), {"ss_dataset_dirs": json.dumps({"10_sks dog": {}, "plain": {}})})
    assert folders is not None and folders.triggers == ("sks dog",)


def test_words_of_a_liar_are_bounded() -> None:
    tags = {"a": {f"{'x' * 500}{place}": place for place in range(5_000)}}
    found = describe(
        entries({KOHYA: (8, 768)}),
        {
            "ss_tag_frequency": json.dumps(tags),
            "modelspec.trigger_phrase": "y" * 100_000,
            "ss_dataset_dirs": "[" * 100_000,
            "modelspec.title": "z" * 10_000,
        },
    )
    assert found is not None and len(found.tags) <= WORDS_MOST and len(found.triggers) == 1
    assert max(map(len, (*found.tags, *found.triggers, found.title))) == WORD_MOST


def write(path: Path, header: bytes, data: int = 0, length: int | None = None) -> Path:
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header + bytes(data))
    return path


def row(shape: tuple[int, ...], end: int) -> dict[str, Any]:
    return {"dtype": "F16", "shape": shape, "data_offsets": [0, end]}


HOSTILE: dict[str, tuple[bytes, int, int | None]] = {
    "a header of 90 MB": (b"{}", 0, 90 << 20),
    "a header of 2^60 bytes": (b"{}", 0, 1 << 60),
    "a shape that lies": (json.dumps({KOHYA: row((1 << 40, 768), 16)}).encode(), 16, None),
    "a negative shape": (json.dumps({KOHYA: row((-8, 768), 16)}).encode(), 16, None),
    "no JSON": (b"x" * 100, 0, None),
    "nested deep": (b'{"a":' + b"[" * 50_000, 0, None),
    "a pickle": (b"\x80\x02x", 0, 0x028000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_its_own_trouble(tmp_path: Path, name: str) -> None:
    header, data, length = HOSTILE[name]
    begun_s = time.thread_time()
    found = read_facts(write(tmp_path / "bad.safetensors", header, data, length))
    assert found.trouble is not None and time.thread_time() - begun_s < 0.5


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert read_facts(tmp_path / "none.safetensors").trouble is not None


def test_what_fits_and_why_not() -> None:
    sd15, sdxl, starter = catalog.BY_ID["sd15"], catalog.BY_ID["sdxl"], catalog.BY_ID["starter-painter"]
    flux = catalog.BY_ID["flux1-schnell"]
    style, strange = describe(entries({KOHYA: (8, 768)}), {}), describe(entries({"lora_unet_mid.lora_down.weight": (8, 320)}), {})
    words = describe(entries({"x": (2, 32)}), {})
    assert style is not None and strange is not None and words is not None
    assert explain_misfit(style, sd15) is None and explain_misfit(strange, flux) is None and explain_misfit(strange, starter) is None
    why = explain_misfit(style, sdxl)
    assert why is not None and str(why) == "Made for SD 1.5; Stable Diffusion XL is another kind of model."
    assert explain_misfit(style, starter) is not None
    chroma, unsaid = (
        catalog.BY_ID["chroma1-hd"],
        describe(entries({"lora_unet_double_blocks_0_img_attn_proj.lora_down.weight": (16, 3072)}), {}),
    )
    assert unsaid is not None and unsaid.family == "flux" and explain_misfit(unsaid, chroma) is None, "its makers may have left it unsaid"
    assert explain_misfit(words, sdxl) is None and (told := explain_misfit(words, flux)) is not None and told.key == "lora.embedding-family"
    assert explain_misfit(words, catalog.BY_ID["starter-voice"]) is not None
