"""What Speak and Paint have alike: starting and stopping, models to choose from, presets, settings that come back, and hidden fields for the scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component
from gradio.i18n import I18nData

from app.engine.files.outward import name
from app.engine.models.on_disk import located
from app.sentence import Sentence, Trouble, say
from app.ui.page import views
from app.ui.page.translate import language, word
from app.ui.state import presets
from app.ui.state.desk import Desk
from app.ui.state.person import who
from app.ui.state.visitor_limits import redact_for

QUICK: Final[Mapping[str, Any]] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
"""For deeds: pressed twice at once, it is done once."""
LATEST: Final[Mapping[str, Any]] = {**QUICK, "trigger_mode": "always_last"}
"""For what follows a choice: one that is made while the answer to the last is on its way counts, and is not passed over."""
EACH: Final[Mapping[str, Any]] = {**QUICK, "trigger_mode": "multiple"}
"""For deeds that differ from press to press, as another part to be done again: none is passed over."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a tab asks anew when the page is loaded, and when the tab is chosen: models and voices come and go."""

    fill: Callable[[], list[Any]]
    filled: Sequence[Component]
    offer: Callable[[], Any]
    offered: Sequence[Component]


def build_go_and_stop(tab: str, label: I18nData) -> tuple[gr.Button, gr.Button, gr.HTML]:
    """The buttons that start and stop, and the place for what is to be said about it."""
    with gr.Column(elem_classes="h-going"):
        message = gr.HTML("", elem_id=f"{tab}-message", apply_default_css=False)
        with gr.Row(elem_classes="h-go"):
            go = gr.Button(label, variant="primary", elem_id=f"{tab}-go")
            stop = gr.Button(word("go.stop", "Stop and keep"), elem_id=f"{tab}-stop")
            gr.HTML('<span class="h-soft h-keys"></span>', apply_default_css=False)
    return go, stop, message


def keep_empty(numbers: Sequence[gr.Number]) -> None:
    """Gradio shows a number that has no value as 0, and sends it; once it is told that there is none, it stays empty. The owner's are
    filled with all else."""
    gr.on(None, lambda: None if len(numbers) == 1 else [None] * len(numbers), None, [*numbers], **QUICK)


def load_on_open(drawer: gr.Accordion, part: Component) -> None:
    """A part that is heavy to fetch and seldom wanted, built with visible=False, is fetched by the page when its drawer is opened."""
    drawer.expand(None, None, part, js="() => ({__type__: 'update', visible: true})", **QUICK)


def hidden_number(id_: str) -> gr.Number:
    return gr.Number(-1, precision=0, elem_id=id_, elem_classes="h-hidden", label=id_, container=False)


def hidden_button(id_: str) -> gr.Button:
    return gr.Button(id_, elem_id=id_, elem_classes="h-hidden")


def model_choices(desk: Desk, kind: str, visitor: bool = False) -> list[tuple[Any, str]]:
    there = [each for each in desk.models.list_all() if not visitor and each.kind == kind and located(desk.keeper.home, each)]
    return [(word("model.best", "Best installed model"), ""), *((each.title, each.id) for each in there)]


def run_or_explain(run: Callable[[], object], request: gr.Request) -> str:
    """Nothing where it went well, else what stands in the way."""
    try:
        run()
    except Trouble as trouble:
        return explain(trouble, request)
    return ""


def explain(trouble: Trouble, request: gr.Request) -> str:
    """As whoever asked may hear it."""
    return views.trouble_html(redact_for(who(request), trouble), language(request))


def find_model_again(desk: Desk, kind: str, model: str, visitor: bool = False) -> tuple[str, tuple[Sentence, ...]]:
    """Of settings that come back, the model to choose and what to say where it is not here. A file has only the model's name."""
    there = [id_ for _, id_ in model_choices(desk, kind, visitor)]
    found = [model] if model in there else [id_ for id_ in there if id_ and name(id_) == name(model)]
    if len(found) == 1:
        return found[0], ()
    notes = () if visitor else (say("restore.model", "This was made with {model}. Choose the model to use.", model=name(model)),)  # fmt: skip
    return "", notes


def build_preset_row(tab: str, desk: Desk, visitor: bool) -> tuple[gr.Dropdown, gr.Button, gr.Button]:
    with gr.Row(elem_classes="h-inline", visible=not visitor):
        preset = gr.Dropdown(
            [] if visitor else presets.choices(desk.settings, tab), value=None, allow_custom_value=True, elem_id=f"{tab}-preset", scale=3,
            label=word("preset.label", "Preset"), info=word("preset.info", "Choose one, or type a name and save the settings below."),
        )  # fmt: skip
        keep = gr.Button(word("preset.keep", "Save"), size="sm", min_width=60, elem_id=f"{tab}-preset-keep")
        drop = gr.Button(word("preset.drop", "Delete"), size="sm", min_width=60, elem_id=f"{tab}-preset-drop")
    return preset, keep, drop


def remember_settings(
    tab: str,
    desk: Desk,
    named: Mapping[str, Component],
    row: tuple[gr.Dropdown, gr.Button, gr.Button],
    message: gr.HTML,
) -> None:
    """Settings are kept as they are changed, and put back by a preset. The owner's alone.

    One listener for all fields: two that are on their way at once could arrive in the wrong order, and the older stay.
    """
    preset, keep, drop = row
    fields: set[Block] = {*named.values(), preset}

    def remembered(values: dict[Any, Any], request: gr.Request) -> None:
        if who(request).owner:
            desk.settings.put({tab: {name: values[field] for name, field in named.items()}})

    def applied(choice: str | None, request: gr.Request) -> list[Any]:
        wanted = presets.values(desk.settings, tab, choice) if who(request).owner else {}
        return [wanted.get(name, gr.skip()) for name in named]

    def kept(values: dict[Any, Any], request: gr.Request) -> tuple[Any, str]:
        asked = {name: values[field] for name, field in named.items() if name != "model"}
        try:
            choice = presets.keep(desk.settings, tab, values[preset], asked)
        except Trouble as trouble:
            return gr.skip(), views.trouble_html(trouble, language(request))
        return gr.update(choices=presets.choices(desk.settings, tab), value=choice), ""

    def dropped(choice: str | None, request: gr.Request) -> tuple[Any, Any]:
        if not choice:
            return gr.skip(), gr.skip()  # None was chosen, or it is to stay.
        try:
            presets.drop(desk.settings, tab, choice)
        except Trouble as trouble:
            return gr.skip(), views.trouble_html(trouble, language(request))
        return gr.update(choices=presets.choices(desk.settings, tab), value=None), ""

    changes = [each.change for each in named.values()]  # type: ignore[attr-defined]
    gr.on(changes, remembered, {*named.values()}, None, **LATEST)
    preset.input(applied, preset, [*named.values()], **LATEST)
    keep.click(kept, fields, [preset, message], **QUICK)
    drop.click(dropped, preset, [preset, message], js="choice => Hearth.dropped(choice)", **LATEST)
