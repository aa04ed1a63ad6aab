"""Paints: a loaded diffusers pipeline runs a request and yields events. What it paints with lies in app/engine/painting."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from PIL import Image

from app.compat.machine.meter import Meter
from app.compat.planning.types import Plan
from app.engine.files import picture_settings
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, Part, Preview, Step, Stopped
from app.engine.jobs.request import PictureRequest, to_json
from app.engine.loading.loaded import same_placement
from app.engine.models.model import Model
from app.engine.pictures import checkpoint, per_request, preview, steps
from app.engine.pictures.checkpoint import Checkpoint
from app.engine.pictures.final_settings import PictureSettings, resolve_settings
from app.engine.pictures.worker_thread import iterate_reports
from app.engine.pipelines import loader, placement
from app.engine.pipelines.families import FAMILIES

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam
from app.compat.planning.types import Ran


def load(
    folder: Path, model: Model, plan: Plan, companions: Mapping[str, Path], scratch: Path | None = None
) -> Painter:
    """From local files only; a Trouble says what is wrong with them. `scratch`: where parts wait, if the plan has them wait."""
    loaded = loader.load_pipeline(folder, model, plan, companions, scratch or Path(tempfile.gettempdir()))
    return Painter(loaded, model, plan)


@dataclass(frozen=True, slots=True)
class StepReport:
    """What the painting thread says after a step; events and files are made of it outside that thread."""

    done: int
    total: int
    elapsed_s: float
    """Since the step before."""
    checkpoint: Checkpoint
    clean: Callable[[], torch.Tensor]
    ran: Ran | None
    """How the largest call of attention went in this step."""


@dataclass(slots=True)
class PictureRun:
    """One picture of a batch on its way."""

    index: int
    total: int
    path: Path
    checkpoint_path: Path
    fingerprint: str
    """Which request and model the kept latents belong to."""
    stopped: bool = False
    elapsed_s: list[float] = field(default_factory=list)


Report = Callable[[StepReport | Checkpoint | Image.Image], None]
"""From the painting thread: a step, the last latents, the picture."""


class Painter:
    def __init__(self, loaded: loader.Pipeline, model: Model, plan: Plan) -> None:
        self.notes = loaded.notes
        self._pipe = loaded.pipe
        self._turns = loaded.turns
        self._model = model
        self._plan = plan
        self._family = FAMILIES[model.family]
        self._loras: dict[str, str] = {}
        self._colours: preview.LatentColours | None = None
        self._meter = Meter()

    def run(self, request: PictureRequest, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Pictures that `job` already holds are not painted again; one that broke off goes on from its last good step."""
        started_s = time.monotonic()
        job.mkdir(parents=True, exist_ok=True)
        chosen = resolve_settings(request, self._model, job)
        yield from (Note(sentence) for sentence in chosen.notes)
        per_request.apply_loras(self._pipe, chosen, self._loras)
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
                yield Part(index, request.batch, str(picture.path), request.prompt, chosen.seed_for(index))
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
        if not same_placement(self._plan, plan):
            return False
        placement.configure_vae(self._pipe.vae, plan)
        self._plan = plan
        return True

    def close(self) -> None:
        """Lets go of the weights; the memory is free once nobody else holds them."""
        self._pipe.remove_all_hooks()
        if self._turns is not None:
            self._turns.close()
        self._pipe = self._turns = None
        self._colours = None

    def _picture(self, chosen: PictureSettings, index: int, of: int, job: Path) -> PictureRun:
        wanted = json.dumps([to_json(chosen.of(index)), self._model.id], sort_keys=True)
        mark = hashlib.sha256(wanted.encode()).hexdigest()
        return PictureRun(index, of, job / f"picture-{index}.png", job / f"latent-{index}.safetensors", mark)

    def _paint(self, chosen: PictureSettings, picture: PictureRun, control: Control, seam: Seam | None) -> Iterator[Event]:
        kept = checkpoint.load(picture.kept_at, picture.mark)
        def work(tell: Report) -> None:
            try:
                self._work(chosen, picture, control, seam, kept, tell)
            finally:
                self._pipe.maybe_free_model_hooks()

        for told in iterate_reports(work):
            if isinstance(told, StepReport):
                checkpoint.save(picture.kept_at, told.kept, picture.mark)
                picture.elapsed_s.append(told.elapsed_s)
                yield self._step(told, picture)
                yield from self._preview(told, chosen, picture)
            elif isinstance(told, Checkpoint):
                checkpoint.save(picture.kept_at, told, picture.mark)
            else:
                picture_settings.write(per_request.finish_picture(told, chosen), picture.path, chosen.of(picture.index), self._model.title)
                picture.kept_at.unlink(missing_ok=True)

    @property
    def _exact(self) -> bool:
        """Whether a black picture can only be meant."""
        return all(part.compute in ("float32", "float64") for part in self._plan.precision)

    def _work(
        self, chosen: PictureSettings, picture: PictureRun, control: Control, seam: Seam | None, kept: Checkpoint | None, tell: Report
    ) -> None:
        """All that computes, in one thread: torch keeps a team of threads for every thread that asks it to."""
        if chosen.request.preview_every and self._colours is None:
            self._colours = preview.fit_colours(self._pipe.vae, placement.find_device(self._pipe.vae))
            self._pipe.maybe_free_model_hooks()  # where parts take turns the VAE is the last, and nobody would send it away
        if kept is not None and kept.whole:
            latents = kept.latents
        else:
            done = self._denoised(chosen, picture, control, seam, kept, tell)
            if done is None:
                return
            latents = done
        step = kept.done if kept else chosen.request.steps or 0
        tell(per_request.decode_latents(self._pipe, self._family, latents, chosen, self._exact, step))

    def _denoised(
        self, chosen: PictureSettings, picture: PictureRun, control: Control, seam: Seam | None, kept: Checkpoint | None, tell: Report
    ) -> torch.Tensor | None:
        """The pipeline's own loop, from the prompt to the last latents; after Stop the clean picture guessed so far, if any."""
        generator = torch.Generator("cpu").manual_seed(chosen.seed(picture.index))
        pipe = per_request.make_pipeline(self._pipe, self._family, chosen)
        last_s = time.perf_counter()
        guess: Callable[[], torch.Tensor] | None = None

        def step(done: int, latents: torch.Tensor, clean: Callable[[], torch.Tensor], keep: Callable[[], Checkpoint]) -> None:
            nonlocal last_s, guess
            before_s, last_s, guess = last_s, time.perf_counter(), clean
            total = getattr(pipe, "_num_timesteps", 0) or len(pipe.scheduler.timesteps)
            tell(StepReport(done, total, last_s - before_s, keep(), clean, seam.take_largest() if seam else None))

        try:
            with steps.watch_steps(pipe, getattr(pipe, self._family.denoiser), generator, control, step, kept):
                latents: torch.Tensor = pipe(
                    **per_request.make_arguments(pipe, self._family, chosen), generator=generator, return_dict=False
                )[0]
        except steps.Stop:
            picture.stopped = True
            return guess() if guess else None
        tell(Checkpoint(chosen.request.steps or 0, latents, {}, generator.get_state(), whole=True))
        return latents

    def _step(self, beat: StepReport, picture: PictureRun) -> Step:
        # The first one carries the prompt's encoding; it counts only while there is no other.
        recent = picture.elapsed_s[1:][-5:] or picture.elapsed_s
        each_s = sum(recent) / len(recent)
        left = beat.total - beat.done + beat.total * (picture.of - picture.index - 1)
        return Step(
            beat.done, beat.total, 1 / max(each_s, 1e-9), "steps", left * each_s, self._meter.read(),
            part=picture.index, parts=picture.of, ran=beat.ran,
        )  # fmt: skip

    def _preview(self, beat: StepReport, chosen: PictureSettings, picture: PictureRun) -> Iterator[Event]:
        every = chosen.request.preview_every
        if not every or beat.done % every or beat.done == beat.total:
            return
        assert self._colours is not None
        latents = per_request.unpack_latents(self._pipe, self._family, beat.clean(), chosen)
        path = picture.path.with_name(f"preview-{picture.index}-{beat.done}.jpg")
        preview.write(self._colours.draw(latents), path)
        yield Preview(beat.done, str(path))
