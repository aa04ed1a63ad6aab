"""Save tiny pipelines as single-file checkpoints, with the names of the original Stable Diffusion code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import diffusers
import torch
from safetensors.torch import save_file

from tests.support import tiny_pictures as tiny

RESNET = {
    "norm1": "in_layers.0", "conv1": "in_layers.2", "norm2": "out_layers.0", "conv2": "out_layers.3",
    "time_emb_proj": "emb_layers.1", "conv_shortcut": "skip_connection",
}  # fmt: skip
TOP = {
    "time_embedding.linear_1": "time_embed.0", "time_embedding.linear_2": "time_embed.2", "conv_in": "input_blocks.0.0",
    "conv_norm_out": "out.0", "conv_out": "out.2", "add_embedding.linear_1": "label_emb.0.0",
    "add_embedding.linear_2": "label_emb.0.2",
}  # fmt: skip
LAYERS = 2


def _unet_name(name: str, attends: list[bool]) -> str:
    for ours, theirs in TOP.items():
        if name.startswith(ours + "."):
            return theirs + name[len(ours) :]
    if found := re.match(r"mid_block\.(resnets|attentions)\.(\d)\.(.*)", name):
        kind, index, rest = found.groups()
        place = 1 if kind == "attentions" else 2 * int(index)
        return f"middle_block.{place}.{_resnet(rest) if kind == 'resnets' else rest}"
    found = re.match(r"(down|up)_blocks\.(\d)\.(\w+)\.(\d)\.(.*)", name)
    assert found is not None, name
    side, block, kind, index, rest = (found.group(1), int(found.group(2)), found.group(3), int(found.group(4)), found.group(5))
    if side == "down":
        if kind == "downsamplers":
            return f"input_blocks.{(LAYERS + 1) * (block + 1)}.0.op.{rest.removeprefix('conv.')}"
        at = f"input_blocks.{(LAYERS + 1) * block + index + 1}"
    else:
        at = f"output_blocks.{(LAYERS + 1) * block + index}"
        if kind == "upsamplers":
            return f"output_blocks.{(LAYERS + 1) * block + LAYERS}.{2 if attends[block] else 1}.{rest}"
    return f"{at}.1.{rest}" if kind == "attentions" else f"{at}.0.{_resnet(rest)}"


def _resnet(name: str) -> str:
    first, rest = name.split(".", 1)
    return f"{RESNET[first]}.{rest}"


def _vae_name(name: str, levels: int) -> str:
    name = re.sub(r"encoder\.down_blocks\.(\d)\.resnets\.(\d)", r"encoder.down.\1.block.\2", name)
    name = re.sub(r"encoder\.down_blocks\.(\d)\.downsamplers\.0", r"encoder.down.\1.downsample", name)
    name = re.sub(r"decoder\.up_blocks\.(\d)\.resnets\.(\d)", lambda m: f"decoder.up.{levels - 1 - int(m[1])}.block.{m[2]}", name)
    name = re.sub(r"decoder\.up_blocks\.(\d)\.upsamplers\.0", lambda m: f"decoder.up.{levels - 1 - int(m[1])}.upsample", name)
    name = re.sub(r"mid_block\.resnets\.(\d)", lambda m: f"mid.block_{int(m[1]) + 1}", name)
    for ours, theirs in (
        ("mid_block.attentions.0.group_norm", "mid.attn_1.norm"),
        ("mid_block.attentions.0.to_out.0", "mid.attn_1.proj_out"),
        ("mid_block.attentions.0.to_", "mid.attn_1."),
        ("conv_norm_out", "norm_out"),
        ("conv_shortcut", "nin_shortcut"),
    ):
        name = name.replace(ours, theirs)
    return name


def _open_clip(encoder: Any, prefix: str) -> dict[str, torch.Tensor]:
    state = {name.removeprefix("text_model."): value for name, value in encoder.state_dict().items()}
    made = {
        "positional_embedding": state["embeddings.position_embedding.weight"],
        "token_embedding.weight": state["embeddings.token_embedding.weight"],
        "text_projection": state["text_projection.weight"].T.contiguous(),
        "ln_final.weight": state["final_layer_norm.weight"],
        "ln_final.bias": state["final_layer_norm.bias"],
    }
    for name, value in state.items():
        if found := re.match(r"encoder\.layers\.(\d+)\.(.*)", name):
            layer, rest = found.groups()
            block = f"transformer.resblocks.{layer}."
            if rest.startswith("self_attn.q_proj."):
                kind = rest.rsplit(".", 1)[1]
                heads = [state[f"encoder.layers.{layer}.self_attn.{each}_proj.{kind}"] for each in "qkv"]
                made[f"{block}attn.in_proj_{kind}"] = torch.cat(heads)
            elif not re.match(r"self_attn\.[kv]_proj", rest):
                for ours, theirs in (
                    ("self_attn.out_proj", "attn.out_proj"),
                    ("layer_norm1", "ln_1"),
                    ("layer_norm2", "ln_2"),
                    ("mlp.fc1", "mlp.c_fc"),
                    ("mlp.fc2", "mlp.c_proj"),
                ):
                    rest = rest.replace(ours, theirs)
                made[block + rest] = value
    return {prefix + name: value for name, value in made.items()}


def convert_state(pipe: Any) -> dict[str, torch.Tensor]:
    attends = ["Attn" in kind for kind in pipe.unet.config.up_block_types]
    state = {f"model.diffusion_model.{_unet_name(name, attends)}": value for name, value in pipe.unet.state_dict().items()}
    levels = len(pipe.vae.config.block_out_channels)
    for name, value in pipe.vae.state_dict().items():
        theirs = _vae_name(name, levels)
        conv = "mid.attn_1" in theirs and theirs.endswith("weight") and value.ndim == 2
        state[f"first_stage_model.{theirs}"] = value[:, :, None, None] if conv else value
    xl = hasattr(pipe, "text_encoder_2")
    prefix = "conditioner.embedders.0.transformer." if xl else "cond_stage_model.transformer."
    for name, value in pipe.text_encoder.state_dict().items():
        state[prefix + ("" if name.startswith("text_model.") else "text_model.") + name] = value
    if xl:
        state |= _open_clip(pipe.text_encoder_2, "conditioner.embedders.1.model.")
    return {name: value.contiguous() for name, value in state.items()}


def name_control(control: Any) -> dict[str, torch.Tensor]:
    """Return a control model's weights under the names of its first program."""
    table = {"conv_in": "0", "conv_out": "14"} | {f"blocks.{place}": str(2 * place + 2) for place in range(6)}
    hint = {f"controlnet_cond_embedding.{ours}": f"input_hint_block.{theirs}" for ours, theirs in table.items()}
    named = {}
    for name, value in control.state_dict().items():
        layer, _, kind = name.rpartition(".")
        if layer in hint:
            theirs = f"{hint[layer]}.{kind}"
        elif layer == "controlnet_mid_block":
            theirs = f"middle_block_out.0.{kind}"
        elif layer.startswith("controlnet_down_blocks."):
            theirs = f"zero_convs.{layer.rpartition('.')[2]}.0.{kind}"
        else:
            theirs = _unet_name(name, [])
        named[f"control_model.{theirs}"] = value.contiguous()
    return named


