"""Hold the weights of Dia's linear layers: as stored, resident or sent, widened or not; packed in 8 or 4 bits; or in the order in which the
processor multiplies. None is ever cast or copied back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psutil
import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.kernels.few_lines import choose_way
from app.compat.machine.processor import (
    OperatorRefused,
    give_up_order,
    keeps_order,
    multiplies_bfloat16,
    multiply_reordered,
    reorder_linear,
)
from app.compat.planning.types import Dtype, Product
from app.engine.models.loading.packed_linears import Bits, FewLinesLinear, pack_linear, scales_dtype

_BLOCK: Final = 1 << 20
"""A processor widens so many numbers at a time: 4 MiB in float32, which its caches hold. A card widens a whole layer."""
PINNED_AT_MOST: Final = 0.25
"""Weights that are sent for each row may lock this share of the free memory; what is locked there cannot be swapped."""
KEPT_WHOLE: Final = "logits_dense"
"""This layer is never packed: its numbers are the answer."""
LINES: Final = 2
"""A row with guidance has so many lines; weights are reordered for them, and any other number is right, too."""


class Scratch:
    """One buffer in which all layers widen their weights, one after another."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._buffer: Tensor | None = None

    def widen(self, weight: Tensor) -> Tensor:
        if self._buffer is None or self._buffer.numel() < weight.numel():
            self._buffer = torch.empty(weight.numel(), dtype=self._dtype, device=weight.device)
        return self._buffer[: weight.numel()].view(weight.shape).copy_(weight)


