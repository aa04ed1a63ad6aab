"""A request with every choice made: the model's recommendations filled in, pictures opened and sized, what has no effect told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from app.engine.jobs import schedulers
from app.engine.jobs.request import SEED_LIMIT, PictureRequest
from app.engine.jobs.seed import seed_of
from app.engine.models.model import Model
from app.engine.pictures import input_images, prompt_embeddings
from app.engine.pipelines.families import FAMILIES
from app.engine.text import starter_words
from app.sentence import Sentence, Trouble, say


@dataclass(frozen=True, slots=True)
class PictureSettings:
    request: PictureRequest
    """With nothing left to recommend: painted again by any Hearth, it gives the same picture."""
    image: Image.Image | None
    mask: Image.Image | None
    few_steps: bool
    """Whether the model's few-steps LoRA is worn."""
    notes: tuple[Sentence, ...]

    def request_for(self, index: int) -> PictureRequest:
        """The request for one picture of the batch alone."""
        return replace(self.request, batch=1, seed=self.seed_for(index))

    def seed_for(self, index: int) -> int:
        return ((self.request.seed or 0) + index) % SEED_LIMIT


def resolve_settings(request: PictureRequest, model: Model, job: Path) -> PictureSettings:
    family = FAMILIES[model.family]
    notes = []
    if request.image and not family.image:
        raise Trouble(
            say(
                "paint.no-image",
                "{model} paints from words only; it cannot start from a picture. Choose SD 1.5 or SDXL for that.",
                model=model.title,
            )
        )
    if request.mask and not family.inpaint:
        raise Trouble(
            say("paint.no-mask", "{model} cannot paint into a mask. Choose SD 1.5 or SDXL for that.", model=model.title)
        )
    named = request.scheduler
    if named is not None and family.flow:
        notes.append(
            say(
                "paint.flow",
                "{model} comes with the one scheduler that suits it; yours was left out.",
                model=model.title,
            )
        )
        named = None
    elif named is not None:
        named = next(each for each in schedulers.NAMES if schedulers.SCHEDULERS[each] is schedulers.by_name(named))
    if request.image and not request.mask and not family.strength:
        notes.append(
            say(
                "paint.no-strength",
                "{model} edits a picture by your words; how far it changes does not follow the strength.",
                model=model.title,
            )
        )
    if request.negative and not family.negative:
        notes.append(
            say("paint.no-negative", "{model} takes no negative prompt; yours was left out.", model=model.title)
        )
    if model.starter:
        match = starter_words.matched(Path(model.path), request.prompt)
        request = replace(request, prompt=match.caption)
        notes += [match.note] if match.note else []
    if not family.weights:
        notes += [said for text in (request.prompt, request.negative) if (said := prompt_embeddings.strip_weights(text)[1])][:1]
    settings = model.recommended(named)
    image = input_images.open_image(request.image) if request.image else None
    width, height = input_images.choose_size(request.width, request.height, settings, image)
    asked = request.width or width, request.height or height
    if settings.least == settings.most and asked != (width, height):
        notes.append(
            say(
                "paint.one-size",
                "{model} paints {width} x {height} only; {asked} was not used.",
                model=model.title,
                width=width,
                height=height,
                asked=f"{asked[0]} x {asked[1]}",
            )
        )
    if max(width, height) > settings.most:
        notes.append(
            say(
                "paint.large",
                "{model} was trained for pictures up to {most} pixels a side; larger ones tend to repeat their subject.",
                model=model.title,
                most=settings.most,
            )
        )
    mask = input_images.open_mask(request.mask, width, height) if request.mask else None
    whole = replace(
        request,
        model=request.model or model.id,
        width=width,
        height=height,
        steps=settings.steps if request.steps is None else request.steps,
        guidance=settings.guidance if request.guidance is None else request.guidance,
        scheduler=named or settings.scheduler or None,
        seed=seed_of(request, job),
    )
    few_steps = (
        any(each.name == "few-steps" for each in model.companions) and whole.scheduler == model.settings.scheduler
    )
    return PictureSettings(whole, input_images.crop_to(image, width, height) if image else None, mask, few_steps, tuple(notes))
