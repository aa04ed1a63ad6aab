"""Resolve a picture request: fill in the model's recommendations, open and size the pictures, report what has no effect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from PIL import Image

from app.base.paths import Home
from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import Impossible
from app.engine.jobs import quicker, schedulers
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.seed import draw_seed, seed_of_part
from app.engine.models.families.family import PictureFamily
from app.engine.models.model import FEW_STEPS, Model, ModelSettings, is_guided
from app.engine.models.picture_families import FAMILIES
from app.engine.pictures.files.alternatives import choose_words
from app.engine.pictures.kind import require_reader
from app.engine.pictures.prompts import starter_words
from app.engine.pictures.prompts.named_loras import count_copies_once, leave_out_words
from app.engine.pictures.prompts.wordless import note_wordless
from app.engine.pictures.run import input_images, prompt_embeddings
from app.engine.pictures.run.guide import keep_guide, note_cut
from app.engine.pictures.run.masked_part import Surroundings, choose_shape
from app.engine.pictures.steps import count_steps, weigh_quicker

STEPS_FOR_ONE: Final = 50
"""So many steps are planned at most for one that is computed; LCM cannot plan more."""
OTHERS: Final = say("owner.other-painters", "SD 1.5 and SDXL can.")
RESCALE: Final = 1.05
"""Guidance is rescaled up to this: of six captions of the starter's, 9% of the values lie at either end at guidance 6, 4% at 1.5, 48% without it."""


@dataclass(frozen=True, slots=True)
class PictureSettings:
    request: PictureRequest
    """It is complete: any Hearth makes the same picture from it. Its words are the person's."""
    prompts: tuple[str, ...]
    """The text encoder gets these for the pictures of the batch: a starter reads the words first, and chooses by the seed what they leave open."""
    negative: str
    image: Image.Image | None
    mask: Image.Image | None
    guide: Image.Image | None
    """This map, as large as the picture, guides it."""
    few_steps: bool
    """True: the model's few-steps LoRA is used."""
    guidance_rescale: float
    """Each step's spread is brought back this far to what it is without guidance: strong guidance would wash the colours out."""
    notes: tuple[Sentence, ...]
    around: Surroundings | None = None
    """`image` is cut out of this picture and put back into it, if only the masked part is painted."""
    reference: Image.Image | None = None
    """The picture is painted like this one."""

    def read_as(self, index: int) -> str | None:
        """The caption that the prompt was read as for this picture, if it is another."""
        return self.prompts[index] if self.prompts[index] != self.request.prompt else None

    def request_for(self, index: int) -> PictureRequest:
        """Return the request for one picture of the batch alone."""
        return replace(self.request, batch=1, seed=self.seed_for(index))

    def seed_for(self, index: int) -> int:
        return seed_for(self.request, index)


