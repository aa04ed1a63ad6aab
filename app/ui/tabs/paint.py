"""Paint: what its fields ask for, what its buttons do, and which event calls what."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.outward import public_name
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.settings import HIRES_TIMES
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.foreign_settings import list_by_hand
from app.ui.page.translate import label, language
from app.ui.state.desk import Desk
from app.ui.state.lora_desk import Chosen, read_chosen, write_chosen
from app.ui.state.person import Person, who
from app.ui.tabs import paint_form, paint_view
from app.ui.tabs.beside_prompt import GUIDE, REFERENCE, Beside
from app.ui.tabs.in_force import clear_when_changed, empty, give_back, tell_reused, tell_reusing, tell_value
from app.ui.tabs.paint_fields import KIND, PaintFields, build_fields
from app.ui.tabs.script_calls import hear, join_event, read_id, read_number, script_event
from app.ui.tabs.setting_fields import read_whole
from app.ui.tabs.shared_controls import (
    EACH,
    LATEST,
    QUICK,
    JobTab,
    Refresh,
    explain,
    explain_restored,
    keep_empty,
    remember_settings,
    restore_or_explain,
    roll_seed,
    run_or_explain,
)
from app.ui.tabs.start_picture import save_pictures


def build(desk: Desk, guest: bool = False) -> Refresh:
    """Build the tab; a guest's has nothing of the owner's: no saved settings, models, LoRAs, grid or forecast."""
    saved = {} if guest else desk.settings.get("paint", {})
    shared = JobTab(desk, KIND, guest)
    tab = PaintTab(desk, build_fields(desk, saved, guest), shared)
    connect(tab)
    if guest:
        keep_empty("paint", tab.fields.restored)
    else:
        connect_owner(tab)
    filled = [tab.fields.rows["seed"], *tab.fields.saved.values()]
    if guest:
        return Refresh(tab.fill, filled, shared.offer_models, [tab.fields.model.model])
    beside = [tab.fields.rows[name] for name in ("control", "adapter")]
    begun = [tab.fields.start.drawer, tab.fields.rows["strength"]]
    return Refresh(tab.fill, [*filled, *beside, *begun], tab.offer_all, [tab.fields.model.model, *beside])


@dataclass(frozen=True, slots=True, eq=False)
class PaintTab:
    """What the events of the tab do."""

    desk: Desk
    fields: PaintFields
    shared: JobTab

    def request_from(self, values: dict[Any, Any], person: Person) -> PictureRequest:
        """Make a request of the fields' values; an own width or height comes before the size chosen, which may be left open."""
        chosen = self.fields
        asked = chosen.rows.read(values)
        for name, side in zip(("width", "height"), (values[chosen.model.size] or "").split("x"), strict=False):
            asked[name] = asked.get(name) or read_whole(side or None)
        loras = () if self.shared.guest else self.desk.loras.parse(values[chosen.loras.chosen] or "")
        request = PictureRequest(
            prompt=values[chosen.prompt.prompt],
            model=values[chosen.model.model],
            negative=values[chosen.prompt.negative] or "",
            loras=loras,
            **asked,
        )
        image, mask = save_pictures(self.desk, values[chosen.start.image], person)  # last: nothing is written for what is refused
        guide, _ = save_pictures(self.desk, values[chosen.guide.image], person, "guide")
        like, _ = save_pictures(self.desk, values[chosen.reference.image], person, "reference")
        return dataclasses.replace(request, image=image, mask=mask, guide=guide, reference=like)

    def begin(self, values: dict[Any, Any], request: gr.Request) -> str:
        def run() -> None:
            self.desk.jobs.check_turn(who(request))  # before any picture is written for it
            self.desk.jobs.begin(self.request_from(values, who(request)), who(request))

        return run_or_explain(run, request)

    def use_model(self, carried: Any) -> Any:
        return self.shared.use(read_id(carried, "paint.use"))

    def use_editor(self, chosen: str, request: gr.Request) -> list[Any]:
        """Choose a model that changes a picture by words, or say which one would."""
        return restore_or_explain(lambda: [paint_form.choose_editor(self.desk, chosen), ""], 1, request)

    def begin_lines(self, values: dict[Any, Any], request: gr.Request) -> str:
        """Begin a picture for each line of the prompt."""

        def run() -> None:
            asked = self.request_from(values, who(request))
            lines = paint_form.split_lines(asked.prompt)
            self.desk.jobs.begin_list([dataclasses.replace(asked, prompt=each) for each in lines], who(request))

        return run_or_explain(run, request)

    def begin_grid(self, values: dict[Any, Any], request: gr.Request) -> str:
        grid = self.fields.grid

        def read_side(axis: gr.Dropdown, listed: gr.Textbox) -> tuple[str, list[Any]]:
            return values[axis], paint_form.parse_values(values[axis], values[listed])

        def run() -> None:
            picture = dataclasses.replace(self.request_from(values, who(request)), batch=1)
            across, down = read_side(grid.across, grid.across_values), read_side(grid.down, grid.down_values)
            self.desk.jobs.begin_grid(picture, across, down, who(request))

        return run_or_explain(run, request)

    def forecast(self, values: dict[Any, Any], request: gr.Request) -> str:
        """Say whether it will fit, how long it will take, and what would make it fit. The pictures are sent with Paint alone: that they are there counts."""
        prompt = self.fields.prompt.prompt
        sent = dict.fromkeys((self.fields.start.image, self.fields.guide.image, self.fields.reference.image))
        asked = {**values, **sent, prompt: values[prompt] or "?"}
        try:
            wanted = self.request_from(asked, who(request))
            drawn = values[self.fields.start.told].split()
            if drawn:
                wanted = dataclasses.replace(wanted, image="?", mask="?" if "marked" in drawn else None)
            if values[self.fields.guide.name] and wanted.control:
                wanted = dataclasses.replace(wanted, guide=values[self.fields.guide.name])
            if values[self.fields.reference.name] and wanted.adapter:
                wanted = dataclasses.replace(wanted, reference=values[self.fields.reference.name])
            lines = len(paint_form.split_lines(values[prompt] or ""))
            return paint_view.forecast_html(self.desk, wanted, who(request), language(request), lines)
        except Trouble as trouble:
            return explain(trouble, request)

    def restore_dropped(self, file: str | None, request: gr.Request) -> list[Any]:
        """Restore the settings of a picture dropped on the page, and empty the field so that it takes another."""
        fields = len(self.fields.restored)
        if file is None:
            return [gr.skip()] * (fields + 2)

        def restore() -> list[Any]:
            found = picture_settings.read(Path(file))
            return self._restore(found.request, found.notes, request)

        return [*restore_or_explain(restore, fields, request), None]

    def restore_creation(self, carried: Any, request: gr.Request) -> list[Any]:
        return self._restore_creation(read_number(carried, "paint.restore"), request)

    def restore_alike(self, carried: Any, request: gr.Request) -> list[Any]:
        """Restore a creation's settings without its seed, so that Paint makes others like it."""
        return self._restore_creation(read_number(carried, "paint.alike"), request, seed=None)

    def _restore_creation(self, number: int, request: gr.Request, **other: Any) -> list[Any]:
        def restore() -> list[Any]:
            found = dataclasses.replace(self.shared.read_request_of(number, PictureRequest, request), **other)
            return self._restore(found, list_by_hand(found), request, ours=True)

        return restore_or_explain(restore, len(self.fields.restored), request)

    def _restore(self, found: PictureRequest, notes: Sequence[Sentence], request: gr.Request, ours: bool = False) -> list[Any]:
        """Give values for the restored fields, and notes on what could not be restored. A model that is not here leaves the chosen one. `ours`: it
        is of the shelf."""
        again, missing = self.shared.find_model_again(found.model)
        model = again or ("" if self.shared.guest else self.desk.settings.get("paint", {}).get("model", ""))
        loras, lost = (
            ("", tuple(Path(each.path).stem for each in found.loras)) if self.shared.guest else self.desk.loras.restore(found.loras, ours)
        )
        if lost:
            notes = [*notes, say("owner.loras", "These LoRAs are not in your library, so the picture will differ: {names}.", names=lost)]
        enlarger = Path(public_name(found.enlarger)).stem
        if enlarger not in (known := [value for _, value in self.fields.rows["enlarger"].choices]):
            notes = [*notes, say("owner.enlarger", "The enlarger {name} is not here; choose another one.", name=enlarger)]
        control, adapter = (self._find_beside(*pair, model) for pair in ((GUIDE, found.control), (REFERENCE, found.adapter)))
        if found.control and not control:
            name = public_name(found.control)
            notes = [*notes, say("owner.control", "The control model {name} is not here; choose another one.", name=name)]
        if found.adapter and not adapter:
            name = public_name(found.adapter)
            notes = [*notes, say("owner.adapter", "The IP-Adapter {name} is not here; choose another one.", name=name)]
        found = dataclasses.replace(found, enlarger=enlarger if enlarger in known else "", control=control, adapter=adapter)
        settings = self.fields.rows.restore(found).values()
        said = explain_restored([*missing, *notes], request)
        return [found.prompt, found.negative, again or gr.skip(), *settings, loras, said]

    def _find_beside(self, beside: Beside, named: str, model: str) -> str:
        """Find a control model or an adapter again that a request names; empty where it is not here, and for guests."""
        found = bool(named) and not self.shared.guest
        return beside.find_again(self.desk, paint_form.find_model(self.desk, model), named) if found else ""

    def add_loras(self, files: list[str] | None, chosen: str, request: gr.Request) -> list[Any]:
        """Put uploaded files into the library and in use, and empty the field so that it takes others."""
        used = read_chosen(chosen)
        for name in self.desk.loras.take_in(files or []):
            if all(each.name != name for each in used):
                used.append(Chosen(name, 1.0))
        return [None, write_chosen(used)]

    def last_seed(self, request: gr.Request) -> Any:
        progress = self.desk.jobs.find_progress(KIND, who(request))
        return progress.parts[0].seed if progress and progress.parts else gr.skip()

    def clear_own_size(self) -> tuple[None, None]:
        """Let a chosen size count, also where something restored left a size of its own."""
        return None, None

    def offer_sizes(self, model: str) -> Any:
        chosen = paint_form.find_model(self.desk, model)
        return gr.update(choices=paint_form.list_sizes(chosen), value=paint_form.default_size(chosen))

    def offer_beside(self, model: str, control: str | None, adapter: str | None) -> list[Any]:
        """Offer the control models and the adapters that fit a model."""
        return [GUIDE.offer(self.desk, model, control), REFERENCE.offer(self.desk, model, adapter)]

    def describe_start(self, model: str) -> list[Any]:
        """Say what a model does with a starting picture."""
        title, of_strength = paint_form.describe_start(paint_form.find_model(self.desk, model))
        return [gr.update(label=label(title)), gr.update(info=label(of_strength) if of_strength else "")]  # None would not reach the page

    def offer_all(self) -> list[Any]:
        """Offer what came or went meanwhile; what is chosen stays."""
        offered = self.offer_beside(self.desk.settings.get("paint", {}).get("model", ""), None, None)
        return [self.shared.offer_models(), *({name: each for name, each in row.items() if name != "value"} for row in offered)]

    def fill(self) -> list[Any]:
        """Empty the seed, fill in the saved settings, choose a control model and an adapter that fit, and say what starting from a picture means."""
        model = self.desk.settings.get("paint", {}).get("model", "")
        own = [] if self.shared.guest else [*self.offer_beside(model, None, None), *self.describe_start(model)]
        return [None, *self.shared.saved_values(self.fields.saved), *own]


