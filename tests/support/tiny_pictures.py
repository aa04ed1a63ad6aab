"""Save tiny random pipelines of every family as diffusers folders: the real classes with a few thousand weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import diffusers
import pytest
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers.models.gemma import GemmaTokenizer
from transformers.models.gemma2 import Gemma2Config, Gemma2Model

from app.compat.planning.types import Dtype, Plan, Precision, Vae
from app.engine.models.model import Model

ENCODER_WIDTH, PROJECTED = 32, 16
"""The tiny IP-Adapters' encoder says so much of each patch, and of the whole picture."""
WORDS = [
    "a",
    "the",
    "red",
    "blue",
    "green",
    "ball",
    "house",
    "sea",
    "over",
    "under",
    "at",
    "dusk",
    "lighthouse",
    "small",
    "large",
    "not",
    "ugly",
]
LETTERS = [chr(code) for code in range(33, 127)]


def clip_tokenizer() -> Any:
    pieces = [*LETTERS, *(f"{each}</w>" for each in LETTERS), "<|startoftext|>", "<|endoftext|>"]
    return transformers.CLIPTokenizer(vocab={piece: index for index, piece in enumerate(pieces)}, merges=[], model_max_length=77)


def t5_tokenizer() -> Any:
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), *((each, -3.0) for each in LETTERS)]
    return transformers.T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=64)


def qwen_tokenizer() -> Any:
    pieces = {each: index for index, each in enumerate([*pre_tokenizers.ByteLevel.alphabet()])}
    tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast = transformers.Qwen2Tokenizer(
        vocab=pieces, merges=[], unk_token="<|endoftext|>", eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = (  # says what Qwen 3's says of messages without tools
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
        "<|im_start|>assistant\n{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
    )
    return fast


def clip(width: int = 32, projected: bool = False) -> Any:
    config = transformers.CLIPTextConfig(
        vocab_size=2 * len(LETTERS) + 2,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=2,
        num_attention_heads=2,
        projection_dim=width,
        bos_token_id=188,
        eos_token_id=189,
        pad_token_id=189,
    )
    return (transformers.CLIPTextModelWithProjection if projected else transformers.CLIPTextModel)(config)


def t5() -> Any:
    return transformers.T5EncoderModel(
        transformers.T5Config(
            vocab_size=len(LETTERS) + 4, d_model=32, d_ff=64, num_layers=2, num_heads=2, d_kv=16, feed_forward_proj="gated-gelu"
        )
    )


def qwen(layers: int = 3) -> Any:
    return transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(
            vocab_size=320,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            max_position_embeddings=1024,
        )
    )


def vae(channels: int = 4, widths: tuple[int, ...] = (16, 16, 32, 32), **more: Any) -> Any:
    """Make a VAE; each width after the first halves the picture once more."""
    return diffusers.AutoencoderKL(
        block_out_channels=widths,
        down_block_types=("DownEncoderBlock2D",) * len(widths),
        up_block_types=("UpDecoderBlock2D",) * len(widths),
        layers_per_block=1,
        latent_channels=channels,
        norm_num_groups=4,
        **more,
    )


def unet(cross: int, **more: Any) -> Any:
    shape: dict[str, Any] = {
        "block_out_channels": (16, 32),
        "layers_per_block": 1,
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    }
    return diffusers.UNet2DConditionModel(
        sample_size=8, norm_num_groups=4, cross_attention_dim=cross, attention_head_dim=4, **(shape | more)
    )


def sd15(widths: tuple[int, ...] = (16, 16, 32, 32)) -> Any:
    return diffusers.StableDiffusionPipeline(
        vae=vae(widths=widths),
        text_encoder=clip(),
        tokenizer=clip_tokenizer(),
        unet=unet(32),
        safety_checker=None,
        scheduler=diffusers.DDIMScheduler(
            beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, clip_sample=False, steps_offset=1
        ),
        feature_extractor=None,
        requires_safety_checker=False,
    )


