"""Paint: run a request on a loaded diffusers pipeline and yield events."""

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
from app.compat.planning.types import Plan, Ran
from app.engine.files import picture_settings
from app.engine.jobs import quicker
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, PartDone, Preview, Step, Stopped
from app.engine.jobs.request import PictureRequest, to_json
from app.engine.loading.loaded import same_placement
from app.engine.models.forecast import count_steps
from app.engine.models.model import Model
from app.engine.pictures import checkpoint, per_request, preview, steps
from app.engine.pictures.active_loras import ActiveLoras
from app.engine.pictures.checkpoint import Checkpoint
from app.engine.pictures.final_settings import PictureSettings, resolve_settings
from app.engine.pictures.prompt_embeddings import KeptEmbeddings
from app.engine.pictures.reuse import Reuse, list_inner_blocks
from app.engine.pictures.worker_thread import iterate_reports
from app.engine.pipelines import loader, placement
from app.engine.pipelines.families import FAMILIES
from app.engine.pipelines.packed_convolutions import is_plain_float32
from app.sentence import say

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam


def load(folder: Path, model: Model, plan: Plan, companions: Mapping[str, Path], scratch: Path | None = None) -> Painter:
    """Load from local files; raise a Trouble if they are unusable. `scratch`: where idle parts are stored, if the plan needs it."""
    pipeline = loader.load_pipeline(folder, model, plan, companions, scratch or Path(tempfile.gettempdir()))
    return Painter(pipeline, model, plan)


Tell = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class _Run:
    """What all pictures of one request share."""

    settings: PictureSettings
    control: Control
    seam: Seam | None
    tell: Tell
    """Sends an event out of the painting thread; it holds nothing of the device."""


@dataclass(slots=True)
class _Picture:
    """One picture of a batch while it is painted."""

    index: int
    total: int
    path: Path
    checkpoint_path: Path
    fingerprint: str
    """Of the request and the model that its checkpoint belongs to."""
    stopped: bool = False
    alternates: bool = False
    """Whether every second step reuses the one before."""
    reused: int = 0
    """Steps that reused something."""
    elapsed_s: list[float] = field(default_factory=list)


