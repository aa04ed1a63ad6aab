"""Run a tower of VibeVoice's codec frame by frame, going on where it was: what its convolutions reach back for is kept. Knows neither text nor part.

Rows are times, columns channels: its norms and products, nearly all of the work, take them so."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from app.engine.speech.families.vibevoice.backbone import norm


def prepare(tower: Any, device: str) -> None:
    """Lay the weights of a tower's convolutions as the products take them. On a processor, what has many rows a frame computes in float32, as few
    processors are quick with many rows of halves; it is a ninth of a tower."""
    if device == "cpu":
        upper = (
            [tower.conv_layers[0].stage, *tower.conv_layers[1:], tower.head]
            if _makes_sound(tower)
            else [tower.stem, *tower.conv_layers[:-1]]
        )
        for each in upper:
            each.float()
    for layer in tower.conv_layers:
        if _makes_sound(tower):
            weight = layer.convtr.convtr.weight
            weight.data = weight.data.permute(2, 1, 0).contiguous()
    for block in _list_blocks(tower):
        weight = block.mixer.conv.weight
        weight.data = weight.data[:, 0].T.contiguous()


def list_deep(tower: Any) -> list[Any]:
    """Return what has one row a frame, and nearly all of a tower's weights."""
    return [tower.stem] if _makes_sound(tower) else [tower.conv_layers[-1], tower.head]


class Stream:
    """A tower while it runs."""

    def __init__(self, tower: Any) -> None:
        self._tower, self._tails = tower, dict[str, Tensor]()

    def __call__(self, given: Tensor) -> Tensor:
        """Take the rows (times, channels) that follow; return what they make."""
        tower = self._tower
        made = self._run_blocks(tower.stem, self._convolve(tower.stem.conv, given))
        for layer in tower.conv_layers:
            spread = self._spread(layer.convtr, made) if _makes_sound(tower) else self._convolve(layer.conv, made)
            made = self._run_blocks(layer, spread)
        return self._convolve(tower.head, made)

    def _convolve(self, module: Any, given: Tensor) -> Tensor:
        conv = module.conv
        seen = self._go_on(module, given.to(conv.weight.dtype))
        windows = seen.unfold(0, conv.kernel_size[0], conv.stride[0]).flatten(1)
        return F.linear(windows, conv.weight.flatten(1), conv.bias)

    def _spread(self, module: Any, given: Tensor) -> Tensor:
        """Each row makes as many as a stride and overlaps with those of the next one."""
        stride, weight = module.stride, module.convtr.weight
        made = F.linear(given.to(weight.dtype), weight.flatten(0, 1)).view(len(given), *weight.shape[:2])
        late = made[:, stride:]
        tail = self._tails.get(module.cache_key)
        early = torch.cat((late.new_zeros(1, *late.shape[1:]) if tail is None else tail, late[:-1]))
        self._tails[module.cache_key] = late[-1:]
        spread: Tensor = made[:, :stride] + early + module.convtr.bias
        return spread.flatten(0, 1)

    def _run_blocks(self, layer: Any, given: Tensor) -> Tensor:
        given = given.to(layer.stage[0].gamma.dtype)
        for block in layer.stage:
            given = torch.addcmul(given, self._mix(block.mixer, norm(block.norm, given)), block.gamma)
            given = torch.addcmul(
                given, block.ffn.linear2(block.ffn.activation(block.ffn.linear1(norm(block.ffn_norm, given)))), block.ffn_gamma
            )
        return given

    def _mix(self, module: Any, given: Tensor) -> Tensor:
        """Sum each channel's neighbours in time."""
        seen, conv = self._go_on(module, given), module.conv
        made = torch.addcmul(conv.bias, seen[: len(given)], conv.weight[0])
        for place, factor in enumerate(conv.weight[1:], 1):
            made = torch.addcmul(made, seen[place : place + len(given)], factor)
        return made

    def _go_on(self, module: Any, given: Tensor) -> Tensor:
        """Return rows with those before that the convolution reaches back for."""
        tail = self._tails.get(module.cache_key)
        seen = torch.cat((given.new_zeros(module.left_pad, given.shape[-1]) if tail is None else tail, given))
        self._tails[module.cache_key] = seen[len(seen) - module.left_pad :]
        return seen


def _makes_sound(tower: Any) -> bool:
    """Tell a decoder from an encoder."""
    return hasattr(tower.conv_layers[0], "convtr")


def _list_blocks(tower: Any) -> list[Any]:
    return [block for layer in (tower.stem, *tower.conv_layers) for block in layer.stage]