def connect(tab: PaintTab) -> None:
    """Connect the events that owner and guests have."""
    fields, own, message = tab.fields, tab.fields.settings, tab.fields.go.message
    tell_sent(fields.go.go.click(tab.begin, fields.asked, message, js=send_start(fields), **QUICK))
    fields.go.stop.click(tab.shared.stop, None, None, api_name="stop_on_page", **QUICK)
    seed, width, height = (fields.rows[name] for name in ("seed", "width", "height"))
    own.dice.click(roll_seed, None, seed, **QUICK)
    own.reuse.click(tab.last_seed, None, seed, **QUICK)
    reused = [fields.loras.chosen, seed, *fields.saved.values()]
    tell_reusing("paint", reused, *(script_event(fields.calls, each) for each in ("paint.restore", "paint.alike")), fields.dropped.upload)
    alike = hear(fields.calls, "paint.alike", tab.restore_alike, None, [*fields.restored, message], **LATEST)
    reuse = hear(fields.calls, "paint.restore", tab.restore_creation, None, [*fields.restored, message], **LATEST)
    drop = fields.dropped.upload(tab.restore_dropped, fields.dropped, [*fields.restored, message, fields.dropped], **LATEST)
    tell_reused("paint", reused, reuse, alike, drop)
    show_in_force(fields, reused)
    clear_when_changed(fields.asked, message)
    fields.model.size.select(tab.clear_own_size, None, [width, height], **LATEST)
    hires, upscale = fields.rows["hires"], fields.rows["upscale"]
    # The switch does it alone: what is not larger gets larger with it, and is as it was without it; a factor of one's own stays.
    factor = f"(on, times) => (on && times === 1 ? {HIRES_TIMES} : !on && times === {HIRES_TIMES} ? 1 : times)"
    hires.input(None, [hires, upscale], upscale, js=factor)


