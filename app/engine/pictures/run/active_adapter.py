"""Hold the IP-Adapter of a request, and let the denoiser's attention read its picture beside the prompt: in every pipeline, in tiles, on any offload."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import torch

from app.base.paths import Home
from app.compat.planning.types import Plan
from app.engine.models.adapters import find_encoder, read_adapter
from app.engine.models.fingerprint import fingerprint
from app.engine.pictures.families import placement
from app.engine.pictures.families.adapter_file import LoadedAdapter, load_adapter, read_picture
from app.engine.pictures.run.final_settings import PictureSettings
from app.engine.pictures.run.tiled_denoiser import replaced_forward

GUIDED_ROWS = 2
"""A step with guidance has so many: one without the prompt, one with it."""


class _Reader:
    """An attention processor that is no part of the UNet: what moves and casts its parts leaves this one where it is."""

    def __init__(self, processor: Any, strength: float) -> None:
        self._processor, self._strength = processor, strength

    def __call__(
        self, attn: Any, hidden_states: torch.Tensor, encoder_hidden_states: Any = None, attention_mask: Any = None, temb: Any = None
    ) -> torch.Tensor:
        self._processor.scale = [self._strength]
        read: torch.Tensor = self._processor(attn, hidden_states, encoder_hidden_states, attention_mask, temb)
        return read


class ActiveAdapter:
    def __init__(self, denoiser: str, plan: Plan, home: Home | None) -> None:
        """`home`: where image encoders lie; None: beside the adapter alone."""
        self.plan = plan
        self._denoiser, self._home = denoiser, home
        self._path = ""
        self._loaded: LoadedAdapter | None = None
        self._seen: tuple[str, torch.Tensor, torch.Tensor] | None = None
        """The picture that was read last, by its content, with its tokens and those of none."""

    def activate(self, pipe: Any, settings: PictureSettings) -> None:
        """Load the adapter that is asked for, and read the picture; one that no longer is asked for leaves the memory."""
        request = settings.request
        wanted = request.adapter if settings.reference is not None else ""
        if wanted != self._path:
            self.close()
        if not wanted or settings.reference is None:
            return
        adapter, how = read_adapter(Path(wanted)), placement.find_precision(self.plan, self._denoiser)
        dtype = getattr(torch, how.linear or how.compute)
        device = torch.device("cpu" if self.plan.runs_on == "cpu" else how.device)
        if self._loaded is None:
            self._loaded = load_adapter(adapter, getattr(pipe, self._denoiser), dtype, device)
            self._path = wanted
        content = fingerprint(Path(request.reference or ""))
        if self._seen is None or self._seen[0] != content:
            encoder = find_encoder(self._home or Home(adapter.path.parent, adapter.path.parent), adapter)
            tokens = (
                self._loaded.projection(each.to(device, dtype))[:, None]
                for each in read_picture(encoder, adapter, settings.reference, self.plan)
            )
            self._seen = content, *tokens

    def close(self) -> None:
        self._loaded = self._seen = None
        self._path = ""

    @contextmanager
    def reading(self, settings: PictureSettings, denoiser: Any) -> Iterator[None]:
        """Have the denoiser's attention read the picture, too."""
        if settings.reference is None or self._loaded is None or self._seen is None:
            yield
            return
        _, like, unlike = self._seen
        strength = settings.request.reference_strength

        def make(forward: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(forward)
            def read(sample: torch.Tensor, timestep: Any, encoder_hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
                rows = len(sample)
                tokens = torch.cat([unlike, like]) if rows == GUIDED_ROWS else like.expand(rows, *like.shape[1:])
                return forward(sample, timestep, (encoder_hidden_states, [tokens]), *args, **kwargs)

            return read

        with ExitStack() as stack:
            for name, processor in self._loaded.processors.items():
                layer = denoiser.get_submodule(name)
                stack.callback(layer.set_processor, layer.processor)
                layer.set_processor(_Reader(processor, strength))
            stack.enter_context(replaced_forward(denoiser, make))
            yield
