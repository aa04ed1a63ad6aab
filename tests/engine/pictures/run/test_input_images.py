"""Start pictures of every depth: grey of 16 bits and floats keep their tones, AVIF is read, HEIC is told by its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms, features

from app.base.trouble import Impossible
from app.engine.pictures.run.input_images import fit_mask, open_image

RAMP = np.tile(np.arange(256, dtype=np.float64), (64, 1))


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("16.png", (RAMP * 257).astype(np.uint16)),
        ("16.tif", (RAMP * 257).astype(np.uint16)),
        ("32.tif", (RAMP * 257).astype(np.int32)),
        ("8 in 32.tif", RAMP.astype(np.int32)),
        ("float.tif", (RAMP / 255).astype(np.float32)),
        ("wide float.tif", RAMP.astype(np.float32)),
    ],
)
def test_grey_of_any_depth_keeps_its_tones(name: str, levels: np.ndarray, tmp_path: Path) -> None:
    Image.fromarray(levels).save(tmp_path / name)
    opened = np.asarray(open_image(str(tmp_path / name)))
    assert opened.shape == (64, 256, 3) and np.abs(opened[..., 0] - RAMP).max() <= 1


def test_light_above_white_leaves_the_picture_as_bright_as_it_is(tmp_path: Path) -> None:
    """A photo of floats with one highlight of 4 was nearly black: its numbers were taken for those of 8 bits."""
    levels = (RAMP / 255).astype(np.float32)
    levels[0, 0] = 4.0
    Image.fromarray(levels).save(tmp_path / "hdr.tif")
    opened = np.asarray(open_image(str(tmp_path / "hdr.tif")))[..., 0]
    assert opened[0, 0] == 255 and np.abs(opened[1:] - RAMP[1:]).max() <= 1
    dark = np.clip(RAMP, 0, 30).astype(np.float32)
    Image.fromarray(dark).save(tmp_path / "dark.tif")
    assert np.asarray(open_image(str(tmp_path / "dark.tif"))).max() == 30, "whole numbers are of 8 bits, though none is large"


def test_a_mask_of_16_bits_marks_its_bright_half_alone(tmp_path: Path) -> None:
    Image.fromarray((RAMP * 257).astype(np.uint16)).save(tmp_path / "mask.png")
    mask = np.asarray(fit_mask(open_image(str(tmp_path / "mask.png")), 256, 64))
    assert not mask[:, :120].any() and mask[:, 136:].all()


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")
def test_avif_is_read(tmp_path: Path) -> None:
    Image.new("RGB", (64, 64), "blue").save(tmp_path / "p.avif")
    opened = open_image(str(tmp_path / "p.avif"))
    assert opened.size == (64, 64) and np.abs(np.asarray(opened)[0, 0].astype(int) - (0, 0, 255)).max() < 8


def test_heic_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "p.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(64))
    with pytest.raises(Impossible, match="HEIC"):
        open_image(str(tmp_path / "p.heic"))


def wide_profile() -> bytes:
    """sRGB with its red and green columns swapped, the widest gamut there is: a profile of no camera, but one that shows."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    count = int.from_bytes(profile[128:132], "big")
    entries = {bytes(profile[at : at + 4]): at for at in range(132, 132 + 12 * count, 12)}
    red, green = entries[b"rXYZ"], entries[b"gXYZ"]
    profile[red + 4 : red + 12], profile[green + 4 : green + 12] = profile[green + 4 : green + 12], profile[red + 4 : red + 12]
    return bytes(profile)


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_the_colours_of_a_profile_become_srgb(mode: str, tmp_path: Path) -> None:
    """A phone's photos were taken for sRGB, as if they had no profile."""
    colour = (250, 10, 10) if mode == "RGB" else (250, 10, 10, 255)
    Image.new(mode, (32, 32), colour).save(tmp_path / "a.png", icc_profile=wide_profile())
    red, green, blue = open_image(str(tmp_path / "a.png")).getpixel((5, 5))  # type: ignore[misc]
    assert green > 200 and red < 40 and blue < 40


@pytest.mark.parametrize("profile", [b"no profile", b"\0" * 200, wide_profile()[:300]])
def test_a_profile_that_cannot_be_read_changes_nothing(profile: bytes, tmp_path: Path) -> None:
    Image.new("RGB", (32, 32), (250, 10, 10)).save(tmp_path / "a.png", icc_profile=profile)
    assert open_image(str(tmp_path / "a.png")).getpixel((5, 5)) == (250, 10, 10)
    Image.new("CMYK", (32, 32), (0, 255, 255, 0)).save(tmp_path / "a.jpg", icc_profile=wide_profile())  # of another kind
    red, green, _ = open_image(str(tmp_path / "a.jpg")).getpixel((5, 5))  # type: ignore[misc]
    assert red > 200 and green < 60
