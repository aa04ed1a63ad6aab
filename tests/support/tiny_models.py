"""Make a tiny random model of every kind that Hearth runs, each with a run through all of its attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from diffusers import (
    AutoencoderKL,
    Flux2Transformer2DModel,
    FluxTransformer2DModel,
    PixArtTransformer2DModel,
    SD3Transformer2DModel,
    UNet2DConditionModel,
    ZImageTransformer2DModel,
)
from torch import Tensor, nn
from transformers import CLIPTextConfig, CLIPTextModel, DiaConfig, DiaForConditionalGeneration, T5Config, T5EncoderModel
from transformers.models.dia.configuration_dia import DiaDecoderConfig, DiaEncoderConfig

from app.compat.planning.types import Role

WORDS: Final = 77


@dataclass(frozen=True)
class Family:
    role: Role
    make: Callable[[], nn.Module]
    run: Callable[[nn.Module, torch.dtype], Tensor]
    grouped: bool = False
    half_is_safe: bool = True

    def build(self, dtype: torch.dtype) -> nn.Module:
        """Make the model with the same weights every time, rounded to `dtype`."""
        torch.manual_seed(7)
        return self.make().eval().requires_grad_(False).to(dtype)


def noise(*shape: int, seed: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def tokens(*shape: int, most: int) -> Tensor:
    return torch.randint(0, most, shape, generator=torch.Generator().manual_seed(3))


def make_mask(rows: int, length: int, pad: int) -> Tensor:
    """Return the mask of a batch whose second row is shorter."""
    mask = torch.ones(rows, length, dtype=torch.long)
    mask[1, length - pad :] = 0
    return mask


def dia() -> nn.Module:
    encoder = DiaEncoderConfig(
        max_position_embeddings=128,
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=64,
    )
    decoder = DiaDecoderConfig(
        max_position_embeddings=128,
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=16,
        cross_num_attention_heads=4,
        cross_num_key_value_heads=4,
        cross_head_dim=16,
        cross_hidden_size=32,
        intermediate_size=64,
        vocab_size=68,
        num_channels=2,
        eos_token_id=64,
        pad_token_id=65,
        bos_token_id=66,
    )
    model = DiaForConditionalGeneration(DiaConfig(encoder_config=encoder, decoder_config=decoder, delay_pattern=[0, 1]))
    for parameter in model.parameters():
        if parameter.ndim > 1:  # at its default width of 0.02 hardly anything depends on attention
            nn.init.normal_(parameter, std=0.08)
    return model


def run_dia(model: nn.Module, dtype: torch.dtype) -> Tensor:
    """Run a padded text and a sound prompt of 40 rows, then one step with the cache."""
    text, heard, step = tokens(2, 24, most=200), tokens(2, 40, 2, most=64), tokens(2, 1, 2, most=64)
    asked = {"input_ids": text, "attention_mask": make_mask(2, 24, 9)}
    first = model(**asked, decoder_input_ids=heard, use_cache=True)
    second = model(
        encoder_outputs=(first.encoder_last_hidden_state,),
        attention_mask=asked["attention_mask"],
        decoder_input_ids=step,
        cache=first.cache,
        use_cache=True,
    )
    return torch.cat([first.logits, second.logits], dim=-2 if first.logits.dim() == 3 else 1)


def clip() -> nn.Module:
    return CLIPTextModel(
        CLIPTextConfig(
            vocab_size=100,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=WORDS,
            projection_dim=32,
            bos_token_id=0,
            eos_token_id=1,
        )
    )


def run_clip(model: nn.Module, dtype: torch.dtype) -> Tensor:
    """Run without a mask, so that attention is causal by its flag, and with one."""
    words = tokens(2, WORDS, most=100)
    return torch.cat([model(words, attention_mask=mask).last_hidden_state for mask in (None, make_mask(2, WORDS, 30))])


def t5() -> nn.Module:
    return T5EncoderModel(T5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4))


def run_t5(model: nn.Module, dtype: torch.dtype) -> Tensor:
    return model(tokens(2, 40, most=100), attention_mask=make_mask(2, 40, 15)).last_hidden_state


def unet() -> Any:
    return UNet2DConditionModel(
        sample_size=16,
        layers_per_block=1,
        block_out_channels=(32, 64),
        cross_attention_dim=32,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        norm_num_groups=8,
    )


def run_unet(model: nn.Module, dtype: torch.dtype) -> Tensor:
    latents, words = noise(2, 4, 16, 16, seed=1, dtype=dtype), noise(2, WORDS, 32, seed=2, dtype=dtype)
    return model(latents, torch.tensor(5), words).sample


def unet_xl() -> Any:
    return UNet2DConditionModel(
        sample_size=16,
        layers_per_block=1,
        block_out_channels=(32, 64),
        cross_attention_dim=32,
        attention_head_dim=(2, 4),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        transformer_layers_per_block=(1, 2),
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=80,
        norm_num_groups=8,
    )


def run_unet_xl(model: nn.Module, dtype: torch.dtype) -> Tensor:
    latents, words = noise(2, 4, 16, 16, seed=1, dtype=dtype), noise(2, WORDS, 32, seed=2, dtype=dtype)
    added = {"text_embeds": noise(2, 32, seed=3, dtype=dtype), "time_ids": noise(2, 6, seed=4, dtype=dtype)}
    return model(latents, torch.tensor(5), words, added_cond_kwargs=added).sample


def vae() -> Any:
    return AutoencoderKL(
        block_out_channels=(16, 32),
        down_block_types=("DownEncoderBlock2D",) * 2,
        latent_channels=4,
        sample_size=32,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=8,
    )


def run_vae(model: nn.Module, dtype: torch.dtype) -> Tensor:
    return model(noise(1, 3, 32, 32, seed=1, dtype=dtype)).sample


def sd3() -> Any:
    return SD3Transformer2DModel(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=4,
        joint_attention_dim=32,
        caption_projection_dim=32,
        pooled_projection_dim=64,
        out_channels=4,
        pos_embed_max_size=16,
        qk_norm="rms_norm",
    )


def run_sd3(model: nn.Module, dtype: torch.dtype) -> Tensor:
    latents, words = noise(2, 4, 16, 16, seed=1, dtype=dtype), noise(2, 20, 32, seed=2, dtype=dtype)
    return model(latents, words, noise(2, 64, seed=3, dtype=dtype), torch.tensor([5, 5])).sample


def pixart() -> Any:
    return PixArtTransformer2DModel(
        sample_size=16,
        num_layers=2,
        patch_size=2,
        attention_head_dim=8,
        num_attention_heads=4,
        in_channels=4,
        cross_attention_dim=32,
        out_channels=8,
        caption_channels=32,
        use_additional_conditions=False,
    )


def run_pixart(model: nn.Module, dtype: torch.dtype) -> Tensor:
    latents, words = noise(2, 4, 16, 16, seed=1, dtype=dtype), noise(2, 20, 32, seed=2, dtype=dtype)
    no_size = {"resolution": None, "aspect_ratio": None}
    return model(
        latents, words, timestep=torch.tensor([5, 5]), encoder_attention_mask=make_mask(2, 20, 8).to(dtype), added_cond_kwargs=no_size
    ).sample


def flux() -> Any:
    return FluxTransformer2DModel(
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=2,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=(4, 4, 8),
        guidance_embeds=False,
    )


def places(side: int, axes: int) -> Tensor:
    """Return the row and column of each latent of a square, in the second and third axis."""
    found = torch.zeros(side * side, axes)
    found[:, 1] = torch.arange(side).repeat_interleave(side)
    found[:, 2] = torch.arange(side).repeat(side)
    return found


def run_flux(model: nn.Module, dtype: torch.dtype) -> Tensor:
    return model(
        hidden_states=noise(1, 64, 4, seed=1, dtype=dtype),
        encoder_hidden_states=noise(1, 20, 32, seed=2, dtype=dtype),
        pooled_projections=noise(1, 32, seed=3, dtype=dtype),
        timestep=torch.tensor([0.5]).to(dtype),
        img_ids=places(8, 3),
        txt_ids=torch.zeros(20, 3),
    ).sample


def flux2() -> Any:
    return Flux2Transformer2DModel(
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=2,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        timestep_guidance_channels=16,
        axes_dims_rope=(4, 4, 4, 4),
        guidance_embeds=False,
    )


def run_flux2(model: nn.Module, dtype: torch.dtype) -> Tensor:
    return model(
        hidden_states=noise(1, 64, 4, seed=1, dtype=dtype),
        encoder_hidden_states=noise(1, 20, 32, seed=2, dtype=dtype),
        timestep=torch.tensor([0.5]).to(dtype),
        img_ids=places(8, 4),
        txt_ids=torch.zeros(20, 4),
    ).sample


def z_image() -> Any:
    return ZImageTransformer2DModel(
        in_channels=4,
        dim=32,
        n_layers=2,
        n_refiner_layers=1,
        n_heads=2,
        n_kv_heads=2,
        cap_feat_dim=32,
        axes_dims=[4, 4, 8],
        axes_lens=[128, 32, 32],
    )


def run_z_image(model: nn.Module, dtype: torch.dtype) -> Tensor:
    """Run two prompts of unequal length, so that there is padding."""
    latents = [noise(4, 1, 16, 16, seed=each, dtype=dtype) for each in (1, 2)]
    words = [noise(length, 32, seed=length, dtype=dtype) for length in (20, 40)]
    return torch.stack(model(latents, torch.tensor([0.5, 0.5]).to(dtype), words).sample)


FAMILIES: Final[dict[str, Family]] = {
    "dia": Family("speech", dia, run_dia, grouped=True),
    "clip": Family("text", clip, run_clip),
    "t5": Family("text", t5, run_t5),
    "sd15-unet": Family("denoiser", unet, run_unet),
    "sdxl-unet": Family("denoiser", unet_xl, run_unet_xl),
    "vae": Family("vae", vae, run_vae),
    "sd3": Family("denoiser", sd3, run_sd3),
    "pixart": Family("denoiser", pixart, run_pixart),
    "flux": Family("denoiser", flux, run_flux),
    "flux2": Family("denoiser", flux2, run_flux2),
    "z-image": Family("denoiser", z_image, run_z_image, half_is_safe=False),
}
