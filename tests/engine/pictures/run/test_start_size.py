"""How large a picture becomes that starts from another: as that where nothing is asked for, else cut, which is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from app.base.paths import home
from app.base.trouble import Impossible
from app.engine.jobs.owners import Allowance
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.pictures.kind import PictureKind
from app.engine.pictures.run.final_settings import resolve_settings
from app.engine.pictures.run.input_images import open_image
from tests.support.picture_fixtures import load_painter

pytest_plugins = ["tests.support.picture_fixtures"]


@pytest.fixture
def wide(tmp_path: Path) -> PictureRequest:
    Image.new("RGB", (400, 225), "teal").save(tmp_path / "wide.png")
    return PictureRequest("a", image=str(tmp_path / "wide.png"))


def test_a_starting_picture_that_is_cut_is_told(wide: PictureRequest, folders: dict[str, Path], tmp_path: Path) -> None:
    """A page that named its usual size cut a fifth off in silence."""
    model = load_painter(folders["sd15"])[1]
    whole = resolve_settings(wide, model, tmp_path)
    assert whole.request.size == model.settings.fit_shape((400, 225)) and not whole.notes
    cut = resolve_settings(replace(wide, width=64, height=64), model, tmp_path)
    assert [note.key for note in cut.notes] == ["paint.start-cut"] and "400 x 225" in str(cut.notes[0])
    assert not resolve_settings(replace(wide, width=128, height=72), model, tmp_path).notes


def test_what_is_marked_in_what_is_cut_off_is_told(wide: PictureRequest, folders: dict[str, Path], tmp_path: Path) -> None:
    """It was said that nothing is marked."""
    model = load_painter(folders["sd15"])[1]
    mask = Image.new("L", (400, 225))
    for left, told in ((0, "cut off at 64 x 64"), (400, "Nothing is marked")):
        mask.paste(255, (left, 0, left + 60, 225))
        mask.save(tmp_path / "mask.png")
        with pytest.raises(Impossible, match=told):
            resolve_settings(replace(wide, mask=str(tmp_path / "mask.png"), width=64, height=64), model, tmp_path)
        mask = Image.new("L", (400, 225))


def test_a_guests_starting_picture_keeps_its_shape(wide: PictureRequest, folders: dict[str, Path]) -> None:
    model = load_painter(folders["sd15"])[1]
    assert PictureKind().grant(wide, Allowance(), model).size == model.settings.fit_shape((400, 225))
    assert PictureKind().grant(replace(wide, width=64), Allowance(), model).size == (64, model.settings.height)


def test_a_guests_open_size_stays_within_what_guests_may_use(wide: PictureRequest) -> None:
    model = catalog.BY_ID["sdxl"]
    assert model.settings.fit_shape((400, 225))[0] > Allowance().side
    width, height = PictureKind().grant(wide, Allowance(), model).size
    assert width == Allowance().side and height and abs(height - width * 225 / 400) < model.settings.multiple
    assert max(PictureKind().grant(replace(wide, upscale=2), Allowance(), model).size) == Allowance().side // 2  # type: ignore[type-var]


def test_an_open_size_is_no_larger_than_the_model_paints() -> None:
    assert max(catalog.BY_ID["sdxl"].settings.fit_shape((100, 6000))) == catalog.BY_ID["sdxl"].settings.most


def test_a_photo_that_lies_on_its_side_keeps_its_upright_shape(wide: PictureRequest, folders: dict[str, Path], tmp_path: Path) -> None:
    model, exif = load_painter(folders["sd15"])[1], Image.Exif()
    exif[0x112] = 6
    Image.new("RGB", (400, 225)).save(tmp_path / "photo.jpg", exif=exif)
    Image.new("RGB", (225, 400)).save(tmp_path / "scan.tiff")
    for name in ("photo.jpg", "scan.tiff"):
        request = replace(wide, image=str(tmp_path / name))
        assert PictureKind().grant(request, Allowance(), model).size == model.settings.fit_shape((225, 400))
        assert resolve_settings(request, model, tmp_path).request.size == model.settings.fit_shape((225, 400))


def test_a_picture_whose_exif_is_none_is_used_as_it_is(tmp_path: Path) -> None:
    for number, exif in enumerate((b"junk", b"Exif\0\0" + bytes(20))):
        Image.new("RGB", (40, 30), "teal").save(path := tmp_path / f"{number}.png", exif=exif)
        assert open_image(str(path)).size == (40, 30)


def test_what_failed_for_lack_of_memory_keeps_the_shape(wide: PictureRequest) -> None:
    (request, _) = PictureKind().shrink(home(), replace(wide, model="sd15"))
    assert request.width and request.height and 1.5 < request.width / request.height < 2
