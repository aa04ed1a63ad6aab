"""Pictures beside the prompt on Paint, one that guides (ControlNet) and one to be like (IP-Adapter): their cards, and what they offer for a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gradio as gr

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.outward import public_name
from app.engine.jobs.settings import ADAPTERS, CONTROLS, PICTURES
from app.engine.models import adapters, controls
from app.engine.models.model import Model
from app.ui.page.translate import label
from app.ui.state.desk import Desk
from app.ui.tabs import paint_form
from app.ui.tabs.setting_fields import SettingFields


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    drawer: gr.Accordion
    image: gr.File
    """The script sends the picture to this hidden field once Paint is pressed."""
    name: gr.Textbox
    """The script writes into this hidden field what the picture is called; it is empty where there is none."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A picture beside the prompt, and the files that let a model follow it."""

    setting: str
    """This setting names such a file."""
    others: Mapping[str, Sentence]
    """The setting offers these besides files."""
    title: Sentence
    section: str
    """The script draws the picture there."""
    drawer: str
    image: str
    name: str
    elem_id: str
    """The field of its name has this id, which the script knows."""
    rows: Sequence[tuple[str, ...]]
    """A row of the card has these settings side by side."""
    list_own: Callable[[Home], Sequence[Path]]
    name_file: Callable[[Path], str]
    is_file: Callable[[Path], bool]
    require_fit: Callable[[Home, Path, Model], object]
    word_none: Callable[[Home], Sentence]

    def build(self, desk: Desk, fields: SettingFields, model: Model, guest: bool) -> Card:
        # Outside of the fold, which is not on the page before it was opened.
        image = gr.File(file_count="multiple", elem_classes="h-hidden", label=self.image)
        name = gr.Textbox("", label=self.name, elem_id=self.elem_id, elem_classes="h-hidden")
        with gr.Accordion(label(self.title), open=False, elem_classes="h-card", elem_id=self.drawer, visible=not guest) as drawer:
            gr.HTML(self.section, apply_default_css=False)
            for row in self.rows:
                with gr.Row(elem_classes="h-pair") if len(row) > 1 else nullcontext():
                    fields.build(*row)
            if not guest:  # a guest hears of no folder
                offered = self.list_fitting(desk, model)
                fields[self.setting].choices += offered
                fields[self.setting].info = label(self._describe(desk, offered))
        return Card(drawer, image, name)

    def offer(self, desk: Desk, model: str, chosen: str | None) -> Any:
        """Offer the files that fit; one that does not makes way for the first that does."""
        fitting = self.list_fitting(desk, paint_form.find_model(desk, model))
        ids = [id_ for _, id_ in fitting]
        value = chosen if chosen in ids else next(iter(ids), "")
        others = [(label(name), id_) for id_, name in self.others.items()]
        return gr.update(choices=[*others, *fitting], value=value, info=label(self._describe(desk, fitting)))

    def list_fitting(self, desk: Desk, model: Model) -> list[tuple[str, str]]:
        """List title and path of what a model can follow: of Hearth's own folder, then of the programs that were found."""
        return [(title, str(path)) for title, path in self._list_all(desk) if self._fits(desk, path, model)]

    def find_again(self, desk: Desk, model: Model, name: str) -> str:
        """Return the file of restored settings by its path; empty where it is not here."""
        wanted = Path(public_name(name)).name.removesuffix(controls.ENDING)
        return next((path for _, path in self.list_fitting(desk, model) if self.name_file(Path(path)) == wanted), "")

    def _describe(self, desk: Desk, offered: Sequence[object]) -> Sentence:
        info = PICTURES[self.setting].info
        return info if offered and info is not None else self.word_none(desk.keeper.home)

    def _list_all(self, desk: Desk) -> Iterator[tuple[str, Path]]:
        for path in self.list_own(desk.keeper.home):
            yield self.name_file(path), path
        for kept in desk.models.finder.kept:
            for each in kept.files:
                if each.role == self.setting and self.is_file(each.path):
                    yield f"{self.name_file(each.path)} ({kept.tool})", each.path

    def _fits(self, desk: Desk, path: Path, model: Model) -> bool:
        try:
            return bool(self.require_fit(desk.keeper.home, path, model))
        except (Trouble, OSError, ValueError, LookupError):  # what it is, the command says that names it
            return False


GUIDE: Final = Beside(
    setting="control",
    others=CONTROLS,
    title=say("paint.guide", "Guide with a picture"),
    section='<section id="h-guide"></section>',
    drawer="paint-guide",
    image="guide",
    name="guided",
    elem_id="paint-guided",
    rows=(("control", "guide_as"), ("guide_strength",), ("guide_from", "guide_to")),
    list_own=controls.list_controls,
    name_file=controls.name_control,
    is_file=controls.is_control_path,
    require_fit=lambda _, path, model: controls.require_fit(path, model),
    word_none=lambda home: say(
        "guide.none-here",
        "None for the chosen model is here yet. Put a ControlNet as .safetensors, or its folder, into {folder}.",
        folder=str(home.controls),
    ),
)
REFERENCE: Final = Beside(
    setting="adapter",
    others=ADAPTERS,
    title=say("paint.reference", "Paint like a picture"),
    section='<section id="h-reference"></section>',
    drawer="paint-reference",
    image="reference",
    name="liked",
    elem_id="paint-liked",
    rows=(("adapter",), ("reference_strength",)),
    list_own=adapters.list_adapters,
    name_file=adapters.name_adapter,
    is_file=lambda path: path.name.lower().endswith(adapters.ENDING),
    require_fit=adapters.require_fit,
    word_none=lambda home: say(
        "reference.none-here",
        "None for the chosen model is here yet. Put an IP-Adapter as .safetensors, and its image encoder (CLIP vision), into {folder}.",
        folder=str(home.adapters),
    ),
)
