"""Parse Paint's fields into what a request holds: sizes, LoRAs, values of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.engine.jobs.quicker import Quicker
from app.engine.jobs.request import Lora
from app.engine.models import catalog
from app.engine.models.model import Model
from app.engine.models.on_disk import find_best
from app.sentence import Sentence, Trouble, say
from app.ui.page.translate import label
from app.ui.state.desk import Desk

WHOLE: Final = frozenset({"steps", "seed"})
WORDS: Final = frozenset({"scheduler", "prompt", "quicker"})
COMMAS: Final = ",;，；、"
"""What separates values, as people type it in English and in Chinese; prompts have commas of their own."""
PROMPT_MARKS: Final = "|｜"


def find_model(desk: Desk, asked: str) -> Model:
    """Return the model asked for, or the best installed one where it is gone."""
    try:
        return catalog.find(asked) if asked else find_best(desk.keeper.home, "picture")
    except Trouble:
        return find_best(desk.keeper.home, "picture")


def list_sizes(model: Model) -> list[tuple[str, str]]:
    """List the sizes offered for a model; an owner's model may recommend one that is not among the presets."""
    own = (model.settings.width, model.settings.height)
    presets = model.settings.sizes if own in model.settings.sizes else (own, *model.settings.sizes)
    return [(f"{width} x {height}", f"{width}x{height}") for width, height in presets]


def default_size(model: Model) -> str:
    return f"{model.settings.width}x{model.settings.height}"


def split_list(values: str, marks: str = COMMAS) -> list[str]:
    for mark in marks[1:]:
        values = values.replace(mark, marks[0])
    return [part.strip() for part in values.split(marks[0]) if part.strip()]


def parse_loras(files: list[str], weights: str) -> list[Lora]:
    given = split_list(weights)
    try:
        numbers = [float(part) for part in given]
    except ValueError as fault:
        raise Trouble(
            say(
                "paint.weights-bad",
                '"{weights}" is not a list of weights. Enter numbers separated by commas, such as 1.0, 0.7.',
                weights=weights,
            )
        ) from fault
    return [Lora(file, numbers[place] if place < len(numbers) else 1.0) for place, file in enumerate(files)]


AXES: Final[Mapping[str, Sentence]] = {
    "steps": say("axis.steps", "steps"), "guidance": say("axis.guidance", "guidance"), "seed": say("axis.seed", "seed"),
    "scheduler": say("axis.scheduler", "scheduler"), "strength": say("axis.strength", "strength"), "prompt": say("axis.prompt", "prompt"),
    "quicker": say("axis.quicker", "quicker (off, little, much)"),
}  # fmt: skip


QUICKER: Final[Mapping[Quicker, Sentence]] = {
    "off": say("quicker.off", "Off"), "little": say("quicker.little", "A little"), "much": say("quicker.much", "Much"),
}  # fmt: skip


def list_quicker() -> list[tuple[Any, str]]:
    return [(label(name), setting) for setting, name in QUICKER.items()]


def list_axes() -> list[tuple[Any, str]]:
    return [(label(name), axis) for axis, name in AXES.items()]


def parse_values(axis: str, values: str) -> list[Any]:
    """Parse the values of one side of a grid."""
    given = split_list(values, PROMPT_MARKS if axis == "prompt" else COMMAS)
    if not given:
        raise Trouble(
            say("grid.empty", "The grid has no values for {axis}. Enter them separated by commas (prompts by |).", axis=AXES[axis])
        )
    if axis in WORDS:
        return given
    try:
        return [int(each) if axis in WHOLE else float(each) for each in given]
    except ValueError as fault:
        raise Trouble(
            say(
                "grid.bad",
                '"{values}" is not a list of numbers for {axis}. Enter numbers separated by commas.',
                values=values,
                axis=AXES[axis],
            )
        ) from fault
