"""A picture of the Shelf in another format: its settings come back from it, and only the owner is sent one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from app.base.trouble import Trouble
from app.engine.jobs.request import PictureRequest
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.encoded import Wanted, encode_picture
from app.ui.state.person import OWNER
from tests.support.both_servers import keep_creation
from tests.support.guests import desk_at, page_of

BOAT = PictureRequest("a boat, 小船", negative="fog", seed=7, steps=9, width=64, height=64, guidance=3.0)


@pytest.mark.parametrize(("asked", "ending", "kind"), [("jpeg", "jpg", "JPEG"), ("webp", "webp", "WEBP")])
def test_its_settings_come_back(asked: str, ending: str, kind: str, tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        boat = keep_creation(desk, BOAT, "b.png")
        picture_settings.write(Image.new("RGB", (64, 64), "teal"), boat.path, BOAT, "SD")
        page = page_of(desk, OWNER)
        sent = page.get(f"/hearth/creation/{boat.id}", params={"format": asked, "download": "1"})
        assert sent.headers["content-type"] == f"image/{asked}" and sent.headers["content-disposition"].endswith(f".{ending}")
        with Image.open(io.BytesIO(sent.content)) as opened:
            assert (opened.format, opened.size) == (kind, (64, 64))
        (tmp_path / "sent").write_bytes(sent.content)
        found = picture_settings.read(tmp_path / "sent").request
        assert (found.prompt, found.negative, found.seed, found.steps) == (BOAT.prompt, "fog", 7, 9)
        boat.path.write_bytes(b"?")
        assert page.get(f"/hearth/creation/{boat.id}", params={"format": asked}).status_code == 404
        boat.path.unlink()
        assert page.get(f"/hearth/creation/{boat.id}", params={"format": asked}).status_code == 404


def test_what_a_format_cannot_hold_is_told(tmp_path: Path) -> None:
    Image.new("1", (17_000, 16)).save(tmp_path / "wide.png")
    with pytest.raises(Trouble, match="WEBP takes up to 16383"):
        encode_picture(tmp_path / "wide.png", Wanted("webp"))
    assert encode_picture(tmp_path / "wide.png", Wanted("jpeg"))[:2] == b"\xff\xd8"
