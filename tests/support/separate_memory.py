"""Simulate a card or a Mac's GPU on the CPU: each tensor has one of two devices, mixing them fails, and so does a second thread."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode, resolve_name

from app.engine.pictures.run import painter, worker_thread

HERE = torch.device("cpu")
_ACROSS = frozenset({"copy_", "__set__", "__setitem__", "set_", "swap_tensors", "_has_compatible_shallow_copy_type", "to", "cpu", "cuda"})
"""These functions accept tensors of both memories."""
_BINARY = frozenset(each + name for name in ("add", "sub", "mul", "div", "truediv") for each in ("", "r", "i"))
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_READS = frozenset({"numpy", "__array__"})
_FACTS: dict[Any, Callable[[torch.device], Any]] = {
    torch.Tensor.device.__get__: lambda device: device,
    torch.Tensor.is_cuda.__get__: lambda device: device.type == "cuda",  # type: ignore[attr-defined]
    torch.Tensor.is_mps.__get__: lambda device: device.type == "mps",  # type: ignore[attr-defined]
    torch.Tensor.is_cpu.__get__: lambda device: device.type == "cpu",  # type: ignore[attr-defined]
    torch.Tensor.get_device: lambda device: -1 if device.type == "cpu" else 0,
}


class SeparateMemory(TorchFunctionMode):
    """Shared by all threads; each has to enter it. One of them owns the device: a call from another one fails, as on Metal."""

    def __init__(self, device: str, wrong: Collection[str] = (), wrong_in: Collection[torch.dtype] = _FLOATS) -> None:
        """`wrong`: functions whose results are garbage on the device, in these dtypes."""
        super().__init__()
        self._wrong, self._wrong_in = frozenset(wrong), frozenset(wrong_in)
        self.card = torch.device(device, 0)
        self.owner = threading.current_thread()
        self.bitten: list[str] = []
        """These threads used the device of another one."""
        self.spoiled: Counter[str] = Counter()
        """Each function gave so many wrong results."""
        self._cached_bytes = 0
        """So many bytes were freed, but are kept for later tensors until the cache is emptied."""
        self._held: dict[int, tuple[StorageWeakRef, int]] = {}
        self.sent_bytes = self.returned_bytes = 0

    def reach(self) -> None:
        """Fail if another thread owns the device; every call that uses it comes here."""
        if threading.current_thread() is not self.owner:
            self.bitten.append(threading.current_thread().name)
            raise RuntimeError(
                f"failed assertion `A command encoder is already encoding to this command buffer': {threading.current_thread().name} "
                f"uses the device of {self.owner.name}"
            )

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Lend the device to this thread, and enter the memory in it."""
        before, self.owner = self.owner, threading.current_thread()
        try:
            with self:
                yield
        finally:
            self.owner = before

    def empty_cache(self) -> None:
        self.reach()
        self._count()
        self._cached_bytes = 0

    @property
    def driver_bytes(self) -> int:
        return self.held_bytes + self._cached_bytes

    @property
    def held_bytes(self) -> int:
        """The bytes of all live tensors."""
        self._count()
        return sum(size for _, size in self._held.values())

    def _count(self) -> None:
        """Move what was freed since the last time to the cache."""
        freed = [at for at, each in self._held.items() if each[0].expired()]
        self._cached_bytes += sum(self._held.pop(at)[1] for at in freed)

    def is_far(self, tensor: torch.Tensor) -> bool:
        if tensor.is_mkldnn:  # packed for the processor, which alone can read it
            return False
        held = self._held.get(_place(tensor))
        return held is not None and not held[0].expired()

    def _move(self, tensor: Any) -> Any:
        for each in _list_tensors(tensor):
            storage = each.untyped_storage()
            self._held[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        return tensor

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if func in _FACTS and not args[0].is_meta:
            return _FACTS[func](self.card if self.is_far(args[0]) else HERE)
        if name == "__get__":  # what else is read of a tensor is no new one, and no work of the device's
            return func(*args)
        kwargs = dict(kwargs or {})
        given = _list_tensors(args, kwargs)
        if name in ("pin_memory", "record_stream"):
            return args[0]
        if name == "cuda":
            return self._to(args[0], self.card, (), {})
        if name == "cpu":
            return self._to(args[0], HERE, (), {})
        if name == "to" and given and given[0] is args[0]:
            return self._sent(args, kwargs)
        far = [self.is_far(each) for each in given]
        reached = any(far)
        if reached:
            self.reach()
        if name in _READS and reached:
            raise TypeError(f"can't convert {self.card} device type tensor to numpy. Use Tensor.cpu() first.")
        told = kwargs.get("device")
        wanted = None if told is None else torch.device(told)
        if wanted is not None and wanted.type == self.card.type:
            self.reach()
            generator = kwargs.get("generator")
            if generator is not None and generator.device.type == "cpu":
                raise RuntimeError(f"Expected a '{self.card.type}' device type for generator but found 'cpu'")
            kwargs["device"] = HERE
            made = func(*args, **kwargs)
            return self._move(made.clone() if given and _place(made) in {_place(each) for each in given} else made)
        if wanted is not None or not reached:
            return func(*args, **kwargs)
        if name not in _ACROSS:
            self._check(func, name, args, given, far)
            if self.card.type == "mps" and name.strip("_") in _BINARY:
                args = tuple(_read_at_start(each) if isinstance(each, torch.Tensor) and not self.is_far(each) else each for each in args)
        before = {_place(each) for each in given}
        made = func(*args, **kwargs)
        for each in _list_tensors(made):
            if _place(each) not in before:
                self._move(each)
                if name in self._wrong and each.dtype in self._wrong_in:
                    self.spoiled[name] += 1
                    each.copy_(torch.rand(each.shape, generator=torch.Generator().manual_seed(0)))
        return made

    def _check(self, func: Any, name: str, args: Any, given: list[torch.Tensor], far: list[bool]) -> None:
        if name == "__getitem__" and (far[0] or not any(each.dim() for each in given[1:])):
            return
        near = [each for each, is_far in zip(given, far, strict=True) if not is_far and each.dim()]
        if near:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {self.card} and cpu! (in {resolve_name(func) or name})"
            )

    def _sent(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """Handle Tensor.to in its three forms: to a device, to a dtype, like another tensor."""
        tensor, rest = args[0], list(args[1:])
        place = kwargs.pop("device", None)
        if rest and isinstance(rest[0], torch.Tensor):
            like = rest[0]
            place, rest = like.device if like.is_meta else self.card if self.is_far(like) else HERE, [like.dtype, *rest[1:]]
        elif rest and isinstance(rest[0], torch.device | str | int | None):
            place, rest = rest[0], rest[1:]
        if place is None:
            place = tensor.device if tensor.is_meta else self.card if self.is_far(tensor) else HERE
        return self._to(tensor, torch.device(place), rest, kwargs)

    def _to(self, tensor: torch.Tensor, place: torch.device, rest: Any, kwargs: dict[str, Any]) -> Any:
        if tensor.is_meta or place.type == "meta":
            return tensor.to(place, *rest, **kwargs)
        far = place.type == self.card.type
        if far or self.is_far(tensor):
            self.reach()
        made = tensor.to(HERE, *rest, **kwargs)
        if self.is_far(tensor) != far:
            self.sent_bytes += made.nbytes if far else 0
            self.returned_bytes += 0 if far else made.nbytes
            made = made.clone() if _place(made) == _place(tensor) else made
        return self._move(made) if far else made


def _read_at_start(tensor: torch.Tensor) -> torch.Tensor:
    """Return what Metal in torch 2.12 and 2.13 takes a processor's scalar for: the first element of its storage."""
    return tensor if tensor.dim() else tensor.as_strided((), (), 0)


def _list_tensors(*given: Any) -> list[torch.Tensor]:
    """List what has data, an argument before what lies within one. torch's own walk over trees takes as long as all else here."""
    found, waiting = [], list(given)
    for each in waiting:  # which grows
        if isinstance(each, torch.Tensor):
            if not each.is_meta:
                found.append(each)
        elif isinstance(each, tuple | list):
            waiting.extend(each)
        elif isinstance(each, dict):
            waiting.extend(each.values())
    return found


def _place(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


class _Stream(contextlib.nullcontext[None]):
    def synchronize(self) -> None: ...
    def wait_stream(self, other: Any) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def record_event(self) -> _Stream:
        return self


@contextlib.contextmanager
def separate_memory(
    device: str = "cuda", wrong: Collection[str] = (), wrong_in: Collection[torch.dtype] = _FLOATS
) -> Iterator[SeparateMemory]:
    """Provide a device of this name, cuda or mps, to this thread, which lends it to painting threads; the CPU does its work."""
    memory = SeparateMemory(device, wrong, wrong_in)

    def iterate_reports(work: Any) -> Any:
        def work_on_card(report: Any) -> None:
            with memory.lent():
                work(report)

        return worker_thread.iterate_reports(work_on_card)

    def asked(answer: Any) -> Callable[..., Any]:
        def ask(*_: Any) -> Any:
            memory.reach()
            return answer() if callable(answer) else answer

        return ask

    bytes_now: dict[str, dict[str, Any]] = {
        "cuda": {
            "is_initialized": lambda: True,
            "memory_stats_as_nested_dict": asked(
                lambda: {name: {"all": {"current": memory.held_bytes}} for name in ("reserved_bytes", "allocated_bytes")}
            ),
            "mem_get_info": asked((8 << 30, 8 << 30)),
            "empty_cache": memory.empty_cache,
            "synchronize": asked(None),
            "current_device": lambda: 0,
            "Stream": lambda *_, **__: _Stream(),
            "stream": lambda *_: contextlib.nullcontext(),
            "current_stream": lambda *_: _Stream(),
        },
        "mps": {
            "recommended_max_memory": asked(8 << 30),
            "current_allocated_memory": asked(lambda: memory.held_bytes),
            "driver_allocated_memory": asked(lambda: memory.driver_bytes),
            "empty_cache": memory.empty_cache,
            "synchronize": asked(None),
        },
    }
    with contextlib.ExitStack() as around:
        for name, what in bytes_now[device].items():
            around.enter_context(patch(f"torch.{device}.{name}", what))
        around.enter_context(patch("torch.cuda.is_available", lambda: device == "cuda"))
        around.enter_context(patch("torch.backends.mps.is_available", lambda: device == "mps"))
        around.enter_context(patch("diffusers.pipelines.pipeline_utils.get_device", lambda: device))
        around.enter_context(patch.object(painter, "iterate_reports", iterate_reports))
        around.enter_context(memory)
        yield memory
