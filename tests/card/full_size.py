"""Write full-size models with random weights as real folders: Dia 1.6B, Stable Diffusion 1.5 and XL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from transformers import DacConfig, DacModel, DiaConfig, DiaForConditionalGeneration, DiaTokenizer

from tests.support.tiny_pictures import clip_tokenizer

DEVICE = "cuda"


def _drawn(model: Any) -> Any:
    """Initialise so that each layer's output is as large as its input."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(0, weight[0].numel() ** -0.5)
    return model.eval()


@torch.no_grad()
def voice(folder: Path) -> Path:
    """Write Dia in half precision, its codec in folder/"codec". It never ends by itself."""
    torch.manual_seed(0)
    with torch.device(DEVICE):
        model = _drawn(DiaForConditionalGeneration(DiaConfig()))
    for name, weight in model.named_parameters():
        if name.endswith("q_proj.weight"):
            weight.mul_(128**-0.5)  # Dia does not scale its scores
        if "embed" in name:
            weight.normal_(0, 0.5)
    decoder = model.config.decoder_config
    model.logits_dense.weight.mul_(2)
    model.logits_dense.weight.view(decoder.num_channels, decoder.vocab_size, -1)[:, decoder.eos_token_id] = 0
    model.half().save_pretrained(folder)
    DiaTokenizer().save_pretrained(folder)
    with torch.device(DEVICE):
        codec = DacModel(DacConfig(sampling_rate=44100)).eval()
        for module in codec.modules():
            if isinstance(module, torch.nn.Conv1d | torch.nn.ConvTranspose1d):
                size = module.in_channels * module.kernel_size[0] / module.stride[0]
                torch.nn.init.normal_(module.weight, std=0.7 * size**-0.5)
    codec.save_pretrained(folder / "codec")
    return folder


@torch.no_grad()
def picture(family: str, folder: Path) -> Path:
    torch.manual_seed(1)
    with torch.device(DEVICE):
        pipe = {"sd15": _sd15, "sdxl": _sdxl}[family]()
        for name in ("unet", "vae"):
            _drawn(getattr(pipe, name))
        # A noise and a picture as large as a trained model's.
        latents = torch.randn(1, 4, 64, 64)
        more = {"text_embeds": torch.randn(1, 1280), "time_ids": torch.ones(1, 6)} if family == "sdxl" else None
        words = torch.randn(1, 77, pipe.unet.config.cross_attention_dim)
        noise = pipe.unet(latents, 500, words, added_cond_kwargs=more, return_dict=False)[0]
        pipe.unet.conv_out.weight.div_(noise.std())
        pipe.vae.decoder.conv_out.weight.mul_(0.4 / pipe.vae.decode(latents, return_dict=False)[0].std())
    pipe.to(torch.float16).save_pretrained(folder)
    return folder


def _vae(**more: Any) -> Any:
    return diffusers.AutoencoderKL(
        block_out_channels=(128, 256, 512, 512), down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4, layers_per_block=2, latent_channels=4, **more,
    )  # fmt: skip


def _clip(hidden: int, layers: int, heads: int, kind: Any = transformers.CLIPTextModel) -> Any:
    return kind(
        transformers.CLIPTextConfig(
            vocab_size=49408, hidden_size=hidden, intermediate_size=4 * hidden, num_hidden_layers=layers,
            num_attention_heads=heads, projection_dim=hidden, bos_token_id=188, eos_token_id=189, pad_token_id=189,
        )
    ).eval()  # fmt: skip


def _sd15() -> Any:
    return diffusers.StableDiffusionPipeline(
        vae=_vae(sample_size=512), text_encoder=_clip(768, 12, 12), tokenizer=clip_tokenizer(),
        unet=diffusers.UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8),
        scheduler=diffusers.PNDMScheduler(
            beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, steps_offset=1, skip_prk_steps=True
        ),
        safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip


def _sdxl() -> Any:
    return diffusers.StableDiffusionXLPipeline(
        vae=_vae(sample_size=1024, scaling_factor=0.13025), text_encoder=_clip(768, 12, 12),
        text_encoder_2=_clip(1280, 32, 20, transformers.CLIPTextModelWithProjection),
        tokenizer=clip_tokenizer(), tokenizer_2=clip_tokenizer(), add_watermarker=False,
        unet=diffusers.UNet2DConditionModel(
            sample_size=128, cross_attention_dim=2048, block_out_channels=(320, 640, 1280), attention_head_dim=(5, 10, 20),
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
            transformer_layers_per_block=(1, 2, 10), use_linear_projection=True, addition_embed_type="text_time",
            addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816,
        ),
        scheduler=diffusers.EulerDiscreteScheduler(
            beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, steps_offset=1
        ),
    )  # fmt: skip
