"""What Speak and Paint share: start and stop, models to choose from, restoring, presets, saved settings."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component
from gradio.i18n import I18nData

from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.outward import public_name
from app.engine.jobs.request import Asked, KindName
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.keeper.made_from import read_request
from app.engine.models.catalog import name_model
from app.ui.page import views
from app.ui.page.translate import label_model, language, translate, word
from app.ui.state import presets
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_for, redact_sentences
from app.ui.state.models_desk import TABS
from app.ui.state.person import who
from app.ui.tabs.setting_fields import reach

QUICK: Final[Mapping[str, Any]] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
"""Actions use it: a double click runs once."""
LATEST: Final[Mapping[str, Any]] = {**QUICK, "trigger_mode": "always_last"}
"""What follows a choice uses it: a choice made while the last answer is on its way still counts."""
EACH: Final[Mapping[str, Any]] = {**QUICK, "trigger_mode": "multiple"}
"""Actions that differ from click to click, such as redoing a part, use it: every click runs."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a tab asks again when the page loads, and when the tab is opened: models and voices come and go."""

    fill: Callable[[], list[Any]]
    filled: Sequence[Component]
    offer: Callable[[], Any]
    offered: Sequence[Component]


@dataclass(frozen=True, slots=True, eq=False)
class GoAndStop:
    """The buttons that start and stop, and where trouble with them is shown."""

    go: gr.Button
    stop: gr.Button
    message: gr.HTML


@dataclass(frozen=True, slots=True, eq=False)
class JobTab:
    """What the events of Speak and Paint do alike, for one kind of job."""

    desk: Desk
    kind: KindName
    guest: bool

    def stop(self, request: gr.Request) -> None:
        self.desk.jobs.stop(self.kind, who(request))

    def offer_models(self) -> Any:
        return gr.update(choices=model_choices(self.desk, self.kind))

    def use(self, id_: str) -> Any:
        """Choose a model; one that is not here, or of the other kind, leaves what was chosen."""
        choices = model_choices(self.desk, self.kind)
        return gr.update(choices=choices, value=id_) if id_ in [each for _, each in choices] else gr.update(choices=choices)

    def saved_values(self, fields: Mapping[str, Component]) -> list[Any]:
        """Return the saved value of each field, or its first one; a model that is gone makes way for the best."""
        saved: dict[str, Any] = self.desk.settings.get(TABS[self.kind], {})
        now = {name: field.value for name, field in fields.items()} | saved
        models = model_choices(self.desk, self.kind)
        chosen = now["model"] if now["model"] in [id_ for _, id_ in models] else ""
        return [gr.update(choices=models, value=chosen) if name == "model" else reach(field, now[name]) for name, field in fields.items()]

    def read_request_of(self, number: int, wanted: type[Asked], request: gr.Request) -> Asked:
        """Return the request, of this tab's kind, that a creation was made from."""
        found = read_request(self.desk.jobs.find_creation(number, who(request)))
        if not isinstance(found, wanted):
            raise Trouble(say_to_all("shelf.unknown", "Creation {id} is not on the shelf. It may have been deleted for good.", id=number))
        return found

    def find_model_again(self, model: str) -> tuple[str, tuple[Sentence, ...]]:
        """Find the model of restored settings, by its id or by its name alone, as other programs write it too; say so where there is no one such
        model."""
        installed = [] if self.guest else self.desk.models.list_choices(self.kind)
        if not model or any(id_ == model for _, id_ in installed):
            return model, ()
        wanted = public_name(model)
        found = [id_ for _, id_ in installed if public_name(id_) == wanted]
        found = found or [id_ for title, id_ in installed if wanted in (title, name_model(id_))]
        if len(found) == 1:
            return found[0], ()
        return "", (say("owner.model", "This was made with {model}. Choose the model to use.", model=public_name(model)),)


@dataclass(frozen=True, slots=True, eq=False)
class PresetRow:
    choice: gr.Dropdown
    save: gr.Button
    delete: gr.Button


def build_go_and_stop(tab: str, label: I18nData) -> GoAndStop:
    with gr.Column(elem_classes="h-going"):
        message = gr.HTML("", elem_id=f"{tab}-message", apply_default_css=False)
        gr.HTML('<ul class="h-force" hidden></ul>', apply_default_css=False)
        with gr.Row(elem_classes="h-go"):
            go = gr.Button(label, variant="primary", elem_id=f"{tab}-go")
            stop = gr.Button(word("job.stop", "Stop and keep"), elem_id=f"{tab}-stop")
            gr.HTML('<span class="h-soft h-keys"></span>', apply_default_css=False)
    return GoAndStop(go, stop, message)


def keep_empty(tab: str, fields: Iterable[Component]) -> None:
    """Keep numbers without a value empty: Gradio would show and send 0. The owner's are filled with the saved settings."""
    numbers = [each for each in fields if isinstance(each, gr.Number)]
    filled = gr.on(None, lambda: None if len(numbers) == 1 else [None] * len(numbers), None, numbers, **QUICK)
    filled.then(None, None, None, js=f"() => {{ Hearth.stay('{tab}'); }}", **QUICK)


