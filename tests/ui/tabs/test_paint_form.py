"""The sizes that Paint offers, in words."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from gradio.i18n import I18nData

from app.base.trouble import Trouble
from app.engine.models.catalog import BY_ID, CATALOG
from app.engine.models.model import Model
from app.ui.tabs import paint_form

PAINTERS = [each for each in CATALOG if each.kind == "picture"]


@pytest.mark.parametrize("model", PAINTERS, ids=lambda model: model.id)
def test_sizes_have_names_and_suit_the_model(model: Model) -> None:
    first, *_ = offered = paint_form.list_sizes(model)
    assert paint_form.default_size(model) == first[1], "its own choice comes first"
    if not model.settings.one_size:
        assert first[1] == "", "so that a starting picture is not cut, which happened in silence"
        offered.remove(first)
    assert offered[0][1] == f"{model.settings.width}x{model.settings.height}"
    assert len({value for _, value in offered}) == len(offered)
    own = model.settings.width * model.settings.height
    for name, value in offered:
        width, height = map(int, value.split("x"))
        assert width % model.settings.multiple == height % model.settings.multiple == 0 and max(width, height) <= model.settings.most
        assert 0.8 < width * height / own < 1.6, value
        if isinstance(name, I18nData):
            shape = name.key.split(" (")[0].rsplit(" ", 1)[1]
            across, down = map(int, shape.split(":"))
            assert math.isclose(width / height, across / down), name.key


@pytest.mark.parametrize(("model", "book", "phone"), [("sd15", "512x768", "432x768"), ("sdxl", "832x1248", "720x1280")])
def test_a_book_cover_and_a_phone_are_among_them(model: str, book: str, phone: str) -> None:
    named = {name.key.split(" (")[0]: value for name, value in paint_form.list_sizes(BY_ID[model])[1:] if isinstance(name, I18nData)}
    assert (named["Book cover 2:3"], named["Phone wallpaper 9:16"]) == (book, phone)
    assert len(named) == len(paint_form.SHAPES)


def test_a_model_of_one_size_offers_that_alone() -> None:
    assert [name.key for name, _ in paint_form.list_sizes(BY_ID["starter-painter"])] == ["Square 1:1 (256 x 256)"]


def test_a_picture_is_changed_by_a_model_that_edits() -> None:
    """The chosen one if it does, else the first one here; where none is, the one to get."""

    def desk(*ids: str) -> Any:
        return SimpleNamespace(models=SimpleNamespace(list_choices=lambda kind: [(each, each) for each in ids]))

    assert paint_form.choose_editor(desk("sd15", "flux2-klein"), "sd15") == "flux2-klein"
    assert paint_form.choose_editor(desk("flux2-klein", "/gone/elsewhere"), "flux2-klein") == "flux2-klein"
    with pytest.raises(Trouble) as told:
        paint_form.choose_editor(desk("sd15", "z-image-turbo", "/gone/elsewhere"), "sd15")
    assert told.value.sentence.key == "paint.no-editor" and told.value.cure == "get:flux2-klein"


def test_the_card_of_the_starting_picture_says_what_a_model_does_with_it() -> None:
    (title, told), (plain, nothing) = (paint_form.describe_start(BY_ID[each]) for each in ("flux2-klein", "sd15"))
    assert (title.key, plain.key) == ("paint.change", "paint.start") and told and nothing is None
