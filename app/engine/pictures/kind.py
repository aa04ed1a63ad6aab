"""Pictures as a kind of job: a batch's pictures, each by itself, and what comes from elsewhere. No torch."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.base.foreign_formats import OWN_PICTURES, measure_upright, open_picture
from app.base.paths import Home
from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import Trouble
from app.compat.planning.attention_calls import Call
from app.compat.planning.types import Plan, Row
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import PartDone
from app.engine.jobs.kind import MORE_ROOM, Part
from app.engine.jobs.owners import Allowance
from app.engine.jobs.parts import PAINTED
from app.engine.jobs.request import KindName, PictureRequest, Request
from app.engine.jobs.seed import draw_seed, seed_of_part
from app.engine.jobs.settings import ENLARGERS
from app.engine.models import adapters, catalog, safetensors
from app.engine.models.controls import require_fit
from app.engine.models.enlargers import read_enlarger
from app.engine.models.model import Model, ModelSettings
from app.engine.models.on_disk import Located, find_model, locate
from app.engine.models.painted_tiles import find_larger
from app.engine.models.picture_families import list_calls
from app.engine.models.picture_readers import READERS
from app.engine.pictures import steps
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.alternatives import choose_words
from app.engine.pictures.files.arrived import is_picture
from app.engine.pictures.files.lora_tags import split_tags
from app.engine.pictures.prompts import named_loras, starter_words

STEP_PIXELS: Final = 64
SMALLEST_PIXELS: Final = 128
SIDE_PX: Final = 1024
"""Where the model chooses the size, half of this is taken for a side."""
PNG_SHARE: Final = 0.3
"""A PNG with few details takes this share of its uncompressed pixels."""


class PictureKind:
    name: KindName = "picture"
    loads_with = "app.engine.pictures.run.painter"
    is_heard, whole_parts = False, True

    def refuse(self, model: Model, others: tuple[str, ...]) -> Trouble:
        words = say(
            "model.paints", "{model} paints and cannot speak. Installed models that speak: {others}.", model=model.words, others=others
        )
        return Trouble(words, cure="models")

    def complete(self, home: Home, request: PictureRequest) -> PictureRequest:
        return named_loras.complete(home, request)

    def check(self, home: Home, request: PictureRequest, model: Model) -> None:
        """What else a model cannot paint is told by its run, which has its family at hand."""
        named_loras.check_fit(request, model)
        if model.starter:
            starter_words.require_match(Path(model.path), choose_words(request.prompt, request.seed or 0), request.negative)
        if request.upscale > 1 and Path(request.enlarger).is_absolute():
            read_enlarger(Path(request.enlarger))
        if request.guide:
            require_fit(Path(request.control), model)
            require_reader(home, request.guide_as)
        if request.reference:
            adapters.require_fit(home, Path(request.adapter), model)

    def plan_parts(self, home: Home, request: PictureRequest) -> tuple[Part, ...]:
        return (Part(request.prompt),) * request.batch

    def list_models(self, home: Home, request: PictureRequest, model: Model, folder: Path) -> tuple[str, ...]:
        return (request.model,)

    def read_part(self, request: PictureRequest, path: Path, place: int, total: int) -> PartDone:
        return PartDone(place, total, str(path), request.prompt, seed_of_part(draw_seed(request, path.parent), place))

    def ask_alone(self, request: PictureRequest, place: int, seed: int) -> PictureRequest:
        return replace(request, batch=1, seed=seed_of_part(seed, place))

    def place_alone(self, place: int) -> int:
        return 0

    def measure_begun(self, path: Path, foreign: bool = False) -> int:
        """One more where all steps are done and only decoding is left."""
        try:
            header = safetensors.read_whole_header(path)
            done, whole = int(header.words["done"]), header.words["whole"] == "1"
            return 0 if "latents" not in header.entries or (whole and foreign) else done + whole
        except (OSError, Trouble, ValueError, LookupError):
            return 0

    def is_part(self, files: Sequence[Path], words: str, seed: int) -> bool:
        return is_picture(files[0])

    def is_result(self, request: PictureRequest, files: Sequence[Path], longest_s: float) -> bool:
        return len(files) == request.batch and all(map(is_picture, files))

    def measure_work(self, home: Home, request: PictureRequest) -> float:
        return steps.count_work(request, catalog.find(request.model)) * request.batch

    def weigh_step(self, request: PictureRequest, model: Model) -> float:
        return steps.weigh_step(request, model)

    def estimate_seconds(
        self, request: PictureRequest, model: Model, past: Sequence[Creation], plan: Plan | None, work: float
    ) -> float | None:
        return steps.estimate_seconds(request, model, past, plan)

    def list_calls(self, model: Model, row: Row) -> tuple[Call, ...]:
        return list_calls(model.family, model.settings.width, model.settings.height)

    def shrink(self, home: Home, request: PictureRequest) -> tuple[PictureRequest, Sentence]:
        """Halve the pixels, at the same proportions."""
        settings = find_model(home, request).settings
        before = _choose_size(request, settings)
        least = max(SMALLEST_PIXELS, settings.least)
        width, height = (max(least, int(side * 0.5**0.5) // STEP_PIXELS * STEP_PIXELS) for side in before)
        if (width, height) >= before or width * height >= before[0] * before[1]:
            raise Trouble(
                say_to_all(
                    "smaller.least",
                    "{width} x {height} is the smallest size for this model. {advice}",
                    width=before[0],
                    height=before[1],
                    advice=MORE_ROOM,
                ),
                cure="models",
            )
        words = say_to_all("smaller.picture", "Restarted at {width} x {height}.", width=width, height=height)
        return replace(request, width=width, height=height), words

    def grant(self, request: PictureRequest, most: Allowance, model: Model) -> PictureRequest:
        """Fill open settings with the recommended ones within the limits; check the others."""
        own = model.recommended(request.scheduler)
        width, height = _choose_size(request, own, int(most.side // request.upscale))
        request = replace(request, width=width, height=height, steps=min(own.steps, most.steps) if request.steps is None else request.steps)
        side = max(_measure_result(request))
        if side > most.side:
            raise Trouble(
                say_to_all(
                    "guest.side",
                    "The picture would be {asked} {asked:pixel|pixels} on its longer side; guests may use up to {most}.",
                    asked=side,
                    most=most.side,
                )
            )
        if (request.steps or 0) > most.steps:
            raise Trouble(
                say_to_all(
                    "guest.steps",
                    "You asked for {asked} {asked:step|steps}; guests may use up to {most}.",
                    asked=request.steps or 0,
                    most=most.steps,
                )
            )
        if request.batch > most.batch:
            raise Trouble(
                say_to_all(
                    "guest.batch",
                    "You asked for {asked} {asked:picture|pictures} at once; guests may make up to {most}.",
                    asked=request.batch,
                    most=most.batch,
                )
            )
        if request.loras or split_tags(request.prompt)[1]:
            raise Trouble(say_to_all("guest.loras", "Only the owner of this machine can use LoRAs."))
        if request.enlarger not in ENLARGERS:
            raise Trouble(say_to_all("guest.enlarger", "Only the owner of this machine can use enlargers of their own."))
        if request.guide:
            raise Trouble(say_to_all("guest.guide", "Only the owner of this machine can have a picture guide another."))
        if request.reference:
            raise Trouble(say_to_all("guest.reference", "Only the owner of this machine can have a picture painted like another."))
        return replace(request, preview_every=max(2, request.preview_every))

    def read_made_from(self, path: Path) -> Request:
        return picture_settings.read(path).request

    def name_result(self, request: PictureRequest) -> str:
        return "picture.png"

    def estimate_bytes(self, request: PictureRequest) -> int:
        width, height = _measure_result(replace(request, width=request.width or SIDE_PX // 2, height=request.height or SIDE_PX // 2))
        return round(width * height * 3 * PNG_SHARE * request.batch)

    def join(
        self, home: Home, request: PictureRequest, folder: Path, places: Collection[int], target: Path
    ) -> tuple[tuple[str, ...], float]:
        """Copy them: a resumed job still finds its own."""
        target.mkdir(exist_ok=True)
        return tuple(str(shutil.copy2(PAINTED.shown(folder, place), target)) for place in sorted(places)), 0.0


def _choose_size(request: PictureRequest, settings: ModelSettings, most: int = 0) -> tuple[int, int]:
    """Return the size that a run will paint at: the one asked for, else the shape of the picture that it starts from or is guided by, within `most`."""
    shown, part = request.image or request.guide, request.masked_only and request.mask
    if shown and not part and request.size == (None, None):
        with suppress(OSError), open_picture(Path(shown), OWN_PICTURES) as opened:  # its run says what is wrong
            return settings.fit_shape(measure_upright(opened), most)
    return request.width or settings.width, request.height or settings.height


def _measure_result(request: PictureRequest) -> tuple[int, int]:
    """Return the sides of a finished picture: those of its starting picture, where only the masked part is painted."""
    if request.masked_only and request.mask and request.image:
        try:
            with open_picture(Path(request.image)) as start:
                return start.size
        except OSError:
            pass  # its run says so
    return find_larger((request.width or 0, request.height or 0), request.upscale)


def require_reader(home: Home, made: str) -> Located | None:
    """Return where the model lies that makes a guide's map; None if none is needed. Raise a Trouble that offers it where it is not here."""
    model = READERS.get(made)
    if model is None:
        return None
    found = locate(home, model)
    if found is None:
        advice = say("owner.reader", "Download it in Models, or give a finished map.")
        needed = {
            "depth": say_to_all(
                "guide.no-depth",
                "To see the depth of a picture, Hearth needs {model}, which is not here yet. {advice}",
                model=model.words,
                advice=advice,
            ),
            "pose": say_to_all(
                "guide.no-pose",
                "To see the poses of people in a picture, Hearth needs {model}, which is not here yet. {advice}",
                model=model.words,
                advice=advice,
            ),
        }
        raise Trouble(needed[made], cure=f"get:{model.id}")
    return found
