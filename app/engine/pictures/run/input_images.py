"""Open the user's pictures safely, turn them upright and fit them to the size that is painted."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Final

from PIL import Image, ImageCms, ImageOps

from app.base.foreign_formats import HEIC, OWN_PICTURES, START_BYTES, decode, on_white, open_picture, to_eight_bits, turn_upright
from app.base.path_checks import is_file
from app.base.regular_file import open_regular
from app.base.sentence import Sentence, say
from app.base.trouble import Impossible
from app.engine.jobs.settings import PICTURES
from app.engine.models.model import ModelSettings

LEAST_PIXELS_A_SIDE: Final = 16
PROFILE_MOST: Final = 4 << 20
"""A printer's colour profile has up to 3 MB, a phone's half a kilobyte."""
WITH_PROFILES: Final = ("RGB", "CMYK", "L")
"""A profile may tell the colours of these modes."""
CUT: Final = 0.02
"""Shapes may differ this far before it is worth a word."""
MOST_PIXELS: Final = 100_000_000
"""A photo of 12,000 x 8,000 is let through; a decompression bomb is refused by its header."""


def open_image(path: str) -> Image.Image:
    """Return the picture in RGB, upright; raise a Trouble if it is unreadable, too small or too large, by its name: a command's is a copy elsewhere."""
    file = Path(path)
    if not is_file(file):
        raise Impossible(say("image.missing", "The picture {path} was not found. Choose it again.", path=path))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the size is checked right below
            with open_picture(file, OWN_PICTURES) as picture:
                _check_size(file.name, *picture.size)
                upright = on_white(to_eight_bits(turn_upright(decode(picture))))
                return to_srgb(upright).convert("RGB")
    except Image.DecompressionBombError as fault:
        raise _too_large(file.name) from fault
    except (OSError, SyntaxError, ValueError) as fault:
        if is_heic(file):
            raise Impossible(
                say(
                    "image.heic",
                    "{path} is a HEIC picture, which Hearth cannot read. Save it as JPEG or PNG first; an iPhone takes JPEG with the camera's format "
                    'set to "Most Compatible".',
                    path=file.name,
                )
            ) from fault
        raise Impossible(
            say(
                "image.not-a-picture",
                "{path} cannot be read as a picture; it may be damaged. Choose another one ({formats}).",
                path=file.name,
                formats=OWN_PICTURES,
            )
        ) from fault


def is_heic(file: Path) -> bool:
    try:
        with open_regular(file) as opened:
            return HEIC.match(opened.read(START_BYTES)) is not None
    except OSError:
        return False


def to_srgb(picture: Image.Image) -> Image.Image:
    """Convert the colours of a picture with a profile, such as a phone's Display P3, to sRGB, which is what models paint in: taken for it they are
    paler. One whose profile cannot be read or is another kind's stays as it is."""
    profile = picture.info.get("icc_profile")
    if not profile or len(profile) > PROFILE_MOST or picture.mode not in WITH_PROFILES:
        return picture
    try:
        own = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        found = ImageCms.profileToProfile(picture, own, ImageCms.createProfile("sRGB"), outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return picture
    return found or picture


def _check_size(name: str, width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise _too_large(name)
    if min(width, height) < LEAST_PIXELS_A_SIDE:
        raise Impossible(
            say(
                "image.too-small",
                "{path} is only {width} x {height} pixels. Choose a picture of at least {least} {least:pixel|pixels} a side.",
                path=name,
                width=width,
                height=height,
                least=LEAST_PIXELS_A_SIDE,
            )
        )


def _too_large(name: str) -> Impossible:
    return Impossible(
        say(
            "image.too-large",
            "{path} has more than {most} million pixels, too many to open safely. Scale it down first.",
            path=name,
            most=MOST_PIXELS // 1_000_000,
        )
    )


def choose_size(width: int | None, height: int | None, settings: ModelSettings, shape: tuple[int, int] | None) -> tuple[int, int]:
    """Choose the size: the one asked for, else the shape of what it starts from, else the model's default. Some models have only one."""
    if settings.one_size:
        return settings.width, settings.height
    if shape is not None and width is None and height is None:
        return settings.fit_shape(shape)
    width, height = width or settings.width, height or settings.height
    for name, value in (("width", width), ("height", height)):
        if value % settings.multiple or value < settings.least:
            raise Impossible(
                say(
                    "image.multiple",
                    "{name} is {value}, but this model needs a multiple of {multiple}, at least {least}. Try {near}.",
                    name=PICTURES[name].said,
                    value=value,
                    multiple=settings.multiple,
                    least=settings.least,
                    near=settings.round_side(value),
                )
            )
    return width, height


def crop_to(image: Image.Image, width: int, height: int) -> Image.Image:
    """Crop to the shape and scale, without distortion."""
    return ImageOps.fit(image, (width, height), Image.Resampling.LANCZOS)


def have_one_shape(image: Image.Image, width: int, height: int) -> bool:
    """Tell whether next to nothing is cut off where this is cropped to another picture's shape."""
    return abs(image.width * height / (image.height * width) - 1) < CUT


def note_cut_mask(mask: Image.Image, start: Image.Image) -> Sentence | None:
    """Say so if a mask has another shape than its starting picture, as it is painted elsewhere then than it was drawn."""
    if have_one_shape(mask, *start.size):
        return None
    return say(
        "image.mask-cut",
        "The mask is {own} and the starting picture {size}, so the mask was cut to its shape. Draw the mask on the picture itself.",
        own=f"{mask.width} x {mask.height}",
        size=f"{start.width} x {start.height}",
    )


def fit_mask(whole: Image.Image, width: int, height: int) -> Image.Image:
    """Return the mask, white where the picture is repainted; raise a Trouble if nothing is white, or nothing is left of it in this shape."""
    drawn = _mark_white(crop_to(whole, width, height))
    if drawn.getbbox() is not None:
        return drawn
    if not have_one_shape(whole, width, height) and _mark_white(whole).getbbox():
        raise Impossible(
            say(
                "image.mask-outside",
                "What is marked is cut off at {size}, which has another shape than the starting picture. Leave the size open, or mark another area.",
                size=f"{width} x {height}",
            )
        )
    raise Impossible(say("image.empty-mask", "Nothing is marked in the mask. Mark the area to repaint in white."))


def _mark_white(drawn: Image.Image) -> Image.Image:
    return drawn.convert("L").point(lambda value: 255 if value >= 128 else 0)
