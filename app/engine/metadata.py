"""A picture's settings, written into its PNG: Hearth's own JSON, and A1111's lines that other programs read. restore.py reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app import __version__
from app.engine.request import PictureRequest, to_json

OURS: Final = "hearth"
PARAMETERS: Final = "parameters"


def write(picture: Image.Image, path: Path, request: PictureRequest, model: str) -> None:
    info = PngInfo()
    info.add_itxt(PARAMETERS, parameters(request, model))
    info.add_itxt(OURS, json.dumps({"version": __version__, "request": to_json(request)}, ensure_ascii=False))
    half_written = path.with_suffix(".part")
    picture.save(half_written, "PNG", pnginfo=info)
    half_written.replace(path)


def parameters(request: PictureRequest, model: str) -> str:
    """As A1111 writes it: the prompt, the negative prompt, one line of settings."""
    settings = {
        "Steps": request.steps, "Sampler": request.scheduler, "CFG scale": request.guidance,
        "Seed": request.seed, "Size": f"{request.width}x{request.height}", "Model": model,
        "Denoising strength": request.strength if request.image else None, "Version": f"Hearth {__version__}",
    }  # fmt: skip
    loras = "".join(f" <lora:{Path(each.path).stem}:{each.weight:g}>" for each in request.loras)
    lines = [request.prompt + loras]
    if request.negative:
        lines.append(f"Negative prompt: {request.negative}")
    lines.append(", ".join(f"{name}: {value}" for name, value in settings.items() if value is not None))
    return "\n".join(lines)
