"""Parse Paint's fields into what a request holds: sizes, LoRAs, values of a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.request import PROMPT
from app.engine.jobs.settings import PICTURES
from app.engine.models import catalog
from app.engine.models.model import Model
from app.engine.models.model_names import word_name
from app.engine.models.on_disk import find_best
from app.engine.models.picture_families import FAMILIES
from app.ui.page.translate import label
from app.ui.state.desk import Desk

COMMAS: Final = ",;，；、"
"""People separate values by these in English and in Chinese; prompts have commas of their own."""
PROMPT_MARKS: Final = "|｜"


def find_model(desk: Desk, asked: str) -> Model:
    """Return the model asked for, or the best installed one where it is gone."""
    try:
        return catalog.find(asked) if asked else find_best(desk.keeper.home, "picture")
    except Trouble:
        return find_best(desk.keeper.home, "picture")


def choose_editor(desk: Desk, chosen: str) -> str:
    """Return a model that changes a picture by words: the chosen one if it does, else the first one here. Raise a Trouble if there is none."""
    able = [id_ for _, id_ in desk.models.list_choices("picture") if _edits(id_)]
    if not able:
        raise Trouble(
            say(
                "paint.no-editor",
                "No model here changes a picture by words. {model} does: get it on the Models tab.",
                model=word_name(catalog.BY_ID[catalog.EDITOR].title),
            ),
            cure=f"get:{catalog.EDITOR}",
        )
    return chosen if chosen in able else able[0]


def _edits(model: str) -> bool:
    try:
        return FAMILIES[catalog.find(model).family].edits
    except Trouble:  # its disk is silent
        return False


START: Final = say("paint.start", "Start from a picture")
CHANGE: Final = say("paint.change", "Change a picture by words")
MASKED_STRENGTH: Final = say("paint.masked-strength", "It counts where you paint over an area; without that the prompt says what changes.")


def describe_start(model: Model) -> tuple[Sentence, Sentence | None]:
    """Return the title of the starting picture's card, and what is said of its strength: a model that edits does with a picture what the prompt says."""
    return (CHANGE, MASKED_STRENGTH) if FAMILIES[model.family].edits else (START, None)


AUTOMATIC: Final = say("shape.automatic", "Automatic: as the starting picture, else the model's own")
"""A starting picture is not cut then."""
SHAPES: Final[Mapping[tuple[int, int], Sentence]] = {
    (1, 1): say("shape.square", "Square 1:1"), (2, 3): say("shape.book", "Book cover 2:3"), (3, 2): say("shape.photo", "Photo 3:2"),
    (3, 4): say("shape.portrait", "Portrait 3:4"), (4, 3): say("shape.landscape", "Landscape 4:3"),
    (9, 16): say("shape.phone", "Phone wallpaper 9:16"), (16, 9): say("shape.screen", "Wide screen 16:9"),
}  # fmt: skip
"""A shape is worded by its exact ratio."""
SHAPED: Final[Mapping[int, tuple[tuple[int, int], ...]]] = {
    512: ((512, 512), (512, 768), (768, 512), (480, 640), (640, 480), (432, 768), (768, 432)),
    1024: ((1024, 1024), (832, 1248), (1248, 832), (864, 1152), (1152, 864), (720, 1280), (1280, 720)),
}
"""Each shape has about as many pixels as the square that a model was trained on, by whose side they stand here."""


def list_sizes(model: Model) -> list[tuple[Any, str]]:
    """List the sizes offered for a model: its own choice, shapes in words, then what else its makers recommend."""
    settings = model.settings
    own = (settings.width, settings.height)
    shaped = SHAPED.get(settings.width, ()) if settings.width == settings.height else ()
    offered = dict.fromkeys((own, *shaped, *settings.sizes))
    sizes = [(name_size(*size), f"{size[0]}x{size[1]}") for size in offered if max(size) <= settings.most]
    return sizes if settings.one_size else [(label(AUTOMATIC), ""), *sizes]


def name_size(width: int, height: int) -> Any:
    side = math.gcd(width, height) or 1
    shape = SHAPES.get((width // side, height // side))
    if shape is None:
        return f"{width} x {height}"
    return label(say("shape.size", "{shape} ({width} x {height})", shape=shape, width=width, height=height))


def name_all_sizes() -> None:
    """Name the sizes that models offer once, so that the browser knows their names in its language when a model comes later."""
    label(AUTOMATIC)
    for sizes in SHAPED.values():
        for size in sizes:
            name_size(*size)


def default_size(model: Model) -> str:
    return f"{model.settings.width}x{model.settings.height}" if model.settings.one_size else ""


def split_list(values: str, marks: str = COMMAS) -> list[str]:
    for mark in marks[1:]:
        values = values.replace(mark, marks[0])
    return [part.strip() for part in values.split(marks[0]) if part.strip()]


def split_lines(prompt: str) -> list[str]:
    """Return the prompts of a list, one a line."""
    return [line for _, line in number_lines(prompt)]


def number_lines(prompt: str) -> list[tuple[int, str]]:
    """Return the prompts of a list with their lines' numbers, as people count them: empty ones too."""
    return [(number, line) for number, line in enumerate(map(str.strip, prompt.split("\n")), 1) if line]


AXES: Final[Mapping[str, Sentence]] = {
    **{name: PICTURES[name].said for name in ("steps", "guidance", "seed", "scheduler", "strength", "guide_strength")},
    "prompt": PROMPT,
    "quicker": say("axis.quicker", "quicker (off, little, much)"),
}


def list_axes() -> list[tuple[Any, str]]:
    return [(label(name), axis) for axis, name in AXES.items()]


def parse_values(axis: str, values: str) -> list[Any]:
    """Parse the values of one side of a grid."""
    given = split_list(values, PROMPT_MARKS if axis == "prompt" else COMMAS)
    if not given:
        raise Trouble(
            say("grid.empty", "The grid has no values for {axis}. Enter them separated by commas (prompts by |).", axis=AXES[axis])
        )
    setting = PICTURES.get(axis)
    if setting is None or setting.range is None:
        return given
    try:
        return [int(each) if setting.whole else float(each) for each in given]
    except ValueError as fault:
        raise Trouble(
            say(
                "grid.bad",
                '"{values}" is not a list of numbers for {axis}. Enter numbers separated by commas.',
                values=values,
                axis=AXES[axis],
            )
        ) from fault