def make_pipeline(family: str) -> Any:
    """Make a pipeline with the original number of layers per block, and SD 1.5's text width, by which it is detected."""
    torch.manual_seed(5)
    pipe = tiny.MAKERS[family]()
    shape: dict[str, Any] = {
        "sample_size": 8, "layers_per_block": LAYERS, "norm_num_groups": 4, "attention_head_dim": 4,
        "block_out_channels": (16, 32), "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"), "cross_attention_dim": 768,
    }  # fmt: skip
    if family == "sdxl":
        shape |= {
            "cross_attention_dim": 32 + 24, "addition_embed_type": "text_time", "addition_time_embed_dim": 8,
            "projection_class_embeddings_input_dim": 24 + 6 * 8, "transformer_layers_per_block": (1, 1),
            "use_linear_projection": True,
        }  # fmt: skip
        pipe.text_encoder_2 = tiny.clip(24, True)
    else:
        pipe.text_encoder = tiny.clip(768)
    pipe.unet = diffusers.UNet2DConditionModel(**shape)
    return pipe


def save(family: str, folder: Path) -> tuple[Path, Path]:
    """Save a diffusers folder, and the same weights in one file."""
    pipe = make_pipeline(family)
    pipe.save_pretrained(folder / "folder")
    save_file(convert_state(pipe), folder / f"{family}.safetensors")
    return folder / "folder", folder / f"{family}.safetensors"


def copy_configs(folder: Path, target: Path) -> Path:
    """Copy what is downloaded for a single file: configs and tokenizer, no weights."""
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".safetensors":
            copy = target / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return target
