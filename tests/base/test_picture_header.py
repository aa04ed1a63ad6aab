"""Headers of pictures: what Pillow would copy again and again, or decode again and again, is refused; what cameras and programs write is read."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from PIL import ExifTags, Image
from PIL.TiffImagePlugin import IFDRational, ImageFileDirectory_v2

from app.base import picture_header
from app.base.foreign_formats import OWN_PICTURES, decode, open_picture

EXIF, UNDEFINED, RATIONAL, LONG8 = picture_header.EXIF, 7, 5, 16
SHARED_BYTES, ENTRIES = 30_000, 1000
"""They make 30 MB, which today's machines bear; what is refused must not hang on the size."""


def encode(kind: str, size: tuple[int, int] = (64, 64), **more: Any) -> bytes:
    target = io.BytesIO()
    Image.effect_noise(size, 90).convert("RGB").save(target, kind, **more)
    return target.getvalue()


def read(data: bytes) -> Image.Image:
    with open_picture(data, OWN_PICTURES) as picture:
        return decode(picture, "RGB")


def make_folder(order: str, start: int, entries: list[tuple[int, int, int, int]]) -> bytes:
    """Return a TIFF folder whose values may stand anywhere."""
    return struct.pack(order + "H", len(entries)) + b"".join(struct.pack(order + "HHII", *each) for each in entries) + bytes(4)


def share(order: str = "<", kind: int = UNDEFINED, entries: int = ENTRIES, size: int = SHARED_BYTES) -> bytes:
    """Return EXIF's body: a folder whose entries all name the same bytes."""
    count = size // picture_header.VALUE_BYTES[kind]
    rows = [(1000 + index, kind, count, 10 + 12 * entries + 4) for index in range(entries)]
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8) + make_folder(order, 8, rows) + bytes(size)


def put_segments(jpeg: bytes, body: bytes, marker: int = 0xE1, head: bytes = EXIF, piece_bytes: int = 65_000) -> bytes:
    pieces = [head + body[start : start + piece_bytes] for start in range(0, len(body), piece_bytes)]
    segments = b"".join(struct.pack(">BBH", 0xFF, marker, len(piece) + 2) + piece for piece in pieces)
    return jpeg[:2] + segments + jpeg[2:]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("piece_bytes", [65_000, 5000])
def test_exif_whose_entries_share_their_bytes(order: str, piece_bytes: int) -> None:
    """A JPEG of 521 KB took 5.5 GB and 115 s. Pillow joins the segments, so its folder lies across them."""
    with pytest.raises(OSError, match="more bytes"):
        read(put_segments(encode("JPEG"), share(order), piece_bytes=piece_bytes))


def test_exif_behind_padding_and_a_second_name() -> None:
    """Pillow skips what stands between segments, and each name that stands before EXIF."""
    plain = encode("JPEG")
    padded = plain[:2] + b"\xff\xff\xff\0 padding " + put_segments(plain, EXIF + EXIF + share())[2:]
    with pytest.raises(OSError, match="more bytes"):
        read(padded)


def test_an_index_of_pictures_whose_entries_share_their_bytes() -> None:
    with pytest.raises(OSError, match="more bytes"):
        read(put_segments(encode("JPEG"), share(), marker=0xE2, head=b"MPF\0"))


def test_exif_of_a_hundred_thousand_fractions() -> None:
    """Pillow makes an object of each."""
    fractions = share(kind=RATIONAL, entries=1, size=800_000)
    with pytest.raises(OSError, match="more bytes"):
        read(put_segments(encode("JPEG"), fractions))


def make_tiff(more: list[tuple[int, int, int, int]], behind: bytes) -> bytes:
    """Return a TIFF of 64 pixels a side whose first folder has more entries, and the bytes at 16 KB."""
    base = [
        (256, 3, 1, 64),
        (257, 3, 1, 64),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, 1 << 14),
        (277, 3, 1, 1),
        (279, 4, 1, 4096),
    ]
    folder = make_folder("<", 8, sorted(base + more))
    return (b"II*\0" + struct.pack("<I", 8) + folder).ljust(1 << 14, b"\0") + behind.ljust(4096, b"\x80")


def test_a_tiff_whose_entries_share_their_bytes() -> None:
    """308 KB took 2 GB."""
    assert read(make_tiff([], b"")).size == (64, 64)
    with pytest.raises(OSError, match="more bytes"):
        read(make_tiff([(1000 + index, UNDEFINED, SHARED_BYTES, 1 << 14) for index in range(1000)], bytes(SHARED_BYTES)))


