"""What a model's settings may say: each number, list and word by the name of its field, with the least and the most that models have.

Whatever reads a config that others wrote reads it here, so that nothing behind it ever meets a number out of range."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.base.bounded_json import Bounds, read_json
from app.base.sentence import say
from app.base.trouble import Trouble

CONFIG: Final = Bounds(depth=16, unique=True, infinite=True)
NUMBER_MOST: Final = 1e31
"""No number in a field that is not listed may be larger. Tokenizers without a limit write 1e30 as theirs."""
WORD_MOST: Final = 200
SHOWN_MOST: Final = 40
PATH_MOST: Final = 120
"""A sentence shows so many letters of a value, and of a file's name."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What a field may hold besides null."""

    kind: type[int] | type[float] | type[str]
    least: float = 0
    """No value is less than this; for a word its letters count."""
    most: float = WORD_MOST
    listed: int = 0
    """Where it may be a list, it has at most so many values; 0: it is a single value."""
    lists: int = 1
    """Lists may lie this deep in lists."""


def _whole(least: int, most: int, listed: int = 0, lists: int = 1) -> Fact:
    return Fact(int, least, most, listed, lists)


def _number(least: float, most: float, listed: int = 0) -> Fact:
    return Fact(float, least, most, listed)


_LEVELS: Final = 16
"""A UNet, a VAE or a codec has at most so many levels."""
_WIDTH: Final = _whole(1, 1 << 20, _LEVELS)
_COUNT: Final = _whole(0, 1024, 64)
_HEADS: Final = _whole(1, 1024, _LEVELS)
_HEAD: Final = _whole(1, 4096, _LEVELS)
_TOKEN: Final = _whole(-1, 1 << 24, 64)
_ORDER: Final = _whole(0, 16)
"""A scheduler keeps at most so many earlier steps."""
_SECONDS: Final = _number(0.1, 600)
_WORD: Final = Fact(str)
_WORDS: Final = Fact(str, listed=256)

