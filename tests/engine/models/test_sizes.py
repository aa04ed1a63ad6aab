"""How many bytes weights take is known beforehand: the catalog's counts are those of the real classes, a folder's those of its headers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import pytest
import torch
import transformers
from torch import nn
from transformers.models.gemma2 import Gemma2Config, Gemma2Model

from app.compat.planning.memory_formulas import part_bytes
from app.compat.planning.types import ModelPart, Precision
from app.engine.models import catalog
from app.engine.models.model import FEW_STEPS, describe_need
from app.engine.pictures.families import placement
from app.engine.pictures.families.parts_on_disk import list_tensors
from app.engine.pictures.run import painter
from app.engine.speech.run import loader
from tests.support import picture_fixtures
from tests.support import tiny_pictures as tiny
from tests.support.speech_fixtures import dia_of
from tests.support.tiny_voices import save_voice

pytest_plugins = ["tests.support.picture_fixtures"]
MEBI = 1 << 20


def clip(**more: int) -> transformers.CLIPTextConfig:
    shape: dict[str, Any] = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
    return transformers.CLIPTextConfig(**(shape | more))


def unet_xl(**more: Any) -> nn.Module:
    shape: dict[str, Any] = {"transformer_layers_per_block": [1, 2, 10]}
    return diffusers.UNet2DConditionModel(
        sample_size=128,
        cross_attention_dim=2048,
        block_out_channels=(320, 640, 1280),
        attention_head_dim=[5, 10, 20],
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=2816,
        **(shape | more),
    )


def unet_ssd() -> nn.Module:
    return unet_xl(**tiny.SSD_1B)


def t5() -> nn.Module:
    return transformers.T5EncoderModel(
        transformers.T5Config(
            vocab_size=32128, d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64, feed_forward_proj="gated-gelu"
        )
    )


def qwen() -> nn.Module:
    return transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(
            vocab_size=151936,
            hidden_size=2560,
            intermediate_size=9728,
            num_hidden_layers=36,
            num_attention_heads=32,
            num_key_value_heads=8,
            head_dim=128,
            tie_word_embeddings=True,
        )
    )


def pixart() -> nn.Module:
    return diffusers.PixArtTransformer2DModel(
        num_attention_heads=16,
        attention_head_dim=72,
        in_channels=4,
        out_channels=8,
        num_layers=28,
        cross_attention_dim=1152,
        caption_channels=4096,
        sample_size=128,
        patch_size=2,
        use_additional_conditions=False,
    )


def sd3() -> nn.Module:
    return diffusers.SD3Transformer2DModel(
        sample_size=128,
        patch_size=2,
        in_channels=16,
        out_channels=16,
        num_layers=24,
        attention_head_dim=64,
        num_attention_heads=24,
        joint_attention_dim=4096,
        caption_projection_dim=1536,
        pooled_projection_dim=2048,
        pos_embed_max_size=384,
        qk_norm="rms_norm",
        dual_attention_layers=tuple(range(13)),
    )


def klein() -> nn.Module:
    return diffusers.Flux2Transformer2DModel(
        patch_size=1,
        in_channels=128,
        num_layers=5,
        num_single_layers=20,
        attention_head_dim=128,
        num_attention_heads=24,
        joint_attention_dim=7680,
        guidance_embeds=False,
    )


REAL: dict[tuple[str, str], Callable[[], nn.Module]] = {
    ("sd15", "text_encoder"): lambda: transformers.CLIPTextModel(clip()),
    ("sd15", "unet"): lambda: diffusers.UNet2DConditionModel(sample_size=64, cross_attention_dim=768),
    ("sdxl", "text_encoder_2"): lambda: transformers.CLIPTextModelWithProjection(
        clip(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20, projection_dim=1280)
    ),
    ("sdxl", "unet"): unet_xl,
    ("ssd-1b", "unet"): unet_ssd,
    ("sd35-medium", "text_encoder"): lambda: transformers.CLIPTextModelWithProjection(clip(projection_dim=768)),
    ("sd35-medium", "transformer"): sd3,
    ("pixart-sigma", "text_encoder"): t5,
    ("pixart-sigma", "transformer"): pixart,
    ("flux1-schnell", "transformer"): lambda: diffusers.FluxTransformer2DModel(guidance_embeds=False),
    ("chroma1-hd", "text_encoder"): t5,
    ("chroma1-hd", "transformer"): lambda: diffusers.ChromaTransformer2DModel(),
    ("flux2-klein", "text_encoder"): qwen,
    ("flux2-klein", "transformer"): klein,
    ("z-image-turbo", "transformer"): lambda: diffusers.ZImageTransformer2DModel(),
    ("lumina-2", "text_encoder"): lambda: Gemma2Model(Gemma2Config()),
    ("lumina-2", "transformer"): lambda: diffusers.Lumina2Transformer2DModel(cap_feat_dim=2304),
    ("dia-1.6b", "model"): lambda: transformers.DiaForConditionalGeneration(transformers.DiaConfig()),
}


RESULTS = ("text_projection", "logits_dense", "lm_head")


def held(module: nn.Module) -> int:
    """Tied weights once."""
    return sum({id(weight): weight.numel() for weight in module.state_dict(keep_vars=True).values()}.values())


def shrinking(module: nn.Module) -> int:
    """What quantisers make smaller of it: linear layers but those that give the result, alone or by an embedding's own table."""
    tables = {id(each.weight) for each in module.modules() if isinstance(each, nn.Embedding)}
    return sum(
        each.weight.numel()
        for name, each in module.named_modules()
        if isinstance(each, nn.Linear) and id(each.weight) not in tables and name not in RESULTS
    )