class StoredLinear(torch.nn.Module):
    """A linear layer without bias, whose weight may lie on the processor and in another dtype than its input."""

    def __init__(
        self, weight: torch.nn.Parameter, device: torch.device, linear: torch.dtype, scratch: Scratch, product: Product = "torch"
    ) -> None:
        super().__init__()
        self.weight, self._few = weight, choose_way(product, "half")
        self._device, self._linear, self._scratch = device, linear, scratch
        self._kept: Tensor | None = None
        self._pinned = False

    def keep(self, here: bool) -> None:
        """Copy the weight to the device to stay, or drop that copy."""
        if not here:
            self._kept = None
        elif self._kept is None:
            self._kept = self.weight.detach().to(self._device)

    def pin(self, most_bytes: int) -> int:
        """Lock the weight in memory, from where a card reads it by itself, about twice as fast, if it takes at most `most_bytes`. Return
        the bytes it takes."""
        if self._device.type != "cuda" or self.weight.device.type != "cpu" or self.weight.nbytes > most_bytes:
            return 0
        if not self._pinned:
            try:
                self.weight.data = self.weight.data.pin_memory()
            except RuntimeError:  # the system allows no more
                return 0
            self._pinned = True
        return self.weight.nbytes

    def forward(self, given: Tensor) -> Tensor:
        # Without waiting: the product comes after it in the same stream, and nobody changes the weight.
        weight = self.weight.to(self._device, non_blocking=self._pinned) if self._kept is None else self._kept
        few = self._few(given, weight, None)
        if few is not None:
            return few
        if weight.dtype == self._linear:
            return F.linear(given.to(self._linear), weight).to(given.dtype)
        if weight.device.type != "cpu":
            return F.linear(given, self._scratch.widen(weight))
        blocks = torch.split(weight, max(1, _BLOCK // weight.shape[1]))
        return torch.cat([F.linear(given, self._scratch.widen(block)) for block in blocks], dim=-1)


class StoredLinears:
    """All linear layers of a model, and which of them stay on the device."""

    def __init__(
        self, model: torch.nn.Module, device_name: str, linear: torch.dtype, compute: torch.dtype, product: Product = "torch"
    ) -> None:
        """Replace the linear layers; move the rest to the device, where all but embeddings get the compute dtype."""
        device, scratch = torch.device(device_name), Scratch(compute)
        self._layers: dict[str, StoredLinear] = {}
        for name, module in list(model.named_modules()):
            if isinstance(module, torch.nn.Linear):
                assert module.bias is None, name
                layer = self._layers[name] = StoredLinear(module.weight, device, linear, scratch, product)
                model.set_submodule(name, layer)
        move_others(model, device, compute)

    def keep(self, most_bytes: int) -> None:
        """Let as many layers stay on the device as fit into `most_bytes`; the others are sent at each call and dropped after it."""
        kept = choose_kept([(name, layer.weight.nbytes) for name, layer in self._layers.items()], most_bytes)
        for name in sorted(self._layers, key=kept.__contains__):  # drop before copying
            self._layers[name].keep(name in kept)
        spare = int(psutil.virtual_memory().available * PINNED_AT_MOST)
        for name in sorted((each for each in self._layers if each not in kept), key=runs_once):
            spare -= self._layers[name].pin(spare)


def pack_voice(model: Any, bits: Bits, device: str, stored: torch.dtype, compute: torch.dtype, product: Product = "torch") -> None:
    """Pack a model that lies on the processor, and move it to the device: what each row reads as small as asked, what runs once a part in 8 bits. Each
    layer's plain weight goes before the next is packed. `stored`: dtype of the embeddings."""
    for layer in model.model.decoder.layers:
        attention = layer.self_attention
        weight = torch.cat([each.weight.detach() for each in (attention.q_proj, attention.k_proj, attention.v_proj)])
        del attention.q_proj, attention.k_proj, attention.v_proj
        attention.qkv_proj = pack_linear(weight, bits, device, compute, product)
    names = [name for name, each in model.named_modules() if isinstance(each, torch.nn.Linear) and name != KEPT_WHOLE]
    for name in names:
        linear = model.get_submodule(name)
        assert linear.bias is None, name
        model.set_submodule(name, pack_linear(linear.weight.detach(), 8 if runs_once(name) else bits, device, compute, product))
    if product != "torch":
        whole = model.get_submodule(KEPT_WHOLE)
        model.set_submodule(KEPT_WHOLE, FewLinesLinear(whole.weight.detach().to(scales_dtype(device, compute)), product))
    for table in model.modules():
        if isinstance(table, torch.nn.Embedding):
            table.weight.data = table.weight.data.to(stored)
    move_others(model, torch.device(device), compute)


class ReorderedLinear(torch.nn.Module):
    """A linear layer without bias, whose weight lies in oneDNN's order alone; in the plain one once that is refused."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(reorder_linear(weight, LINES), requires_grad=False)

    def forward(self, given: Tensor) -> Tensor:
        if self.weight.is_mkldnn:
            try:
                return multiply_reordered(given, self.weight)
            except OperatorRefused as fault:
                give_up_order("linear", given.dtype, str(fault))
                self.weight = torch.nn.Parameter(self.weight.to_dense(), requires_grad=False)
        return F.linear(given, self.weight)


def is_quicker_here(compute: Dtype) -> bool:
    """Tell whether this processor multiplies that itself, as bfloat16; elsewhere the plain order is quicker for two lines."""
    return compute == "bfloat16" and multiplies_bfloat16() and keeps_order("linear", torch.bfloat16)


def reorder_weights(model: Any) -> None:
    """Replace the layers that every row runs, after _fuse_projections of voice.py; the three views of its matrix go. A row of 1.6B then takes 113 ms
    instead of 152. Layers from the first that is
    refused stay as they are."""
    for layer in model.model.decoder.layers:
        attention = layer.self_attention
        del attention.q_proj, attention.k_proj, attention.v_proj
    for name in [name for name, each in model.named_modules() if isinstance(each, torch.nn.Linear) and not runs_once(name)]:
        linear = model.get_submodule(name)
        assert linear.bias is None, name
        try:
            model.set_submodule(name, ReorderedLinear(linear.weight.detach()))
        except OperatorRefused as fault:
            return give_up_order("linear", linear.weight.dtype, str(fault))


def move_others(model: torch.nn.Module, device: torch.device, compute: torch.dtype) -> None:
    """Move all but stored linear layers to the device, where all but embeddings get the compute dtype."""
    for module in model.modules():
        if isinstance(module, StoredLinear):
            continue
        table = isinstance(module, torch.nn.Embedding)
        if table:
            module.register_forward_hook(lambda _module, _given, rows: rows.to(compute))
        for weight in module.parameters(recurse=False):
            weight.data = weight.data.to(device, weight.dtype if table else compute)
        for buffer in module.buffers(recurse=False):  # angles of positions, which keep their precision, and packed numbers
            buffer.data = buffer.data.to(device)


def choose_kept(sizes: Sequence[tuple[str, int]], most_bytes: int) -> frozenset[str]:
    """Choose the layers that stay on the device: first those that every row runs, then those that run once a part."""
    kept, left = [], most_bytes
    for name, size in sorted(sizes, key=lambda each: runs_once(each[0])):
        if size <= left:
            kept.append(name)
            left -= size
    return frozenset(kept)


def runs_once(name: str) -> bool:
    """Tell whether a layer runs once a part: the encoder's, and what makes keys and values of its output."""
    return ".encoder." in name or name.endswith(("cross_attention.k_proj", "cross_attention.v_proj"))
