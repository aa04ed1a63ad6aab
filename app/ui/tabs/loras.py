"""The library of LoRAs on Paint: its card, and the routes by which its script searches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import gradio as gr
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.sentence import Sentence, say
from app.engine.models.lora_facts import NAMES, LoraFacts
from app.ui.page.translate import Language, language, translate, word
from app.ui.page.view_types.making import LorasView, LoraView
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route
from app.ui.state.lora_desk import Shown
from app.ui.tabs import paint_form
from app.ui.tabs.file_manager import reveal


@dataclass(frozen=True, slots=True, eq=False)
class LoraCard:
    chosen: gr.Textbox
    """The script writes into this hidden field, as JSON, what is in use."""
    files: gr.File


class SearchAsked(Asked):
    words: Word = ""
    model: str = ""
    chosen: str = Field("", max_length=64 << 10)


class ActAsked(Asked):
    act: Word
    value: str = ""


def build(guest: bool) -> LoraCard:
    with gr.Accordion(word("paint.loras", "LoRAs"), open=False, elem_classes="h-card", elem_id="paint-loras", visible=not guest):
        gr.HTML('<section id="h-loras"></section>', apply_default_css=False)
        chosen = gr.Textbox("", label="loras", elem_id="paint-chosen", elem_classes="h-hidden")
        files = gr.File(file_count="multiple", file_types=[".safetensors"], label=word("lora.add", "Add LoRAs and embeddings"), height=110)
    return LoraCard(chosen, files)


def routes(desk: Desk) -> list[Route]:
    return [
        owner_route(desk, "/hearth/loras", search, schema=SearchAsked),
        owner_route(desk, "/hearth/loras/{act}", act, ["POST"], ActAsked),
    ]


def search(desk: Desk, request: Request, asked: SearchAsked) -> Response:
    model, spoken = paint_form.find_model(desk, asked.model), language(request)
    shown, more, unread = desk.loras.search(asked.words, model, asked.chosen.split("\n") if asked.chosen else [])
    rows, folder = [row_view(each, spoken) for each in shown], str(desk.keeper.home.loras)
    return JSONResponse(LorasView(loras=rows, more=more, unread=unread, folder=folder, folders=desk.loras.folders))


def row_view(shown: Shown, spoken: Language) -> LoraView:
    facts = shown.facts or LoraFacts()
    return {
        "name": shown.file.name,
        "title": facts.title,
        "kind": facts.kind if shown.facts else "",
        "word": shown.file.word,
        "places": translate(_word_places(shown), spoken) if len(shown.places) > 1 else "",
        "family": NAMES.get(facts.family, ""),
        "misfit": translate(shown.misfit, spoken) if shown.misfit else "",
        "triggers": facts.triggers,
        "tags": facts.tags,
        "weight": shown.weight,
        "picture": f"hearth/creation/{shown.picture}" if shown.picture else "",
    }


def _word_places(shown: Shown) -> Sentence:
    return say("lora.places", "In {count} {count:place|places}: {places}", count=len(shown.places), places=tuple(map(str, shown.places)))


def act(desk: Desk, request: Request, asked: ActAsked) -> Response:
    action = ACTIONS.get(asked.act)
    if action is None:
        return Response(status_code=404)
    action(desk, asked.value)
    return JSONResponse({})


def reveal_folder(desk: Desk, _: str) -> None:
    desk.keeper.home.loras.mkdir(parents=True, exist_ok=True)
    reveal(desk.keeper.home.loras / ".")


ACTIONS: Final[dict[str, Callable[[Desk, str], None]]] = {
    "folder": lambda desk, path: desk.loras.add_folder(path),
    "leave": lambda desk, path: desk.loras.forget_folder(path),
    "show": reveal_folder,
}