def part_of(model: str, name: str) -> ModelPart:
    return next(part for part in catalog.find(model).parts if part.name == name)


@pytest.mark.parametrize(("model", "name"), REAL)
def test_the_catalog_counts_as_the_real_classes_do(model: str, name: str) -> None:
    with torch.device("meta"):
        module = REAL[model, name]()
    part = part_of(model, name)
    assert part.parameters == sum(tensor.numel() for tensor in list_tensors(module)), "a large buffer is held, too"
    small = part.parameters if part.linear is None else part.linear
    assert small == pytest.approx(shrinking(module), rel=0.002)
    assert part.wide == sum(weight.numel() for each, weight in module.named_parameters() if each.endswith(".wo.weight"))


def test_the_lora_of_ssd_1b_is_as_large_as_the_hubs_file() -> None:
    """To the byte, names included: it changes these layers, and calls them so."""
    with torch.device("meta"):
        tensors = picture_fixtures.draw_lcm_lora(unet_ssd(), rank=64)
    end, header = 0, dict[str, Any](__metadata__={"format": "pt"})
    for name, tensor in sorted(tensors.items()):
        header[name] = {"dtype": "F16", "shape": [*tensor.shape], "data_offsets": [end, end := end + tensor.nbytes]}
    text = len(json.dumps(header, separators=(",", ":")))
    assert 8 + text + -text % 8 + end == 209_991_222
    assert [each.source.bytes for each in catalog.find("ssd-1b-lcm").companions if each.name == FEW_STEPS] == [210_000_000]


@pytest.mark.parametrize("family", tiny.MAKERS)
def test_a_folder_counts_as_what_is_loaded_from_it(family: str, folders: dict[str, Path]) -> None:
    paints, row = picture_fixtures.load_painter(folders[family])
    for name, module in placement.list_modules(paints.pipe).items():
        part = next(each for each in row.parts if each.name == name)
        assert part.parameters == held(module), name
        assert part.role == "vae" or part.linear == shrinking(module), name
    assert any(part.wide for part in row.parts) == (family in ("pixart-sigma", "sd3", "flux", "chroma"))


def test_a_voice_of_ones_own_counts_as_what_is_loaded_from_it(tmp_path: Path) -> None:
    folder = save_voice(tmp_path / "voice")
    model, codec = catalog.find(str(folder)).parts
    loaded = transformers.DiaForConditionalGeneration.from_pretrained(folder)
    assert model.parameters == sum(weight.numel() for weight in loaded.parameters()) and model.linear == shrinking(loaded)
    dac = transformers.DacModel.from_pretrained(folder / "codec")
    assert codec.parameters == held(dac)
    (folder / "codec").rename(tmp_path / "elsewhere")
    assert catalog.find(str(folder)).parts[1] == part_of("dia-1.6b", "codec")


