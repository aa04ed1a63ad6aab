"""Machine: chunk size, forced choices, self-test and Tune: what its fields do, and which event calls what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.base.trouble import Trouble
from app.compat.machine.chunk_curve import SIZES
from app.compat.planning.decide import parse_chunk
from app.compat.planning.types import AUTO, Choice, Chunk
from app.engine.jobs.tasks import SelfTest, Tune
from app.engine.models.catalog import CATALOG
from app.ui.page.translate import language
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs import machine_view
from app.ui.tabs.curve_view import slider_step
from app.ui.tabs.machine_fields import ANY, MachineFields, build_fields, listed_models
from app.ui.tabs.script_calls import hear
from app.ui.tabs.shared_controls import LATEST, QUICK, Refresh, explain


def build(desk: Desk) -> Refresh:
    """Build the tab; what is forced is filled in when the page loads."""
    tab = MachineTab(desk, build_fields(desk))
    connect(tab)
    fields = tab.fields
    filled = [fields.plan.model, fields.chunk.slider, fields.chunk.exact, *fields.force.choices]
    return Refresh(tab.fill, filled, tab.offer, [fields.plan.model])


@dataclass(frozen=True, slots=True, eq=False)
class MachineTab:
    """What the events of the tab do; only the owner has it."""

    desk: Desk
    fields: MachineFields

    def slide(self, place: float, request: gr.Request) -> tuple[Any, Any, str]:
        """Set the chunk from the slider; put the slider back if it cannot be saved."""
        size: Chunk = SIZES[int(place) - 1] if place >= 1 else AUTO
        try:
            self.desk.machine.set_chunk(size)
        except Trouble as trouble:
            return slider_step(self.desk.keeper.chunk), gr.skip(), explain(trouble, request)
        return gr.skip(), "" if size == AUTO else str(size), ""

    def type_size(self, text: str, request: gr.Request) -> tuple[Any, str]:
        """Set the chunk from the field beside the slider."""
        try:
            size = parse_chunk(text.strip() or None)
            if size == self.desk.keeper.chunk:
                return gr.skip(), ""
            self.desk.machine.set_chunk(size)
        except Trouble as trouble:
            return gr.skip(), explain(trouble, request)
        return slider_step(size), ""

    def use_knee(self, model: str, request: gr.Request) -> tuple[Any, Any, str]:
        """Set the chunk to the knee that Tune found for this model."""
        curve = self.desk.machine.read_curve(model)
        if curve is None:
            return gr.skip(), gr.skip(), ""
        try:
            self.desk.machine.set_chunk(curve.knee)
        except Trouble as trouble:
            return gr.skip(), gr.skip(), explain(trouble, request)
        return slider_step(curve.knee), str(curve.knee), ""

    def choice_from(self, values: dict[Any, Any]) -> Choice:
        forced = self.fields.force
        return Choice(
            dtype=values[forced.dtype] or None,
            gqa=values[forced.gqa] or None,
            kernels=tuple(values[forced.kernels]) or None,
            offload=values[forced.offload] or None,
            quantised=values[forced.quantised] or None,
        )

    def show_objections(self, values: dict[Any, Any], request: gr.Request) -> str:
        """Show what speaks against a forced choice before it is applied."""
        try:
            plan = self.desk.machine.plan(values[self.fields.plan.model], self.choice_from(values))
        except Trouble as trouble:
            return explain(trouble, request)
        return machine_view.warnings_html(plan, language(request))

    def keep_choice(self, values: dict[Any, Any], request: gr.Request) -> str:
        """Save a forced choice, if there is a plan for it."""
        choice = self.choice_from(values)
        try:
            self.desk.machine.plan(values[self.fields.plan.model], choice)
            self.desk.machine.keep_choice(choice)
        except Trouble as trouble:
            return explain(trouble, request)
        return machine_view.saved_html(language(request))

    def run_selftest(self) -> None:
        self.desk.measuring.start(SelfTest())

    def run_tune(self, model: str) -> None:
        self.desk.measuring.start(Tune(model))

    def offer(self) -> Any:
        return gr.update(choices=listed_models(self.desk))

    def look_at_loaded(self) -> Any:
        return self.fill()[0]

    def fill(self) -> list[Any]:
        """Fill in what is forced, and look at the loaded model."""
        models, loaded, now = (listed_models(self.desk), self.desk.keeper.state.model, self.desk.machine.read_choice(OWNER))
        looked_at = gr.update(choices=models, value=loaded if loaded in [id_ for _, id_ in models] else CATALOG[0].id)
        forced = [now.dtype or ANY, now.gqa or ANY, list(now.kernels or ()), now.offload or ANY, now.quantised or ANY]
        chunk = self.desk.keeper.chunk
        return [looked_at, slider_step(chunk), "" if chunk == AUTO else str(chunk), *forced]


def connect(tab: MachineTab) -> None:
    machine, plan, chunk, force, calls = (tab.fields.machine, tab.fields.plan, tab.fields.chunk, tab.fields.force, tab.fields.calls)
    look: dict[str, Any] = {
        "fn": None, "inputs": [plan.model, plan.pretended], "outputs": None, "js": "(model, as) => { Hearth.lookAt(model, as); }",
    }  # fmt: skip
    chunk.slider.release(tab.slide, chunk.slider, [chunk.slider, chunk.exact, chunk.message], **LATEST)
    chunk.exact.submit(tab.type_size, chunk.exact, [chunk.slider, chunk.message], **LATEST)
    hear(calls, "machine.typed", tab.type_size, chunk.exact, [chunk.slider, chunk.message], **LATEST)
    hear(calls, "machine.knee", tab.use_knee, plan.model, [chunk.slider, chunk.exact, chunk.message], **QUICK)
    changes = [each.input for each in force.choices]  # type: ignore[attr-defined]
    gr.on(changes, tab.show_objections, {plan.model, *force.choices}, force.objections, **LATEST)
    force.use.click(tab.keep_choice, {plan.model, *force.choices}, force.objections, **QUICK).then(**look)
    machine.test.click(tab.run_selftest, None, None, **QUICK)
    chunk.tune.click(tab.run_tune, plan.model, None, **QUICK)
    hear(calls, "machine.stop", tab.desk.measuring.stop, None, None, api_name="stop_on_page", **QUICK)
    hear(calls, "machine.forget", tab.desk.machine.forget, plan.model, None, **QUICK).then(**look)
    hear(calls, "machine.loaded", tab.look_at_loaded, None, plan.model, **QUICK)
    machine.free.click(tab.desk.keeper.free, None, None, **QUICK)
    machine.report.click(None, None, None, js="() => { Hearth.copyReport(); }")
    plan.model.change(**look)
    plan.model.input(None, None, None, js="() => { Hearth.keepLooking(); }")
    plan.pretended.change(**look)