SSD_1B: dict[str, Any] = {
    "mid_block_type": "UNetMidBlock2D", "transformer_layers_per_block": [1, [2, 2], [4, 4]],
    "reverse_transformer_layers_per_block": [[4, 4, 10], [2, 1, 1], 1],
}  # fmt: skip
"""SDXL's with fewer blocks, as ComfyUI's `supported_models` counts them, and one resnet in the middle."""
TINY_SSD_1B: dict[str, Any] = SSD_1B | {
    "block_out_channels": (16, 32, 64), "layers_per_block": 2,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
}  # fmt: skip
"""It has each layer of SSD-1B, but narrow."""


def sdxl(**shape: Any) -> Any:
    more = {
        "addition_embed_type": "text_time", "addition_time_embed_dim": 8, "projection_class_embeddings_input_dim": 32 + 6 * 8,
        "transformer_layers_per_block": (1, 1), "use_linear_projection": True,
    }  # fmt: skip
    return diffusers.StableDiffusionXLPipeline(
        vae=vae(scaling_factor=0.13025),
        text_encoder=clip(),
        text_encoder_2=clip(projected=True),
        unet=unet(64, **(more | shape)),
        tokenizer=clip_tokenizer(),
        tokenizer_2=clip_tokenizer(),
        add_watermarker=False,
        scheduler=diffusers.EulerDiscreteScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, steps_offset=1),
    )


def pixart() -> Any:
    return diffusers.PixArtSigmaPipeline(
        tokenizer=t5_tokenizer(),
        text_encoder=t5(),
        vae=vae(scaling_factor=0.13025),
        transformer=diffusers.PixArtTransformer2DModel(
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=4,
            out_channels=8,
            num_layers=2,
            cross_attention_dim=32,
            caption_channels=32,
            sample_size=8,
            patch_size=2,
            use_additional_conditions=False,
        ),
        scheduler=diffusers.DPMSolverMultistepScheduler(),
    )


def _shifted_vae(widths: tuple[int, ...] = (16, 16, 32, 32)) -> Any:
    return vae(16, widths, scaling_factor=1.5305, shift_factor=0.0609, use_quant_conv=False, use_post_quant_conv=False)


def sd3(widths: tuple[int, ...] = (16, 16, 32, 32)) -> Any:
    return diffusers.StableDiffusion3Pipeline(
        transformer=diffusers.SD3Transformer2DModel(
            sample_size=8,
            patch_size=2,
            in_channels=16,
            out_channels=16,
            num_layers=2,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=64,
            caption_projection_dim=32,
            pooled_projection_dim=64,
            pos_embed_max_size=32,
            qk_norm="rms_norm",
            dual_attention_layers=(0,),
        ),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=_shifted_vae(widths),
        text_encoder=clip(32, True),
        tokenizer=clip_tokenizer(),
        text_encoder_2=clip(32, True),
        tokenizer_2=clip_tokenizer(),
        text_encoder_3=_wide_t5(),
        tokenizer_3=t5_tokenizer(),
    )


def _wide_t5() -> Any:
    return transformers.T5EncoderModel(
        transformers.T5Config(
            vocab_size=len(LETTERS) + 4, d_model=64, d_ff=64, num_layers=2, num_heads=2, d_kv=16, feed_forward_proj="gated-gelu"
        )
    )


def flux() -> Any:
    return diffusers.FluxPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=_shifted_vae(),
        text_encoder=clip(),
        tokenizer=clip_tokenizer(),
        text_encoder_2=t5(),
        tokenizer_2=t5_tokenizer(),
        transformer=diffusers.FluxTransformer2DModel(
            in_channels=64,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            pooled_projection_dim=32,
            guidance_embeds=False,
            axes_dims_rope=(4, 4, 8),
        ),
    )


def chroma() -> Any:
    return diffusers.ChromaPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=_shifted_vae(),
        text_encoder=t5(),
        tokenizer=t5_tokenizer(),
        transformer=diffusers.ChromaTransformer2DModel(
            in_channels=64,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            axes_dims_rope=(4, 4, 8),
            approximator_num_channels=8,
            approximator_hidden_dim=32,
            approximator_layers=2,
        ),
    )


