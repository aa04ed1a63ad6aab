"""Paint: run a request on a loaded diffusers pipeline and yield events."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from PIL import Image

from app.base.paths import Home
from app.base.sentence import say
from app.compat.machine.fault_words import is_out_of_memory
from app.compat.machine.meter import Meter
from app.compat.planning.types import Plan
from app.engine.jobs import quicker
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, PartDone, Preview, Step, Stopped
from app.engine.jobs.parts import PAINTED, drop_begun
from app.engine.jobs.request import PictureRequest
from app.engine.models.enlargers import count_products
from app.engine.models.loading.loaded import same_placement
from app.engine.models.model import Model
from app.engine.models.on_disk import Located
from app.engine.models.painted_tiles import find_larger
from app.engine.models.picture_families import FAMILIES
from app.engine.pictures.families import loader, placement
from app.engine.pictures.families.kept_layers import keep_layers
from app.engine.pictures.families.packed_convolutions import is_plain
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run import batch, checkpoint, per_request, preview, steps, tiled_denoiser, tiny_vae
from app.engine.pictures.run.active_adapter import ActiveAdapter
from app.engine.pictures.run.active_control import ActiveControl
from app.engine.pictures.run.active_embeddings import ActiveEmbeddings
from app.engine.pictures.run.active_loras import ActiveLoras
from app.engine.pictures.run.batch import Loop, Picture
from app.engine.pictures.run.checkpoint import Checkpoint
from app.engine.pictures.run.enlarge import Enlargers
from app.engine.pictures.run.final_settings import PictureSettings, paint_over, resolve_settings
from app.engine.pictures.run.prompt_embeddings import KeptEmbeddings
from app.engine.pictures.run.reuse import Reuse
from app.engine.pictures.run.tiled_denoiser import Window
from app.engine.pictures.run.worker_thread import iterate_reports
from app.engine.pictures.steps import count_at_once, count_over, count_steps, weigh_over, weigh_products

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam


def load_found(found: Located, model: Model, plan: Plan, home: Home) -> Painter:
    return load(found.folder, model, plan, found.companions, home.scratch, home)


def load(
    folder: Path, model: Model, plan: Plan, companions: Mapping[str, Path], scratch: Path | None = None, home: Home | None = None
) -> Painter:
    """Load from local files; raise a Trouble if they are unusable. `scratch`: where idle parts are stored, if the plan needs it; `home`: where image
    encoders, and models that see depth, are looked for."""
    pipeline = loader.load_pipeline(folder, model, plan, companions, scratch or Path(tempfile.gettempdir()))
    return Painter(pipeline, model, plan, companions.get("tiny-vae") or tiny_vae.find(folder), home)


Tell = Callable[[Event], None]
FINISH_STEPS = 1.5
"""Until it was measured, decoding and saving a picture counts as so many steps: they are 1.3 for SD 1.5 on a processor, 2 for the starter painter."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What all pictures of one request share."""

    settings: PictureSettings
    control: Control
    seam: Seam | None
    tell: Tell
    """It sends an event out of the painting thread, and holds nothing of the device."""
    before: int = 0
    """So many steps of the picture were computed when it was small; 0: it is not being painted over."""
    products: float = 0.0
    """The enlarger multiplies so often for each picture; 0: it takes next to no time."""
    enlarging: float = 0.0
    """That weighs so many steps."""
    over: int = 0
    """So many steps paint over each picture."""
    weight: float = 1.0
    """Each of them weighs so many of the small picture's."""
    outer: Loop | None = None
    """One of its pictures is being painted over."""