FACTS: Final[dict[str, Fact]] = {
    # Denoisers and VAEs
    "sample_size": _whole(1, 16_384, 4), "block_out_channels": _whole(1, 65_536, _LEVELS), "layers_per_block": _whole(1, 64, _LEVELS),
    "transformer_layers_per_block": _whole(0, 64, 64, 2), "reverse_transformer_layers_per_block": _whole(0, 64, 64, 2),
    "down_block_types": Fact(str, listed=_LEVELS), "up_block_types": Fact(str, listed=_LEVELS), "patch_size": _whole(1, 256, 4),
    "in_channels": _whole(1, 65_536), "out_channels": _whole(1, 65_536), "latent_channels": _whole(1, 65_536), "norm_num_groups": _whole(1, 4096),
    "cross_attention_dim": _WIDTH, "joint_attention_dim": _WIDTH, "pooled_projection_dim": _WIDTH, "caption_projection_dim": _WIDTH,
    "caption_channels": _WIDTH, "cap_feat_dim": _WIDTH, "addition_time_embed_dim": _WIDTH, "projection_class_embeddings_input_dim": _WIDTH,
    "timestep_guidance_channels": _WIDTH, "pos_embed_max_size": _whole(1, 65_536), "axes_dims": _whole(0, 4096, 8),
    "axes_dims_rope": _whole(0, 4096, 8), "axes_lens": _whole(1, 1 << 24, 8), "scaling_factor": _number(1e-6, 1e6), "shift_factor": _number(-1e6, 1e6),
    "axes_dim_rope": _whole(0, 4096, 8), "control_in_dim": _WIDTH, "control_layers_places": _whole(0, 1024, 256),
    "control_refiner_layers_places": _whole(0, 1024, 64),
    # Layers, heads and widths of any of them
    "num_refiner_layers": _COUNT, "num_kv_heads": _HEADS, "multiple_of": _WIDTH, "query_pre_attn_scalar": _number(1, 65_536),
    "num_layers": _COUNT, "num_single_layers": _COUNT, "n_layers": _COUNT, "n_refiner_layers": _COUNT, "num_hidden_layers": _COUNT,
    "num_decoder_layers": _COUNT, "num_attention_heads": _HEADS, "num_key_value_heads": _HEADS, "cross_num_attention_heads": _HEADS,
    "cross_num_key_value_heads": _HEADS, "num_heads": _HEADS, "n_heads": _HEADS, "n_kv_heads": _HEADS, "attention_head_dim": _HEAD,
    "head_dim": _HEAD, "cross_head_dim": _HEAD, "d_kv": _HEAD, "dim": _WIDTH, "d_model": _WIDTH, "d_ff": _WIDTH, "hidden_size": _WIDTH,
    "cross_hidden_size": _WIDTH, "intermediate_size": _WIDTH, "encoder_hidden_size": _WIDTH, "decoder_hidden_size": _WIDTH,
    # What reads pictures
    "image_size": _whole(1, 16_384, 4), "out_indices": _whole(-64, 1024, 64), "neck_hidden_sizes": _WIDTH, "fusion_hidden_size": _WIDTH,
    "reassemble_hidden_size": _WIDTH, "head_hidden_size": _WIDTH, "reassemble_factors": _number(1e-3, 64, _LEVELS),
    "hidden_sizes": _WIDTH, "embedding_size": _WIDTH, "encoder_hidden_dim": _WIDTH, "encoder_in_channels": _WIDTH, "decoder_in_channels": _WIDTH,
    "encoder_ffn_dim": _WIDTH, "decoder_ffn_dim": _WIDTH, "encoder_layers": _COUNT, "decoder_layers": _COUNT, "encoder_attention_heads": _HEADS,
    "decoder_attention_heads": _HEADS, "hidden_expansion": _number(1e-3, 64), "feat_strides": _whole(1, 1024, _LEVELS),
    "num_queries": _whole(1, 65_536), "num_feature_levels": _whole(1, _LEVELS), "decoder_n_points": _whole(1, 64), "num_denoising": _whole(0, 65_536),
    "num_experts": _whole(1, 1024), "part_features": _whole(0, 65_536),
    # Text
    "vocab_size": _whole(1, 1 << 24), "max_position_embeddings": _whole(1, 1 << 24), "relative_attention_num_buckets": _whole(1, 65_536),
    "relative_attention_max_distance": _whole(1, 1 << 24), "model_max_length": _number(1, NUMBER_MOST), "eos_token_id": _TOKEN,
    "bos_token_id": _TOKEN, "pad_token_id": _TOKEN, "decoder_start_token_id": _TOKEN, "num_labels": _whole(0, 10_000), "extra_ids": _whole(0, 10_000),
    # Voices and their codecs
    "delay_pattern": _whole(0, 4096, 64), "num_channels": _whole(1, 64), "sampling_rate": _whole(1000, 768_000), "hop_length": _whole(1, 1 << 20),
    "downsampling_ratios": _whole(1, 256, _LEVELS), "upsampling_ratios": _whole(1, 256, _LEVELS), "n_codebooks": _whole(1, 64),
    "codebook_size": _whole(1, 1 << 20), "codebook_dim": _WIDTH,
    "latent_dim": _WIDTH, "latent_stride": _whole(1, 65_536), "condition_dim": _WIDTH, "frequency_embedding_size": _WIDTH, "num_filters": _WIDTH,
    "num_residual_layers": _COUNT, "kernel_size": _whole(1, 4096), "last_kernel_size": _whole(1, 4096), "residual_kernel_size": _whole(1, 4096),
    "dilation_growth_rate": _whole(1, 64), "compress": _whole(1, 1024), "upsample_groups": _WIDTH, "sliding_window": _whole(1, 1 << 24),
    "audio_prompt_dim": _WIDTH, "audio_prompt_bos_token_id": _TOKEN, "num_speakers": _whole(0, 1 << 20), "num_speakers_vocab_size": _WIDTH,
    "num_speakers_embedding_dim": _WIDTH, "duration_delta_embedding_dim": _WIDTH, "loss_weighting_hidden_size": _WIDTH,
    "loss_weighting_num_layers": _COUNT, "frame_rate": _number(0.1, 1000), "languages": _WORDS, "embeddings_ext": _WORDS,
    "depths": _whole(1, 256, _LEVELS), "ffn_expansion": _whole(1, 64), "latent_size": _WIDTH, "channels": _whole(1, 64),
    "audio_bos_token_id": _TOKEN, "audio_eos_token_id": _TOKEN, "audio_token_id": _TOKEN, "target_dB_FS": _number(-100, 100),
    # Schedulers and generation
    "num_train_timesteps": _whole(1, 100_000), "steps_offset": _whole(0, 1000), "solver_order": _ORDER, "predictor_order": _ORDER, "corrector_order": _ORDER,
    "beta_start": _number(0, 1), "beta_end": _number(0, 1),
    "shift": _number(1e-3, 1000), "guidance_scale": _number(0, 1000), "temperature": _number(0, 1000), "top_p": _number(0, 1),
    "num_flow_steps": _whole(1, 256), "num_diffusion_steps": _whole(1, 256), "eos_threshold": _number(-1e6, 1e6), "min_frames_before_eos": _whole(0, 10_000),
    "frames_after_eos": _whole(0, 1000), "frames_after_eos_short_text": _whole(0, 1000), "short_text_max_words": _whole(0, 1000),
    "top_k": _number(0, 1 << 24), "lambda_min_clipped": _number(-math.inf, NUMBER_MOST),
    # starter.json of a voice
    "longest_s": _SECONDS, "part_least_s": _number(0, 600), "part_aim_s": _SECONDS, "part_most_s": _SECONDS, "clip_most_s": _SECONDS,
    "bytes_per_s": _number(1, 1000), "signs_per_s_most": _number(1, 1000), "signs_per_s": _number(1, 1000),
    "silence_s": _number(0, 600), "outgrown": _number(1, 1000), "name": _WORD, "edition": _WORD, "letters": _WORD, "nonverbals": _WORDS,
    "usual": _WORDS, "own_voices": _WORDS,
}  # fmt: skip