def klein() -> Any:
    pipe = _klein()
    pipe.vae.bn.running_mean.normal_(0, 0.3)  # as after training; the initial values have no effect
    pipe.vae.bn.running_var.uniform_(0.5, 2)
    return pipe


def _klein() -> Any:
    return diffusers.Flux2KleinPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=diffusers.AutoencoderKLFlux2(block_out_channels=(16, 16, 32, 32), layers_per_block=1, latent_channels=8, norm_num_groups=4),
        text_encoder=qwen(28),
        tokenizer=qwen_tokenizer(),
        is_distilled=True,
        transformer=diffusers.Flux2Transformer2DModel(
            patch_size=1,
            in_channels=32,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=96,
            axes_dims_rope=(4, 4, 4, 4),
            guidance_embeds=False,
            timestep_guidance_channels=32,
        ),
    )


def z_image(layers: int = 1) -> Any:
    return diffusers.ZImagePipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=_shifted_vae(),
        text_encoder=qwen(3),
        tokenizer=qwen_tokenizer(),
        transformer=diffusers.ZImageTransformer2DModel(
            in_channels=16,
            dim=32,
            n_layers=layers,
            n_refiner_layers=1,
            n_heads=2,
            n_kv_heads=2,
            cap_feat_dim=32,
            axes_dims=[4, 4, 8],
            axes_lens=[1024, 32, 32],
        ),
    )


def gemma_tokenizer() -> Any:
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", "\u2581", *LETTERS]
    return GemmaTokenizer(vocab={each: place for place, each in enumerate(pieces)}, merges=[])


def gemma() -> Any:
    return Gemma2Model(
        Gemma2Config(
            vocab_size=len(LETTERS) + 5,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            query_pre_attn_scalar=8,
        )
    )


def lumina_2() -> Any:
    return diffusers.Lumina2Pipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=6.0),
        vae=_shifted_vae(),
        text_encoder=gemma(),
        tokenizer=gemma_tokenizer(),
        transformer=diffusers.Lumina2Transformer2DModel(
            sample_size=8,
            hidden_size=32,
            num_layers=1,
            num_refiner_layers=2,
            num_attention_heads=2,
            num_kv_heads=1,
            multiple_of=32,
            cap_feat_dim=32,
            axes_dim_rope=(4, 4, 8),
            axes_lens=(300, 32, 32),
        ),
    )


MAKERS = {
    "sd15": sd15,
    "sdxl": sdxl,
    "pixart-sigma": pixart,
    "sd3": sd3,
    "flux": flux,
    "chroma": chroma,
    "flux2-klein": klein,
    "z-image": z_image,
    "lumina-2": lumina_2,
}

KINDS = ("sd15", "flux", "z-image")
"""One is a UNet over latents as they are, one a transformer over packed ones, and one takes lists."""
ONE_A_KIND = [family if family in KINDS else pytest.param(family, marks=pytest.mark.slow) for family in MAKERS]
"""It serves for what differs by kind; the rest is left to the long run."""


def save(family: str, folder: Path, **shape: Any) -> Path:
    """Save a pipeline of this family, with the same weights every time."""
    torch.manual_seed(7)
    pipe = MAKERS[family](**shape)
    for part in pipe.components.values():
        if isinstance(part, torch.nn.Module):
            _fill(part)
    pipe.save_pretrained(folder)
    return folder


def _fill(part: torch.nn.Module) -> None:
    """Fill a part with random weights: the initial ones are so small that every picture is grey, and those that are zero would hide a wrong input."""
    part.eval()
    with torch.no_grad():
        for weight in part.parameters():
            if weight.ndim > 1:
                weight.normal_(0, (2 / weight[0].numel()) ** 0.5)


def save_control(model: Path, folder: Path, seed: int = 8) -> Path:
    """Save a control model for the model in this folder."""
    torch.manual_seed(seed)
    unet = diffusers.UNet2DConditionModel.from_pretrained(model / "unet")
    control = diffusers.ControlNetModel.from_unet(unet, conditioning_embedding_out_channels=(8, 8, 16, 16))
    _fill(control)
    control.save_pretrained(folder)
    return folder


