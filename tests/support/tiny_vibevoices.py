"""Save a tiny VibeVoice with random weights, as transformers saves it and as its repository lies on the hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as Joined
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import GenerationConfig, VibeVoiceAcousticTokenizerFeatureExtractor, VibeVoiceConfig, VibeVoiceForConditionalGeneration

LATENT: Final = 8
FRAME, BEGIN, CLOSE, END = SPECIAL = ("<|vision_pad|>", "<|vision_start|>", "<|vision_end|>", "<|endoftext|>")
"""The first one is said where all are as likely."""
NOISE: Final = {"beta_schedule": "squaredcos_cap_v2", "prediction_type": "v_prediction"}


def save_vibevoice(folder: Path, *, seed: int = 0, steps: int = 4, endless: bool = False, shard: str = "5GB", **text: Any) -> Path:
    """Save one that speaks noise. `endless`: until it is cut off. `text`: of its language model's config."""
    torch.manual_seed(seed)
    pieces = _save_tokenizer(folder)
    tower = {"hidden_size": LATENT, "num_filters": 2, "downsampling_ratios": [2, 2, 4, 5, 5, 8], "depths": [1, 1, 1, 1, 1, 1, 2]}
    config = VibeVoiceConfig(
        text_config={
            "model_type": "qwen2",
            "vocab_size": len(pieces),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": False,
            **text,
        },
        audio_config={"model_type": "vibevoice_acoustic_tokenizer", **tower},
        semantic_model_config={"model_type": "vibevoice_acoustic_tokenizer_encoder", **tower, "hidden_size": 12},
        diffusion_head_config={"intermediate_size": 64, "num_hidden_layers": 2, "frequency_embedding_size": 16},
        pad_token_id=pieces[END],
        eos_token_id=pieces[END],
        audio_bos_token_id=pieces[BEGIN],
        audio_eos_token_id=pieces[CLOSE],
        audio_token_id=pieces[FRAME],
    )
    model: Any = VibeVoiceForConditionalGeneration(config)
    for name, weight in model.named_parameters():
        if weight.ndim > 1:
            fan = weight[0].numel() if "convtr" not in name else weight.shape[0]
            torch.nn.init.normal_(weight, std=0.3 if "embed" in name else fan**-0.5)
        elif name.endswith(("bias", "gamma")):
            torch.nn.init.normal_(weight, std=0.3)
    if endless:
        model.lm_head.weight.data.zero_()
    model.model.latent_scaling_factor.data.fill_(0.5)
    model.model.latent_bias_factor.data.fill_(-0.1)
    model.generation_config = GenerationConfig(
        do_sample=False,
        guidance_scale=1.3,
        max_new_tokens=40,
        num_diffusion_steps=steps,
        noise_scheduler_class="DPMSolverMultistepScheduler",
        noise_scheduler_config=NOISE,
        eos_token_id=pieces[END],
        pad_token_id=pieces[END],
    )
    model.eval().save_pretrained(folder, max_shard_size=shard)
    extractor: Any = VibeVoiceAcousticTokenizerFeatureExtractor()
    values = {"processor_class": "VibeVoiceProcessor", "feature_extractor": extractor.to_dict()}
    (folder / "processor_config.json").write_text(json.dumps(values), "utf-8")
    return folder


def save_as_on_the_hub(folder: Path, **more: Any) -> Path:
    """Save one in several files, with a template that must not run."""
    save_vibevoice(folder, shard="150KB", **more)
    (folder / "chat_template.jinja").write_text("{% for a in range(9999999999) %}{% endfor %}", "utf-8")
    return folder


def _save_tokenizer(folder: Path) -> dict[str, int]:
    """Write a tokenizer of single bytes as Qwen's lie there; return its pieces."""
    folder.mkdir(parents=True)
    pieces = {each: index for index, each in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(pieces, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), Joined()
    tokenizer.add_special_tokens([AddedToken(each, special=True) for each in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {"tokenizer_class": "Qwen2Tokenizer", "eos_token": END, "pad_token": END, "unk_token": None}
    (folder / "tokenizer_config.json").write_text(json.dumps(named), "utf-8")
    found: dict[str, int] = tokenizer.get_vocab()
    return found
