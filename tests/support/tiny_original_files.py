"""Write the parts of tiny pipelines under the names that other programs have for them: denoisers as first published, encoders and VAEs alone, GGUF."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import save_file

from tests.support.tiny_single_files import _vae_name

Tensors = dict[str, torch.Tensor]

_BLOCK = {
    "attn.norm_q.weight": "img_attn.norm.query_norm.scale", "attn.norm_k.weight": "img_attn.norm.key_norm.scale",
    "attn.norm_added_q.weight": "txt_attn.norm.query_norm.scale", "attn.norm_added_k.weight": "txt_attn.norm.key_norm.scale",
    "attn.to_out.0.": "img_attn.proj.", "attn.to_add_out.": "txt_attn.proj.", "norm1.linear.": "img_mod.lin.", "norm1_context.linear.": "txt_mod.lin.",
    "ff.net.0.proj.": "img_mlp.0.", "ff.net.2.": "img_mlp.2.", "ff_context.net.0.proj.": "txt_mlp.0.", "ff_context.net.2.": "txt_mlp.2.",
    "ff.linear_in.": "img_mlp.0.", "ff.linear_out.": "img_mlp.2.", "ff_context.linear_in.": "txt_mlp.0.", "ff_context.linear_out.": "txt_mlp.2.",
}  # fmt: skip
_SINGLE = {
    "attn.norm_q.weight": "norm.query_norm.scale", "attn.norm_k.weight": "norm.key_norm.scale", "norm.linear.": "modulation.lin.",
    "proj_out.": "linear2.", "attn.to_qkv_mlp_proj.": "linear1.", "attn.to_out.": "linear2.",
}  # fmt: skip
_FLUX_TOP = {
    "time_text_embed.timestep_embedder.linear_1.": "time_in.in_layer.", "time_text_embed.timestep_embedder.linear_2.": "time_in.out_layer.",
    "time_text_embed.text_embedder.linear_1.": "vector_in.in_layer.", "time_text_embed.text_embedder.linear_2.": "vector_in.out_layer.",
    "time_text_embed.guidance_embedder.linear_1.": "guidance_in.in_layer.", "time_text_embed.guidance_embedder.linear_2.": "guidance_in.out_layer.",
    "time_guidance_embed.timestep_embedder.linear_1.": "time_in.in_layer.", "time_guidance_embed.timestep_embedder.linear_2.": "time_in.out_layer.",
    "context_embedder.": "txt_in.", "x_embedder.": "img_in.", "proj_out.": "final_layer.linear.", "norm_out.linear.": "final_layer.adaLN_modulation.1.",
    "double_stream_modulation_img.linear.": "double_stream_modulation_img.lin.", "double_stream_modulation_txt.linear.": "double_stream_modulation_txt.lin.",
    "single_stream_modulation.linear.": "single_stream_modulation.lin.",
}  # fmt: skip
_SD3 = {
    "pos_embed.proj.": "x_embedder.proj.", "pos_embed.pos_embed": "pos_embed", "time_text_embed.timestep_embedder.linear_1.": "t_embedder.mlp.0.",
    "time_text_embed.timestep_embedder.linear_2.": "t_embedder.mlp.2.", "time_text_embed.text_embedder.linear_1.": "y_embedder.mlp.0.",
    "time_text_embed.text_embedder.linear_2.": "y_embedder.mlp.2.", "proj_out.": "final_layer.linear.", "norm_out.linear.": "final_layer.adaLN_modulation.1.",
}  # fmt: skip
_SD3_BLOCK = {
    "norm1.linear.": "x_block.adaLN_modulation.1.", "norm1_context.linear.": "context_block.adaLN_modulation.1.",
    "attn.norm_q.": "x_block.attn.ln_q.", "attn.norm_k.": "x_block.attn.ln_k.", "attn.norm_added_q.": "context_block.attn.ln_q.",
    "attn.norm_added_k.": "context_block.attn.ln_k.", "attn.to_out.0.": "x_block.attn.proj.", "attn.to_add_out.": "context_block.attn.proj.",
    "attn2.norm_q.": "x_block.attn2.ln_q.", "attn2.norm_k.": "x_block.attn2.ln_k.", "attn2.to_out.0.": "x_block.attn2.proj.",
    "ff.net.0.proj.": "x_block.mlp.fc1.", "ff.net.2.": "x_block.mlp.fc2.", "ff_context.net.0.proj.": "context_block.mlp.fc1.",
    "ff_context.net.2.": "context_block.mlp.fc2.",
}  # fmt: skip


def _rename(name: str, table: Mapping[str, str]) -> str:
    for ours, theirs in table.items():
        if name.startswith(ours):
            return theirs + name[len(ours) :]
    return name


def _fuse(state: Tensors, names: tuple[str, ...], fused: str) -> None:
    """Join weights, and biases if there are any, that the original has as one."""
    for kind in ("weight", "bias"):
        if f"{names[0]}.{kind}" in state:
            state[f"{fused}.{kind}"] = torch.cat([state.pop(f"{name}.{kind}") for name in names])


def _swap(tensor: torch.Tensor) -> torch.Tensor:
    scale, shift = tensor.chunk(2)
    return torch.cat([shift, scale])


def name_as_flux(state: Tensors, singles: int, doubles: int) -> Tensors:
    """Name a transformer of FLUX.1, FLUX.2 or Chroma as its makers do."""
    state = {name: _swap(value) if name.startswith("norm_out.linear.") else value for name, value in state.items()}
    for index in range(doubles):
        block = f"transformer_blocks.{index}.attn."
        _fuse(state, tuple(f"{block}to_{each}" for each in "qkv"), f"double_blocks.{index}.img_attn.qkv")
        _fuse(state, tuple(f"{block}add_{each}_proj" for each in "qkv"), f"double_blocks.{index}.txt_attn.qkv")
    for index in range(singles):
        block = f"single_transformer_blocks.{index}."
        _fuse(state, (*(f"{block}attn.to_{each}" for each in "qkv"), f"{block}proj_mlp"), f"single_blocks.{index}.linear1")
    found = {}
    for name, value in state.items():
        if match := re.match(r"(single_)?transformer_blocks\.(\d+)\.(.*)", name):
            single, number, rest = match.groups()
            found[f"{'single' if single else 'double'}_blocks.{number}.{_rename(rest, _SINGLE if single else _BLOCK)}"] = value
        elif name.startswith("distilled_guidance_layer."):
            found[
                re.sub(r"(norms\.\d+)\.weight", r"\1.scale", name.replace(".linear_1.", ".in_layer.").replace(".linear_2.", ".out_layer."))
            ] = value
        else:
            found[_rename(name, _FLUX_TOP)] = value
    return found


def name_as_sd3(state: Tensors, blocks: int) -> Tensors:
    last = f"transformer_blocks.{blocks - 1}.norm1_context.linear."
    state = {name: _swap(value) if name.startswith(("norm_out.linear.", last)) else value for name, value in state.items()}
    for index in range(blocks):
        block = f"transformer_blocks.{index}."
        _fuse(state, tuple(f"{block}attn.to_{each}" for each in "qkv"), f"joint_blocks.{index}.x_block.attn.qkv")
        _fuse(state, tuple(f"{block}attn.add_{each}_proj" for each in "qkv"), f"joint_blocks.{index}.context_block.attn.qkv")
        _fuse(state, tuple(f"{block}attn2.to_{each}" for each in "qkv"), f"joint_blocks.{index}.x_block.attn2.qkv")
    found = {}
    for name, value in state.items():
        match = re.match(r"transformer_blocks\.(\d+)\.(.*)", name)
        found[f"joint_blocks.{match[1]}.{_rename(match[2], _SD3_BLOCK)}" if match else _rename(name, _SD3)] = value
    return found


def name_as_z_image(state: Tensors) -> Tensors:
    state = dict(state)
    for name in [each for each in state if each.endswith(".attention.to_q.weight")]:
        block = name.removesuffix(".to_q.weight")
        _fuse(state, tuple(f"{block}.to_{each}" for each in "qkv"), f"{block}.qkv")
    for ours, theirs in (
        ("all_final_layer.2-1.", "final_layer."),
        ("all_x_embedder.2-1.", "x_embedder."),
        (".attention.to_out.0.", ".attention.out."),
        (".attention.norm_k.", ".attention.k_norm."),
        (".attention.norm_q.", ".attention.q_norm."),
    ):
        state = {name.replace(ours, theirs): value for name, value in state.items()}
    return state


def name_as_lumina_2(state: Tensors) -> Tensors:
    state = dict(state)
    for name in [each for each in state if each.endswith(".attn.to_q.weight")]:
        block = name.removesuffix(".to_q.weight")
        _fuse(state, tuple(f"{block}.to_{each}" for each in "qkv"), f"{block}.qkv")
    for ours, theirs in (
        (r"^time_caption_embed\.caption_embedder", "cap_embedder"),
        (r"^time_caption_embed\.timestep_embedder\.linear_1", "t_embedder.mlp.0"),
        (r"^time_caption_embed\.timestep_embedder\.linear_2", "t_embedder.mlp.2"),
        (r"^norm_out\.linear_1", "final_layer.adaLN_modulation.1"),
        (r"^norm_out\.linear_2", "final_layer.linear"),
        (r"\.norm1\.linear\.", ".adaLN_modulation.1."),
        (r"\.norm1(\.norm)?\.weight", ".attention_norm1.weight"),
        (r"\.norm2\.weight", ".attention_norm2.weight"),
        (r"\.linear_([123])\.", r".w\1."),
        (r"\.attn\.norm_([qk])\.", r".attention.\1_norm."),
        (r"\.attn\.to_out\.0\.", ".attention.out."),
        (r"\.attn\.", ".attention."),
    ):
        state = {re.sub(ours, theirs, name): value for name, value in state.items()}
    return state


def name_denoiser(family: str, pipe: Any) -> Tensors:
    state = pipe.transformer.state_dict()
    config = pipe.transformer.config
    if family == "z-image":
        return name_as_z_image(state)
    if family == "lumina-2":
        return name_as_lumina_2(state)
    if family == "sd3":
        return name_as_sd3(state, config.num_layers)
    return name_as_flux(state, config.num_single_layers, config.num_layers)


def name_vae(vae: Any) -> Tensors:
    found = {}
    for name, value in vae.state_dict().items():
        theirs = _vae_name(name, len(vae.config.block_out_channels))
        convolution = "mid.attn_1" in theirs and theirs.endswith("weight") and value.ndim == 2
        found[theirs] = value[:, :, None, None] if convolution else value
    if "bn.running_mean" in found:  # FLUX.2's has these within
        place = {"quant_conv.": "encoder.", "post_quant_conv.": "decoder."}
        found = {"".join(first for mark, first in place.items() if name.startswith(mark)) + name: value for name, value in found.items()}
    return found


def name_encoder(encoder: Any) -> Tensors:
    """Name an encoder as transformers once did: CLIP's layers have a name before them."""
    state: Tensors = encoder.state_dict()
    if type(encoder).__name__.startswith("CLIP"):
        state = {name if name.startswith("text_") else f"text_model.{name}": value for name, value in state.items()}
    return state


def write(tensors: Mapping[str, torch.Tensor], path: Path, prefix: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({prefix + name: value.contiguous().clone() for name, value in tensors.items()}, path)
    return path


def write_gguf(tensors: Mapping[str, torch.Tensor], path: Path, kind: str = "flux") -> Tensors:
    """Write a GGUF file whose matrices have 8 bits; return its tensors as they are read again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, kind)
    read = {}
    eight = gguf.GGMLQuantizationType.Q8_0
    for name, value in tensors.items():
        whole = value.to(torch.float32).numpy()
        if whole.ndim == 2 and whole.shape[1] % 32 == 0 and whole.size > 1024:  # as converters do
            packed = gguf.quants.quantize(whole, eight)
            writer.add_tensor(name, packed, raw_dtype=eight)
            read[name] = torch.from_numpy(np.ascontiguousarray(gguf.quants.dequantize(packed, eight)))
        else:
            writer.add_tensor(name, whole)
            read[name] = value
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return read
