"""Hold the control model of a request, and let its guide count in the denoiser's steps: in every pipeline, at any size, in tiles, on any offload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import torch
from PIL import Image

from app.compat.planning.types import Plan
from app.engine.jobs.request import PictureRequest
from app.engine.models.controls import read_control
from app.engine.pictures.families import placement
from app.engine.pictures.families.control_file import load_control
from app.engine.pictures.families.parts_on_disk import DiskParts
from app.engine.pictures.run.final_settings import PictureSettings
from app.engine.pictures.run.tiled_denoiser import Window, replaced_forward

Place = Callable[[], tuple[int, int]]
"""It tells how many steps are done, and of how many."""


class ActiveControl:
    def __init__(self, denoiser: str, plan: Plan, disk_parts: DiskParts | None) -> None:
        self.plan = plan
        self._denoiser, self._disk_parts = denoiser, disk_parts
        self._path = ""
        self._control: Any = None
        self._hook: Any = None
        self._pipe: Any = None

    def activate(self, pipe: Any, settings: PictureSettings) -> None:
        """Load the control model that is asked for; one that no longer is leaves the memory."""
        wanted = settings.request.control if settings.guide is not None else ""
        if wanted == self._path:
            return
        self.close()
        if not wanted:
            return
        facts = read_control(Path(wanted))
        how = placement.find_precision(self.plan, placement.CONTROL)
        loaded = load_control(facts, getattr(pipe, self._denoiser), getattr(torch, how.storage))
        self._hook = placement.place_control(loaded, self._denoiser, self.plan, self._disk_parts, facts.weights)
        self._control, self._path, self._pipe = loaded, wanted, pipe

    def close(self) -> None:
        if self._control is not None and self._disk_parts is not None:
            self._disk_parts.drop(placement.CONTROL)
        self._control = self._hook = self._pipe = None
        self._path = ""

    def rest(self) -> None:
        """Send it from the card, where parts take turns there."""
        if self._hook is not None:
            self._hook.offload()

    def guide(self, settings: PictureSettings, denoiser: torch.nn.Module, window: Window, place: Place) -> AbstractContextManager[None]:
        """Have the denoiser add what the control model makes of the guide; steps outside of its span compute without it."""
        if settings.guide is None:
            return nullcontext()
        how = placement.find_precision(self.plan, placement.CONTROL)
        compute = getattr(torch, how.compute)
        if isinstance(self._control, diffusers.ZImageControlNetModel):
            latents = self._encode(settings.guide).to(placement.find_device(self._control), compute)
            return replaced_forward(denoiser, lambda forward: self._add_inside(forward, denoiser, latents, settings, place))
        picture = _to_tensor(settings.guide).to(placement.find_device(self._control), compute)
        return replaced_forward(denoiser, lambda forward: self._add(forward, picture, settings, window, place))

    @torch.no_grad()
    def _encode(self, picture: Image.Image) -> torch.Tensor:
        """Return the latents of the guide, and as many zeros as there are channels more: a control model reads a masked picture there, too."""
        vae = self._pipe.vae
        pixels = (2 * _to_tensor(picture) - 1).to(placement.find_device(vae), vae.dtype)
        latents = (vae.encode(pixels).latent_dist.mode() - vae.config.shift_factor) * vae.config.scaling_factor
        self._pipe.maybe_free_model_hooks()
        more = self._control.config.control_in_dim - latents.shape[1]
        return torch.nn.functional.pad(latents[0], (0, 0, 0, 0, 0, more))[:, None]

    def _add(
        self, forward: Callable[..., Any], picture: torch.Tensor, settings: PictureSettings, window: Window, place: Place
    ) -> Callable[..., Any]:
        request, control = settings.request, self._control

        @wraps(forward)
        def guided(sample: torch.Tensor, timestep: Any, encoder_hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not _is_due(request, place):
                return forward(sample, timestep, encoder_hidden_states, *args, **kwargs)
            seen = _cut(picture, window)
            down, middle = control(
                sample,
                timestep,
                encoder_hidden_states=encoder_hidden_states,
                controlnet_cond=seen.expand(len(sample), -1, -1, -1),
                conditioning_scale=request.guide_strength,
                timestep_cond=kwargs.get("timestep_cond"),
                added_cond_kwargs=kwargs.get("added_cond_kwargs"),
                return_dict=False,
            )
            added = {"down_block_additional_residuals": down, "mid_block_additional_residual": middle}
            return forward(sample, timestep, encoder_hidden_states, *args, **kwargs, **added)

        return guided

    def _add_inside(
        self, forward: Callable[..., Any], denoiser: torch.nn.Module, latents: torch.Tensor, settings: PictureSettings, place: Place
    ) -> Callable[..., Any]:
        request, control = settings.request, self._control

        @wraps(forward)
        def guided(sample: list[torch.Tensor], timestep: Any, prompts: list[torch.Tensor], *args: Any, **kwargs: Any) -> Any:
            if not _is_due(request, place):
                return forward(sample, timestep, prompts, *args, **kwargs)

            def compute() -> dict[int, torch.Tensor]:
                with _lent_parts(control, denoiser):
                    return control(sample, timestep, prompts, [latents] * len(sample), request.guide_strength)  # type: ignore[no-any-return]

            added = _Added(control.config.control_layers_places, compute)
            return forward(sample, timestep, prompts, *args, **kwargs, controlnet_block_samples=added)

        return guided


class _Added:
    """What a control model adds to a transformer's layers, computed when the first of them asks: the parts that it borrows of the transformer lie
    where they compute only while that runs."""

    def __init__(self, places: Sequence[int], compute: Callable[[], dict[int, torch.Tensor]]) -> None:
        self._places, self._compute = places, compute
        self._made: dict[int, torch.Tensor] = {}

    def __contains__(self, place: int) -> bool:
        return place in self._places

    def __getitem__(self, place: int) -> torch.Tensor:
        self._made = self._made or self._compute()
        return self._made.pop(place)


@contextmanager
def _lent_parts(control: Any, transformer: torch.nn.Module) -> Iterator[None]:
    """Let a control model compute with the parts that it has in common with its transformer. It gives them back, as where they are placed is not its
    to say."""
    own = {*control._modules, *control._parameters}
    control.from_transformer(control, transformer)
    try:
        yield
    finally:
        for lent in {*control._modules, *control._parameters} - own:
            delattr(control, lent)


def _is_due(request: PictureRequest, place: Place) -> bool:
    """Return whether the guide counts in the step that follows."""
    done, total = place()
    return done / total >= request.guide_from and (done + 1) / total <= request.guide_to


def _to_tensor(picture: Image.Image) -> torch.Tensor:
    pixels = torch.from_numpy(np.array(picture.convert("RGB")))
    return pixels.permute(2, 0, 1)[None].float() / 255


def _cut(picture: torch.Tensor, window: Window) -> torch.Tensor:
    """Return the part of the guide that lies where the denoiser computes."""
    if window.rows is None or window.columns is None:
        return picture
    return picture[..., slice(*window.rows), slice(*window.columns)]
