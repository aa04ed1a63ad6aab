"""Simulate a card's separate memory on the CPU: each tensor has one of two devices, and mixing them fails as on a card."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

from app.engine.pictures import painter, worker_thread

CARD, HERE = torch.device("cuda", 0), torch.device("cpu")
_ACROSS = frozenset({"copy_", "__set__", "__setitem__", "set_", "swap_tensors", "_has_compatible_shallow_copy_type", "to", "cpu", "cuda"})
"""Functions that accept tensors of both memories."""
_READS = frozenset({"numpy", "__array__"})
_FACTS: dict[Any, Callable[[bool], Any]] = {
    torch.Tensor.device.__get__: lambda far: CARD if far else HERE,  # type: ignore[attr-defined]
    torch.Tensor.is_cuda.__get__: lambda far: far,  # type: ignore[attr-defined]
    torch.Tensor.is_cpu.__get__: lambda far: not far,  # type: ignore[attr-defined]
    torch.Tensor.get_device: lambda far: 0 if far else -1,
}


class SeparateMemory(TorchFunctionMode):
    """Shared by all threads; each has to enter it."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[int, tuple[StorageWeakRef, int]] = {}

    @property
    def held_bytes(self) -> int:
        """The bytes of all live tensors."""
        self._held = {at: each for at, each in self._held.items() if not each[0].expired()}
        return sum(size for _, size in self._held.values())

    def is_far(self, tensor: torch.Tensor) -> bool:
        held = self._held.get(_place(tensor))
        return held is not None and not held[0].expired()

    def _move(self, tensor: Any) -> Any:
        for each in tree_leaves(tensor):
            if isinstance(each, torch.Tensor) and not each.is_meta:
                storage = each.untyped_storage()
                self._held[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        return tensor

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor) and not each.is_meta]
        if func in _FACTS:
            return _FACTS[func](self.is_far(args[0])) if not args[0].is_meta else func(*args)
        if name in ("pin_memory", "record_stream"):
            return args[0]
        if name == "cuda":
            return self._to(args[0], CARD, (), {})
        if name == "cpu":
            return self._to(args[0], HERE, (), {})
        if name == "to" and given and given[0] is args[0]:
            return self._sent(args, kwargs)
        far = [self.is_far(each) for each in given]
        if name in _READS and any(far):
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
        told = kwargs.get("device")
        wanted = None if told is None else torch.device(told)
        if wanted is not None and wanted.type == "cuda":
            generator = kwargs.get("generator")
            if generator is not None and generator.device.type == "cpu":
                raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
            kwargs["device"] = HERE
            made = func(*args, **kwargs)
            return self._move(made.clone() if given and _place(made) in {_place(each) for each in given} else made)
        if name not in _ACROSS and any(far) and wanted is None:
            self._check(func, name, args, given, far)
        before = {_place(each) for each in given}
        made = func(*args, **kwargs)
        if any(far) and wanted is None:
            for each in tree_leaves(made):
                if isinstance(each, torch.Tensor) and not each.is_meta and _place(each) not in before:
                    self._move(each)
        return made

    def _check(self, func: Any, name: str, args: Any, given: list[torch.Tensor], far: list[bool]) -> None:
        if name == "__getitem__" and far[0]:
            return
        near = [each for each, is_far in zip(given, far, strict=True) if not is_far and each.dim()]
        if near:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (in {resolve_name(func) or name})"
            )

    def _sent(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """Handle Tensor.to in its three forms: to a device, to a dtype, like another tensor."""
        tensor, rest = args[0], list(args[1:])
        place = kwargs.pop("device", None)
        if rest and isinstance(rest[0], torch.Tensor):
            like = rest[0]
            place, rest = like.device if like.is_meta else CARD if self.is_far(like) else HERE, [like.dtype, *rest[1:]]
        elif rest and isinstance(rest[0], torch.device | str | int | None):
            place, rest = rest[0], rest[1:]
        if place is None:
            place = tensor.device if tensor.is_meta else CARD if self.is_far(tensor) else HERE
        return self._to(tensor, torch.device(place), rest, kwargs)

    def _to(self, tensor: torch.Tensor, place: torch.device, rest: Any, kwargs: dict[str, Any]) -> Any:
        if tensor.is_meta or place.type == "meta":
            return tensor.to(place, *rest, **kwargs)
        made = tensor.to(HERE, *rest, **kwargs)
        far = place.type == "cuda"
        if self.is_far(tensor) != far and _place(made) == _place(tensor):
            made = made.clone()
        return self._move(made) if far else made


def _place(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


class _Stream(contextlib.nullcontext[None]):
    def synchronize(self) -> None: ...
    def wait_stream(self, other: Any) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def record_event(self) -> _Stream:
        return self


@contextlib.contextmanager
def separate_memory() -> Iterator[SeparateMemory]:
    """Provide a device named cuda to this thread and to painting threads; the CPU does its work."""
    memory = SeparateMemory()

    def iterate_reports(work: Any) -> Any:
        def work_on_card(report: Any) -> None:
            with memory:
                work(report)

        return worker_thread.iterate_reports(work_on_card)

    with contextlib.ExitStack() as around:
        for name, what in {
            "torch.cuda.Stream": lambda *_, **__: _Stream(),
            "torch.cuda.stream": lambda *_: contextlib.nullcontext(),
            "torch.cuda.current_stream": lambda *_: _Stream(),
            "torch.cuda.mem_get_info": lambda *_: (8 << 30, 8 << 30),
            "torch.cuda.current_device": lambda: 0,
            "torch.cuda.synchronize": lambda *_: None,
            "diffusers.pipelines.pipeline_utils.get_device": lambda: "cuda",
        }.items():
            around.enter_context(patch(name, what))
        around.enter_context(patch.object(painter, "iterate_reports", iterate_reports))
        around.enter_context(memory)
        yield memory