class Painter:
    def __init__(self, pipeline: loader.Pipeline, model: Model, plan: Plan, tiny: Path | None = None, home: Home | None = None) -> None:
        self.notes = pipeline.notes
        self.pipe, self.disk_parts = pipeline.pipe, pipeline.disk_parts
        self._tiny_vae = tiny_vae.TinyVae(tiny) if tiny is not None else None
        self._model = model
        self._plan, self._home = plan, home
        self.family = FAMILIES[model.family]
        denoiser = self.family.denoiser
        how = placement.find_precision(plan, denoiser)
        # In half precision adding a LoRA and taking it off again would leave its rounding in the weights.
        self._loras = ActiveLoras(denoiser, is_plain(plan, how) and how.compute == "float32")
        self._words = ActiveEmbeddings()
        self._enlargers = Enlargers()
        self._control = ActiveControl(self.family.denoiser, plan, pipeline.disk_parts)
        self._adapter = ActiveAdapter(self.family.denoiser, plan, home)
        self._embeddings = KeptEmbeddings()
        self._colours: preview.LatentColours | None = None
        self._finish_s_a_pixel: float | None = None
        """Measured from a picture's last step until it was saved, without its enlarger."""
        self._product_s: float | None = None
        """Measured of the enlarger that ran last."""
        self._meter = Meter()

    def run(self, request: PictureRequest, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Paint the pictures that `job` lacks; an interrupted one resumes from its last good step. Everything happens in one thread
        of its own, which alone touches the device until the iterator ends: Metal must not be used by two threads at once (pytorch
        #197805), and torch keeps a thread pool for every thread that calls it."""
        return iterate_reports(lambda tell: self._run_or_doubt(request, control, seam, job, tell))

    def _run_or_doubt(self, *run: Any) -> None:
        try:
            self._run(*run)
        except BaseException:
            self._loras.doubt()
            raise

    def _run(self, request: PictureRequest, control: Control, seam: Seam | None, job: Path, tell: Tell) -> None:
        started_s = time.monotonic()
        job.mkdir(parents=True, exist_ok=True)
        settings = resolve_settings(request, self._model, job, self._tiny_vae.folder if self._tiny_vae else None, self._home)
        asked = settings.request
        products = count_products(asked.enlarger, (asked.width or 1, asked.height or 1), asked.upscale)
        run = _Run(
            settings,
            control,
            seam,
            tell,
            products=products,
            enlarging=weigh_products(products, asked, self._model),
            over=count_over(asked, self._model),
            weight=weigh_over(asked, self._model),
        )
        for sentence in run.settings.notes:
            tell(Note(sentence))
        self._control.activate(self.pipe, run.settings)
        self._adapter.activate(self.pipe, run.settings)
        changed = self._loras.activate(self.pipe, run.settings), self._words.activate(self.pipe, run.settings.request.loras)
        if any(changed):
            self._embeddings.forget()
        files: list[str] = []
        steps_done, reused, stopped = 0.0, 0, False

        def land(picture: Picture) -> None:
            if picture.path.is_file():
                files.append(str(picture.path))
                tell(PartDone(picture.index, request.batch, files[-1], request.prompt, run.settings.seed_for(picture.index)))

        waiting = batch.list_pictures(run.settings, self._model, job)
        most = count_at_once(run.settings.request, self._model, self._plan.device, self._plan.chunk_q, self._meter.read().free_bytes)
        if not self._model.starter and len(set(run.settings.prompts)) > 1:
            most = 1  # several prompts at once would be encoded without their weights
        while waiting and not stopped:
            if waiting[0].path.is_file():
                land(waiting.pop(0))
                continue
            loop = batch.choose_next(waiting, most)
            count = len(loop.pictures)
            try:
                self._paint(run, loop, land)
            except (RuntimeError, MemoryError) as fault:
                if count == 1 or not _lacks_memory(fault):
                    raise
                tell(
                    Note(
                        say(
                            "paint.one-by-one",
                            "Memory did not suffice for {count} {count:picture|pictures} at once, so they are painted one by one.",
                            count=count,
                        )
                    )
                )
                most, waiting = 1, [each for each in waiting if str(each.path) not in files]
                continue
            del waiting[:count]
            steps_done, reused = steps_done + len(loop.elapsed_s) * count + loop.over, reused + loop.reused
            stopped = loop.stopped
        if reused:
            tell(
                Note(
                    say(
                        "quicker.ran",
                        "Quicker: {reused} of {steps} {steps:step|steps} reused what the step before computed.",
                        reused=reused,
                        steps=round(steps_done),
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
        if self._loras.doubtful or not same_placement(self._plan, plan):
            return False
        if plan != self._plan:  # the other plan may be there because the text encoder broke under this one
            self._embeddings.forget()
        placement.configure_vae(self.pipe.vae, plan)
        self._plan = self._control.plan = self._adapter.plan = plan
        return True

    def close(self) -> None:
        """Release the weights; the memory is free once nothing else refers to them."""
        self.pipe.remove_all_hooks()
        self._control.close()
        self._adapter.close()
        if self.disk_parts is not None:
            self.disk_parts.close()
        self.pipe = self.disk_parts = None
        self._words.close()
        self._embeddings.forget()
        self._colours = self._tiny_vae = None

    def _paint(self, run: _Run, loop: Loop, land: Callable[[Picture], None]) -> None:
        try:
            try:
                self._paint_through(run, loop, land)
            except Exception as fault:
                if not checkpoint.is_to_blame(loop.start, fault):
                    raise
                loop.begin_anew()
                self._paint_through(run, loop, land)
        finally:
            self.pipe.maybe_free_model_hooks()

    def _paint_through(self, run: _Run, loop: Loop, land: Callable[[Picture], None]) -> None:
        latents = self._compute(run, loop)
        # Stop keeps the first as predicted so far; the others resume from what is kept of them.
        for row, picture in enumerate(loop.pictures):
            if loop.stopped and row:
                break
            if latents is not None and not picture.path.is_file():
                self._finish(run, loop, picture, latents[row : row + 1])
            if picture.path.is_file():
                drop_begun(picture.checkpoint_path)
            land(picture)
            loop.finished += 1

    def _finish(self, run: _Run, loop: Loop, picture: Picture, latents: torch.Tensor) -> None:
        """Decode a picture and save it, unless another machine's comes while it is decoded."""
        step = loop.start.done if loop.start else run.settings.request.steps or 0
        painted = per_request.decode_latents(
            self.pipe, self.family, latents, run.settings, exact=self._exact, step=step, tiny=self._tiny_vae
        )
        if picture.path.is_file():
            return
        finished = self._enlarge(run, loop, picture, per_request.restore_surroundings(painted, run.settings))
        if run.settings.request.larger > 1 and not loop.stopped:
            finished = self._paint_over(run, loop, picture, finished)
        asked = run.settings.request_for(picture.index)
        picture_settings.write(finished, picture.path, asked, self._model.title, run.settings.read_as(picture.index))
        if loop.stepped_s:
            now_s = time.perf_counter()
            self._finish_s_a_pixel, loop.stepped_s = (now_s - loop.stepped_s) / _count_pixels(run), now_s

    def _count_small(self, run: _Run, loop: Loop) -> int:
        """Count the steps of the small pictures; of finished ones, that were only read, as the request has them."""
        return loop.steps or count_steps(run.settings.request, self._model)

    def _enlarge(self, run: _Run, loop: Loop, picture: Picture, painted: Image.Image) -> Image.Image:
        """Enlarge a picture as the request says, to a multiple that can be painted over; once it is stopped by the formula, which takes no time."""
        request = run.settings.request
        size = find_larger(painted.size, request.upscale, self._model.settings.multiple if request.larger > 1 else 1)
        dtype = placement.find_precision(self._plan, self.family.denoiser).compute
        tiles = self._enlargers.enlarge_in_tiles(painted, size, request.enlarger, placement.find_device(self.pipe.vae), dtype)
        small, began_s, left = self._count_small(run, loop), time.perf_counter(), bool(request.enlarger) and size != painted.size
        try:
            while not (left and run.control.stopped):
                done, total = next(tiles)
                left = done < total
                if run.products:
                    self._product_s = (time.perf_counter() - began_s) / (run.products * done / total)
                    run.tell(self._make_step(run, small, small, loop, done / total))
        except StopIteration as end:
            enlarged: Image.Image = end.value
            if run.products and loop.stepped_s:
                loop.stepped_s += time.perf_counter() - began_s
            loop.over += run.enlarging
            return enlarged
        loop.stopped, loop.stepped_s = True, 0.0  # what was broken off tells nothing of how long decoding takes
        return painted.resize(size, Image.Resampling.LANCZOS)

    def _paint_over(self, run: _Run, loop: Loop, picture: Picture, enlarged: Image.Image) -> Image.Image:
        """Paint over an enlarged picture; after Stop return it as far as it is."""
        over, inner = paint_over(run.settings, self._model, enlarged), Loop([picture], None, loop.later)
        before = self._count_small(run, loop) + math.ceil(run.enlarging)
        latents = self._denoise(replace(run, settings=over, before=before, outer=loop), inner)
        loop.stopped = loop.stopped or inner.stopped
        loop.over += len(inner.elapsed_s) * run.weight
        loop.stepped_s = inner.stepped_s
        if latents is None:
            return enlarged
        return per_request.decode_latents(self.pipe, self.family, latents, over, exact=self._exact, step=over.request.steps or 0)

    def _tiles(self, run: _Run, denoiser: torch.nn.Module, scale: int, window: Window) -> AbstractContextManager[None]:
        """Denoise in tiles what is painted over, and what begins with a picture larger than any that the model was trained on."""
        settings, own = run.settings, self._model.settings
        large = run.before or max(settings.request.width or 0, settings.request.height or 0) > own.most
        if not large or settings.image is None or settings.mask is not None or not self.family.paints_in_tiles:
            return nullcontext()
        return tiled_denoiser.tiles(denoiser, own.width, scale, window)

    @property
    def _exact(self) -> bool:
        """Whether every part computes in full precision, so that a black picture is no rounding error."""
        return all(part.compute in ("float32", "float64") for part in self._plan.precision)

    def _compute(self, run: _Run, loop: Loop) -> torch.Tensor | None:
        """Return the latents of the pictures; after Stop those predicted so far, if any."""
        if run.settings.request.preview_every and self._colours is None:
            self._colours = preview.fit_colours(self.pipe.vae, placement.find_device(self.pipe.vae))
            self.pipe.maybe_free_model_hooks()  # with model offload the VAE is used last, so nothing else would evict it
        return loop.start.latents if loop.start and loop.start.complete else self._denoise(run, loop)

    def _denoise(self, run: _Run, loop: Loop) -> torch.Tensor | None:
        """Run the pipeline's own loop and return the final latents; after Stop the clean ones predicted so far, if any; None if another
        machine was faster."""
        generators = [torch.Generator("cpu").manual_seed(run.settings.seed_for(each.index)) for each in loop.pictures]
        pipe = per_request.make_pipeline(self.pipe, self.family, run.settings)
        last_prediction: Callable[[], torch.Tensor] | None = None
        denoiser = getattr(pipe, self.family.denoiser)
        due, reuse = self._plan_reuse(run.settings.request, denoiser)
        loop.alternates = reuse is not None
        window = Window()

        def tell_place() -> tuple[int, int]:
            return watcher.done, _count_total(pipe)

        def on_step(done: int, predict: Callable[[], torch.Tensor], make_checkpoints: Callable[[], list[Checkpoint]]) -> None:
            nonlocal last_prediction
            before_s, loop.stepped_s, last_prediction = loop.stepped_s or watcher.began_s, time.perf_counter(), predict
            if not (due(done) or run.before):  # neither what the next step would reuse, nor what is painted over, is stored
                save(make_checkpoints())
            loop.elapsed_s.append(loop.stepped_s - before_s)
            loop.steps = total = _count_total(pipe)
            run.tell(self._make_step(run, done, total, loop))
            every = run.settings.request.preview_every
            if every and done % every == 0 and done != total:
                run.tell(self._make_preview(done, predict(), run.settings, loop, run.before))
            if loop.is_overtaken:
                raise steps.Overtaken

        def save(checkpoints: list[Checkpoint]) -> None:
            for picture, each in zip(loop.pictures, checkpoints, strict=True):
                checkpoint.save(picture.checkpoint_path, each, picture.fingerprint)

        try:
            with (
                keep_layers(denoiser, placement.find_precision(self._plan, self.family.denoiser).kept_bytes),
                self._adapter.reading(run.settings, denoiser),  # innermost: a control model reads the prompt alone
                self._control.guide(run.settings, denoiser, window, tell_place),
                self._tiles(run, denoiser, pipe.vae_scale_factor, window),
                steps.watch_steps(
                    pipe, denoiser, generators, control=run.control, on_step=on_step, start=loop.start, reuse=reuse
                ) as watcher,
            ):
                pictures = [each.index for each in loop.pictures]
                arguments = per_request.make_arguments(pipe, self.family, run.settings, self._embeddings, pictures, self._words)
                generator = generators if len(generators) > 1 else generators[0]
                latents: torch.Tensor = pipe(**arguments, generator=generator, return_dict=False)[0]
                watcher.check_end()
        except steps.StopRequested:
            loop.stopped = True
            return last_prediction() if last_prediction else None
        except steps.Overtaken:
            return None
        finally:
            self._control.rest()
            loop.reused = reuse.count if reuse else 0
        if run.before:
            return latents
        last = run.settings.request.steps or 0
        save([Checkpoint(last, latents[row : row + 1], {}, each.get_state(), complete=True) for row, each in enumerate(generators)])
        return latents

    def _plan_reuse(self, request: PictureRequest, denoiser: torch.nn.Module) -> tuple[Callable[[int], bool], Reuse | None]:
        """Return which steps reuse the one before, and what does it if any may."""
        total = count_steps(request, self._model)

        def due(index: int) -> bool:
            return quicker.reuses(request.quicker, index, total)

        return due, Reuse(due, denoiser if request.quicker == "much" else None) if due(1) else None

    def _make_step(self, run: _Run, done: int, total: int, loop: Loop, enlarged: float = 0.0) -> Step:
        """`enlarged`: this share of the loop's next picture is."""
        # The first step is often slower; it counts only while it is the only one.
        # Of steps that alternate between full and reusing, as many of each count.
        recent = loop.elapsed_s[-4:] if loop.alternates else loop.elapsed_s[1:][-5:] or loop.elapsed_s
        whole, product_s, enlarging = run.outer or loop, self._product_s or 0.0, math.ceil(run.enlarging)
        small, count = run.before - enlarging if run.outer else total, len(whole.pictures)
        each_s = sum(recent) / len(recent) / len(loop.pictures) if recent else product_s * run.products / max(run.enlarging, 1e-9)
        small_s = each_s / run.weight if run.outer else each_s
        unfinished = count - whole.finished + whole.later
        ahead = unfinished - (1 if run.outer else 0)  # so many have yet to be enlarged, but for what `enlarged` says, and painted over
        measured = self._finish_s_a_pixel
        finish_s = FINISH_STEPS * each_s if measured is None else measured * _count_pixels(run)
        enlarge_s = product_s * run.products or run.enlarging * small_s
        eta_s = (
            (total - done) * each_s * len(loop.pictures)
            + (whole.later * small + ahead * run.over * run.weight) * small_s
            + (ahead - enlarged) * enlarge_s
            + unfinished * finish_s
        )
        ran = run.seam.take_largest() if run.seam else None
        # What follows the steps of the small pictures is done for one after the other, so it counts by its share of them all.
        own = enlarging + run.over * done // total if run.outer else int(enlarging * enlarged)
        done = (small if run.outer else done) + (whole.finished * (enlarging + run.over) + own) // count
        return Step(
            done,
            small + enlarging + run.over,
            1 / max(each_s, 1e-9),
            "steps",
            eta_s,
            self._meter.read(),
            part=whole.pictures[0].index,
            parts=run.settings.request.batch,
            at_once=count,
            ran=ran,
        )

    def _make_preview(self, done: int, predicted: torch.Tensor, settings: PictureSettings, loop: Loop, before: int) -> Preview:
        assert self._colours is not None
        latents = torch.cat([per_request.unpack_latents(self.pipe, self.family, each, settings) for each in torch.split(predicted, 1)])
        first = loop.pictures[0]
        path = first.path.with_name(PAINTED.name_passing(f"{first.index}-{done + before}"))
        preview.write(self._colours.draw(latents), path)
        return Preview(done + before, str(path))


def _count_total(pipe: Any) -> int:
    """Count the steps of the pipeline's loop, while it runs."""
    return getattr(pipe, "_num_timesteps", 0) or len(pipe.scheduler.timesteps)


def _lacks_memory(fault: BaseException) -> bool:
    return isinstance(fault, torch.OutOfMemoryError | MemoryError) or is_out_of_memory(str(fault))


def _count_pixels(run: _Run) -> int:
    """Count the pixels of a finished picture, but for those of a formula or an enlarger: what takes time of these is measured apart."""
    request = run.settings.request
    return round((request.width or 1) * (request.height or 1) * request.larger**2)
