"""Watch a pipeline step by step from inside its loop: report, stop, check the values, and skip steps already done."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from app.engine.jobs.control import Control
from app.engine.jobs.schedulers import find_space
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.pictures.run import checkpoint
from app.engine.pictures.run.checkpoint import Checkpoint
from app.engine.pictures.run.reuse import Reuse

OnStep = Callable[[int, Callable[[], torch.Tensor], Callable[[], list[Checkpoint]]], None]
"""It is told the steps done, and may make the clean pictures predicted from them, or a checkpoint of each picture."""

_POSITIONS = ("step_index", "begin_index")
"""A scheduler holds its position in these attributes; before the first step only the second is set."""


class StopRequested(Exception):
    """The user pressed Stop; raised inside the pipeline's loop, so that no further step is computed."""


class Overtaken(Exception):
    """Another machine finished this picture meanwhile; raised inside the pipeline's loop, so that the next picture begins."""


@contextmanager
def watch_steps(
    pipe: Any,
    denoiser: torch.nn.Module,
    generators: Sequence[torch.Generator],
    *,
    control: Control,
    on_step: OnStep,
    start: Checkpoint | None,
    reuse: Reuse | None = None,
) -> Iterator[StepWatcher]:
    """Wrap the scheduler's step(), which ends a step in every pipeline of every family (PixArt's has no step callback and cannot be
    stopped), and the denoiser's forward(). There is a generator for each picture; with `start` there is one. Until the steps of `start` have
    passed, the denoiser repeats its first answer."""
    scheduler, hooked = pipe.scheduler, "forward" in vars(denoiser)
    watcher = StepWatcher(scheduler, denoiser.forward, generators, control=control, on_step=on_step, start=start, reuse=reuse)

    @functools.wraps(scheduler.step)  # pipelines read its signature
    def step(*args: Any, **kwargs: Any) -> Any:
        if (
            denoiser.forward is not watched_forward
        ):  # the first forward() of layers sent in groups ends by putting back what was there before
            watcher.denoise, denoiser.forward = denoiser.forward, watched_forward
        return watcher.step(*args, **kwargs)

    @functools.wraps(denoiser.forward)
    def watched_forward(*args: Any, **kwargs: Any) -> Any:
        return watcher.forward(*args, **kwargs)

    scheduler.step, denoiser.forward = step, watched_forward
    try:
        with nullcontext() if reuse is None else reuse.remembering():
            yield watcher
    finally:
        del scheduler.step
        if hooked:  # by an offload hook, which had replaced forward() on the instance
            denoiser.forward = watcher.denoise
        else:
            del denoiser.forward


