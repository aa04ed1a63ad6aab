"""The sheet of a grid is drawn whatever became of its files."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from app.ui.page.contact_sheet import contact_sheet


def test_a_damaged_or_missing_picture_leaves_its_cell_empty(tmp_path: Path) -> None:
    Image.effect_noise((64, 64), 90).save(tmp_path / "cut.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "cut.png").read_bytes()[:2000])
    (tmp_path / "text.png").write_text("no picture")
    Image.new("RGB", (300, 100), "red").save(whole := tmp_path / "whole.png")
    made = contact_sheet(["a", "b"], ["1", "2"], [tmp_path / "cut.png", tmp_path / "text.png", None, whole])
    with Image.open(io.BytesIO(made)) as sheet:
        assert next(count for count, colour in sheet.getcolors(1 << 20) or [] if colour == (255, 0, 0)) > 256 * 80