def save_z_image_control(
    model: Path, folder: Path, refined: str | None = "control_noise_refiner", layers: int = 2, channels: int = 33
) -> Path:
    """Save a control model for the Z-Image in this folder, as one of its makers': 1.0 has no refiner of its own, 2.0 one that it does not use."""
    torch.manual_seed(8)
    own = diffusers.ZImageTransformer2DModel.load_config(model / "transformer")
    control = diffusers.ZImageControlNetModel(
        control_layers_places=[place * own["n_layers"] // layers for place in range(layers)],
        control_refiner_layers_places=[0],
        control_in_dim=channels,
        add_control_noise_refiner=refined,
        **{name: own[name] for name in ("dim", "n_refiner_layers", "n_heads", "n_kv_heads")},
    )
    _fill(control)
    control.save_pretrained(folder)
    return folder


def save_adapter(model: Path, folder: Path, plus: bool = False, seed: int = 9) -> Path:
    """Save an IP-Adapter for the model in this folder, as its makers write them, and beside it the encoder that it was made with."""
    torch.manual_seed(seed)
    unet = diffusers.UNet2DConditionModel.from_pretrained(model / "unet")
    cross, tensors = unet.config.cross_attention_dim, dict[str, torch.Tensor]()
    layers = [name.removesuffix(".processor") for name in unet.attn_processors if name.endswith("attn2.processor")]
    for place, name in enumerate(layers):
        width = unet.get_submodule(name).to_k.out_features
        tensors |= {f"ip_adapter.{2 * place + 1}.to_{each}_ip.weight": torch.randn(width, cross) for each in "kv"}
    if plus:
        projection = diffusers.models.embeddings.IPAdapterPlusImageProjection(ENCODER_WIDTH, cross, 64, 4, 64, 1, 4)
        theirs = {"ln0": "0.norm1", "ln1": "0.norm2", "attn": "0", "ff.0": "1.0", "ff.1.net.0.proj": "1.1", "ff.1.net.2": "1.3"}
        for name, tensor in projection.state_dict().items():
            if ".attn.to_v." in name:
                continue
            if ".attn.to_k." in name:
                tensor = torch.cat([tensor, projection.state_dict()[name.replace("to_k", "to_v")]])
                name = name.replace("to_k", "to_kv")
            name = name.replace("to_out.0", "to_out")
            layer = next((each for each in theirs if f".{each}." in name), None)
            tensors[f"image_proj.{name.replace(f'.{layer}.', f'.{theirs[layer]}.') if layer else name}"] = tensor
    else:
        tensors |= {"image_proj.proj.weight": torch.randn(4 * cross, PROJECTED), "image_proj.proj.bias": torch.zeros(4 * cross)}
        tensors |= {"image_proj.norm.weight": torch.ones(cross), "image_proj.norm.bias": torch.zeros(cross)}
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "like.safetensors")
    config = transformers.CLIPVisionConfig(
        hidden_size=ENCODER_WIDTH,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
        projection_dim=PROJECTED,
        hidden_act="gelu",
    )
    encoder = transformers.CLIPVisionModelWithProjection(config)
    _fill(encoder)
    encoder.save_pretrained(folder / "image_encoder")
    return folder / "like.safetensors"


def make_plan(model: Model, dtype: Dtype = "float32", **changes: Any) -> Plan:
    """Return a plan such as decide() makes for a CPU."""
    precision = tuple(Precision(part.name, part.role, dtype, dtype, "cpu") for part in model.parts)
    plain = Plan(
        device="cpu",
        dtype=dtype,
        score_dtype=None,
        gqa="native",
        chunk_q="auto",
        chunk_most=None,
        chunk_k=None,
        ways=(),
        budget_bytes=1 << 28,
        contiguous=False,
        explicit_mask=False,
        expand_mask=False,
        pad_value=False,
        pad_heads=False,
        zero_masked_rows=False,
        kernels=("math",),
        precision=precision,
        offload="none",
        vae=Vae(),
        quantised="none",
        product="torch",
        row="calls",
        attention="sdpa",
        convolution="torch",
        channels_last=False,
        environment=(),
        because=(),
    )
    return replace(plain, **changes)