def send_start(fields: PaintFields) -> str:
    """Return the script that sends the pictures to start from and to be guided by, before Paint does: their files are put among the values of
    `asked`, with what a frame sets."""
    asked = in_order(fields.asked)
    image, guiding, liked = map(asked.index, (fields.start.image, fields.guide.image, fields.reference.image))
    return (
        f"async (...values) => {{ try {{ let framed; [framed, values[{image}], values[{guiding}], values[{liked}]] = await Hearth.sendBegins();"
        f" {put_frame(fields, asked, 'framed')} return values.slice(0, {len(asked)}); }} catch (fault) {{ Hearth.sendEnds(); throw fault; }} }}"
    )


def tell_sent(*presses: Any) -> None:
    """Tell the script once a press whose pictures it sent has been answered."""
    for each in presses:
        each.then(None, None, None, js="() => { Hearth.sendEnds(); }", **EACH)


def in_order(fields: Collection[Block]) -> list[Block]:
    """Return fields as Gradio hands their values over."""
    return sorted(fields, key=lambda each: each._id)


def put_frame(fields: PaintFields, asked: Sequence[Block], framed: str = "Hearth.frameSettings()") -> str:
    """Return the part of a script that puts what a frame sets, as it is now or as it was, among the values of `asked`."""
    changed = {"size": fields.model.size, **{name: fields.rows[name] for name in ("width", "height", "masked_only", "strength")}}
    places = json.dumps({name: asked.index(each) for name, each in changed.items()})
    return f"for (const [name, value] of Object.entries({framed})) values[{places}[name]] = value;"