class StrangeFactError(ValueError):
    """A value that no model has."""

    def __init__(self, field: str, value: Any) -> None:
        super().__init__(f"{field} {value}")
        self.field, self.value = shorten(field), shorten(f'"{value}"' if isinstance(value, str) else value)


def judge(values: Any, facts: Mapping[str, Fact] = FACTS) -> None:
    """Raise StrangeFactError for the first value that is out of its range, by the name of its field. The values are as `read_json` returns
    them: no NaN, and not deep."""
    waiting = [("", values)]
    while waiting:
        field, value = waiting.pop()
        fact = facts.get(field)
        if fact is not None:
            judge_fact(field, value, fact)
        elif isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [("" if isinstance(each, dict) else field, each) for each in value]
        elif isinstance(value, int | float) and abs(value) > NUMBER_MOST:
            raise StrangeFactError(field, value)


def judge_fact(field: str, value: Any, fact: Fact) -> None:
    """Raise StrangeFactError if a value is out of its range."""
    flat = [value]
    for _ in range(fact.lists if fact.listed else 0):
        if [] in flat or sum(len(each) for each in flat if isinstance(each, list)) > fact.listed:
            raise StrangeFactError(field, value)
        flat = [inner for each in flat for inner in (each if isinstance(each, list) else [each])]
    for each in flat:
        if each is not None and not _is_in_range(each, fact):
            raise StrangeFactError(field, each)


def _is_in_range(value: Any, fact: Fact) -> bool:
    if fact.kind is str:
        return isinstance(value, str) and len(value) <= fact.most
    if isinstance(value, bool) or not isinstance(value, int if fact.kind is int else int | float):
        return False
    return fact.least <= value <= fact.most


def shorten(value: Any, most: int = SHOWN_MOST) -> str:
    """Return a value in the few printable letters that a sentence has room for."""
    words = "".join(each if each.isprintable() else "?" for each in value) if isinstance(value, str) else ascii(value)
    return words if len(words) <= most else f"{words[:most]}…"


def read_config(folder: Path, name: str) -> dict[str, Any]:
    """Return the judged settings in a model's folder; {} for what is no object. Raise a Trouble for a value that no model has, OSError or
    ValueError for what cannot be read."""
    values = read_json(folder / name, CONFIG)
    try:
        judge(values)
    except StrangeFactError as strange:
        raise refuse_fact(folder, name, strange.field, strange.value) from strange
    return values if isinstance(values, dict) else {}


def read_config_if_there(folder: Path, name: str) -> dict[str, Any]:
    return read_config(folder, name) if os.path.lexists(folder / name) else {}


def refuse_fact(folder: Path, name: str, field: str, value: Any, cure: str = "") -> Trouble:
    return Trouble(
        say(
            "detect.fact",
            "The model in {path} cannot be used: its {file} says {field} {value}, which no such model has. "
            "Download it again, or remove it from the list.",
            path=str(folder),
            file=shorten(name, PATH_MOST),
            field=field,
            value=shorten(value),
        ),
        cure=cure,
    )