def resolve_settings(
    request: PictureRequest, model: Model, job: Path, tiny_vae: Path | None = None, home: Home | None = None
) -> PictureSettings:
    """Make every choice that the request leaves open; raise a Trouble for what the model cannot do. `tiny_vae`: the model's, if any; `home`: where the
    models are that see what a guide shows."""
    family = FAMILIES[model.family]
    _refuse_unsupported(request, model, family)
    seed = draw_seed(request, job)
    notes = _describe_ignored(request, model, family)
    request, read_plainly = leave_out_words(count_copies_once(_leave_out_ignored(request, family)), model)
    notes += read_plainly
    words = choose_words(request.prompt, seed), request.negative
    if model.starter:
        match = starter_words.require_match(Path(model.path), *words)
        words = match.caption, ""
        notes += [match.note, *match.reasons] if match.note else []
    elif wordless := note_wordless(words[0]):
        notes.append(wordless)
    if not family.prompt_weights:
        stripped = (prompt_embeddings.strip_weights(text)[1] for text in words)
        notes += [note for note in stripped if note][:1]
    scheduler = _choose_scheduler(request, family)
    settings = model.recommended(scheduler)
    image = input_images.open_image(request.image) if request.image else None
    drawn = input_images.open_image(request.guide) if request.guide else None
    masked_only = request.masked_only and bool(request.mask)
    marked = input_images.open_image(request.mask) if image and request.mask else None
    mask = input_images.fit_mask(marked, *image.size) if image and marked and masked_only else None
    first = image or drawn
    shape = choose_shape(mask, request.masked_padding) if mask else first.size if first else None
    width, height = input_images.choose_size(request.width, request.height, settings, shape)
    around = Surroundings.find(image, mask, request.masked_padding, (width, height)) if image and mask else None
    if drawn is not None and (cut := note_cut(drawn, *(image.size if image and around else (width, height)))):
        notes.append(cut)
    if image and marked and (cut := input_images.note_cut_mask(marked, image)):
        notes.append(cut)
    if image and not around and (width, height) != settings.fit_shape(image.size) and note_cut(image, width, height):
        notes.append(
            say(
                "paint.start-cut",
                "The starting picture is {own} and the picture {size}, so what has no room in that shape was cut off.",
                own=f"{image.width} x {image.height}",
                size=f"{width} x {height}",
            )
        )
    if drawn is not None and image and around:
        drawn = input_images.crop_to(drawn, *image.size).crop(around.box)
    notes += _describe_size(
        request, model, settings, width, height, in_tiles=image is not None and not request.mask and family.paints_in_tiles
    )
    guidance = settings.guidance if request.guidance is None else request.guidance
    if image is not None and 0 < settings.most_guidance < guidance:
        guidance = settings.most_guidance
        notes.append(
            say(
                "paint.most-guidance",
                "From a picture {model} paints with guidance {most} at most: more would wash its colours out.",
                model=model.words,
                most=guidance,
            )
        )
    asked = settings.steps if request.steps is None else request.steps, request.strength
    starts = image is not None and (family.uses_strength or bool(request.mask))
    steps, strength = leave_a_step(*asked) if starts else asked
    if (steps, strength) != asked:
        notes.append(
            say(
                "paint.no-step-left",
                "With so few steps and so little to change, no step would be left, so {steps} are planned, of which one is computed.",
                steps=steps,
            )
        )
    resolved = replace(
        request,
        model=request.model or model.id,
        width=width,
        height=height,
        steps=steps,
        strength=strength,
        guidance=guidance,
        scheduler=scheduler or settings.scheduler or None,
        seed=seed,
        upscale=1 if around else request.upscale,
        enlarger=request.enlarger if request.upscale > 1 and not around else "",
        masked_only=masked_only,
        control=request.control if request.guide else "",
        adapter=request.adapter if request.reference else "",
        hires=request.larger > 1 and family.paints_over,
    )
    if resolved.quicker == "much" and tiny_vae is not None:
        notes.append(
            say(
                "quicker.tiny-vae",
                "Quicker: the tiny VAE in {folder} decodes the picture. Fine detail is lost; how much was not measured here.",
                folder=str(tiny_vae),
            )
        )
    else:
        notes += _describe_quicker(resolved, model)
    if around:
        image, mask = around.cut(width, height)
    elif image:
        image = input_images.crop_to(image, width, height)
        mask = input_images.fit_mask(marked, width, height) if marked else None
    return PictureSettings(
        resolved,
        _list_prompts(resolved, model),
        words[1],
        image,
        mask,
        keep_guide(job, drawn, request.guide_as, width, height, require_reader(home, request.guide_as) if home else None)
        if drawn
        else None,
        _has_few_steps(model) and resolved.scheduler == model.settings.scheduler,
        choose_rescale(settings, guidance) if image is None else 0.0,
        tuple(notes),
        around,
        input_images.open_image(request.reference) if request.reference else None,
    )


def paint_over(settings: PictureSettings, model: Model, enlarged: Image.Image) -> PictureSettings:
    """Return the settings that paint over what was enlarged: they begin with it, and leave it mostly as it is, so that it needs no guide."""
    own, most = settings.request, model.recommended(settings.request.scheduler).most_guidance
    steps, strength = leave_a_step(own.steps or 1, own.hires_strength)
    request = replace(
        own,
        width=enlarged.width,
        height=enlarged.height,
        upscale=1,
        hires=False,
        steps=steps,
        strength=strength,
        quicker="off",
        guidance=min(own.guidance or 0.0, most) if most else own.guidance,
    )
    return replace(settings, request=request, image=enlarged, mask=None, guide=None, guidance_rescale=0.0)


def choose_rescale(settings: ModelSettings, guidance: float) -> float:
    """As much more as guidance is above what is recommended: with it the starter's colours spread as far at 6 as at 1.5."""
    return max(0.0, RESCALE * (1 - settings.guidance / guidance)) if settings.most_guidance and guidance else 0.0


def seed_for(request: PictureRequest, index: int) -> int:
    return seed_of_part(request.seed or 0, index)


def _list_prompts(resolved: PictureRequest, model: Model) -> tuple[str, ...]:
    """Return what is encoded for each picture, with the alternatives that its seed chooses; of a starter, which chooses more by it, a caption. A picture
    to start from says itself what the words leave open."""
    seeds = [seed_for(resolved, index) for index in range(resolved.batch)]
    chosen = [choose_words(resolved.prompt, seed) for seed in seeds]
    if not model.starter:
        return tuple(chosen)
    folder, negative = Path(model.path), resolved.negative
    if resolved.image:
        return tuple(starter_words.require_match(folder, each, negative).caption for each in chosen)
    return tuple(starter_words.choose_caption(folder, each, negative, seed) for each, seed in zip(chosen, seeds, strict=True))


