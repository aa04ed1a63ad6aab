"""The voices that a person may choose, by the model that speaks with them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.engine.models.catalog import name_model
from app.engine.models.model_names import word_name
from app.ui.page.translate import Language, language, translate
from app.ui.page.views import View
from app.ui.state.asked import Asked
from app.ui.state.desk import Desk
from app.ui.state.person import Person, who


class VoicesAsked(Asked):
    model: str = ""
    """That speaks what names no other."""


def send_voices(desk: Desk, request: Request, asked: VoicesAsked) -> Response:
    return JSONResponse({"models": list_groups(desk, asked.model, who(request), language(request))})


def list_groups(desk: Desk, model: str, person: Person, spoken: Language) -> list[View]:
    """List the installed voice models with their voices, the one that is chosen first; a guest's has no other."""
    own = desk.models.resolve("speech", model, person)
    chosen = found.id if (found := desk.models.read_limits(own)[0]) is not None else own
    ids = dict.fromkeys([chosen, *(id_ for _, id_ in desk.models.list_choices("speech"))] if person.owner else [chosen])
    return [
        {
            "id": id_,
            "title": title_of(id_, spoken) if person.owner else "",
            "voices": [{"name": each.name} for each in desk.models.list_voices(id_, person)],
        }
        for id_ in filter(None, ids)
    ]


def title_of(model: str, spoken: Language) -> str:
    return str(translate(word_name(name_model(model)), spoken))