class StepWatcher:
    """The replacements for scheduler.step() and denoiser.forward() during one run."""

    def __init__(
        self,
        scheduler: Any,
        forward: Callable[..., Any],
        generators: Sequence[torch.Generator],
        *,
        control: Control,
        on_step: OnStep,
        start: Checkpoint | None,
        reuse: Reuse | None,
    ) -> None:
        self._scheduler, self._scheduler_step, self.denoise = scheduler, scheduler.step, forward
        self._generators, self._control, self._on_step = generators, control, on_step
        self._start, self._skipped, self.done = start, start.done if start else 0, 0
        self.began_s = 0.0
        """The denoiser was first called then: what came before it, as encoding the prompt, is no step."""
        self._state_before: dict[str, Any] = {}
        self._first_answer: Any = None
        self._reuse = reuse

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self.began_s = self.began_s or time.perf_counter()
        if self._control.stopped:
            raise StopRequested
        if self.done >= self._skipped:
            if self._reuse is not None:
                return self._reuse.compute(self.done, self.denoise, *args, **kwargs)
            return self.denoise(*args, **kwargs)
        if self._first_answer is None:
            self._first_answer = self.denoise(*args, **kwargs)
        return self._first_answer

    def step(self, model_output: torch.Tensor, timestep: Any, sample: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not self._state_before:
            if sample.device.type == "mps" and hasattr(self._scheduler, "sigmas"):
                self._scheduler.sigmas = self._scheduler.sigmas.as_subclass(_Sigmas)
            self._state_before = {name: value for name, value in vars(self._scheduler).items() if name != "step"}
            if self._start is not None and not checkpoint.fits(self._start, self._scheduler, self._generators[0], sample):
                self._start, self._skipped = None, 0  # what was computed so far was the first step
        if self._start is not None and self.done < self._skipped:
            return self._skip(self._start, sample)
        positions = (getattr(self._scheduler, name, None) for name in _POSITIONS)
        index = next((each for each in positions if each is not None), 0)
        out = self._scheduler_step(model_output, timestep, sample, *args, **kwargs)
        latents: torch.Tensor = out[0]
        self.done += 1
        if not bool(torch.isfinite(latents).all()):
            raise NumbersBroke(self.done, "denoiser")
        self._on_step(
            self.done,
            lambda: predict_clean(self._scheduler, model_output, timestep, sample, index),
            lambda: self._make_checkpoints(latents),
        )
        if self._control.stopped:
            raise StopRequested
        return out

    def _skip(self, start: Checkpoint, sample: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Pass over a step that `start` contains; the last of them restores the state after it."""
        self.done += 1
        if self.done < self._skipped:
            return sample, sample
        checkpoint.restore_state(self._scheduler, start.scheduler, sample.device)
        self._generators[0].set_state(start.generator)
        latents = start.latents.to(sample)
        return latents, latents

    def check_end(self) -> None:
        """Raise ValueError if `start` has more steps than there are: nothing was painted."""
        if self._start is not None and self.done < self._skipped:
            raise ValueError(self._skipped)

    def _make_checkpoints(self, latents: torch.Tensor) -> list[Checkpoint]:
        state = checkpoint.changed_state(self._scheduler, self._state_before)
        return [
            Checkpoint(self.done, latents[row : row + 1].detach(), checkpoint.take_row(state, latents.shape, row), generator.get_state())
            for row, generator in enumerate(self._generators)
        ]


class _Sigmas(torch.Tensor):
    """Sigmas of which each is copied when it is read: in torch 2.12 and 2.13 Metal reads a processor's scalar at the start of its storage,
    so sigmas[4] would count as sigmas[0] (pytorch #187117)."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> torch.Tensor:
        return super().__getitem__(index).clone()


def predict_clean(scheduler: Any, output: torch.Tensor, timestep: Any, sample: torch.Tensor, index: int) -> torch.Tensor:
    """Predict the clean latents from one step's output: shown in previews, and kept on Stop."""
    output, sample = output.float(), sample.float()
    alpha: torch.Tensor
    noise: torch.Tensor
    space = find_space(type(scheduler).__name__)
    if space == "flow":
        sigma: torch.Tensor = scheduler.sigmas[index].to(sample)
        return sample - sigma * output
    if space == "sigma" or hasattr(scheduler, "sigmas"):
        sigma = scheduler.sigmas[index].to(sample)
        alpha = 1 / torch.sqrt(sigma * sigma + 1)
        if space == "sigma":
            sample = sample * alpha
        noise = sigma * alpha
    else:
        alpha_squared = scheduler.alphas_cumprod[int(timestep)].to(sample)
        alpha, noise = torch.sqrt(alpha_squared), torch.sqrt(1 - alpha_squared)
    kind = scheduler.config.prediction_type
    if kind == "v_prediction":
        return alpha * sample - noise * output
    return output if kind == "sample" else (sample - noise * output) / alpha


def check_decoded(image: torch.Tensor, step: int, exact: bool) -> None:
    """Raise NumbersBroke for a decoded picture with NaN, or all black where half precision may be the cause."""
    if not bool(torch.isfinite(image).all()) or (not exact and float(image.float().max()) < -0.99):
        raise NumbersBroke(step, "vae")