def show_in_force(fields: PaintFields, reused: Sequence[Component]) -> None:
    """Connect what stands beside Paint and is removed there."""
    loras, calls, seed = fields.loras.chosen, fields.calls, fields.rows["seed"]
    tell_value("paint", "seed", seed)
    hear(calls, "paint.noseed", None, None, seed, js=empty(seed), **EACH)
    tell_value("paint", "loras", loras)
    hear(calls, "paint.noloras", None, None, loras, js=empty(loras), **EACH)
    hear(calls, "paint.kept", None, None, [seed, loras], js="() => Hearth.kept('paint', ['seed', 'loras'])", **EACH)
    hear(calls, "paint.unfold", None, None, fields.start.drawer, js="() => ({__type__: 'update', open: true})", **EACH)
    hear(calls, "paint.back", None, None, [*reused], js=give_back("paint"), **EACH)


def connect_owner(tab: PaintTab) -> None:
    """Connect the events that only the owner has."""
    fields, own, message = tab.fields, tab.fields.settings, tab.fields.go.message
    model, size = fields.model.model, fields.model.size
    tell_sent(
        fields.grid.go.click(tab.begin_grid, fields.asked, message, js=send_start(fields), **QUICK),
        hear(fields.calls, "paint.lines", tab.begin_lines, fields.asked, message, js=send_start(fields), **QUICK),
    )
    fields.loras.files.upload(tab.add_loras, [fields.loras.files, fields.loras.chosen], [fields.loras.files, fields.loras.chosen], **EACH)
    model.change(tab.offer_sizes, model, size, **LATEST)
    beside = [fields.rows[name] for name in ("control", "adapter")]
    model.change(tab.offer_beside, [model, *beside], beside, **LATEST)
    model.change(tab.describe_start, model, [fields.start.drawer, fields.rows["strength"]], **LATEST)
    hear(fields.calls, "paint.guided", None, None, fields.guide.drawer, js="() => ({__type__: 'update', open: true})", **EACH)
    hear(fields.calls, "paint.liked", None, None, fields.reference.drawer, js="() => ({__type__: 'update', open: true})", **EACH)
    model.change(None, model, None, js="model => { Hearth.paintedBy(model); Hearth.lorasFor(model); }")
    hear(fields.calls, "paint.edit", tab.use_editor, model, [model, message], **QUICK)
    hear(fields.calls, "paint.use", tab.use_model, None, model, **QUICK)
    weighing = (
        fields.rows[name]
        for name in (
            "width",
            "height",
            "steps",
            "guidance",
            "batch",
            "scheduler",
            "strength",
            "masked_only",
            "quicker",
            "upscale",
            "hires",
            "hires_strength",
            "control",
            "guide_as",
            "guide_from",
            "guide_to",
            "adapter",
        )
    )
    changes = [each.change for each in (model, size, fields.start.told, fields.guide.name, fields.reference.name, *weighing)]
    # Once something was made, how long it takes is known. One connection for all, so that no earlier answer comes after a later one.
    asks = [*changes, join_event(fields.calls, "paint.forecast")]
    given = in_order(fields.asked - {fields.start.image, fields.guide.image, fields.reference.image})
    framed = f"(...values) => {{ {put_frame(fields, given)} return values.slice(0, {len(given)}); }}"
    gr.on(asks, tab.forecast, set(given), fields.model.forecast, js=framed, **LATEST)
    remember_settings("paint", tab.desk, fields.saved, own.presets, message)
