"""What a model makes of the size, and of the settings, that another program asks for."""

from __future__ import annotations

from dataclasses import replace

from app.base.sentence import say
from app.base.trouble import BadRequest
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.settings import PICTURES
from app.engine.models.on_disk import find_model
from app.engine.models.painted_tiles import find_larger
from app.engine.models.picture_families import FAMILIES
from app.ui.state.desk import Desk

LEAST, LARGEST = PICTURES["upscale"].range or (1, 1)


def choose_scale(asked: float) -> float:
    """Return the nearest scale that a picture can be made larger by."""
    return min(max(asked, LEAST), LARGEST)


def fit_size(desk: Desk, request: PictureRequest) -> tuple[PictureRequest, tuple[int, int] | None]:
    """Have a model that paints in one size enlarge its picture; return the size to scale that to, if it is still another one than asked for.
    Raise a Trouble for another shape."""
    settings = find_model(desk.keeper.home, request).settings
    own = settings.width, settings.height
    asked = request.width or own[0], request.height or own[1]
    if settings.least != settings.most or asked == own or request.upscale > 1:
        return request, None
    scale = asked[0] / own[0]
    if asked[0] * own[1] != asked[1] * own[0] or scale > LARGEST:
        raise BadRequest(
            say(
                "api.one-size",
                "This model paints {size} and enlarges that to {largest} at most; {asked} is larger or has another shape. Ask for {size}.",
                size=write_size(own),
                largest=write_size(find_larger(own, LARGEST)),
                asked=write_size(asked),
            ),
            field="size",
        )
    upscale = choose_scale(scale)
    return replace(request, width=None, height=None, upscale=upscale), None if upscale == scale else asked


def refuse_unused(desk: Desk, request: PictureRequest, strength_asked: bool) -> None:
    """Raise a Trouble for what has no effect with the model, where an answer has no place to say so."""
    model = find_model(desk.keeper.home, request)
    family = FAMILIES.get(model.family)
    if family is None:  # it speaks, which is refused with the job
        return
    changes = bool(request.image) and (family.uses_strength or bool(request.mask))
    unused = {"negative_prompt": bool(request.negative) and not family.negative_prompts, "strength": strength_asked and not changes}
    for name in (name for name, asked in unused.items() if asked):
        words = say("api.unused", "{name} has no effect here with {model}. Leave it out.", name=name, model=model.words)
        raise BadRequest(words, field=name)


def write_size(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
