"""Store a picture's settings in its file: Hearth's JSON, and A1111's lines for other programs. Atomic; paths become
names."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import Final

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app import __version__
from app.base import atomic_write
from app.base.bounded_json import parse_json
from app.base.foreign_formats import open_picture
from app.base.picture_header import MAKER_NOTE, USER_COMMENT, read_exif
from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.outward import public_name, strip_paths
from app.engine.jobs.request import PictureRequest, from_json, to_json
from app.engine.pictures.files.alternatives import choose_words
from app.engine.pictures.files.foreign_json import read_json
from app.engine.pictures.files.foreign_settings import RestoredSettings, list_by_hand, quote, read_a1111, read_comfyui

OURS: Final = "hearth"
PARAMETERS: Final = "parameters"
INVOKEAI: Final = "invokeai_metadata"


def write(picture: Image.Image, path: Path, request: PictureRequest, model: str, read_as: str | None = None) -> None:
    """Write the picture with its settings; `read_as`: the caption that a starter painted for the prompt, if it is another."""
    info, ours = PngInfo(), {"version": __version__, "request": strip_paths(to_json(request))}
    info.add_itxt(PARAMETERS, format_a1111(request, model, read_as))
    info.add_itxt(OURS, json.dumps(ours | ({"read_as": read_as} if read_as else {}), ensure_ascii=False))
    with atomic_write.replacing(path) as unfinished:
        picture.save(unfinished, "PNG", pnginfo=info)


def write_enlarged(picture: Image.Image, path: Path, origin: Path, times: int, enlarger: str) -> None:
    """Write a picture that was enlarged after it was made, with what its origin says of itself, and that in A1111's words."""
    info, texts = PngInfo(), _read_texts(origin)
    done = f"Postprocess upscale by: {times}, Postprocess upscaler: {PurePath(public_name(enlarger)).stem or 'Lanczos'}"
    if PARAMETERS in texts:
        info.add_itxt(PARAMETERS, f"{texts[PARAMETERS]}, {done}")
    if OURS in texts:
        info.add_itxt(OURS, texts[OURS])
    with atomic_write.replacing(path) as unfinished:
        picture.save(unfinished, "PNG", pnginfo=info)


def format_a1111(request: PictureRequest, model: str, read_as: str | None = None) -> str:
    """Format the settings as A1111 does: the prompt with what its seed chose, the negative prompt, one line of settings."""
    words = choose_words(request.prompt, request.seed or 0)
    settings = {
        "Steps": request.steps, "Sampler": request.scheduler or "Automatic", "CFG scale": request.guidance,
        "Seed": request.seed, "Size": f"{request.width}x{request.height}",
        "ControlNet 0": _format_control(request) if request.guide else None,  # its own model before the one that paints: the last one counts
        "Model": quote(model),
        "Denoising strength": request.hires_strength if request.larger > 1 else request.strength if request.image else None,
        "Hires upscale": f"{request.upscale:g}" if request.larger > 1 else None,
        "Hires upscaler": quote(PurePath(public_name(request.enlarger)).stem) or None if request.larger > 1 else None,
        "Mask blur": request.mask_blur if request.mask else None,
        "Inpaint area": "Only masked" if request.mask and request.masked_only else None,
        "Masked area padding": request.masked_padding if request.mask and request.masked_only else None,
        "Template": json.dumps(request.prompt, ensure_ascii=False) if words != request.prompt else None,
        "Read as": json.dumps(read_as, ensure_ascii=False) if read_as else None,
        "Version": f"Hearth {__version__}",
    }  # fmt: skip
    loras = "".join(f" <lora:{PurePath(public_name(each.path)).stem}:{each.weight:g}>" for each in request.loras if not each.word)
    lines = [words + loras]
    if request.negative:
        lines.append(f"Negative prompt: {request.negative}")
    lines.append(", ".join(f"{name}: {value}" for name, value in settings.items() if value is not None))
    return "\n".join(lines)


def _format_control(request: PictureRequest) -> str:
    """Format what guided a picture as A1111's extension does, for people who read it there."""
    values = {
        "Module": {"edges": "canny", "depth": "depth", "pose": "openpose"}.get(request.guide_as, "none"), "Model": PurePath(public_name(request.control)).stem,
        "Weight": f"{request.guide_strength:g}", "Guidance Start": f"{request.guide_from:g}", "Guidance End": f"{request.guide_to:g}",
    }  # fmt: skip
    return quote(", ".join(f"{name}: {value}" for name, value in values.items()))


def read(path: Path) -> RestoredSettings:
    """Read a picture's settings; raise a Trouble if it is no picture or has no valid settings. Values from other
    programs are limited to what a request allows."""
    text = _read_texts(path)
    for key, reader in ((OURS, _read_ours), (PARAMETERS, read_parameters), (INVOKEAI, read_json), ("prompt", read_comfyui)):
        if key in text:
            try:
                return reader(text[key])
            except (ValueError, TypeError, KeyError, AttributeError, StopIteration):
                continue  # another program's text under the same name
    raise Trouble(
        say_to_all(
            "restore.nothing",
            "{path} has no settings that Hearth can read. Choose the file as Hearth, A1111 or ComfyUI saved it: messengers and editors remove them.",
            path=path.name,
        )
    )


def read_parameters(text: str) -> RestoredSettings:
    """Read A1111's lines, or what other programs write in their place."""
    return read_json(text) if text.lstrip().startswith("{") else read_a1111(text)


def read_text(path: Path) -> str:
    """Return the lines in A1111's format that a picture carries; empty if it has none."""
    return _read_texts(path).get(PARAMETERS, "")


def _read_texts(path: Path) -> dict[str, str]:
    try:
        with open_picture(path) as picture:
            text = {str(name): value for name, value in picture.info.items() if isinstance(value, str)}
            exif = picture.info.get("exif", b"")
    except (OSError, ValueError, Image.DecompressionBombError) as fault:
        raise Trouble(
            say_to_all(
                "restore.no-picture", "{path} is not a picture that Hearth can read. Choose a PNG, JPEG or WebP file.", path=path.name
            )
        ) from fault
    if isinstance(exif, bytes) and PARAMETERS not in text and (comment := read_exif(exif, USER_COMMENT)):
        text[PARAMETERS] = _decode_comment(comment)
    if isinstance(exif, bytes) and OURS not in text and (note := read_exif(exif, MAKER_NOTE)).startswith(b"{"):
        text[OURS] = note.decode(errors="replace")
    return text


def _read_ours(text: str) -> RestoredSettings:
    request = from_json(parse_json(text)["request"])
    if not isinstance(request, PictureRequest):
        raise ValueError("not a picture's settings")
    return RestoredSettings(request, list_by_hand(request))


CHARSETS: Final = (b"ASCII\0\0\0", b"UNICODE\0", b"JIS\0\0\0\0\0", b"\0" * 8)
"""EXIF puts one of these before a comment; Fooocus leaves it away."""


def _decode_comment(exif: bytes) -> str:
    """Decode the EXIF user comment in which A1111, Fooocus and SwarmUI store their lines in JPEG and WebP."""
    kind, body = (exif[:8], exif[8:]) if exif[:8] in CHARSETS else (b"", exif)
    if kind != b"UNICODE\0":
        return body.rstrip(b"\0").decode("utf-8", errors="replace")
    big = body[::2].count(0) >= body[1::2].count(0)  # A1111's in either order of bytes, SwarmUI's little endian
    return body.decode("utf-16-be" if big else "utf-16-le", errors="replace")
