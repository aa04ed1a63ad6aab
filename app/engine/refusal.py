"""What a model was never taught is said before it is loaded: loading takes a minute, and reading the request nothing. No torch."""

from __future__ import annotations

from app.engine import script
from app.engine.limits import limits_of
from app.engine.model import Model
from app.engine.request import Request, SpeechRequest
from app.engine.stock import located
from app.paths import Home


def refuse(request: Request, model: Model, home: Home) -> None:
    """Raises Trouble where the model cannot do it, whatever the machine. One that is not here says so as it is loaded."""
    found = located(home, model)
    if found is None:
        return
    if isinstance(request, SpeechRequest):
        script.speakable(request.text, limits_of(found.folder, found.companions.get("codec")))
