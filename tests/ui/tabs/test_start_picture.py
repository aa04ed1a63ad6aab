"""The starting picture as the page sends it: turned upright, on white, with a mask of the size at which the page showed it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from app.base.trouble import Trouble
from app.engine.pictures.run.input_images import fit_mask, open_image
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs.start_picture import save_pictures
from tests.support.guests import desk_at

ORIENTATION = 0x0112


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "home") as desk:
        yield desk


def draw_mask(path: Path, size: tuple[int, int]) -> str:
    """Write a mask as the page draws it, over the left half."""
    drawn = Image.new("RGBA", size)
    drawn.paste((232, 89, 12, 255), (0, 0, size[0] // 2, size[1]))
    drawn.save(path)
    return str(path)


def test_a_photo_taken_upright_is_painted_upright(desk: Desk, tmp_path: Path) -> None:
    """A phone stores it lying, with a word on how it was held: the engine got it lying, and its mask was refused."""
    held = Image.Exif()
    held[ORIENTATION] = 6
    lying = Image.new("RGB", (400, 300), "teal")
    lying.paste("yellow", (0, 0, 100, 300))
    lying.save(tmp_path / "photo.jpg", exif=held, quality=95)
    photo = str(tmp_path / "photo.jpg")
    picture, mask = save_pictures(desk, [photo, draw_mask(tmp_path / "mask.png", (300, 400))], OWNER)
    assert picture and mask
    assert open_image(picture).size == open_image(photo).size == (300, 400)
    red, green, blue = open_image(picture).getpixel((150, 20))  # type: ignore[misc]
    assert red > 200 and green > 200 and blue < 60, "its top is where it was when it was taken"
    assert fit_mask(open_image(mask), 300, 400).getbbox() == (0, 0, 150, 400)


def test_a_photo_is_stored_quickly(desk: Desk, tmp_path: Path) -> None:
    """Of a photo of 12 million pixels Pillow's usual packing took six seconds of the processor before the job was in the queue; now one."""
    Image.new("RGB", (64, 48), "teal").save(tmp_path / "photo.png")
    picture, _ = save_pictures(desk, [str(tmp_path / "photo.png")], OWNER)
    assert picture
    packed = Path(picture).read_bytes().partition(b"IDAT")[2]
    assert packed[1] >> 6 == 0, "zlib says there which level packed it: the quickest"


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_becomes_white(mode: str, desk: Desk, tmp_path: Path) -> None:
    clear = Image.new("RGBA", (32, 32), (0, 0, 0, 0)).convert(mode)
    clear.save(tmp_path / "clear.png", transparency=0 if mode == "P" else None)
    picture, _ = save_pictures(desk, [str(tmp_path / "clear.png")], OWNER)
    assert picture and open_image(picture).getpixel((9, 9)) == (255, 255, 255)


@pytest.mark.parametrize(
    ("photo", "shown"),
    [((4032, 3024), (4000, 3000)), pytest.param((3024, 4032), (3000, 4000), marks=pytest.mark.slow), ((1001, 333), (500, 166))],
)
def test_a_mask_drawn_on_the_smaller_picture_that_the_page_shows(
    photo: tuple[int, int], shown: tuple[int, int], desk: Desk, tmp_path: Path
) -> None:
    Image.new("RGB", photo, "teal").save(tmp_path / "photo.png", compress_level=1)
    picture, mask = save_pictures(desk, [str(tmp_path / "photo.png"), draw_mask(tmp_path / "mask.png", shown)], OWNER)
    assert picture and mask
    with Image.open(picture) as start, Image.open(mask) as drawn:
        assert start.size == drawn.size == photo
        left, top, right, bottom = drawn.getbbox() or (0, 0, 0, 0)
    assert (left, top, bottom) == (0, 0, photo[1]) and abs(right - photo[0] / 2) <= 2


def test_a_mask_of_another_shape_is_refused(desk: Desk, tmp_path: Path) -> None:
    Image.new("RGB", (96, 64), "teal").save(tmp_path / "photo.png")
    for size in ((64, 96), (96, 72), (64, 64)):
        with pytest.raises(Trouble, match="another shape"):
            save_pictures(desk, [str(tmp_path / "photo.png"), draw_mask(tmp_path / "mask.png", size)], OWNER)
