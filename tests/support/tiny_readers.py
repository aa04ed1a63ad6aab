"""Save tiny models that read pictures, with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers.models.depth_anything import DepthAnythingConfig, DepthAnythingForDepthEstimation
from transformers.models.dinov2 import Dinov2Config
from transformers.models.florence2 import Florence2Config, Florence2ForConditionalGeneration
from transformers.models.rt_detr import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig
from transformers.models.sam import SamConfig, SamModel
from transformers.models.vitpose import VitPoseConfig, VitPoseForPoseEstimation
from transformers.models.vitpose_backbone import VitPoseBackboneConfig


def save_depth(folder: Path, seed: int = 0) -> Path:
    """Save one in the layout of Depth Anything V2, whose patches have 14 pixels a side."""
    torch.manual_seed(seed)
    backbone = Dinov2Config(
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        mlp_ratio=2,
        image_size=56,
        patch_size=14,
        out_indices=[1, 2, 3, 4],
        reshape_hidden_states=False,
        apply_layernorm=True,
    )
    config = DepthAnythingConfig(
        backbone_config=backbone, reassemble_hidden_size=16, neck_hidden_sizes=[4, 8, 16, 16], fusion_hidden_size=8, head_hidden_size=8
    )
    return _save(_draw(DepthAnythingForDepthEstimation(config)), folder)


def save_finder(folder: Path, seed: int = 0, certain: float = 4.0) -> Path:
    """Save one in the layout of RT-DETR with a ResNet-18. `certain`: by how much it takes everything for people."""
    backbone = RTDetrResNetConfig(
        hidden_sizes=[8, 8, 16, 16], embedding_size=8, depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage2", "stage3", "stage4"]
    )
    config = RTDetrConfig(
        backbone_config=backbone,
        encoder_in_channels=[8, 16, 16],
        encoder_hidden_dim=16,
        encoder_ffn_dim=16,
        encoder_attention_heads=2,
        hidden_expansion=0.5,
        d_model=16,
        decoder_in_channels=[16, 16, 16],
        decoder_ffn_dim=16,
        decoder_attention_heads=2,
        decoder_layers=2,
        num_queries=8,
        num_labels=4,
    )
    torch.manual_seed(seed)
    model: Any = RTDetrForObjectDetection(config)
    _draw(model)
    model.model.decoder.class_embed[-1].bias.data[0] = certain
    return _save(model, folder)


def save_pose(folder: Path, seed: int = 0) -> Path:
    """Save one in the layout of ViTPose with its simple head, at its real size of pictures."""
    backbone = VitPoseBackboneConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2, out_indices=[2])
    torch.manual_seed(seed)
    return _save(_draw(VitPoseForPoseEstimation(VitPoseConfig(backbone_config=backbone, num_labels=17))), folder)


def _draw(model: Any) -> Any:
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model


def _save(model: Any, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    return folder


def save_sam(folder: Path, seed: int = 0) -> Path:
    """Save one in the layout of SlimSAM: its settings are those of Segment Anything but for what is named, and its parts have no type."""
    torch.manual_seed(seed)
    vision: dict[str, Any] = {
        "hidden_size": 24,
        "mlp_dim": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 128,
        "output_channels": 32,
    }
    vision |= {"window_size": 3, "global_attn_indexes": [1], "num_pos_feats": 16}
    shared = {"hidden_size": 32}
    parts = {
        "vision_config": vision,
        "prompt_encoder_config": {**shared, "image_size": 128},
        "mask_decoder_config": {**shared, "mlp_dim": 32, "num_attention_heads": 2, "iou_head_hidden_dim": 16},
    }
    _save(_draw(SamModel(SamConfig(**parts))), folder)
    untyped = {name: {**values, "model_type": ""} for name, values in parts.items()}
    (folder / "config.json").write_text(json.dumps({"architectures": ["SamModel"], "model_type": "sam", **untyped}))
    return folder


def save_florence(folder: Path, seed: int = 0) -> Path:
    """Save one in the layout of Florence-2, with a token for each byte."""
    letters = sorted(ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE({letter: place for place, letter in enumerate(letters, 3)}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), ByteDecoder()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<image>"])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text("{}")
    begin, pad, end, image = (tokenizer.token_to_id(each) for each in ("<s>", "<pad>", "</s>", "<image>"))
    vision = {
        "embed_dim": [8, 8, 16, 16],
        "num_heads": [1, 1, 2, 2],
        "num_groups": [1, 1, 2, 2],
        "depths": [1, 1, 1, 1],
        "projection_dim": 16,
    }
    text = {"model_type": "bart", "d_model": 16, "vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": 1024}
    text |= {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", 1), ("ffn_dim", 16), ("attention_heads", 2))
    }
    text |= {"bos_token_id": begin, "pad_token_id": pad, "eos_token_id": end, "decoder_start_token_id": end}
    torch.manual_seed(seed)
    return _save(
        _draw(Florence2ForConditionalGeneration(Florence2Config(text_config=text, vision_config=vision, image_token_id=image))), folder
    )
