"""The pictures of an answer to another program: in the size and format that it asked for, with their settings inside."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from app.base.foreign_formats import decode, open_picture
from app.base.sentence import say
from app.base.trouble import BadRequest
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.settings import PICTURES
from app.engine.models.on_disk import find_model
from app.engine.pictures.files.picture_settings import PARAMETERS
from app.ui.state.desk import Desk

Format = Literal["png", "jpeg", "webp"]
FORMATS: Final[tuple[Format, ...]] = ("png", "jpeg", "webp")
SCALES: Final[tuple[int, ...]] = tuple(PICTURES["upscale"].choices)
QUALITY: Final = 90
EXIF_TAGS, USER_COMMENT = 0x8769, 0x9286


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a picture is to be sent."""

    format: Format = "png"
    quality: int = QUALITY
    size: tuple[int, int] | None = None
    """None: as it was painted."""

    def changes(self, path: Path) -> bool:
        """Whether the file itself is not yet what was asked for."""
        with open_picture(path) as made:
            return self.format != "png" or self.size not in (None, made.size)


def choose_scale(asked: float) -> int:
    """Return the least scale that there is and that is no smaller than asked, or the largest."""
    return next((each for each in SCALES if each >= asked), max(SCALES))


def fit_size(desk: Desk, request: PictureRequest) -> tuple[PictureRequest, tuple[int, int] | None]:
    """Have a model that paints in one size enlarge its picture; return the size to scale that to, if it is still another one than asked for.
    Raise a Trouble for another shape."""
    settings = find_model(desk.keeper.home, request).settings
    own = settings.width, settings.height
    asked = request.width or own[0], request.height or own[1]
    if settings.least != settings.most or asked == own or request.upscale > 1:
        return request, None
    scale = asked[0] / own[0]
    if asked[0] * own[1] != asked[1] * own[0] or scale > max(SCALES):
        raise BadRequest(
            say(
                "api.one-size",
                "This model paints {size} and enlarges that to {largest} at most; {asked} is larger or has another shape. Ask for {size}.",
                size=write_size(own), largest=write_size((own[0] * max(SCALES), own[1] * max(SCALES))), asked=write_size(asked),
            ),
            field="size",
        )  # fmt: skip
    upscale = choose_scale(scale)
    return replace(request, width=None, height=None, upscale=upscale), None if upscale == scale else asked


def write_size(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def encode_picture(path: Path, wanted: Wanted) -> bytes:
    """Return a painted picture's file, made anew where its size or format is another one."""
    if not wanted.changes(path):
        return path.read_bytes()
    with open_picture(path) as opened:
        texts = {str(name): value for name, value in opened.info.items() if isinstance(value, str)}
        picture = decode(opened, "RGB")
    if wanted.size is not None and picture.size != wanted.size:
        picture = ImageOps.fit(picture, wanted.size, Image.Resampling.LANCZOS)
    made, more = io.BytesIO(), dict[str, Any]()
    if wanted.format == "png":
        info = PngInfo()
        for name, value in texts.items():
            info.add_itxt(name, value)
        more["pnginfo"] = info
    else:  # as A1111 writes it
        exif = Image.Exif()
        exif.get_ifd(EXIF_TAGS)[USER_COMMENT] = b"UNICODE\0" + texts.get(PARAMETERS, "").encode("utf-16-be")
        more |= {"quality": wanted.quality, "exif": exif}
    picture.save(made, wanted.format.upper(), **more)
    return made.getvalue()
