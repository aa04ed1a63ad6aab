"""Make the first edition's untrained text encoder and UNet; the rest is the second edition's."""

from __future__ import annotations

from diffusers import UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

TOKENS = 48  # the longest caption of the domain has about 40
TEXT_WIDTH = 128
MAX_BYTES = 12_000_000


def make_unet() -> UNet2DConditionModel:
    """Make a UNet with attention over 256 and 64 tokens at 128 px, 1024 and 256 at 256 px; none at full size."""
    return UNet2DConditionModel(
        sample_size=32, in_channels=4, out_channels=4, block_out_channels=(32, 64, 120), layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=TEXT_WIDTH, attention_head_dim=(2, 4, 6), norm_num_groups=8,
    )  # fmt: skip


def make_text_encoder(tokenizer: CLIPTokenizer) -> CLIPTextModel:
    return CLIPTextModel(CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=TEXT_WIDTH, intermediate_size=4 * TEXT_WIDTH, projection_dim=TEXT_WIDTH,
        num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=TOKENS, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    ))  # fmt: skip
