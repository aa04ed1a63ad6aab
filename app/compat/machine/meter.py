"""Read memory without resetting anything; ask torch only if it is already imported, and only in the thread that owns the device."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType

import psutil

from app.compat.machine.free_memory import read_available_bytes


@dataclass(frozen=True, slots=True)
class Reading:
    """Memory in bytes at one moment; None where this machine has no such value."""

    process_bytes: int = 0
    device_bytes: int | None = None
    """This process holds so much of the device's memory: what CUDA reserved, or Metal's driver holds."""
    allocated_bytes: int | None = None
    """Live tensors fill so much of it."""
    highest_bytes: int = 0
    """The memory that counts here (the device's if it has its own, else the process's) was never seen to take more."""
    limit_bytes: int = 0
    """Past this it swaps or fails."""
    free_bytes: int = 0
    """This process could still take so much; cached blocks, which are reusable, count too."""
    system_free_bytes: int = 0
    system_bytes: int = 0
    """The whole computer has so much memory; 0: it was not read."""
    swap_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Device:
    held_bytes: int
    allocated_bytes: int
    limit_bytes: int
    free_bytes: int
    unified: bool


SWAP_EVERY_S = 1.0
"""Swap changes slowly, and reading it is the most expensive query on some systems."""


class Meter:
    """Memory readings with their own peak: torch has one peak counter per process, which others may need."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._highest_bytes = 0
        self._swap_bytes = 0
        self._swap_read_s = -SWAP_EVERY_S

    def read(self) -> Reading:
        return self._read(_device)

    def read_beside(self, owners: Reading) -> Reading:
        """Read the process and the computer, from any thread; the device's values stay as its owner last read them."""
        reading = self._read(lambda _: None)
        if owners.device_bytes is None:
            return reading
        return replace(
            reading,
            device_bytes=owners.device_bytes,
            allocated_bytes=owners.allocated_bytes,
            highest_bytes=owners.highest_bytes,
            limit_bytes=owners.limit_bytes,
            free_bytes=owners.free_bytes,
        )

    def _read(self, ask: Callable[[int], _Device | None]) -> Reading:
        process_bytes, system = self._process.memory_info().rss, psutil.virtual_memory()
        available = read_available_bytes()
        device = ask(available)
        if device is None:
            counts, limit_bytes = process_bytes, process_bytes + available
        elif device.unified:
            # Metal's buffers are only partly in the process's resident memory: the larger value is closer to the truth.
            counts, limit_bytes = max(process_bytes, device.held_bytes), device.limit_bytes
        else:
            counts, limit_bytes = device.held_bytes, device.limit_bytes
        self._highest_bytes = max(self._highest_bytes, counts)
        if time.monotonic() - self._swap_read_s >= SWAP_EVERY_S:
            self._swap_bytes = _swap_bytes()
            self._swap_read_s = time.monotonic()
        return Reading(
            process_bytes=process_bytes,
            device_bytes=device.held_bytes if device else None,
            allocated_bytes=device.allocated_bytes if device else None,
            highest_bytes=self._highest_bytes,
            limit_bytes=limit_bytes,
            free_bytes=device.free_bytes if device else available,
            system_free_bytes=available,
            system_bytes=system.total,
            swap_bytes=self._swap_bytes,
        )


def read() -> Reading:
    """Take one reading without earlier ones: its peak is the present value."""
    return Meter().read()


def read_beside(owners: Reading) -> Reading:
    """Take one reading without asking the device."""
    return Meter().read_beside(owners)


def _swap_bytes() -> int:
    try:
        return psutil.swap_memory().used
    except (RuntimeError, OSError):  # Windows with broken performance counters cannot tell.
        return 0


def _device(available_bytes: int) -> _Device | None:
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.__spec__, "_initializing", False):
        return None
    if torch.cuda.is_initialized():  # otherwise asking would create a context of some hundred megabytes
        return _cuda(torch)
    if torch.backends.mps.is_available():
        limit_bytes, allocated_bytes = torch.mps.recommended_max_memory(), torch.mps.current_allocated_memory()
        held_bytes = torch.mps.driver_allocated_memory()
        # Metal's own count leaves out other programs, the system's leaves out Metal's limit.
        free_bytes = min(max(0, limit_bytes - allocated_bytes), available_bytes + max(0, held_bytes - allocated_bytes))
        return _Device(held_bytes, allocated_bytes, limit_bytes, free_bytes, unified=True)
    return None


def _cuda(torch: ModuleType) -> _Device:
    # One nested dictionary: memory_reserved() and memory_allocated() would each build, flatten and sort it again.
    stats = torch.cuda.memory_stats_as_nested_dict()
    held_bytes = stats["reserved_bytes"]["all"]["current"]
    free_bytes, _total_bytes = torch.cuda.mem_get_info()
    allocated_bytes = stats["allocated_bytes"]["all"]["current"]
    return _Device(
        held_bytes=held_bytes,
        allocated_bytes=allocated_bytes,
        limit_bytes=held_bytes + free_bytes,  # memory of other programs is not available
        free_bytes=free_bytes + held_bytes - allocated_bytes,
        unified=False,
    )
