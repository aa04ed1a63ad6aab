"""Previews on their way: small pictures, and nothing else that another machine may send in their place."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.engine.jobs.events import Preview
from app.machines.tasks import event_json
from app.machines.tasks.event_json import PREVIEW_BYTES, SIDE, SIDE_MOST, read_picture, to_json


def encode(form: str = "JPEG", side: int = 40, **more: Any) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (side, side), (0, 0, 255)).save(made, form, **more)
    return made.getvalue()


def tell(content: bytes, **changes: object) -> dict[str, object]:
    return {"event": "Preview", "step": 3, "jpeg": base64.b64encode(content).decode(), **changes}


def test_a_preview_arrives_small(tmp_path: Path) -> None:
    Image.effect_noise((900, 500), 90).convert("RGB").save(tmp_path / "preview-0-4.jpg")
    told = to_json(Preview(4, str(tmp_path / "preview-0-4.jpg")))
    assert told is not None and str(tmp_path) not in str(told)
    shown = read_picture(told)
    assert shown is not None and shown[0] == 4 and len(shown[1]) < PREVIEW_BYTES
    with Image.open(io.BytesIO(shown[1])) as picture:
        assert picture.format == "JPEG" and max(picture.size) == SIDE
    assert to_json(Preview(4, str(tmp_path / "gone.jpg"))) is None


def test_it_is_encoded_anew(tmp_path: Path) -> None:
    hidden, exif = b"<script>alert(1)</script>", Image.Exif()
    exif[0x010E] = hidden.decode()
    sent = encode(comment=hidden, exif=exif) + hidden
    shown = read_picture(tell(sent))
    assert sent.count(hidden) == 3 and shown is not None and hidden not in shown[1]
    with Image.open(io.BytesIO(shown[1])) as picture:
        assert picture.getpixel((9, 9))[2] > 250  # type: ignore[index]


@pytest.mark.parametrize("given", [
    None, [], {}, {"event": "Preview"}, tell(encode("PNG")), tell(encode("GIF")), tell(encode()[:100]), tell(b""), tell(b"\xff\xd8\xff" + b"x" * 99),
    tell(encode(side=SIDE_MOST + 1)), tell(encode() + b"x" * 2 * PREVIEW_BYTES), tell(encode(), jpeg="&" * 40), tell(encode(), jpeg=3),
    tell(encode(), step="3"),
    tell(encode(), step=True), tell(encode(), step=-1), tell(encode(), step=1e9), tell(encode(), event="Note"),
], ids=lambda given: str(given)[:60])  # fmt: skip
def test_what_is_no_small_jpeg_is_not_shown(given: object) -> None:
    assert read_picture(given) is None and event_json.from_json(given) is None
