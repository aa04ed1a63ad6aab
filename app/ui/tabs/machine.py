"""Machine: this machine in words, what was decided and why, the chunk size with its curve, live speed and memory, the self-test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, get_args

import gradio as gr

from app.compat.machine.chunk_curve import SIZES, read_curve
from app.compat.machine.pretended import MACHINES
from app.compat.planning.decide import chunk_of
from app.compat.planning.types import AUTO, Choice, Chunk, Dtype, Gqa, Kernel, Offload, Quantised
from app.engine.jobs.tasks import SelfTest, Tune
from app.engine.models.catalog import CATALOG
from app.sentence import Trouble
from app.ui.page import views
from app.ui.page.translate import label, language, word
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs import machine_view
from app.ui.tabs.shared_controls import LATEST, QUICK, Refresh, hidden_button

ANY: Final = ""
"""In a list of options: left to Hearth."""


def build(desk: Desk) -> Refresh:
    """What is forced is filled in when the page is loaded."""
    with gr.Row(elem_classes="h-room"):
        with gr.Column():
            with gr.Column(elem_classes="h-card"):
                gr.HTML('<section id="h-words"></section>', apply_default_css=False)
                with gr.Row(elem_classes="h-deeds"):
                    test = gr.Button(word("machine.test", "Run the self-test"), size="sm", elem_id="machine-test")
                    report = gr.Button(word("machine.report", "Copy report"), size="sm", elem_id="machine-report")
                    free = gr.Button(word("machine.free", "Free memory"), size="sm")
                gr.HTML('<div class="h-errand" data-kind="SelfTest"></div>', apply_default_css=False)
                copied = gr.Textbox(visible=False, elem_id="machine-report-text", label="report")
            with gr.Column(elem_classes="h-card"):
                model = gr.Dropdown(
                    offered(desk), value=CATALOG[0].id, elem_id="machine-model",
                    label=word("machine.model", "Plan for this model"),
                )  # fmt: skip
                pretended = gr.Dropdown(
                    [(word("machine.this", "this machine"), ANY), *((each.name, key) for key, each in MACHINES.items())], value=ANY,
                    label=word("machine.as", "Show the plan for"), elem_id="machine-as",
                )  # fmt: skip
                gr.HTML(f'<section id="h-plan" data-model="{CATALOG[0].id}"></section>', apply_default_css=False)
        with gr.Column():
            with gr.Column(elem_classes="h-card"):
                gr.HTML('<section id="h-curve"></section>', apply_default_css=False)
                slider = gr.Slider(0, len(SIZES), 0, step=1, elem_id="machine-chunk", label=word("machine.chunk", "Chunk size"))  # fmt: skip
                gr.HTML('<p id="h-chunk-now" class="h-soft"></p>', apply_default_css=False)
                with gr.Row(elem_classes="h-inline"):
                    exact = gr.Textbox("", label=word("machine.exact", "Exact size"), placeholder="auto", elem_id="machine-exact", scale=1)  # fmt: skip
                    tune = gr.Button(word("machine.tune", "Tune for this model"), elem_id="machine-tune")
                gr.HTML('<div class="h-errand" data-kind="Tune"></div>', apply_default_css=False)
                message = gr.HTML("", apply_default_css=False, elem_id="machine-message")
            with gr.Accordion(word("machine.force", "Choose by hand"), open=False, elem_classes="h-card"):
                dtype = forced_choice("dtype", word("machine.dtype", "Precision"), get_args(Dtype))
                gqa = forced_choice("gqa", word("machine.gqa", "Grouped heads"), get_args(Gqa))
                kernels = gr.Dropdown(
                    list(get_args(Kernel)), value=[], multiselect=True, elem_id="machine-kernels",
                    label=word("machine.kernels", "Allowed kernels"), info=word("machine.kernels-info", "Leave empty for automatic."),
                )  # fmt: skip
                offload = forced_choice("offload", word("machine.offload", "Offload"), get_args(Offload))
                quantised = forced_choice(
                    "quantised", word("machine.quantised", "Quantised weights"), get_args(Quantised)
                )
                objections = gr.HTML("", apply_default_css=False, elem_id="machine-objections")
                use = gr.Button(word("machine.use", "Apply"), elem_id="machine-use")
            gr.HTML('<section id="h-charts" class="h-card"></section>', apply_default_css=False)
            gr.HTML('<section id="h-selftest" class="h-card"></section>', apply_default_css=False)
    stop, changed, knee, forget = (hidden_button(f"machine-{each}") for each in ("stop", "typed", "knee", "forget"))

    def slid(place: float, request: gr.Request) -> tuple[Any, Any, str]:
        """Back to where it was if it could not be kept."""
        size: Chunk = SIZES[int(place) - 1] if place >= 1 else AUTO
        try:
            desk.machine.set_chunk(size)
        except Trouble as trouble:
            return place_of(desk.keeper.chunk), gr.skip(), views.trouble_html(trouble, language(request))
        return gr.skip(), "" if size == AUTO else str(size), ""

    def typed(text: str, request: gr.Request) -> tuple[Any, str]:
        try:
            size = chunk_of(text.strip() or None)
            if size == desk.keeper.chunk:
                return gr.skip(), ""
            desk.machine.set_chunk(size)
        except Trouble as trouble:
            return gr.skip(), views.trouble_html(trouble, language(request))
        return place_of(size), ""

    def taken(chosen: str, request: gr.Request) -> tuple[Any, Any, str]:
        """The knee that Tune found for this model, as if it had been typed."""
        curve = read_curve(desk.keeper.home, chosen)
        if curve is None:
            return gr.skip(), gr.skip(), ""
        try:
            desk.machine.set_chunk(curve.knee)
        except Trouble as trouble:
            return gr.skip(), gr.skip(), views.trouble_html(trouble, language(request))
        return place_of(curve.knee), str(curve.knee), ""

    def tried(*values: Any) -> Choice:
        dtype, gqa, kernels, offload, quantised = values
        return replace(
            desk.machine.read_choice(OWNER), dtype=dtype or None, gqa=gqa or None, kernels=tuple(kernels) or None, offload=offload or None,
            quantised=quantised or None,
        )  # fmt: skip

    def ask(model: str, dtype: Any, gqa: Any, kernels: Any, offload: Any, quantised: Any, request: gr.Request) -> str:
        """What speaks against a forced choice is shown before it is applied."""
        try:
            plan = desk.machine.plan(model, tried(dtype, gqa, kernels, offload, quantised))
        except Trouble as trouble:
            return views.trouble_html(trouble, language(request))
        return machine_view.warnings_html(plan, language(request))

    def keep(model: str, dtype: Any, gqa: Any, kernels: Any, offload: Any, quantised: Any, request: gr.Request) -> str:
        chosen = tried(dtype, gqa, kernels, offload, quantised)
        try:
            desk.machine.plan(model, chosen)
            desk.machine.keep_choice(chosen)
        except Trouble as trouble:
            return views.trouble_html(trouble, language(request))
        return machine_view.saved_html(language(request))

    choices = [dtype, gqa, kernels, offload, quantised]
    slider.release(slid, slider, [slider, exact, message], **LATEST)
    gr.on([exact.submit, changed.click], typed, exact, [slider, message], **LATEST)
    gr.on([each.input for each in choices], ask, [model, *choices], objections, **LATEST)
    use.click(keep, [model, *choices], objections, **QUICK)
    test.click(lambda: desk.measuring.start(SelfTest()), None, None, **QUICK)
    tune.click(lambda chosen: desk.measuring.start(Tune(chosen)), model, None, **QUICK)
    stop.click(desk.measuring.stop, None, None, **QUICK)
    knee.click(taken, model, [slider, exact, message], **QUICK)
    look: dict[str, Any] = {"fn": None, "inputs": [model, pretended], "outputs": None, "js": "(model, as) => { Hearth.look_at(model, as); }"}
    forget.click(desk.machine.forget, model, None, **QUICK).then(**look)
    free.click(desk.keeper.free, None, None, **QUICK)
    report.click(lambda: machine_view.write_report(desk), None, copied, **QUICK).then(
        None, copied, None, js="text => { navigator.clipboard.writeText(text); }"
    )
    model.change(**look)
    pretended.change(**look)

    def offer() -> Any:
        return gr.update(choices=offered(desk))

    def fill() -> list[Any]:
        """A page that is loaded looks at the model that is, too."""
        there, loaded, now = offered(desk), desk.keeper.state.model, desk.machine.read_choice(OWNER)
        looked_at = gr.update(choices=there, value=loaded if loaded in dict(there).values() else CATALOG[0].id)
        forced = [now.dtype or ANY, now.gqa or ANY, list(now.kernels or ()), now.offload or ANY, now.quantised or ANY]  # fmt: skip
        return [looked_at, place_of(now.chunk), "" if now.chunk == AUTO else str(now.chunk), *forced]

    return Refresh(fill, [model, slider, exact, *choices], offer, [model])


def place_of(chunk: Chunk) -> int:
    """On the slider: 0 is automatic, and so shown for what is none of its sizes."""
    return SIZES.index(chunk) + 1 if chunk in SIZES else 0


def label_of(option: str) -> Any:
    return label(machine_view.OPTIONS[option]) if option in machine_view.OPTIONS else option


def offered(desk: Desk) -> list[tuple[str, str]]:
    """The catalog's models and those of the person's own."""
    return [(each.title, each.id) for each in desk.models.list_all()]


def forced_choice(name: str, label: Any, options: tuple[str, ...]) -> gr.Dropdown:
    return gr.Dropdown(
        [(word("machine.auto", "automatic"), ANY), *((label_of(each), each) for each in options)],
        value=ANY,
        label=label,
        elem_id=f"machine-{name}",
    )