@pytest.mark.parametrize("inner", [0x8769, 0x8825])
@pytest.mark.parametrize("wide", [False, True])
def test_an_inner_folder_of_a_tiff(inner: int, wide: bool) -> None:
    """Pillow reads it after the pixels; where it lies may stand in the entry, or where the entry says."""
    rows = [(1000 + index, UNDEFINED, SHARED_BYTES, 1 << 14) for index in range(ENTRIES)]
    behind = bytes(4096) + struct.pack("<Q", (1 << 14) + 4104) + make_folder("<", 0, rows) + bytes(SHARED_BYTES)
    entry = (inner, LONG8, 1, (1 << 14) + 4096) if wide else (inner, 4, 1, (1 << 14) + 4104)
    with pytest.raises(OSError, match="more bytes"):
        read(make_tiff([entry], behind))


def test_folders_that_lead_back_to_themselves_end() -> None:
    assert read(make_tiff([(0x8769, 4, 1, 8)], b"")).size == (64, 64)


def test_the_sizes_of_values_are_pillows() -> None:
    assert {kind: size for kind, (size, _) in ImageFileDirectory_v2._load_dispatch.items()} == picture_header.VALUE_BYTES


def list_real_pictures() -> dict[str, bytes]:
    exif = Image.Exif()
    exif[ExifTags.Base.XResolution] = exif[ExifTags.Base.YResolution] = IFDRational(300, 1)
    exif[ExifTags.Base.ImageDescription] = "a boat " * 4000
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.MakerNote] = bytes(30_000)
    exif.get_ifd(ExifTags.IFD.GPSInfo)[ExifTags.GPS.GPSLatitude] = (IFDRational(52), IFDRational(30), IFDRational(1, 3))
    jpeg = encode("JPEG", exif=exif)
    cut = Image.Exif()
    cut[ExifTags.Base.ImageDescription] = "x" * 9000
    return {
        **{kind: encode(kind, exif=exif) for kind in ("JPEG", "PNG", "WEBP", "TIFF")},
        "many pictures": encode("MPO", exif=exif, save_all=True, append_images=[Image.new("RGB", (64, 64))]),
        "cut EXIF": put_segments(encode("JPEG"), cut.tobytes()[6:600]),
        "a film behind it": jpeg + b"ftyp" + b"\xff\xda\0\2" * 500,
        "a thumbnail": put_segments(encode("JPEG"), b"II*\0\x08\0\0\0\0\0\0\0\0\0" + encode("JPEG", (32, 32), progressive=True) * 3),
        **{f"TIFF by {way}": encode("TIFF", (16, 2000), compression=way, strip_size=48) for way in ("raw", "tiff_lzw", "tiff_deflate")},
        "a large TIFF": encode("TIFF", big_tiff=True),
        "GIF": encode("GIF"),
        "BMP": encode("BMP"),
    }


@pytest.mark.filterwarnings("ignore:Truncated File Read")
def test_pictures_of_cameras_and_programs_are_read() -> None:
    for name, data in list_real_pictures().items():
        assert read(data).size in {(64, 64), (16, 2000)}, name


def repeat_scans(jpeg: bytes, count: int) -> bytes:
    """Return the picture with its last scan so many times more."""
    start = jpeg.rindex(b"\xff\xda")
    return jpeg[:-2] + jpeg[start:-2] * count + jpeg[-2:]


def test_a_scan_again_and_again() -> None:
    """Each 61 bytes more cost an eighth of a second for 40 million pixels."""
    plain = encode("JPEG", progressive=True)
    assert read(plain).size == (64, 64)
    with pytest.raises(OSError, match="scans"):
        read(repeat_scans(plain, picture_header.SCANS_MOST))


def claim_size(jpeg: bytes, width: int, height: int) -> bytes:
    """Return the picture with another size in its header, where nothing is decoded."""
    frame = jpeg.index(b"\xff\xc2") + 5
    return jpeg[:frame] + struct.pack(">HH", height, width) + jpeg[frame + 4 :]


def test_scans_count_by_their_pixels() -> None:
    large = claim_size(repeat_scans(encode("JPEG", progressive=True), 65), 6600, 6000)
    with pytest.raises(OSError, match="scans"), open_picture(large):
        pass


def test_a_progressive_photo_of_forty_million_pixels_passes() -> None:
    with open_picture(claim_size(encode("JPEG", progressive=True), 6600, 6000)) as picture:
        assert picture.size == (6600, 6000)
