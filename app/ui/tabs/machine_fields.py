"""The fields of Machine, card by card: layout and labels, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, get_args

import gradio as gr
from gradio.components import Component

from app.compat.machine.chunk_curve import SIZES
from app.compat.planning.plan_words import OPTIONS
from app.compat.planning.types import Dtype, Gqa, Kernel, Offload, Quantised
from app.engine.models.catalog import CATALOG
from app.ui.page.translate import label, label_model, word
from app.ui.state.desk import Desk
from app.ui.tabs.script_calls import build_calls
from app.ui.tabs.shared_controls import EACH

ANY: Final = ""
"""Chosen in a list of options, this leaves the choice to Hearth."""


@dataclass(frozen=True, slots=True, eq=False)
class MachineCard:
    test: gr.Button
    report: gr.Button
    free: gr.Button


@dataclass(frozen=True, slots=True, eq=False)
class PlanCard:
    model: gr.Dropdown
    pretended: gr.Dropdown


@dataclass(frozen=True, slots=True, eq=False)
class ChunkCard:
    slider: gr.Slider
    exact: gr.Textbox
    tune: gr.Button
    message: gr.HTML


@dataclass(frozen=True, slots=True, eq=False)
class ForceCard:
    dtype: gr.Dropdown
    gqa: gr.Dropdown
    kernels: gr.Dropdown
    offload: gr.Dropdown
    quantised: gr.Dropdown
    objections: gr.HTML
    use: gr.Button

    @property
    def choices(self) -> list[Component]:
        return [self.dtype, self.gqa, self.kernels, self.offload, self.quantised]


@dataclass(frozen=True, slots=True, eq=False)
class MachineFields:
    machine: MachineCard
    plan: PlanCard
    chunk: ChunkCard
    force: ForceCard
    calls: gr.HTML


def build_fields(desk: Desk) -> MachineFields:
    with gr.Row(elem_classes="h-room"):
        with gr.Column():
            machine = _build_machine()
            gr.HTML('<section id="h-machines" class="h-card"></section>', apply_default_css=False)
            gr.HTML('<section id="h-notify" class="h-card"></section>', apply_default_css=False)
            gr.HTML('<section id="h-disk" class="h-card"></section>', apply_default_css=False)
        with gr.Column():
            gr.HTML('<section id="h-charts" class="h-card"></section>', apply_default_css=False)
            gr.HTML('<section id="h-selftest" class="h-card"></section>', apply_default_css=False)
            gr.HTML('<section id="h-upkeep" class="h-card"></section>', apply_default_css=False)
    with (
        gr.Accordion(
            word("machine.more", "For tinkerers: the plan, the chunk size, choices by hand"), open=False, elem_id="machine-more"
        ) as more,
        gr.Row(elem_classes="h-room"),
    ):
        with gr.Column():
            plan = _build_plan(desk)
        with gr.Column():
            chunk, force = _build_chunk(), _build_force()
    more.expand(None, None, None, js="() => { Hearth.soon(); }", **EACH)
    calls = build_calls("machine.stop", "machine.typed", "machine.knee", "machine.forget", "machine.loaded")
    return MachineFields(machine, plan, chunk, force, calls)


def listed_models(desk: Desk) -> list[tuple[Any, str]]:
    return [(label_model(each.title), each.id) for each in desk.models.list_all()]


def _build_machine() -> MachineCard:
    with gr.Column(elem_classes="h-card"):
        gr.HTML(f'<section id="h-words" data-model="{CATALOG[0].id}"></section>', apply_default_css=False)
        with gr.Row(elem_classes="h-deeds"):
            test = gr.Button(word("machine.test", "Run the self-test"), size="sm", elem_id="machine-test")
            report = gr.Button(word("machine.report", "Copy report"), size="sm")
            free = gr.Button(word("machine.free", "Free memory"), size="sm")
        gr.HTML('<div class="h-measuring" data-kind="SelfTest"></div>', apply_default_css=False)
    return MachineCard(test, report, free)


def _build_plan(desk: Desk) -> PlanCard:
    with gr.Column(elem_classes="h-card"):
        model = gr.Dropdown(
            listed_models(desk), value=CATALOG[0].id, elem_id="machine-model", label=word("machine.model", "Plan for this model")
        )
        pretended = gr.Dropdown(
            [(word("machine.this", "this machine"), ANY), *((name, key) for key, name in desk.machine.list_pretended().items())],
            value=ANY,
            label=word("machine.as", "Show the plan for"),
            elem_id="machine-as",
        )
        gr.HTML('<section id="h-plan"></section>', apply_default_css=False)
    return PlanCard(model, pretended)


def _build_chunk() -> ChunkCard:
    with gr.Column(elem_classes="h-card"):
        gr.HTML('<section id="h-curve"></section>', apply_default_css=False)
        slider = gr.Slider(0, len(SIZES), 0, step=1, elem_id="machine-chunk", label=word("machine.chunk", "Chunk size"))
        gr.HTML('<p id="h-chunk-now" class="h-soft"></p>', apply_default_css=False)
        with gr.Row(elem_classes="h-inline"):
            exact = gr.Textbox(
                "",
                label=word("machine.exact", "Exact size"),
                placeholder=word("machine.auto", "automatic"),
                elem_id="machine-exact",
                scale=1,
            )
            tune = gr.Button(word("machine.tune", "Tune for this model"), elem_id="machine-tune")
        gr.HTML('<div class="h-measuring" data-kind="Tune"></div>', apply_default_css=False)
        message = gr.HTML("", apply_default_css=False, elem_id="machine-message")
    return ChunkCard(slider, exact, tune, message)


def _build_force() -> ForceCard:
    with gr.Accordion(word("machine.force", "Choose by hand"), open=False, elem_classes="h-card", elem_id="machine-force"):
        dtype = _build_option("dtype", word("machine.dtype", "Precision"), get_args(Dtype))
        gqa = _build_option("gqa", word("machine.gqa", "Grouped heads"), get_args(Gqa))
        kernels = gr.Dropdown(
            list(get_args(Kernel)),
            value=[],
            multiselect=True,
            elem_id="machine-kernels",
            label=word("machine.kernels", "Allowed kernels"),
            info=word("machine.kernels-info", "Leave empty for automatic."),
        )
        offload = _build_option("offload", word("machine.offload", "Offload"), get_args(Offload))
        quantised = _build_option("quantised", word("machine.quantised", "Quantised weights"), get_args(Quantised))
        objections = gr.HTML("", apply_default_css=False, elem_id="machine-objections")
        use = gr.Button(word("machine.use", "Apply"), elem_id="machine-use")
    return ForceCard(dtype, gqa, kernels, offload, quantised, objections, use)


def _build_option(name: str, title: Any, options: tuple[str, ...]) -> gr.Dropdown:
    named = [(label(OPTIONS[each]) if each in OPTIONS else each, each) for each in options]
    return gr.Dropdown([(word("machine.auto", "automatic"), ANY), *named], value=ANY, label=title, elem_id=f"machine-{name}")