def _describe_quicker(resolved: PictureRequest, model: Model) -> list[Sentence]:
    """Say so if the request's "quicker" setting has nothing to reuse."""
    guided, steps = is_guided(model, resolved.guidance or 0.0), count_steps(resolved, model)
    if resolved.quicker == "off" or weigh_quicker(resolved.quicker, model, guided, steps) < 1:
        return []
    least = quicker.LEAST_STEPS
    if steps < least:
        return [
            say(
                "quicker.few-steps",
                "Quicker changes nothing here: it needs at least {least} {least:step|steps}, and {steps} {steps:is|are} computed.",
                least=least,
                steps=steps,
            )
        ]
    return [say("quicker.only-much", 'Here only "Much" is quicker: "A little" has nothing to reuse. Choose that.')]


def leave_a_step(steps: int, strength: float) -> tuple[int, float]:
    """Plan more steps, or more to change, if a starting picture would leave no step to compute: diffusers rounds their product down."""
    while int(steps * strength) < 1 and steps < STEPS_FOR_ONE:
        steps += 1
    return steps, strength if int(steps * strength) else 1 / steps


def _refuse_unsupported(request: PictureRequest, model: Model, family: PictureFamily) -> None:
    if request.image and not family.image_class:
        raise Impossible(
            say_to_all(
                "paint.no-image", "{model} cannot start from a picture. Remove the picture. {advice}", model=model.words, advice=OTHERS
            )
        )
    if request.mask and not family.inpaint_class:
        raise Impossible(
            say_to_all("paint.no-mask", "{model} cannot use a mask. Remove the mask. {advice}", model=model.words, advice=OTHERS)
        )


def _describe_ignored(request: PictureRequest, model: Model, family: PictureFamily) -> list[Sentence]:
    """Return a sentence for each setting that has no effect with this family."""
    ignored = (
        (
            request.hires and request.upscale == 1,
            say("paint.hires-alone", "Detail is added where a picture is enlarged. Choose an upscale above 1."),
        ),
        (
            request.upscale > 1 and request.masked_only and bool(request.mask),
            say("paint.part-upscale", "Only the masked part is painted and the picture keeps its own size, so it is not enlarged."),
        ),
        (
            request.hires and request.upscale > 1 and bool(request.mask) and not request.masked_only,
            say("paint.hires-mask", "With a mask nothing is painted over after enlarging: the rest of the picture would change."),
        ),
        (
            request.larger > 1 and not family.paints_over,
            say("paint.hires-none", "{model} cannot paint over an enlarged picture; it is only enlarged.", model=model.words),
        ),
        (
            family.flow_matching and request.scheduler is not None,
            say("paint.flow", "{model} works with its own scheduler only; your choice was ignored.", model=model.words),
        ),
        (
            _edits_by_prompt(request, family),
            say("paint.no-strength", "{model} edits the picture as the prompt says; the strength has no effect.", model=model.words),
        ),
        (
            bool(request.negative) and not family.negative_prompts,
            say("paint.no-negative", "{model} takes no negative prompt; yours was ignored.", model=model.words),
        ),
    )
    return [sentence for applies, sentence in ignored if applies]


def _edits_by_prompt(request: PictureRequest, family: PictureFamily) -> bool:
    return bool(request.image) and not request.mask and not family.uses_strength


def _leave_out_ignored(request: PictureRequest, family: PictureFamily) -> PictureRequest:
    """Return the request as the family paints it: what is stored with a picture, and told of it, is what made it."""
    return replace(
        request,
        negative=request.negative if family.negative_prompts else "",
        strength=1.0 if _edits_by_prompt(request, family) else request.strength,
    )


def _choose_scheduler(request: PictureRequest, family: PictureFamily) -> str | None:
    """Return the request's scheduler under the name that Hearth gives it; None leaves it to the model."""
    if request.scheduler is None or family.flow_matching:
        return None
    wanted = schedulers.find_scheduler(request.scheduler)
    return next(name for name in schedulers.NAMES if schedulers.SCHEDULERS[name] is wanted)


def _describe_size(
    request: PictureRequest, model: Model, settings: ModelSettings, width: int, height: int, in_tiles: bool
) -> list[Sentence]:
    notes = []
    size = request.width or width, request.height or height
    if settings.least == settings.most and size != (width, height):
        notes.append(
            say(
                "paint.one-size",
                "{model} paints {width} x {height} only; {asked} was ignored.",
                model=model.words,
                width=width,
                height=height,
                asked=f"{size[0]} x {size[1]}",
            )
        )
    if max(width, height) > settings.most and not in_tiles:
        notes.append(
            say(
                "paint.large",
                "{model} was trained on pictures of up to {most} {most:pixel|pixels} a side; larger ones tend to repeat the subject.",
                model=model.words,
                most=settings.most,
            )
        )
    return notes


def _has_few_steps(model: Model) -> bool:
    return any(each.name == FEW_STEPS for each in model.companions)
