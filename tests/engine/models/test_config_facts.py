"""Every number, list and word of a model's settings is in its range, or the model cannot be used."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from app.base.trouble import Trouble
from app.engine.models.config_facts import FACTS, SHOWN_MOST, judge, read_config
from tests.support.places import TOP


def write(folder: Path, values: Any) -> Path:
    (folder / "config.json").write_text(values if isinstance(values, str) else json.dumps(values))
    return folder


@pytest.mark.parametrize("field", FACTS)
def test_what_is_out_of_a_facts_range_is_refused_wherever_it_stands(field: str, tmp_path: Path) -> None:
    fact = FACTS[field]
    wrong: list[Any] = [{"a": 1}, True, [], [[[1]]], [1] * (fact.listed + 1)]
    if fact.kind is str:
        wrong += [5, "x" * 201]
    else:
        wrong += ["8", fact.most * 2, *([fact.least - 1] if fact.least > -1e300 else [])]
    for value in wrong:
        for values in ({field: value}, {"inner": [{"deeper": {field: value}}]}):
            with pytest.raises(Trouble, match=f"its config.json says {field} "):
                read_config(write(tmp_path, values), "config.json")
    least = "" if fact.kind is str else max(fact.least, -5)
    for value in (None, least, *([[least]] if fact.listed else [])):
        assert read_config(write(tmp_path, {field: value}), "config.json") == {field: value}


@pytest.mark.parametrize(
    "values",
    [{"x": 10**40}, {"x": -1e40}, {"x": ["a", {"b": [1e35]}]}, '{"x": Infinity}', '{"x": NaN}', '{"x": 1e999}', '{"x": 1, "x": 2}', "[" * 20 + "]" * 20,
     '{"sample_size": 64, "sample_size": 8}', '{"x": ' + "9" * 5000 + "}"],
)  # fmt: skip
def test_what_has_no_range_of_its_own_is_a_plain_number_that_stands_once(values: Any, tmp_path: Path) -> None:
    with pytest.raises((Trouble, ValueError)):
        read_config(write(tmp_path, values), "config.json")


def test_real_settings_are_in_range(tmp_path: Path) -> None:
    for path in (TOP / "assets" / "starter").rglob("*config.json"):
        read_config(path.parent, path.name)
    read_config(TOP / "assets" / "starter" / "voice", "starter.json")
    judge(
        {
            "model_max_length": 1000000000000000019884624838656,
            "transformer_layers_per_block": [1, 2, 10],
            "attention_head_dim": [5, 10, 20],
            "reverse_transformer_layers_per_block": [[4, 4, 10], [2, 1, 1], 1],
            "rope_theta": 5000000,
            "sample_size": [128, 128],
            "num_attention_heads": None,
            "delay_pattern": [0, 8, 9, 10, 11, 12, 13, 14, 15],
            "downsampling_ratios": [2, 4, 8, 8],
            "eos_token_id": [151645, 151643],
            "axes_dims": [32, 48, 48],
        }
    )
    assert read_config(write(tmp_path, '{"lambda_min_clipped": -Infinity}'), "config.json")  # of DPM-Solver


PUBLISHED: dict[str, dict[str, Any]] = {
    "SDXL's unet": {"attention_head_dim": [5, 10, 20], "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048, "in_channels": 4,
        "addition_time_embed_dim": 256, "projection_class_embeddings_input_dim": 2816, "transformer_layers_per_block": [1, 2, 10], "sample_size": 128,
        "norm_num_groups": 32, "layers_per_block": 2, "num_attention_heads": None, "addition_embed_type_num_heads": 64},
    "an inpainting unet": {"in_channels": 9, "attention_head_dim": 8, "block_out_channels": [320, 640, 1280, 1280], "cross_attention_dim": 768},
    "SDXL's vae": {"block_out_channels": [128, 256, 512, 512], "latent_channels": 4, "sample_size": 1024, "scaling_factor": 0.13025},
    "SD 3.5's transformer": {"attention_head_dim": 64, "caption_projection_dim": 2432, "joint_attention_dim": 4096, "num_attention_heads": 38,
        "num_layers": 38, "pooled_projection_dim": 2048, "pos_embed_max_size": 384, "patch_size": 2, "dual_attention_layers": list(range(13))},
    "SD 3.5's vae": {"latent_channels": 16, "scaling_factor": 1.5305, "shift_factor": 0.0609},
    "FLUX.1's transformer": {"in_channels": 64, "joint_attention_dim": 4096, "num_layers": 19, "num_single_layers": 38, "patch_size": 1,
        "pooled_projection_dim": 768, "axes_dims_rope": [16, 56, 56], "num_attention_heads": 24, "attention_head_dim": 128},
    "FLUX.2's transformers": {"in_channels": 128, "out_channels": None, "joint_attention_dim": 15360, "num_attention_heads": 48, "num_layers": 8,
        "num_single_layers": 48, "axes_dims_rope": [32, 32, 32, 32], "timestep_guidance_channels": 256, "rope_theta": 2000, "mlp_ratio": 3.0},
    "Z-Image's transformer": {"all_f_patch_size": [1], "all_patch_size": [2], "axes_dims": [32, 48, 48], "axes_lens": [1536, 512, 512],
        "cap_feat_dim": 2560, "dim": 3840, "n_heads": 30, "n_kv_heads": 30, "n_layers": 30, "n_refiner_layers": 2, "t_scale": 1000.0},
    "Qwen3 4B": {"bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_size": 2560, "intermediate_size": 9728,
        "layer_types": ["full_attention"] * 36, "max_position_embeddings": 40960, "num_attention_heads": 32, "num_hidden_layers": 36,
        "num_key_value_heads": 8, "rope_theta": 1000000, "vocab_size": 151936},
    "CLIP's largest": {"hidden_size": 1280, "intermediate_size": 5120, "max_position_embeddings": 77, "num_attention_heads": 20,
        "num_hidden_layers": 32, "vocab_size": 49408, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1},
    "T5 XXL": {"d_ff": 10240, "d_kv": 64, "d_model": 4096, "num_heads": 64, "num_layers": 24, "num_decoder_layers": 24, "vocab_size": 32128,
        "relative_attention_max_distance": 128, "relative_attention_num_buckets": 32, "decoder_start_token_id": 0},
    "Dia": {"bos_token_id": 1026, "eos_token_id": 1024, "pad_token_id": 1025, "delay_pattern": [0, 8, 9, 10, 11, 12, 13, 14, 15], "num_channels": 9},
    "codecs": {"downsampling_ratios": [8, 5, 4, 2, 3], "upsampling_ratios": [12, 10, 8, 2], "hop_length": 1920, "sampling_rate": 48000,
        "n_codebooks": 16, "codebook_size": 1024, "codebook_dim": 128, "encoder_hidden_size": 64, "decoder_hidden_size": 1536},
    "schedulers": {"beta_end": 0.012, "beta_start": 0.00085, "num_train_timesteps": 1000, "steps_offset": 1, "sigma_max": None, "shift": 3.0},
}  # fmt: skip


@pytest.mark.parametrize("what", PUBLISHED)
def test_what_known_models_say_is_in_range(what: str) -> None:
    judge(PUBLISHED[what])


def test_what_the_libraries_write_by_default_is_in_range(tmp_path: Path) -> None:
    """Each class that a family's part may have, each scheduler, and the configs of all text encoders and of Dia and its codec."""
    import diffusers
    import transformers

    from app.engine.models.picture_families import FAMILIES

    named = {kind for family in FAMILIES.values() for kinds in family.parts.values() for kind in kinds if hasattr(diffusers, kind)}
    named |= {name for name in dir(diffusers) if name.endswith("Scheduler") and isinstance(getattr(diffusers, name, None), type)}
    assert {"Flux2Transformer2DModel", "AutoencoderKLFlux2", "FlowMatchEulerDiscreteScheduler"} < named and len(named) > 30
    for name in sorted(named):
        taken = inspect.signature(getattr(diffusers, name).__init__).parameters.values()
        values = {each.name: each.default for each in taken if each.default is not inspect.Parameter.empty}
        read_config(write(tmp_path, json.dumps(values, default=str)), "config.json")
    for config in ("CLIPTextConfig", "T5Config", "Qwen3Config", "DiaConfig", "DacConfig"):
        values = getattr(transformers, config)().to_dict()
        assert len(values) > 10
        read_config(write(tmp_path, json.dumps(values)), "config.json")


def test_the_sentence_shows_a_foreign_value_short_and_in_plain_letters(tmp_path: Path) -> None:
    with pytest.raises(Trouble) as told:
        read_config(write(tmp_path, {"name": "\x1b[2J\u202e" + "x" * 5000}), "config.json")
    value = dict(told.value.sentence.values)["value"]
    assert isinstance(value, str) and value.isprintable() and len(value) <= SHOWN_MOST + 1


def test_no_pipe_is_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(OSError, match="not a regular file"):
        read_config(tmp_path, "config.json")
