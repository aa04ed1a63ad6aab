"""Write full-size models with random weights as real folders: Dia 1.6B, Stable Diffusion 1.5 and XL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import DacConfig, DacModel, DiaConfig, DiaForConditionalGeneration, DiaTokenizer

from bench.full_size import PIPELINES

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
        pipe = PIPELINES[family]()
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
