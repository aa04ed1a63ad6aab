"""The fields that a tab's settings have, made from their rows; what they ask for, and what they show of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from gradio.components import Component

from app.base.sentence import Sentence
from app.engine.jobs.request import Request
from app.engine.jobs.settings import Rows, Setting, list_defaults
from app.ui.page.translate import label


@dataclass(frozen=True, slots=True, eq=False)
class SettingFields:
    tab: str
    rows: Rows
    made: type[Any]
    """The fields ask for a request of this type."""
    saved: Mapping[str, Any]
    built: dict[str, Component] = field(default_factory=dict)
    """It holds them by the names of the settings."""

    def __getitem__(self, name: str) -> Any:
        return self.built[name]

    def build(self, *names: str) -> None:
        """Build these fields here."""
        defaults = list_defaults(self.made, self.rows)
        for name in names:
            value = self.saved.get(name, self.rows[name].show(defaults[name]))
            self.built[name] = build_field(self.rows[name], value, f"{self.tab}-{name}")

    def build_rest(self, by_hand: bool = False) -> None:
        """Build here what has a field and none yet: of what is set by hand, or of all else."""
        left = [each for name, each in self.rows.items() if each.label and name not in self.built]
        self.build(*(each.name for each in left if by_hand == (each.by_hand is not None)))

    @property
    def kept(self) -> dict[str, Component]:
        """The fields whose values are saved."""
        return {name: each for name, each in self.built.items() if self.rows[name].kept != "nowhere"}

    def read(self, values: Mapping[Any, Any], by_hand: bool = True) -> dict[str, Any]:
        """Return what these values ask for, by the request's fields; an empty field asks for nothing."""
        given = [(self.rows[name], values[each]) for name, each in self.built.items() if by_hand or self.rows[name].by_hand is None]
        return {each.field: read_whole(value) if each.whole else value for each, value in given if value not in (None, "", each.open_value)}

    def restore(self, request: Request) -> dict[str, Any]:
        """Return what the fields show of a request; a slider stays where it is if the model chose."""
        values = {name: (self.rows[name], getattr(request, self.rows[name].field)) for name in self.built}
        return {
            name: gr.skip() if value is None and each.slider else reach(self.built[name], each.show(value))
            for name, (each, value) in values.items()
        }


def build_field(setting: Setting, value: Any, id_: str) -> Component:
    words: dict[str, Any] = {"label": setting.label and label(setting.label), "info": setting.info and label(setting.info), "elem_id": id_}
    if setting.choices:
        choices = [(label(name) if isinstance(name, Sentence) else name, each) for each, name in setting.choices.items()]
        return gr.Dropdown(choices, value=value, **words)
    if setting.slider is not None:
        least, most, step = setting.slider
        return gr.Slider(least, most, value, step=step, **words)
    if setting.range is not None:
        return gr.Number(value, **words)
    return gr.Checkbox(value, **words)


def reach(field: Component, value: Any) -> Any:
    """Return what sets a field to a value. A slider is made to reach one that a command or a program asked for: Gradio takes no other from it."""
    if not isinstance(field, gr.Slider) or not isinstance(value, int | float) or field.minimum <= value <= field.maximum:
        return value
    return gr.update(value=value, minimum=min(field.minimum, value), maximum=max(field.maximum, value))


def read_whole(value: Any) -> Any:
    """Return a whole number; what is none stays, for the request to refuse: 1.5 was taken for 2 in silence."""
    try:
        return int(value) if int(value) == float(value) else value
    except (TypeError, ValueError, OverflowError):
        return value
