"""Watches a pipeline step by step from inside its own loop: reports, stops, checks the numbers, and skips what is already done."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from app.engine.jobs.control import Control
from app.engine.jobs.schedulers import space_of
from app.engine.loading.numbers_broke import NumbersBroke
from app.engine.pictures import checkpoint
from app.engine.pictures.checkpoint import Checkpoint

OnStep = Callable[[int, torch.Tensor, Callable[[], torch.Tensor], Callable[[], Checkpoint]], None]
"""(steps done, latents, the clean picture guessed from them, all that is needed to go on from here)."""


_POSITIONS = ("step_index", "begin_index")
"""Where a scheduler stands; before its first step only where it will begin."""


class Stop(Exception):
    """A person pressed Stop; raised inside the pipeline's loop, so that not one more step is computed."""


@contextmanager
def watch_steps(
    pipe: Any, denoiser: torch.nn.Module, generator: torch.Generator, control: Control, tell: OnStep, kept: Checkpoint | None
) -> Iterator[None]:
    """Every pipeline of every family ends a step with its scheduler's step(): the one place that all share (PixArt's pipeline has
    no step callback and no way to stop). While the steps that `kept` already holds go by, the denoiser answers from memory."""
    scheduler = pipe.scheduler
    original, forward, hooked = scheduler.step, denoiser.forward, "forward" in vars(denoiser)
    before: dict[str, Any] = {}
    done, skipped = 0, kept.done if kept else 0
    answers: list[Any] = []

    @functools.wraps(forward)
    def answer(*args: Any, **kwargs: Any) -> Any:
        if control.stopped:
            raise Stop
        if done >= skipped:
            return forward(*args, **kwargs)
        if not answers:
            answers.append(forward(*args, **kwargs))
        return answers[0]

    @functools.wraps(original)
    def step(model_output: torch.Tensor, timestep: Any, sample: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        nonlocal done
        if not before:
            before.update({name: value for name, value in vars(scheduler).items() if name != "step"})
        if done < skipped:
            done += 1
            if kept is None or done < skipped:
                return (sample, sample)
            checkpoint.restore_state(scheduler, kept.scheduler, sample.device)
            generator.set_state(kept.generator)
            latents = kept.latents.to(sample)
            return (latents, latents)
        index = next((i for i in (getattr(scheduler, name, None) for name in _POSITIONS) if i is not None), 0)
        out = original(model_output, timestep, sample, *args, **kwargs)
        latents = out[0]
        done += 1
        if not bool(torch.isfinite(latents).all()):
            raise NumbersBroke(done, "denoiser")
        tell(
            done,
            latents,
            lambda: predict_clean(scheduler, model_output, timestep, sample, index),
            lambda: Checkpoint(done, latents.detach(), checkpoint.changed_state(scheduler, before), generator.get_state()),
        )
        if control.stopped:
            raise Stop
        return out

    scheduler.step, denoiser.forward = step, answer
    try:
        yield
    finally:
        del scheduler.step
        if hooked:  # an offload hook had put its own there
            denoiser.forward = forward
        else:
            del denoiser.forward


def predict_clean(scheduler: Any, output: torch.Tensor, timestep: Any, sample: torch.Tensor, index: int) -> torch.Tensor:
    """The picture that this step's answer points at, in the latents' own scale: what a preview shows, and what Stop keeps."""
    output, sample = output.float(), sample.float()
    alpha: torch.Tensor
    noise: torch.Tensor
    space = space_of(type(scheduler).__name__)
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
    """A decoded picture that is not numbers, or black all over where half precision may have made it so."""
    if not bool(torch.isfinite(image).all()) or (not exact and float(image.float().max()) < -0.99):
        raise NumbersBroke(step, "vae")