def how(role: Any, storage: Any, compute: Any = None) -> Precision:
    return Precision("part", role, storage, compute or storage, "cpu")


def test_what_float16_does_not_hold_is_counted_as_float32(folders: dict[str, Path]) -> None:
    row = catalog.find(str(folders["pixart-sigma"]))
    paints = painter.load(folders["pixart-sigma"], row, tiny.make_plan(row, "float16"), {})
    part, module = row.parts[0], paints.pipe.text_encoder
    size = sum(weight.numel() * weight.element_size() for weight in module.parameters())
    assert part.name == "text_encoder" and part.wide
    assert part_bytes(part, how("text", "float16"), "none") == size == 2 * part.parameters + 2 * part.wide
    assert part_bytes(part, how("text", "bfloat16"), "none") == 2 * part.parameters
    assert part_bytes(part, how("text", "float16", "float32"), "none") == 2 * part.parameters + 2 * part.wide


def test_only_linear_layers_are_counted_as_made_smaller() -> None:
    unet, text = part_of("sd15", "unet"), part_of("pixart-sigma", "text_encoder")
    whole, small = (part_bytes(unet, how("denoiser", "float16"), kind) for kind in ("none", "torchao-int8"))
    assert whole // MEBI == 1639 and small // MEBI == 1381  # a third of it is linear
    int8, by_bnb = (part_bytes(text, how("text", "bfloat16"), kind) for kind in ("torchao-int8", "bnb-int8"))
    assert by_bnb - int8 == text.wide, "bitsandbytes leaves them in two bytes"
    assert part_bytes(text, how("text", "float16"), "bnb-int8") - by_bnb == 2 * text.wide
    rests = part_bytes(unet, how("denoiser", "float16", "float32"), "torchao-int8")
    assert rests - small == 2 * (unet.parameters - 270_049_280), "what is not packed computes as it lies"
    assert part_bytes(part_of("sd15", "vae"), how("vae", "float16"), "torchao-int8") == 2 * 83_653_863


def test_a_gguf_is_as_large_as_its_file() -> None:
    denoiser = next(part for part in describe_need(catalog.find("flux1-schnell")).parts if part.role == "denoiser")
    assert part_bytes(denoiser, how("denoiser", "bfloat16"), "gguf") == 6_770_000_000
    assert part_bytes(ModelPart("t", "denoiser", 16_000), how("denoiser", "bfloat16"), "gguf") == 17_000  # as Q8_0


def in_a_byte(module: nn.Module) -> int:
    """Without the zero points, one a row."""
    return sum(leaf.numel() for leaf in list_tensors(module) if leaf.dtype == torch.int8 and leaf.shape[-1] > 1)


@pytest.mark.parametrize("family", ["sd15", "sd3", "z-image"])
def test_torchao_packs_what_was_counted(family: str, folders: dict[str, Path]) -> None:
    pytest.importorskip("torchao", reason="one of the quantised extra")
    row = catalog.find(str(folders[family]))
    paints = painter.load(folders[family], row, tiny.make_plan(row, quantised="torchao-int8"), {})
    for part in row.parts:
        packed = in_a_byte(placement.list_modules(paints.pipe)[part.name])
        assert packed == (0 if part.role == "vae" else part.linear), part.name


def test_a_voice_is_packed_as_it_was_counted(tmp_path: Path) -> None:
    folder = save_voice(tmp_path / "voice")
    voice = loader.load(folder, tiny.make_plan(catalog.find(str(folder))))
    assert dia_of(voice).model.get_input_embeddings() is dia_of(voice).model.model.encoder.embedding  # the quantiser asks for it
    pytest.importorskip("torchao", reason="one of the quantised extra")
    voice = loader.load(folder, tiny.make_plan(catalog.find(str(folder)), quantised="torchao-int8"))
    assert in_a_byte(dia_of(voice).model) == catalog.find(str(folder)).parts[0].linear
