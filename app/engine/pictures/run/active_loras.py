"""Activate exactly the LoRAs of a request; on the processor add them into the denoiser's weights, so that no step pays for them.

Only what comes off again is added: W + D - D is W but for the rounding of D, so a LoRA with larger numbers stays beside the weights."""

from __future__ import annotations

from typing import Any, Final

from peft.tuners.lora.layer import LoraLayer
from peft.tuners.tuners_utils import BaseTunerLayer

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.model import FEW_STEPS
from app.engine.pictures.families import loader
from app.engine.pictures.families.packed_convolutions import unpack_convolutions
from app.engine.pictures.run.final_settings import PictureSettings

MOST: Final = 32.0
"""Nothing larger is added to a weight: in float32 it left less than 1e-6 there after twenty times, an ordinary LoRA 1e-8."""


class ActiveLoras:
    def __init__(self, denoiser: str, merges: bool) -> None:
        """`merges`: the denoiser's weights are plain float32, to which a LoRA can be added and taken off again."""
        self._denoiser, self._merges = denoiser, merges
        self._adapters: dict[str, str] = {}
        """The adapter of each loaded file."""
        self._weights: dict[str, float] | None = {}
        """It holds what is active now; None if that is uncertain."""
        self._merged = False

    @property
    def doubtful(self) -> bool:
        """Whether the model may hold something of a LoRA that failed, and is to be loaded anew."""
        return self._weights is None

    def doubt(self) -> None:
        """A run failed: LoRAs that are active may be why."""
        if self._weights:
            self._weights = None

    def activate(self, pipe: Any, settings: PictureSettings) -> bool:
        """Return whether anything changed."""
        wanted = {each.path: each.weight for each in settings.request.loras if not each.word}
        if wanted and not hasattr(pipe, "load_lora_weights"):
            raise Trouble(say("lora.none", "This model cannot use LoRAs. Remove them, or choose SD 1.5 or SDXL."))
        few_steps = {FEW_STEPS: 1.0} if settings.few_steps else {}
        if self._weights == {**{self._adapters.get(path, path): weight for path, weight in wanted.items()}, **few_steps}:
            return False
        self._weights = None
        self._take_off(pipe)
        for path in [path for path in self._adapters if path not in wanted]:
            pipe.delete_adapters(self._adapters.pop(path))
        for path in wanted:
            if path not in self._adapters:
                name = f"lora{max((int(each[4:]) for each in self._adapters.values()), default=0) + 1}"
                loader.add_lora(pipe, path, name)
                self._adapters[path] = name
        weights = {self._adapters[path]: weight for path, weight in wanted.items()} | few_steps
        if weights:
            pipe.enable_lora()
            pipe.set_adapters(list(weights), list(weights.values()))
            self._merge(pipe, list(weights))
        elif hasattr(pipe, "get_list_adapters") and pipe.get_list_adapters():
            pipe.disable_lora()
        self._weights = weights
        return True

    def _merge(self, pipe: Any, adapters: list[str]) -> None:
        own = set(pipe.get_list_adapters().get(self._denoiser, ()))
        if self._merges and own and comes_off(getattr(pipe, self._denoiser), own & set(adapters)):
            unpack_convolutions(getattr(pipe, self._denoiser))
            self._merged = True  # even if it breaks off halfway: what was added has to come off
            pipe.fuse_lora(components=[self._denoiser], adapter_names=[each for each in adapters if each in own])

    def _take_off(self, pipe: Any) -> None:
        if self._merged:
            unpack_convolutions(getattr(pipe, self._denoiser))
            pipe.unfuse_lora(components=[self._denoiser])
            self._merged = False


def comes_off(denoiser: Any, adapters: set[str]) -> bool:
    """Tell whether LoRAs, with the weights that they are active with, can be added and subtracted again with no trace but rounding. A variant, as
    DoRA, multiplies what was there."""
    layers = [each for each in denoiser.modules() if isinstance(each, BaseTunerLayer)]
    return all(
        _find_most(each, adapter) <= MOST for each in layers for adapter in adapters if adapter in each._all_available_adapter_names()
    )


def _find_most(layer: BaseTunerLayer, adapter: str) -> float:
    """Return what a number that is added to a weight or bias of this layer is at most: no product of two rows exceeds that of their lengths."""
    if not isinstance(layer, LoraLayer) or adapter not in layer.lora_A or adapter in layer.lora_variant:
        return float("inf")
    down, up = layer.lora_A[adapter].weight.detach().flatten(1).float(), layer.lora_B[adapter].weight.detach().flatten(1).float()
    most = float(up.norm(dim=1).max()) * float(down.norm(dim=0).max())
    if layer.lora_B[adapter].bias is not None:
        most = max(most, float(layer.lora_B[adapter].bias.detach().abs().max()))
    return abs(float(layer.scaling[adapter])) * most