class Painter:
    def __init__(self, pipeline: loader.Pipeline, model: Model, plan: Plan) -> None:
        self.notes = pipeline.notes
        self._pipe = pipeline.pipe
        self._disk_parts = pipeline.disk_parts
        self._model = model
        self._plan = plan
        self._family = FAMILIES[model.family]
        denoiser = self._family.denoiser
        self._loras = ActiveLoras(denoiser, is_plain_float32(plan, placement.find_precision(plan, denoiser)))
        self._embeddings = KeptEmbeddings()
        self._colours: preview.LatentColours | None = None
        self._meter = Meter()

    def run(self, request: PictureRequest, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Paint the pictures that `job` lacks; an interrupted one resumes from its last good step. Everything happens in one thread
        of its own, which alone touches the device until the iterator ends: Metal must not be used by two threads at once (pytorch
        #197805), and torch keeps a thread pool for every thread that calls it."""
        return iterate_reports(lambda tell: self._run(request, control, seam, job, tell))

    def _run(self, request: PictureRequest, control: Control, seam: Seam | None, job: Path, tell: Tell) -> None:
        started_s = time.monotonic()
        job.mkdir(parents=True, exist_ok=True)
        run = _Run(resolve_settings(request, self._model, job), control, seam, tell)
        for sentence in run.settings.notes:
            tell(Note(sentence))
        if self._loras.activate(self._pipe, run.settings):
            self._embeddings.forget()
        files: list[str] = []
        steps_done, reused, stopped = 0, 0, False
        for index in range(request.batch):
            picture = self._start_picture(run.settings, index, job)
            if not picture.path.is_file():
                self._paint(run, picture)
                steps_done, reused = steps_done + len(picture.elapsed_s), reused + picture.reused
                stopped = picture.stopped
            if picture.path.is_file():
                files.append(str(picture.path))
                tell(PartDone(index, request.batch, str(picture.path), request.prompt, run.settings.seed_for(index)))
            if stopped:
                break
        if reused:
            tell(
                Note(
                    say(
                        "quicker.ran",
                        "Quicker: {reused} of {steps} {steps:step|steps} reused what the step before computed.",
                        reused=reused,
                        steps=steps_done,
                    )
                )
            )
        elapsed_s = time.monotonic() - started_s
        if stopped:
            tell(Stopped(tuple(files), elapsed_s))
        else:
            rate = steps_done / max(elapsed_s, 1e-9)
            tell(Finished(tuple(files), elapsed_s, rate, "steps", self._meter.read().highest_bytes))

    def adapt(self, plan: Plan) -> bool:
        """Switch to a plan that differs only in the VAE's slices and tiles; False: the model has to be loaded again."""
        if not same_placement(self._plan, plan):
            return False
        if plan != self._plan:  # the other plan may be there because the text encoder broke under this one
            self._embeddings.forget()
        placement.configure_vae(self._pipe.vae, plan)
        self._plan = plan
        return True

    def close(self) -> None:
        """Release the weights; the memory is free once nothing else refers to them."""
        self._pipe.remove_all_hooks()
        if self._disk_parts is not None:
            self._disk_parts.close()
        self._pipe = self._disk_parts = None
        self._embeddings.forget()
        self._colours = None

    def _start_picture(self, settings: PictureSettings, index: int, job: Path) -> _Picture:
        made_from = json.dumps([to_json(settings.request_for(index)), self._model.id], sort_keys=True)
        fingerprint = hashlib.sha256(made_from.encode()).hexdigest()
        return _Picture(index, settings.request.batch, job / f"picture-{index}.png", job / f"latent-{index}.safetensors", fingerprint)

    def _paint(self, run: _Run, picture: _Picture) -> None:
        try:
            painted = self._compute(run, picture, checkpoint.load(picture.checkpoint_path, picture.fingerprint))
        finally:
            self._pipe.maybe_free_model_hooks()
        if painted is not None and picture.path.is_file():  # another machine's came while this one was decoded
            picture.checkpoint_path.unlink(missing_ok=True)
        elif painted is not None:
            finished = per_request.finish_picture(painted, run.settings)
            picture_settings.write(finished, picture.path, run.settings.request_for(picture.index), self._model.title)
            picture.checkpoint_path.unlink(missing_ok=True)

    @property
    def _exact(self) -> bool:
        """Whether every part computes in full precision, so that a black picture is no rounding error."""
        return all(part.compute in ("float32", "float64") for part in self._plan.precision)

    def _compute(self, run: _Run, picture: _Picture, start: Checkpoint | None) -> Image.Image | None:
        """Return the picture; after Stop the one predicted so far, if any."""
        if run.settings.request.preview_every and self._colours is None:
            self._colours = preview.fit_colours(self._pipe.vae, placement.find_device(self._pipe.vae))
            self._pipe.maybe_free_model_hooks()  # with model offload the VAE is used last, so nothing else would evict it
        latents = start.latents if start and start.complete else self._denoise(run, picture, start)
        if latents is None:
            return None
        step = start.done if start else run.settings.request.steps or 0
        return per_request.decode_latents(self._pipe, self._family, latents, run.settings, self._exact, step)

    def _denoise(self, run: _Run, picture: _Picture, start: Checkpoint | None) -> torch.Tensor | None:
        """Run the pipeline's own loop and return the final latents; after Stop the clean ones predicted so far, if any; None if another
        machine was faster."""
        generator = torch.Generator("cpu").manual_seed(run.settings.seed_for(picture.index))
        pipe = per_request.make_pipeline(self._pipe, self._family, run.settings)
        last_s = time.perf_counter()
        last_prediction: Callable[[], torch.Tensor] | None = None
        denoiser = getattr(pipe, self._family.denoiser)
        due, reuse = self._plan_reuse(run.settings.request, denoiser)
        picture.alternates = reuse is not None

        def on_step(done: int, predict: Callable[[], torch.Tensor], make_checkpoint: Callable[[], Checkpoint]) -> None:
            nonlocal last_s, last_prediction
            before_s, last_s, last_prediction = last_s, time.perf_counter(), predict
            if not due(done):  # what the next step would reuse is not stored
                checkpoint.save(picture.checkpoint_path, make_checkpoint(), picture.fingerprint)
            picture.elapsed_s.append(last_s - before_s)
            total = getattr(pipe, "_num_timesteps", 0) or len(pipe.scheduler.timesteps)
            run.tell(self._make_step(done, total, picture, run.seam.take_largest() if run.seam else None))
            every = run.settings.request.preview_every
            if every and done % every == 0 and done != total:
                run.tell(self._make_preview(done, predict(), run.settings, picture))
            if picture.path.is_file():
                raise steps.Overtaken

        try:
            with steps.watch_steps(pipe, denoiser, generator, run.control, on_step, start, reuse):
                arguments = per_request.make_arguments(pipe, self._family, run.settings, self._embeddings)
                latents: torch.Tensor = pipe(**arguments, generator=generator, return_dict=False)[0]
        except steps.StopRequested:
            picture.stopped = True
            return last_prediction() if last_prediction else None
        except steps.Overtaken:
            picture.checkpoint_path.unlink(missing_ok=True)
            return None
        finally:
            picture.reused = reuse.count if reuse else 0
        whole = Checkpoint(run.settings.request.steps or 0, latents, {}, generator.get_state(), complete=True)
        checkpoint.save(picture.checkpoint_path, whole, picture.fingerprint)
        return latents

    def _plan_reuse(self, request: PictureRequest, denoiser: torch.nn.Module) -> tuple[Callable[[int], bool], Reuse | None]:
        """Return which steps reuse the one before, and what does it if any may."""
        total = count_steps(request, self._model)

        def due(index: int) -> bool:
            return quicker.reuses(request.quicker, index, total)

        return due, Reuse(due, list_inner_blocks(denoiser) if request.quicker == "much" else []) if due(1) else None

    def _make_step(self, done: int, total: int, picture: _Picture, ran: Ran | None) -> Step:
        # The first step includes encoding the prompt; it counts only while it is the only one.
        # Of steps that alternate between full and reusing, as many of each count.
        recent = picture.elapsed_s[-4:] if picture.alternates else picture.elapsed_s[1:][-5:] or picture.elapsed_s
        each_s = sum(recent) / len(recent)
        left = total - done + total * (picture.total - picture.index - 1)
        return Step(
            done, total, 1 / max(each_s, 1e-9), "steps", left * each_s, self._meter.read(), part=picture.index, parts=picture.total, ran=ran
        )

    def _make_preview(self, done: int, predicted: torch.Tensor, settings: PictureSettings, picture: _Picture) -> Preview:
        assert self._colours is not None
        latents = per_request.unpack_latents(self._pipe, self._family, predicted, settings)
        path = picture.path.with_name(f"preview-{picture.index}-{done}.jpg")
        preview.write(self._colours.draw(latents), path)
        return Preview(done, str(path))
