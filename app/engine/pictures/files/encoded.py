"""A painted picture's file in another format or size, with its settings inside as other programs write them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from app.base.foreign_formats import decode, open_picture
from app.base.picture_header import EXIF_FOLDER, MAKER_NOTE, USER_COMMENT
from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.pictures.files.picture_settings import OURS, PARAMETERS

Format = Literal["png", "jpeg", "webp"]
FORMATS: Final[tuple[Format, ...]] = ("png", "jpeg", "webp")
QUALITY: Final = 90
ENDINGS: Final = {"png": "png", "jpeg": "jpg", "webp": "webp"}
SIDES: Final = {"png": 2**31 - 1, "jpeg": 65_535, "webp": 16_383}
"""A side may have so many pixels in each."""
EXIF_MOST_BYTES: Final = 60_000
"""A JPEG has room for no more beside its pixels."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a picture is to be sent."""

    format: Format = "png"
    quality: int = QUALITY
    size: tuple[int, int] | None = None
    """None: it stays as it was painted."""

    def changes(self, path: Path) -> bool:
        """Whether the file itself is not yet what was asked for."""
        with open_picture(path) as made:
            return self.format != "png" or self.size not in (None, made.size)


def encode_picture(path: Path, wanted: Wanted) -> bytes:
    """Return a painted picture's file, made anew where its size or format is another one."""
    if not wanted.changes(path):
        return path.read_bytes()
    with open_picture(path) as opened:
        texts = {str(name): value for name, value in opened.info.items() if isinstance(value, str)}
        picture = decode(opened, "RGB")
    if max(wanted.size or picture.size) > SIDES[wanted.format]:
        raise Trouble(
            say_to_all(
                "picture.side",
                "This picture has a side of {side} {side:pixel|pixels}; {format} takes up to {most}. Save it as PNG.",
                side=max(wanted.size or picture.size),
                format=wanted.format.upper(),
                most=SIDES[wanted.format],
            )
        )
    if wanted.size is not None and picture.size != wanted.size:
        picture = ImageOps.fit(picture, wanted.size, Image.Resampling.LANCZOS)
    made, more = io.BytesIO(), dict[str, Any]()
    if wanted.format == "png":
        info = PngInfo()
        for name, value in texts.items():
            info.add_itxt(name, value)
        more["pnginfo"] = info
    else:  # the lines as A1111 writes them
        exif = Image.Exif()
        left = EXIF_MOST_BYTES
        for tag, note in (
            (USER_COMMENT, b"UNICODE\0" + texts.get(PARAMETERS, "").encode("utf-16-be")),
            (MAKER_NOTE, texts.get(OURS, "").encode()),
        ):
            if len(note) <= left:
                exif.get_ifd(EXIF_FOLDER)[tag] = note
                left -= len(note)
        more |= {"quality": wanted.quality, "exif": exif}
    picture.save(made, wanted.format.upper(), **more)
    return made.getvalue()