def load_on_open(drawer: gr.Accordion, component: Component) -> None:
    """Load a heavy component, built with visible=False, only when its drawer is opened."""
    drawer.expand(None, None, component, js="() => ({__type__: 'update', visible: true})", **QUICK)


def roll_seed() -> int:
    return random.randrange(SEED_LIMIT)


def model_choices(desk: Desk, kind: str, guest: bool = False) -> list[tuple[Any, str]]:
    choices = [] if guest else desk.models.list_choices(kind)
    return [(word("models.best", "Best installed model"), ""), *((label_model(title), id_) for title, id_ in choices)]


def run_or_explain(run: Callable[[], object], request: gr.Request) -> str:
    """Run an action; return nothing where it worked, else why not."""
    try:
        run()
    except Trouble as trouble:
        return explain(trouble, request)
    return ""


def restore_or_explain(restore: Callable[[], list[Any]], fields: int, request: gr.Request) -> list[Any]:
    """Return what restores so many fields, with notes; where it cannot be read, skip them and say why."""
    try:
        return restore()
    except Trouble as trouble:
        return [*[gr.skip()] * fields, explain(trouble, request)]


def explain(trouble: Trouble, request: gr.Request) -> str:
    """Word a Trouble as HTML, as far as this person may hear it."""
    return views.trouble_html(redact_for(who(request), trouble), language(request))


def explain_restored(notes: Sequence[Sentence], request: gr.Request) -> str:
    """Word what could not be restored as HTML, as far as this person can do something about it."""
    return views.notes_html(redact_sentences(who(request), *notes), language(request))


def build_preset_row(tab: str, desk: Desk, guest: bool) -> PresetRow:
    with gr.Row(elem_classes="h-inline", visible=not guest):
        choice = gr.Dropdown(
            [] if guest else presets.list_choices(desk.settings, tab),
            value=None,
            allow_custom_value=True,
            elem_id=f"{tab}-preset",
            scale=3,
            label=word("preset.label", "Preset"),
            info=word("preset.info", "Choose one, or type a name and save the settings below."),
        )
        save = gr.Button(word("preset.save", "Save"), size="sm", min_width=60, elem_id=f"{tab}-preset-save")
        delete = gr.Button(word("preset.delete", "Delete"), size="sm", min_width=60, elem_id=f"{tab}-preset-delete")
    return PresetRow(choice, save, delete)


@dataclass(frozen=True, slots=True, eq=False)
class SavedSettings:
    """The owner's settings of one tab: saved as they change, and filled in by presets."""

    tab: str
    desk: Desk
    fields: Mapping[str, Component]
    presets: PresetRow

    def save(self, values: dict[Any, Any], request: gr.Request) -> None:
        if who(request).owner:
            try:
                self.desk.settings.put({self.tab: {name: values[field] for name, field in self.fields.items()}})
            except Trouble as trouble:
                gr.Warning(translate(trouble.sentence, language(request)))

    def apply_preset(self, choice: str | None, request: gr.Request) -> list[Any]:
        wanted = presets.find_values(self.desk.settings, self.tab, choice) if who(request).owner else {}
        return [reach(field, wanted.get(name, gr.skip())) for name, field in self.fields.items()]

    def save_preset(self, values: dict[Any, Any], request: gr.Request) -> tuple[Any, str]:
        asked = {name: values[field] for name, field in self.fields.items()}
        try:
            choice = presets.save_preset(self.desk.settings, self.tab, values[self.presets.choice], asked)
        except Trouble as trouble:
            return gr.skip(), explain(trouble, request)
        return gr.update(choices=presets.list_choices(self.desk.settings, self.tab), value=choice), ""

    def delete_preset(self, choice: str | None, request: gr.Request) -> tuple[Any, Any]:
        if not choice:
            return gr.skip(), gr.skip()  # None was chosen, or the question was answered with no.
        try:
            presets.delete_preset(self.desk.settings, self.tab, choice)
        except Trouble as trouble:
            return gr.skip(), explain(trouble, request)
        return gr.update(choices=presets.list_choices(self.desk.settings, self.tab), value=None), ""


def remember_settings(tab: str, desk: Desk, fields: Mapping[str, Component], row: PresetRow, message: gr.HTML) -> None:
    """Save settings as they change, and connect the presets; only for the owner.

    One listener for all fields: two on their way at once could arrive in the wrong order and leave the older values.
    """
    settings, components = SavedSettings(tab, desk, fields, row), [*fields.values()]
    with_preset: set[Block] = {*components, row.choice}
    changes = [each.change for each in components]  # type: ignore[attr-defined]
    gr.on(changes, settings.save, {*components}, None, **LATEST)
    row.choice.input(settings.apply_preset, row.choice, components, **LATEST)
    row.save.click(settings.save_preset, with_preset, [row.choice, message], **QUICK)
    row.delete.click(settings.delete_preset, row.choice, [row.choice, message], js="choice => Hearth.confirmPreset(choice)", **LATEST)
