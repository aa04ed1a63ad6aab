"""Paints: a loaded diffusers pipeline runs a request and yields events. What it paints with lies in app/engine/painting."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from app.compat.meter import Meter
from app.compat.plan import Plan
from app.engine import metadata
from app.engine.control import Control
from app.engine.event import Event, Finished, Note, Part, Preview, Step, Stopped
from app.engine.model import Model
from app.engine.painting import easel, keeping, loading, preview, steps
from app.engine.painting.bridge import reports
from app.engine.painting.families import FAMILIES
from app.engine.painting.keeping import Kept
from app.engine.painting.settled import Settled, settled
from app.engine.request import PictureRequest, to_json

if TYPE_CHECKING:
    from app.compat.seam import Seam


def load(folder: Path, model: Model, plan: Plan, companions: Mapping[str, Path]) -> Painter:
    """From local files only; a Trouble says what is wrong with them."""
    return Painter(loading.pipeline(folder, model, plan, companions), model, plan)


@dataclass(frozen=True, slots=True)
class Beat:
    """What the painting thread says after a step; events and files are made of it outside that thread."""

    done: int
    total: int
    elapsed_s: float
    """Since the step before."""
    kept: Kept
    clean: Callable[[], torch.Tensor]
    paths: Counter[str]
    """Which ways attention has gone so far."""


@dataclass(slots=True)
class Picture:
    """One picture of a batch on its way."""

    index: int
    of: int
    path: Path
    kept_at: Path
    mark: str
    """Which request and model the kept latents belong to."""
    stopped: bool = False
    elapsed_s: list[float] = field(default_factory=list)
    latents: torch.Tensor | None = None
    """What the decoder gets in the end."""


class Painter:
    def __init__(self, pipe: Any, model: Model, plan: Plan) -> None:
        self._pipe = pipe
        self._model = model
        self._plan = plan
        self._family = FAMILIES[model.family]
        self._loras: dict[str, str] = {}
        self._colours: preview.Colours | None = None
        self._meter = Meter()

    def run(self, request: PictureRequest, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Pictures that `job` already holds are not painted again; one that broke off goes on from its last good step."""
        started_s = time.monotonic()
        job.mkdir(parents=True, exist_ok=True)
        chosen = settled(request, self._model, job)
        yield from (Note(sentence) for sentence in chosen.notes)
        easel.wear(self._pipe, chosen, self._loras)
        files: list[str] = []
        taken, stopped = 0, False
        for index in range(request.batch):
            picture = self._picture(chosen, index, request.batch, job)
            if not picture.path.is_file():
                yield from self._paint(chosen, picture, control, seam)
                taken += len(picture.elapsed_s)
                stopped = picture.stopped
            if picture.path.is_file():
                files.append(str(picture.path))
                yield Part(index, request.batch, str(picture.path), request.prompt, chosen.seed(index))
            if stopped:
                break
        elapsed_s = time.monotonic() - started_s
        if stopped:
            yield Stopped(tuple(files), elapsed_s)
        else:
            rate = taken / max(elapsed_s, 1e-9)
            yield Finished(tuple(files), elapsed_s, rate, "steps", self._meter.read().highest_bytes)

    def adapt(self, plan: Plan) -> bool:
        """Takes the other plan on as it stands, where only the decoder's slices and tiles differ; False: load it again."""
        if any(
            getattr(plan, name) != getattr(self._plan, name) for name in ("device", "precision", "offload", "quantised")
        ):
            return False
        loading.arrange_vae(self._pipe.vae, plan)
        self._plan = plan
        return True

    def close(self) -> None:
        """Lets go of the weights; the memory is free once nobody else holds them."""
        self._pipe.remove_all_hooks()
        self._pipe = None
        self._colours = None

    def _picture(self, chosen: Settled, index: int, of: int, job: Path) -> Picture:
        wanted = json.dumps([to_json(chosen.of(index)), self._model.id], sort_keys=True)
        mark = hashlib.sha256(wanted.encode()).hexdigest()
        return Picture(index, of, job / f"picture-{index}.png", job / f"latent-{index}.safetensors", mark)

    def _paint(self, chosen: Settled, picture: Picture, control: Control, seam: Seam | None) -> Iterator[Event]:
        kept = keeping.load(picture.kept_at, picture.mark)
        if kept is not None and kept.whole:
            picture.latents = kept.latents
        else:
            yield from self._denoise(chosen, picture, control, seam, kept)
        if picture.latents is None:
            return
        image = easel.decoded(self._pipe, self._family, picture.latents, chosen, self._exact, kept.done if kept else 0)
        metadata.write(easel.finished(image, chosen), picture.path, chosen.of(picture.index), self._model.title)
        picture.kept_at.unlink(missing_ok=True)

    @property
    def _exact(self) -> bool:
        """Whether a black picture can only be meant."""
        return all(part.compute in ("float32", "float64") for part in self._plan.precision)

    def _denoise(
        self, chosen: Settled, picture: Picture, control: Control, seam: Seam | None, kept: Kept | None
    ) -> Iterator[Event]:
        beat: Beat | None = None
        paths: Counter[str] = Counter()

        def work(tell: Callable[[Beat | Kept], None]) -> None:
            self._work(chosen, picture.index, control, seam, kept, tell)

        try:
            for told in reports(work):
                keep = told.kept if isinstance(told, Beat) else told
                keeping.save(picture.kept_at, keep, picture.mark)
                if isinstance(told, Beat):
                    beat = told
                    picture.elapsed_s.append(beat.elapsed_s)
                    yield self._step(beat, picture, beat.paths - paths)
                    paths = beat.paths
                    yield from self._preview(beat, chosen, picture)
                else:
                    picture.latents = told.latents
        except steps.Stop:
            picture.stopped = True
            if beat is not None:
                picture.latents = beat.clean()
        finally:
            self._pipe.maybe_free_model_hooks()

    def _work(
        self, chosen: Settled, index: int, control: Control, seam: Seam | None, kept: Kept | None,
        tell: Callable[[Beat | Kept], None],
    ) -> None:  # fmt: skip
        """In a thread of its own: the pipeline's own loop, from the prompt to the last latents."""
        generator = torch.Generator("cpu").manual_seed(chosen.seed(index))
        pipe = easel.pipeline(self._pipe, self._family, chosen)
        last_s = time.monotonic()

        def step(done: int, latents: torch.Tensor, clean: Callable[[], torch.Tensor], keep: Callable[[], Kept]) -> None:
            nonlocal last_s
            before_s, last_s = last_s, time.monotonic()
            total = getattr(pipe, "_num_timesteps", 0) or len(pipe.scheduler.timesteps)
            tell(Beat(done, total, last_s - before_s, keep(), clean, Counter(seam.paths if seam else ())))

        with steps.watched(pipe, getattr(pipe, self._family.denoiser), generator, control, step, kept):
            latents = pipe(**easel.told(pipe, self._family, chosen), generator=generator, return_dict=False)[0]
        tell(Kept(chosen.request.steps or 0, latents, {}, generator.get_state(), whole=True))

    def _step(self, beat: Beat, picture: Picture, paths: Counter[str]) -> Step:
        # The first one carries the prompt's encoding; it counts only while there is no other.
        recent = picture.elapsed_s[1:][-5:] or picture.elapsed_s
        each_s = sum(recent) / len(recent)
        left = beat.total - beat.done + beat.total * (picture.of - picture.index - 1)
        return Step(
            beat.done, beat.total, 1 / max(each_s, 1e-9), "steps", left * each_s, self._meter.read(),
            part=picture.index, parts=picture.of, attention=next((path for path, _ in paths.most_common(1)), ""),
        )  # fmt: skip

    def _preview(self, beat: Beat, chosen: Settled, picture: Picture) -> Iterator[Event]:
        every = chosen.request.preview_every
        if not every or beat.done % every or beat.done == beat.total:
            return
        if self._colours is None:
            self._colours = preview.fit(self._pipe.vae)
        latents = easel.unpacked(self._pipe, self._family, beat.clean(), chosen)
        path = picture.path.with_name(f"preview-{picture.index}-{beat.done}.jpg")
        preview.write(self._colours.picture(latents), path)
        yield Preview(beat.done, str(path))
